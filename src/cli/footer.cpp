// footer.cpp: the lines below every table: events kept and dropped, recording cost, clock accuracy.
#include "cli/footer.h"

#include <fmt/format.h>

#include <algorithm>

#include <marey/analyze.h>
#include <marey/host_clocks.h>
#include <marey/live.h>
#include <marey/process_end.h>
#include <marey/range_filter.h>

#include "cli/text_format.h"

namespace marey::cli {

std::string fact_line(std::string_view title, const std::string& value, const Terminal& terminal) {
    if (value.empty()) return "";
    return styled(terminal, Style::Dim, fmt::format("{:<9} ", title)) + value + "\n";
}

std::string title_line(std::string_view title, const std::string& value, const Terminal& terminal) {
    return styled(terminal, Style::Bold, fmt::format("{:<13}", title)) + value + "\n";
}

std::string thread_label(const Trace& trace, Row thread) {
    if (thread >= trace.threads().size()) return "?";
    const ThreadInfo& info = trace.threads()[thread];
    const std::string name = printable(trace.string(info.name));
    return name.empty() ? fmt::format("thread {}", info.id) : name;
}

std::string device_label(const Trace& trace, Row process, const Device& device) {
    std::string text = device_type_name(device.type);
    if (device.index >= 0) text += fmt::format(" {}", device.index);
    if (trace.processes().size() > 1 && process < trace.processes().size())
        text += fmt::format(" of process {}", trace.processes()[process].pid);
    return text;
}

std::uint64_t dropped_events(const Trace& trace) {
    std::uint64_t dropped = 0;
    for (const ThreadInfo& thread : trace.threads()) dropped += thread.dropped;
    return dropped;
}

std::string events_fact(const Trace& trace) {
    const std::uint64_t ranges = trace.ranges().size();
    const std::uint64_t instants = trace.instants().size();
    const std::uint64_t counters = trace.counters().size();
    const std::uint64_t reports = trace.memory().size();
    std::uint64_t overwritten = 0;
    for (const ThreadInfo& thread : trace.threads()) overwritten += thread.overwritten_chunks;
    std::string text =
        fmt::format("{} kept ({}",
                    format_plural(ranges + instants + counters + reports + trace.samples().size(), "event"),
                    format_plural(ranges, "range"));
    if (instants > 0) text += ", " + format_plural(instants, "instant");
    if (counters > 0) text += ", " + format_plural(counters, "counter value");
    if (reports > 0) text += ", " + format_plural(reports, "allocation report");
    if (trace.samples().size() > 0) text += ", " + format_plural(trace.samples().size(), "sample");
    text += "), " + format_count(dropped_events(trace)) + " dropped";
    if (overwritten > 0)
        text += ", " + format_plural(overwritten, "old chunk") + " overwritten in the ring buffer";
    return text;
}

std::string overhead_fact(const Trace& trace) {
    const Overhead overhead = estimate_overhead(trace);
    if (!overhead.known) return "unknown (the capture has no measured costs)";
    std::string text = fmt::format("about {} in total", format_duration(overhead.total_ns));
    if (overhead.busiest_thread != kNoRow) {
        text += fmt::format(", {} of the window on the busiest thread ({})",
                            format_fine_share(overhead.busiest_share),
                            thread_label(trace, overhead.busiest_thread));
    }
    return text;
}

std::string imports_fact(std::int64_t time_ns, const std::string& whole) {
    if (time_ns == 0) return "";
    return fmt::format("{} {} (--show-importlib shows the frames of importlib)", format_duration(time_ns),
                       whole);
}

std::string imports_fact(const Trace& trace) {
    const WindowInfo& window = trace.window();
    const std::string whole = trace.processes().size() > 1
                                  ? "in all processes"
                                  : "of " + format_duration(window.end_ns - window.start_ns);
    return imports_fact(import_time_ns(trace), whole);
}

namespace {

std::string error_text(std::int64_t error_ns) {
    return error_ns == kUnknownClockError ? "unknown error" : "+-" + format_duration(error_ns);
}

/// "some/file.py(3): f <- g <- <module>": the file and line of the innermost range only.
std::string stack_text(const Trace& trace, const std::vector<Row>& ranges) {
    constexpr std::size_t kShown = 8;
    std::string text;
    for (std::size_t i = 0; i < std::min(ranges.size(), kShown); ++i) {
        const std::string name = printable(trace.range_name(ranges[i]));
        const std::size_t place = name.find("): ");
        text += i == 0 ? name : " <- " + name.substr(place == name.npos ? 0 : place + 3);
    }
    if (ranges.size() > kShown) text += fmt::format(" <- ... ({} more)", ranges.size() - kShown);
    return text;
}

std::string death_lines(const Trace& trace, const Terminal& terminal) {
    const std::optional<ProcessEnd> end = process_end(trace);
    const bool is_closed = !trace.has_problem("crashed");
    if (is_closed && (!end || end->signal == 0)) return "";
    const std::string how =
        !end               ? "ended without closing its capture; the cause is unknown (marey run "
                             "records it)"
        : end->signal != 0 ? "died of " + signal_name(end->signal)
                           : fmt::format("exited with code {} without closing its capture", end->exit_code);
    const std::vector<OpenStack> stacks = is_closed ? std::vector<OpenStack>() : open_stacks(trace);
    std::string text = styled(terminal, Style::Red, "the program " + how);
    if (stacks.size() == 1) return text + " in " + stack_text(trace, stacks[0].ranges) + "\n\n";
    text += "\n";
    for (const OpenStack& stack : stacks)
        text +=
            fmt::format("  {}: in {}\n", thread_label(trace, stack.thread), stack_text(trace, stack.ranges));
    return text + "\n";
}

}  // namespace

void HostsAgreement::add(std::string_view host, std::int64_t error_ns, std::string_view its_evidence) {
    best_ns = std::min(best_ns, error_ns);
    if (error_ns <= worst_ns) return;
    worst_ns = error_ns;
    worst = host;
    evidence = printable(its_evidence);
}

std::string hosts_fact(const HostsAgreement& agreement) {
    std::string text =
        fmt::format("{}, reference {}: worst {} ({}{}{})", format_plural(agreement.hosts, "host"),
                    printable(agreement.reference), error_text(agreement.worst_ns),
                    printable(agreement.worst), agreement.evidence.empty() ? "" : ": ", agreement.evidence);
    if (agreement.hosts > 2) text += ", best " + error_text(agreement.best_ns);
    return text;
}

std::string hosts_fact(const Trace& trace) {
    HostsAgreement agreement{.hosts = trace.host_clocks().size()};
    if (agreement.hosts < 2) return "";
    for (const HostClockInfo& clock : trace.host_clocks()) {
        agreement.reference = trace.string(clock.reference);
        if (trace.string(clock.method) != "reference")
            agreement.add(trace.string(clock.host), clock.error_ns, trace.string(clock.evidence));
    }
    return hosts_fact(agreement);
}

std::string clock_fact(const Trace& trace) {
    const ClockInfo& clock = trace.clock();
    std::string text = clock.source.empty() ? "unknown" : printable(clock.source);
    if (clock.ticks_per_second > 0) text += fmt::format(" at {:.6g} MHz", clock.ticks_per_second / 1e6);
    if (clock.pairs == 0) {
        text += ", accuracy unknown";
    } else {
        text += fmt::format(", {}, accurate to {}", format_plural(clock.pairs, "clock pair"),
                            format_duration(clock.max_error_ns));
        if (clock.extrapolated) text += ", extrapolated at the end";
    }
    if (const std::string hosts = hosts_fact(trace); !hosts.empty()) text += "; " + hosts;
    if (const auto gpu = gpu_clock(trace)) {
        text += fmt::format("; device times accurate to {} ({}", format_duration(gpu->worst_error_ns),
                            format_plural(static_cast<std::uint64_t>(gpu->readings), "reading"));
        if (gpu->readings > 1) text += ", median " + format_duration(gpu->median_error_ns);
        text += ")";
    }
    return text;
}

std::string end_lines(const Trace& trace, const Terminal& terminal) {
    const std::optional<SnapshotReason> reason = snapshot_reason(trace);
    const std::string why =
        reason ? styled(terminal, Style::Red, "snapshot: " + printable(reason->text)) + "\n\n" : "";
    return why + death_lines(trace, terminal);
}

bool is_sampled(const Trace& trace) {
    const auto flags = trace.ranges().flags;
    return std::ranges::any_of(flags, [](std::uint16_t its) { return (its & kSampled) != 0; });
}

bool is_summed(const Trace& trace) {
    const auto flags = trace.ranges().flags;
    const auto details = trace.range_details();
    return std::ranges::any_of(
        details, [&](const RangeDetail& detail) { return (flags[detail.range] & kSampled) != 0; });
}

std::string times_fact(const Trace& trace) {
    if (is_summed(trace)) return "calls and self times are exact, total times are estimates";
    if (is_sampled(trace)) return "estimated from samples";
    if (trace.samples().size() != 0 && trace.ranges().size() == 0)
        return "CPU time and waits, estimated from samples";
    return "wall time: waiting and preemption are included, not measured separately";
}

std::string window_fact(const Trace& trace) {
    const WindowInfo& window = trace.window();
    std::string text = fmt::format("{} on {}", format_duration(window.end_ns - window.start_ns),
                                   format_plural(trace.threads().size(), "thread"));
    if (trace.has_problem("running")) {
        text += "; the program is still running";
    } else if (!window.finished) {
        text += "; not finished: the program crashed, was killed or is still running";
    }
    return text;
}

std::string problem_lines(const Trace& trace, const Terminal& terminal) {
    std::string text;
    for (const ProblemInfo& problem : trace.problems()) {
        std::string line = "problem: " + printable(problem.text.empty() ? problem.code : problem.text);
        // Most texts contain the count; append it to those that do not.
        if (problem.count > 1 && line.find_first_of("0123456789") == line.npos)
            line += fmt::format(" ({} times)", format_count(problem.count));
        text += styled(terminal, Style::Red, line) + "\n";
    }
    return text;
}

std::string footer(const Trace& trace, const Terminal& terminal) {
    return fact_line("events", events_fact(trace), terminal) +
           fact_line("window", window_fact(trace), terminal) +
           fact_line("times", times_fact(trace), terminal) +
           fact_line("overhead", overhead_fact(trace), terminal) +
           fact_line("clock", clock_fact(trace), terminal) + problem_lines(trace, terminal);
}

std::string imports_line(const Trace& trace, const Terminal& terminal) {
    return fact_line("imports", imports_fact(trace), terminal);
}

}  // namespace marey::cli
