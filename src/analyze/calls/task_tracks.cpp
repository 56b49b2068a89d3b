// task_tracks.cpp: suspended calls and tasks as tables, and one track per task, built from the parts of its
// calls.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include <marey/suspended_calls.h>

#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

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

constexpr std::size_t kMaxTracks = 1000;  // for tasks with separate names; later tasks share a track

/// A task and its calls, sorted by start, outer calls first.
struct Task {
    const TaskInfo* info = nullptr;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::vector<const CallParts*> calls;
};

class TaskTracks {
  public:
    explicit TaskTracks(const Trace& trace)
        : trace_(trace),
          calls_(trace),
          data_(std::make_shared<TraceData>(trace.data())),
          strings_(data_->strings) {}

    Trace make() {
        data_->own_ranges();
        run_ = strings_.intern("run");
        await_ = strings_.intern("await");
        find_tasks();
        place_tasks();
        for (const auto& [name, lane] : order_) add_track(lanes_[lane]);
        return Trace(std::move(data_));
    }

  private:
    struct Lane {
        StringId name = 0;
        std::int64_t end_ns = 0;
        std::vector<const Task*> tasks;
    };

    void find_tasks() {
        std::map<CallKey, std::size_t> index;
        for (const TaskInfo& info : trace_.task_names()) {
            const CallParts* const own = calls_.find({info.process, info.call});
            if (own == nullptr) continue;
            index.emplace(CallKey(info.process, info.call), tasks_.size());
            tasks_.push_back({&info, own->call.start_ns, own->call.end_ns, {}});
        }
        for (const CallParts& parts : calls_.calls()) {
            const auto place = index.find({parts.call.process, parts.task_call});
            if (place != index.end()) tasks_[place->second].calls.push_back(&parts);
        }
        for (Task& task : tasks_) {
            std::ranges::sort(task.calls, [](const CallParts* a, const CallParts* b) {
                const auto key = [](const CallParts& parts) {
                    return std::tuple(parts.call.start_ns, -parts.call.end_ns, parts.call.number);
                };
                return key(*a) < key(*b);
            });
        }
        std::ranges::stable_sort(tasks_, {}, &Task::start_ns);
    }

    // Uses the first lane with the task's name that is free at that time.
    void place_tasks() {
        std::map<std::pair<Row, StringId>, std::multimap<std::int64_t, std::size_t>> free;  // by end time
        std::map<std::pair<Row, StringId>, std::size_t> counts;
        const StringId shared = strings_.intern("tasks");
        for (const Task& task : tasks_) {
            const bool is_known = counts.count({task.info->process, task.info->name}) != 0;
            const StringId name = is_known || lanes_.size() < kMaxTracks ? task.info->name : shared;
            const std::pair key{task.info->process, name};
            auto& ends = free[key];
            std::size_t lane = lanes_.size();
            if (!ends.empty() && ends.begin()->first <= task.start_ns) {
                lane = ends.begin()->second;
                ends.erase(ends.begin());
            } else {
                const std::size_t number = ++counts[key];
                const std::string text(trace_.string(task.info->name));
                const std::string base = name == shared ? "tasks" : text;
                lanes_.push_back({number == 1 ? strings_.intern(base)
                                              : strings_.intern(base + " " + std::to_string(number)),
                                  0,
                                  {}});
                order_.emplace_back(name, lane);
            }
            lanes_[lane].tasks.push_back(&task);
            ends.emplace(task.end_ns, lane);
        }
    }

    void add_track(const Lane& lane) {
        const CallParts* const own = calls_.find({lane.tasks[0]->info->process, lane.tasks[0]->info->call});
        TrackInfo track{.kind = TrackKind::Async,
                        .thread = std::ranges::min_element(own->threads)->second,
                        .name = lane.name,
                        .first_range = static_cast<Row>(data_->range_start_ns.size())};
        for (const Task* const task : lane.tasks) add_task(*task);
        track.range_count = static_cast<Row>(data_->range_start_ns.size()) - track.first_range;
        data_->tracks.push_back(track);
    }

