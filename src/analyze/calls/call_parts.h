// call_parts.h: the parts of each suspended call, and the task that the call belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <marey/suspended_calls.h>
#include <marey/trace.h>

namespace marey {

/// A call: its process and its id within the process.
using CallKey = std::pair<Row, std::uint64_t>;

struct CallParts {
    SuspendedCall call;
    std::uint64_t task_call = 0;                        ///< call of the task's coroutine; 0: unknown
    std::vector<std::pair<std::int64_t, Row>> threads;  ///< start and thread of each part
};

/// A call belongs to a task if it is the call of the task's coroutine, or if its first part is directly
/// inside a part of a call that belongs to the task (calls into C in between are ignored).
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
