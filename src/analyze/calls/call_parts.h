// call_parts.h: the parts of each suspended call, and the task that the call belongs to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

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
    explicit CallPartTable(const Trace& trace) : trace_(trace) {
        const std::span<const TrackInfo> tracks = trace.tracks();
        std::size_t track = 0;
        for (const RangeDetail& detail : trace.range_details()) {
            if (detail.call == 0 || (detail.part & kWholeCall) != 0) continue;
            while (detail.range >= tracks[track].first_range + tracks[track].range_count) ++track;
            const Row thread = tracks[track].thread;
            add({trace.threads()[thread].process, detail.call}, detail, thread);
        }
        for (CallParts& parts : calls_) {
            SuspendedCall& call = parts.call;
            call.suspended_ns = std::max<std::int64_t>(call.end_ns - call.start_ns - call.running_ns, 0);
        }
    }

    std::vector<CallParts>& calls() noexcept { return calls_; }
    CallParts* find(const CallKey& key) {
        const auto place = index_.find(key);
        return place == index_.end() ? nullptr : &calls_[place->second];
    }

  private:
    void add(const CallKey& key, const RangeDetail& detail, Row thread) {
        const auto [place, is_new] = index_.try_emplace(key, calls_.size());
        if (is_new) calls_.emplace_back();
        CallParts& parts = calls_[place->second];
        SuspendedCall& call = parts.call;
        const RangeColumns ranges = trace_.ranges();
        const std::int64_t end = ranges.start_ns[detail.range] + ranges.duration_ns[detail.range];
        const std::int64_t start = end - trace_.clipped_duration_ns(detail.range);
        if (is_new) {
            call.number = key.second;
            call.process = key.first;
            call.began_before = true;
            call.start_ns = start;
            call.end_ns = end;
            call.first_part = detail.range;
            find_task(parts, detail.range);
        } else if (start < call.start_ns) {
            call.first_part = detail.range;
        }
        call.start_ns = std::min(call.start_ns, start);
        call.end_ns = std::max(call.end_ns, end);
        call.running_ns += end - start;
        ++call.parts;
        if ((detail.part & kFirstPart) != 0) call.began_before = false;
        if ((detail.part & kLastPart) != 0) call.is_finished = true;
        parts.threads.emplace_back(start, thread);
    }
    void find_task(CallParts& parts, Row row) {
        const std::span<const TaskInfo> tasks = trace_.task_names();
        const CallKey key{parts.call.process, parts.call.number};
        const auto own = std::lower_bound(tasks.begin(), tasks.end(), key,
                                          [](const TaskInfo& task, const CallKey& wanted) {
                                              return CallKey(task.process, task.call) < wanted;
                                          });
        if (own != tasks.end() && CallKey(own->process, own->call) == key) {
            parts.task_call = own->call;
            parts.call.task = own->name;
            return;
        }
        const RangeColumns ranges = trace_.ranges();
        Row parent = ranges.parent[row];
        while (parent != kNoRow && trace_.sites()[ranges.site[parent]].scope == Scope::CFunction)
            parent = ranges.parent[parent];
        const RangeDetail* const detail = parent == kNoRow ? nullptr : trace_.range_detail(parent);
        if (detail == nullptr || detail->call == 0) return;
        if (const CallParts* const outer = find({key.first, detail->call})) {
            parts.task_call = outer->task_call;
            parts.call.task = outer->call.task;
        }
    }

    const Trace& trace_;
    std::map<CallKey, std::size_t> index_;
    std::vector<CallParts> calls_;
};

}  // namespace marey
