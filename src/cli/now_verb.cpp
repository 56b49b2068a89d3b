// now_verb.cpp: marey now: what running programs are doing, and what those that died were doing.
#include <time.h>

#include <algorithm>

#include <marey/live.h>
#include <marey/now.h>
#include <marey/outside.h>
#include <marey/process_end.h>
#include <marey/ranks.h>
#include <marey/results.h>

#include "cli/capture_files.h"
#include "cli/finding_line.h"
#include "cli/footer.h"
#include "cli/outside_text.h"
#include "cli/result_argument.h"
#include "cli/thread_start.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::int64_t kUnusual = 2;  // times as long as usual

std::int64_t wall_clock_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

class NowVerb final : public Verb {
  public:
    const char* help() const override { return "Show what running or dead programs are doing"; }
    const char* details() const override {
        return "WHAT is the number of a process, a capture, which stands for all processes of its run, or a\n"
               "folder of captures; nothing: all programs that are being recorded (marey ps). The open "
               "ranges\n"
               "of each thread are shown, innermost first. The program takes no part in this: it works "
               "while\n"
               "the program hangs, and after it was killed. With the captures of several ranks, findings "
               "come\n"
               "first. Of a process that is not recorded, all threads are shown with what they wait for and "
               "their\n"
               "native and Python frames (Python 3.11 to 3.14; marey doctor --pid PID). The main table is "
               "now_ranges in docs/reference/results.md.";
    }
    void declare(Options& options) override {
        options.optional(words_, "WHAT", "Processes, captures or folders");
        options.flag(all_, "--all", "All programs that are being recorded");
        output_.declare(options);
    }
    int run() override {
        output_.check();
        if (all_ && !words_.empty()) throw Error("now: --all and " + words_[0] + " are mutually exclusive");
        Result result = make_result({}, "now");
        RankReader ranks;
        std::ptrdiff_t rank_count = 0;
        std::string text;
        std::vector<std::int64_t> unrecorded;
        const std::vector<std::string> paths = captures_now(words_, "now", &unrecorded);
        const bool is_only = paths.size() + unrecorded.size() == 1;
        for (const std::int64_t pid : unrecorded) {
            try {
                const OutsideProcess process = look_at_process(pid);
                add(result, now_result(process));
                text += outside_text(process, terminal_);
            } catch (const Error& error) {
                if (is_only) throw;
                print_error(fmt::format("marey: now: skipped: {}\n", printable(error.what())));
            }
        }
        for (const std::string& path : paths) {
            try {
                const Trace trace = load_newest(path);
                add(result, now_result(trace, path));
                for (const ProcessNow& process : now(trace)) text += process_text(trace, process);
                const auto with_rank = std::ranges::count_if(
                    trace.processes(), [](const ProcessInfo& each) { return each.node >= 0; });
                if (with_rank > 0) ranks.add(trace);
                rank_count += with_rank;
            } catch (const Error& error) {
                print_error(fmt::format("marey: now: skipped: {}\n", printable(error.what())));
            }
        }
        if (text.empty()) throw Error("now: nothing could be read");
        return output_.print(result, [&] {
            // Performance problems need more than the newest part.
            const std::string faults =
                rank_count > 1 ? rank_findings(ranks.report(), true, terminal_) : std::string();
            return faults + (faults.empty() ? "" : "\n") + text;
        });
    }

  private:
    static void add(Result& result, const Result& part) {
        for (std::size_t i = 0; i < part.tables.size(); ++i) result.tables[i].append(part.tables[i]);
    }

    std::string process_text(const Trace& trace, const ProcessNow& process) const {
        const ProcessInfo& info = trace.processes()[process.process];
        std::string title = fmt::format("{} {}", ended_process(trace, process.process).program, info.pid);
        if (info.node >= 0) title += fmt::format(", rank {}", info.node);
        if (const std::int32_t ranks = world_size(trace); info.node >= 0 && ranks > 0)
            title += fmt::format(" of {}", ranks);
        std::string text =
            styled(terminal_, Style::Bold, printable(title)) + ", " + state_text(trace, process) + "\n";
        std::size_t width = 0;
        for (const ThreadNow& thread : process.threads)
            width = std::max(width, display_width(thread_name(trace, thread)));
        for (const ThreadNow& thread : process.threads) {
            const std::string name = thread_name(trace, thread);
            text += "  " + name + std::string(width - display_width(name), ' ') + "  " +
                    stack_text(trace, thread, width + 4) + "\n";
        }
        if (process.other_threads > 0) {
            text += fmt::format("  {}{} without an open range\n", process.threads.empty() ? "" : "and ",
                                format_plural(process.other_threads, "thread"));
        }
        for (const DeviceNow& device : process.devices)
            text += "  " + device_text(trace, process, device) + "\n";
        if (process.in_flight > 0)
            text += fmt::format("  device work of {} has not ended, or was not reported yet\n",
                                format_plural(process.in_flight, "call"));
        constexpr std::size_t kMostTasks = 10;
        for (const TaskNow& task :
             std::span(process.tasks).first(std::min(process.tasks.size(), kMostTasks))) {
            const StringId place = task.awaits != 0 ? task.awaits : task.coroutine;
            text += fmt::format("  {} waits: {} {}{}\n", printable(trace.string(task.name)),
                                printable(trace.string(place)), format_duration(task.suspended_ns),
                                task.awaits == 0 ? "" : "  <  " + printable(trace.string(task.coroutine)));
        }
        if (process.tasks.size() > kMostTasks)
            text += fmt::format("  and {} that wait\n",
                                format_plural(process.tasks.size() - kMostTasks, "other task"));
        return text;
    }