    void add_task(const Task& task) {
        const CallParts& own = *calls_.find({task.info->process, task.info->call});
        SiteInfo site{.name = task.info->name, .scope = Scope::PythonFunction};
        data_->sites.push_back(site);
        const auto row = add_row(static_cast<std::uint32_t>(data_->sites.size() - 1), own.call, kNoRow, 0);
        data_->range_details.push_back({row, -1, 0, 0, own.call.number, kWholeCall | kTask});
        data_->range_arguments.push_back({row, static_cast<std::uint32_t>(data_->arguments.size()), 2});
        add_value(run_, own.call.running_ns);
        add_value(await_, own.call.suspended_ns);
        // A call that partially overlaps another one is not shown.
        std::vector<std::pair<Row, std::int64_t>> open{{row, task.end_ns}};
        for (const CallParts* const parts : task.calls) {
            const SuspendedCall& call = parts->call;
            while (open.size() > 1 && open.back().second <= call.start_ns) open.pop_back();
            if (call.end_ns > open.back().second || call.start_ns < data_->range_start_ns[open.back().first])
                continue;
            const Row made = add_row(trace_.ranges().site[call.first_part], call, open.back().first,
                                     static_cast<std::uint32_t>(open.size()));
            data_->range_details.push_back({made, -1, 0, 0, call.number, kWholeCall});
            open.emplace_back(made, call.end_ns);
        }
    }

    Row add_row(std::uint32_t site, const SuspendedCall& call, Row parent, std::uint32_t depth) {
        const auto row = static_cast<Row>(data_->range_start_ns.size());
        data_->range_start_ns.push_back(call.start_ns);
        data_->range_duration_ns.push_back(call.end_ns - call.start_ns);
        data_->range_self_ns.push_back(0);
        data_->range_site.push_back(site);
        data_->range_parent.push_back(parent);
        data_->range_depth.push_back(depth);
        data_->range_flags.push_back(kAsync);
        return row;
    }

    void add_value(StringId key, std::int64_t number) {
        Argument value;
        value.key = key;
        value.kind = ValueKind::Int;
        value.integer = number;
        data_->arguments.push_back(value);
    }

    const Trace& trace_;
    CallPartTable calls_;
    std::shared_ptr<TraceData> data_;
    StringPool strings_;
    std::vector<Task> tasks_;
    std::vector<Lane> lanes_;
    std::vector<std::pair<StringId, std::size_t>> order_;
    StringId run_ = 0;
    StringId await_ = 0;
};

void sort_by_start(auto& rows) {
    std::ranges::stable_sort(rows, {}, [](const auto& row) { return std::pair(row.start_ns, row.number); });
}

}  // namespace

Trace with_task_tracks(const Trace& trace) {
    return trace.task_names().empty() ? trace : TaskTracks(trace).make();
}

std::vector<SuspendedCall> suspended_calls(const Trace& trace) {
    CallPartTable calls(trace);
    std::vector<SuspendedCall> rows;
    rows.reserve(calls.calls().size());
    for (const CallParts& parts : calls.calls()) rows.push_back(parts.call);
    sort_by_start(rows);
    return rows;
}

std::vector<TaskTimes> tasks(const Trace& trace) {
    std::vector<TaskTimes> rows;
    if (trace.task_names().empty()) return rows;
    CallPartTable calls(trace);
    for (const TaskInfo& known : trace.task_names()) {
        CallParts* const parts = calls.find({known.process, known.call});
        if (parts == nullptr) continue;
        const SuspendedCall& call = parts->call;
        TaskTimes task{.number = known.call,
                       .process = known.process,
                       .name = known.name,
                       .coroutine = trace.sites()[trace.ranges().site[call.first_part]].name,
                       .start_ns = call.start_ns,
                       .end_ns = call.end_ns,
                       .run_ns = call.running_ns,
                       .await_ns = call.suspended_ns,
                       .steps = call.parts,
                       .is_finished = call.is_finished};
        std::ranges::sort(parts->threads);
        for (const auto& [start, thread] : parts->threads) {
            if (std::ranges::find(task.threads, thread) == task.threads.end()) task.threads.push_back(thread);
        }
        rows.push_back(std::move(task));
    }
    sort_by_start(rows);
    return rows;
}

}  // namespace marey
