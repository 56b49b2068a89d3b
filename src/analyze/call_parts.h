// call_parts.h: the parts of each call that was suspended, and the task that it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <marey/suspended_calls.h>
#include <marey/trace.h>

namespace marey {

/// A call: its process and its number there.
using CallKey = std::pair<Row, std::uint64_t>;

struct CallParts {
    SuspendedCall call;
    std::uint64_t task_call = 0;                        ///< that of the task's coroutine; 0: none is known
    std::vector<std::pair<std::int64_t, Row>> threads;  ///< of each part: its start and thread
};

/// A call is a task's when the task's coroutine is, or when its first part lies directly in a part of a call
/// that is (calls into C between them do not count).
class CallPartTable {
  public:
    explicit CallPartTable(const Trace& trace);

    std::vector<CallParts>& calls() noexcept { return calls_; }
    CallParts* find(const CallKey& key);

  private:
    void add(const CallKey& key, const RangeDetail& detail, Row thread);
    void find_task(CallParts& parts, Row row);

    const Trace& trace_;
    std::map<CallKey, std::size_t> index_;
    std::vector<CallParts> calls_;
};

}  // namespace marey