    /// Work is reported late, so a device is called idle only if all of it was reported.
    std::string device_text(const Trace& trace, const ProcessNow& process, const DeviceNow& device) const {
        const std::string idle = format_duration(device.idle_ns);
        const std::string text = device_label(trace, kNoRow, device.device) +
                                 (process.in_flight == 0 ? "  idle for " + idle + " after "
                                                         : "  reported until " + idle + " ago: ");
        const std::string name = printable(trace.range_name(device.last));
        if (terminal_.width == 0) return text + name;
        const std::size_t used = display_width(text) + 2;
        return text + cut_middle(name, std::max(terminal_.width, used + kLeastWidth) - used);
    }

    std::string state_text(const Trace& trace, const ProcessNow& process) const {
        const std::int64_t ended = process.end_ns + trace.processes()[process.process].realtime_offset_ns;
        const std::string ago = format_duration(std::max<std::int64_t>(wall_clock_ns() - ended, 0)) + " ago";
        switch (process.state) {
            case ProcessState::Running:
                return "recording for " + format_duration(process.end_ns - trace.window().start_ns);
            case ProcessState::Killed:
                return fmt::format("killed by {} {}", signal_name(process.exit_signal), ago);
            case ProcessState::Exited:
                return fmt::format("exited with code {} {}", process.exit_code, ago);
            case ProcessState::Ended:
                return "killed, or ended without closing its capture, " + ago;
            case ProcessState::Finished:
                break;
        }
        return "finished " + ago;
    }

    static std::string thread_name(const Trace& trace, const ThreadNow& thread) {
        const ThreadInfo& info = trace.threads()[thread.thread];
        const std::string_view name = trace.string(info.name);
        return name.empty() ? fmt::format("thread {}", info.os_tid) : printable(name);
    }

    /// "load_batch 3.91 s < ProfilerStep#3 3.95 s (usually 4 ms) < train", as far as there is room for it.
    std::string stack_text(const Trace& trace, const ThreadNow& thread, std::size_t indent) const {
        // Waiting is named by its outermost function: queue.get rather than the lock in it.
        std::size_t first = 0;
        while (first + 1 < thread.ranges.size() && thread.ranges[first].is_waiting &&
               thread.ranges[first + 1].is_waiting)
            ++first;
        std::size_t end = thread.ranges.size();
        while (end > first + 1 && is_thread_start(trace.range_name(thread.ranges[end - 1].range))) --end;
        std::string text = thread.ranges[first].is_waiting ? "waiting: " : "";
        const std::size_t room = terminal_.width > indent + kLeastWidth ? terminal_.width - indent : 0;
        bool is_timed = true;  // the innermost range, and the first that is not a C function
        for (std::size_t level = first; level < end; ++level) {
            std::string part =
                (level == first ? "" : "  <  ") + range_text(trace, thread.ranges[level], is_timed);
            const std::size_t others = end - level;
            const std::string rest = fmt::format("  <  {} more", others);
            const bool is_last = others == 1;
            if (level != first && room > 0 &&
                display_width(text) + display_width(part) + (is_last ? 0 : display_width(rest)) > room)
                return text + styled(terminal_, Style::Dim, rest);
            text += part;
            is_timed = is_timed && scope_of(trace, thread.ranges[level]) == Scope::CFunction;
        }
        return text;
    }

    static Scope scope_of(const Trace& trace, const OpenNow& open) {
        return trace.sites()[trace.ranges().site[open.range]].scope;
    }

    std::string range_text(const Trace& trace, const OpenNow& open, bool is_timed) const {
        const Scope scope = scope_of(trace, open);
        const bool is_unusual = open.usual_ns && open.open_ns > kUnusual * *open.usual_ns;
        const bool is_call = scope == Scope::PythonFunction || scope == Scope::CFunction;
        std::string text = printable(trace.range_name(open.range));
        if (is_timed || is_unusual || !is_call) text += " " + format_duration(open.open_ns);
        if (is_unusual) text += fmt::format(" (usually {})", format_duration(*open.usual_ns));
        return text;
    }

    static constexpr std::size_t kLeastWidth = 40;

    std::vector<std::string> words_;
    bool all_ = false;
    ResultArgument output_{.verb = "now", .table = "now_ranges", .row = "range"};
    Terminal terminal_ = standard_output();
};

}  // namespace

MAREY_VERB(now, NowVerb)

}  // namespace marey::cli
