// now.cpp: the open ranges of all threads, and how long such ranges usually take.
#include <marey/now.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <marey/known_waits.h>
#include <marey/process_end.h>
#include <marey/suspended_calls.h>

namespace marey {
namespace {

/// "ProfilerStep" for "ProfilerStep#3".
std::string_view name_without_number(std::string_view name) {
    const std::size_t mark = name.find_last_not_of("0123456789");
    return mark != name.npos && mark + 1 < name.size() && name[mark] == '#' ? name.substr(0, mark) : name;
}

/// The median times of finished ranges, by name.
class MedianTimes {
  public:
    explicit MedianTimes(const Trace& trace) : trace_(trace) {}

    void want(std::uint32_t site) { times_[name_of(site)]; }

    /// Reads the ranges once for all names that are wanted.
    void read() {
        std::vector<std::vector<std::int64_t>*> of_site;
        for (const SiteInfo& site : trace_.sites()) {
            const auto found = times_.find(name_without_number(trace_.string(site.name)));
            of_site.push_back(found == times_.end() ? nullptr : &found->second);
        }
        const RangeColumns ranges = trace_.ranges();
        for (Row row = 0; row < ranges.size(); ++row) {
            if (of_site[ranges.site[row]] != nullptr &&
                (ranges.flags[row] & (kUnfinished | kBeganBefore)) == 0)
                of_site[ranges.site[row]]->push_back(ranges.duration_ns[row]);
        }
        for (auto& [name, times] : times_) {
            const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
            std::nth_element(times.begin(), middle, times.end());
        }
    }

    std::optional<std::int64_t> median(std::uint32_t site) const {
        const std::vector<std::int64_t>& times = times_.at(name_of(site));
        if (times.empty()) return std::nullopt;
        return times[times.size() / 2];
    }

  private:
    std::string_view name_of(std::uint32_t site) const {
        return name_without_number(trace_.string(trace_.sites()[site].name));
    }

    const Trace& trace_;
    std::unordered_map<std::string_view, std::vector<std::int64_t>> times_;
};

ProcessNow process_now(const Trace& trace, Row process) {
    const ProcessInfo& info = trace.processes()[process];
    ProcessNow now{.process = process};
    now.exit_code = info.exit_code;
    now.exit_signal = info.exit_signal;
    now.end_ns = trace.window().end_ns;
    const bool is_alone = trace.processes().size() == 1;
    const bool is_open = is_alone ? !trace.window().finished : innermost_open_range(trace, process) != kNoRow;
    if (info.exit_signal > 0) {
        now.state = ProcessState::Killed;
    } else if (info.exit_code > 0 || (info.exit_code == 0 && is_open)) {
        now.state = ProcessState::Exited;
    } else if (is_open) {
        now.state = trace.has_problem("running") ? ProcessState::Running : ProcessState::Ended;
    }
    return now;
}

void add_tasks(const Trace& trace, std::vector<ProcessNow>& processes) {
    if (trace.task_names().empty()) return;
    // A coroutine begins after the one that awaits it.
    std::map<std::pair<Row, StringId>, const SuspendedCall*> innermost;
    const std::vector<SuspendedCall> calls = suspended_calls(trace);
    for (const SuspendedCall& call : calls) {
        if (!call.is_finished && call.task != 0) innermost[{call.process, call.task}] = &call;
    }
    for (const TaskTimes& task : tasks(trace)) {
        ProcessNow& process = processes[task.process];
        if (task.is_finished || task.end_ns >= process.end_ns || process.state == ProcessState::Finished)
            continue;
        TaskNow now{task.name, task.coroutine, 0, process.end_ns - task.end_ns};
        const auto found = innermost.find({task.process, task.name});
        if (found != innermost.end() && found->second->number != task.number)
            now.awaits = trace.sites()[trace.ranges().site[found->second->first_part]].name;
        process.tasks.push_back(now);
    }
    for (ProcessNow& process : processes)
        std::ranges::stable_sort(process.tasks, std::greater(), &TaskNow::suspended_ns);
}

void add_devices(const Trace& trace, std::vector<ProcessNow>& processes) {
    const RangeColumns ranges = trace.ranges();
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Device || track.range_count == 0) continue;
        ProcessNow& process = processes[trace.threads()[track.thread].process];
        auto known = std::ranges::find(process.devices, track.device, &DeviceNow::device);
        if (known == process.devices.end()) known = process.devices.insert(known, {.device = track.device});
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::int64_t idle = process.end_ns - ranges.start_ns[row] - ranges.duration_ns[row];
            if (known->last == kNoRow || idle < known->idle_ns) {
                known->last = row;
                known->idle_ns = std::max<std::int64_t>(idle, 0);
            }
        }
    }
    std::vector<bool> launches(trace.sites().size());
    std::vector<std::optional<std::int64_t>> newest(processes.size());  // when its newest work was launched
    for (const LinkInfo& link : trace.links()) {
        if (link.kind != LinkKind::Launch) continue;
        launches[ranges.site[link.from]] = true;
        const TrackInfo& track = trace.tracks()[trace.track_of(link.from)];
        auto& start = newest[trace.threads()[track.thread].process];
        start = std::max(start, std::optional(ranges.start_ns[link.from]));
    }
    for (const TrackInfo& track : trace.tracks()) {
        const Row process = trace.threads()[track.thread].process;
        if (track.kind == TrackKind::Device || !newest[process]) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if (launches[ranges.site[row]] && ranges.start_ns[row] > *newest[process])
                ++processes[process].in_flight;
        }
    }
}

}  // namespace

std::vector<ProcessNow> now(const Trace& trace) {
    std::vector<ProcessNow> processes;
    for (Row process = 0; process < trace.processes().size(); ++process)
        processes.push_back(process_now(trace, process));
    const RangeColumns ranges = trace.ranges();
    MedianTimes usual(trace);
    std::vector<OpenStack> stacks = open_stacks(trace);
    for (const OpenStack& stack : stacks) {
        for (const Row row : stack.ranges) usual.want(ranges.site[row]);
    }
    usual.read();
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind == TrackKind::Device) continue;
        std::int64_t& last = processes[trace.threads()[track.thread].process].last_ns;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if ((ranges.flags[row] & kUnfinished) == 0)
                last = std::max(last, ranges.start_ns[row] + ranges.duration_ns[row]);
        }
    }
    std::vector<bool> has_stack(trace.threads().size());
    for (const OpenStack& stack : stacks) {
        ThreadNow thread{stack.thread, {}};
        has_stack[stack.thread] = true;
        for (const Row row : stack.ranges) {
            const std::uint32_t site = ranges.site[row];
            thread.ranges.push_back({row, ranges.duration_ns[row], usual.median(site),
                                     is_known_wait(trace, trace.sites()[site])});
        }
        ProcessNow& process = processes[trace.threads()[stack.thread].process];
        if (const OpenNow& outer = thread.ranges.back(); trace.processes().size() > 1)
            process.end_ns = ranges.start_ns[outer.range] + ranges.duration_ns[outer.range];
        process.threads.push_back(std::move(thread));
    }
    for (Row row = 0; row < trace.threads().size(); ++row) {
        const ThreadInfo& thread = trace.threads()[row];
        if (!has_stack[row] && thread.os_tid != 0 && thread.death_ns == 0)
            ++processes[thread.process].other_threads;
    }
    add_tasks(trace, processes);
    add_devices(trace, processes);
    return processes;
}

}  // namespace marey
