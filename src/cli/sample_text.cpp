// sample_text.cpp: what samples say, as text: of reports and of the summary of a run.
#include "cli/sample_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <marey/results.h>
#include <marey/symbolize.h>

#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/result_argument.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

constexpr std::size_t kRowsOfSection = 10;

std::string rate_text(double rate) {
    return format_count(static_cast<std::uint64_t>(std::llround(std::max(rate, 0.0))));
}

/// "995 a second of CPU time, by perf_event (asked for 1,000)"; empty if it is not known.
std::string rate_fact(const Trace& trace) {
    std::string text;
    for (const SamplingInfo& info : trace.sampling()) {
        const std::string one =
            fmt::format("{} a second of CPU time, by {} (asked for {})", rate_text(info.rate_reached),
                        printable(trace.string(info.clock)), rate_text(info.rate_asked));
        if (trace.sampling().size() == 1) return ": " + one;
        text +=
            (text.empty() ? ": " : "; ") + one + fmt::format(" in {}", trace.processes()[info.process].pid);
        if (text.size() > 300) return text + "; ...";
    }
    return text;
}

}  // namespace

Trace with_function_names(Trace trace) {
    const bool has_native =
        std::ranges::any_of(trace.frames(), [](const FrameInfo& frame) { return frame.module != 0; });
    if (trace.samples().size() == 0 || !has_native) return trace;
    const Progress progress("naming functions");
    return symbolize_trace(trace, {}).trace;
}

bool has_only_samples(const Trace& trace) {
    return trace.samples().size() != 0 && std::ranges::all_of(trace.ranges().site, [&](std::uint32_t site) {
               return trace.sites()[site].scope == Scope::GarbageCollection;
           });
}

std::string sample_rows_text(const Trace& trace, const SampleReport& report, std::string_view heading,
                             std::size_t limit, const Terminal& terminal) {
    ResultTable table = sample_result(trace, report).table("sampled");
    table.columns[table.column("name")].heading = heading;
    if (heading == "line") {  // a function may have many lines
        std::vector<std::string>& names = table.values[table.column("name")].texts;
        for (std::size_t i = 0; i < names.size(); ++i) {
            const SampledRow& row = report.rows[i];
            if (row.line != 0 && !row.file.empty()) names[i] = fmt::format("{}:{}", row.file, row.line);
        }
    }
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        if (table.columns[i].unit != ResultUnit::Duration) continue;
        table.columns[i].is_estimate = true;
        std::vector<bool>& nulls = table.values[i].nulls;  // nothing instead of 0
        for (std::size_t row = 0; row < table.rows; ++row) nulls[row] = table.values[i].integers[row] == 0;
    }
    return result_lines(table, terminal, {.limit = limit});
}

std::string sample_facts(const Trace& trace, const SampleReport& report, const Terminal& terminal) {
    if (trace.samples().size() == 0) return "";
    const auto threads = trace.samples().thread;
    std::string text =
        fact_line("samples",
                  fmt::format("{} of {}{}", format_count(report.samples),
                              format_plural(std::set<Row>(threads.begin(), threads.end()).size(), "thread"),
                              rate_fact(trace)),
                  terminal);
    std::string running = format_duration(report.running_ns);
    if (report.preempted_ns > 0) running += ", preempted " + format_duration(report.preempted_ns);
    text += fact_line("running", running, terminal);
    std::string waits;
    for (const SampledWait& wait : report.waits)
        waits +=
            fmt::format("{}{} {}", waits.empty() ? ": " : ", ", wait.kind, format_duration(wait.time_ns));
    if (report.waiting_ns > 0)
        text += fact_line("waiting", format_duration(report.waiting_ns) + waits, terminal);
    std::uint64_t torn = 0, cut = 0, lost = 0;
    for (const SamplingInfo& info : trace.sampling()) {
        torn += info.torn;
        cut += info.cut;
        lost += info.lost;
    }
    if (torn + cut + lost > 0) {
        const std::string losses = fmt::format(
            "{} lost for lack of space, {} without their Python functions (torn), {} without outer functions "
            "(cut)",
            format_count(lost), format_count(torn), format_count(cut));
        text += fact_line("losses", losses, terminal);
    }
    return text;
}

std::string sample_section(const Trace& trace, const Terminal& terminal) {
    if (trace.samples().size() == 0) return "";
    const SampleReport report = sample_report(trace);
    return styled(terminal, Style::Bold, "sampled functions") + "\n" +
           sample_rows_text(trace, report, "function", kRowsOfSection, terminal) + "\n" +
           sample_facts(trace, report, terminal);
}

}  // namespace marey::cli
