// steps_verb.cpp: marey steps: the steps of a loop, and how the slow ones differ.
#include <fmt/format.h>

#include <algorithm>

#include <marey/error.h>
#include <marey/export.h>
#include <marey/steps.h>

#include "cli/capture_argument.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::uint64_t kDefaultStepLimit = 40;
constexpr std::uint64_t kDefaultSlowest = 3;
constexpr std::uint64_t kDefaultDifferences = 8;

std::string time(std::int64_t ns) {
    return format_duration(static_cast<double>(ns));
}

/// "+1.20 ms", "-30 us".
std::string signed_time(std::int64_t ns) {
    return (ns < 0 ? "-" : "+") + time(ns < 0 ? -ns : ns);
}

class StepsVerb final : public Verb {
  public:
    const char* help() const override { return "Show the steps of a loop, and why the slow ones were slow"; }
    const char* details() const override {
        return "Steps are ranges of scope step, ranges named ProfilerStep#n, or the ranges that --name\n"
               "selects. Slow steps are compared with the median step, name by name: first their own\n"
               "thread, then other threads and devices during the same time. Steps cut off by the\n"
               "session's window are marked and not included in the statistics. marey tree --step N\n"
               "shows one step. --json prints everything, in nanoseconds.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.text(name_, "--name", "PATTERN",
                     "Ranges to use as steps; * matches any text (ProfilerStep#*)");
        options.number(slowest_, "--slowest", "Slow steps to explain (3)");
        options.number(differences_, "--differences", "Names to show for each slow step (8; 0 shows all)");
        options.number(limit_, "--limit", "Steps to list (40; 0 lists all)");
        options.flag(json_, "--json", "Print JSON");
    }
    int run() override {
        const Trace trace = capture_.load();
        const StepReport report = [&] {
            const Progress progress("comparing steps");
            return step_report(trace, {.name = name_, .slowest = slowest_.value_or(kDefaultSlowest)});
        }();
        if (report.steps.empty()) {
            throw Error(name_.empty() ? "steps: no range has scope step or is named ProfilerStep#n; use "
                                        "--name to select other ranges"
                                      : "steps: no range has a name that matches '" + name_ + "'");
        }
        json_ ? write_data(step_report_json(trace, report)) : write_out(text(trace, report));
        return kSuccess;
    }

  private:
    std::string text(const Trace& trace, const StepReport& report) const {
        const Terminal terminal = standard_output();
        std::string text = list(trace, report, terminal) + "\n" + statistics(report, terminal);
        for (const SlowStep& slow : report.slowest) text += "\n" + explanation(report, slow, terminal);
        return end_lines(trace, terminal) + text + "\n" + footer(trace, terminal);
    }

    std::string list(const Trace& trace, const StepReport& report, const Terminal& terminal) const {
        const bool has_threads =
            std::any_of(report.steps.begin(), report.steps.end(),
                        [&](const StepInfo& step) { return step.thread != report.steps.front().thread; });
        std::vector<Table::Column> columns = {
            {"step", true, true}, {"start"}, {"duration"}, {"vs median"}, {"gap"}};
        if (has_threads) columns.push_back({"thread", true});
        Table table(std::move(columns));
        const std::uint64_t limit = limit_.value_or(kDefaultStepLimit);
        const std::size_t shown =
            limit == 0 ? report.steps.size() : std::min<std::size_t>(limit, report.steps.size());
        const auto median = static_cast<double>(report.durations.median_ns);
        for (std::size_t i = 0; i < shown; ++i) {
            const StepInfo& step = report.steps[i];
            const double ratio = median > 0 ? static_cast<double>(step.duration_ns) / median - 1 : 0;
            std::vector<std::string> cells = {
                printable(step.name) + number(step), time(step.start_ns - trace.window().start_ns),
                time(step.duration_ns), step.is_partial ? "cut off" : fmt::format("{:+.1f}%", ratio * 100),
                step.gap_ns < 0 ? "" : time(step.gap_ns)};
            if (has_threads) cells.push_back(thread_label(trace, step.thread));
            table.add(std::move(cells));
        }
        std::string text = table.text(terminal);
        if (shown < report.steps.size()) {
            text += fmt::format("... and {} (--limit 0 lists all)\n",
                                format_plural(report.steps.size() - shown, "more step"));
        }
        return text;
    }

    /// " 3" if the name does not contain the number.
    static std::string number(const StepInfo& step) {
        const std::string number = std::to_string(step.number);
        return step.name.ends_with("#" + number) ? "" : " " + number;
    }

    static std::string statistics(const StepReport& report, const Terminal& terminal) {
        Table table(
            {{"", true}, {"count"}, {"mean"}, {"stdev"}, {"min"}, {"median"}, {"p90"}, {"p99"}, {"max"}});
        const auto add = [&](const char* title, const TimeStatistics& of) {
            if (of.count == 0) return;
            table.add({title, format_count(of.count), format_duration(of.mean_ns),
                       format_duration(of.stdev_ns), time(of.min_ns), time(of.median_ns), time(of.p90_ns),
                       time(of.p99_ns), time(of.max_ns)});
        };
        add("duration", report.durations);
        add("gap", report.gaps);
        return table.text(terminal);
    }

    std::string explanation(const StepReport& report, const SlowStep& slow, const Terminal& terminal) const {
        const StepInfo& step = report.steps[slow.step];
        const StepInfo& median = report.steps[report.median_step];
        std::string text =
            styled(terminal, Style::Bold,
                   fmt::format("{}{}: {}, {} vs {}{}", printable(step.name), number(step),
                               time(step.duration_ns), signed_time(step.duration_ns - median.duration_ns),
                               printable(median.name), number(median)));
        text += "\n";
        Table table(
            {{"difference"}, {"total"}, {"in median"}, {"count"}, {"in median"}, {"name", true, true}});
        for (const StepPlace place : {StepPlace::Inside, StepPlace::OtherThreads, StepPlace::Devices})
            add_place(table, slow, place);
        return text + table.text(terminal);
    }

    void add_place(Table& table, const SlowStep& slow, StepPlace place) const {
        const char* const title = place == StepPlace::Inside         ? "its own thread"
                                  : place == StepPlace::OtherThreads ? "other threads at that time"
                                                                     : "devices at that time";
        const std::uint64_t limit = differences_.value_or(kDefaultDifferences);
        std::uint64_t shown = 0;
        for (const StepDifference& difference : slow.differences) {
            if (difference.place != place || (limit > 0 && shown >= limit)) continue;
            if (limit > 0 && difference.difference_ns() <= 0) continue;
            if (shown++ == 0) table.add({"", "", "", "", "", title}, Style::Bold);
            const bool is_rest = difference.is_rest;
            table.add({signed_time(difference.difference_ns()), time(difference.slow.total_ns),
                       time(difference.median.total_ns), is_rest ? "" : format_count(difference.slow.count),
                       is_rest ? "" : format_count(difference.median.count),
                       is_rest ? "  (in no range)" : "  " + printable(difference.name)});
        }
    }

    CaptureArgument capture_;
    std::string name_;
    std::optional<std::uint64_t> slowest_;
    std::optional<std::uint64_t> differences_;
    std::optional<std::uint64_t> limit_;
    bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_steps_verb() {
    return std::make_unique<StepsVerb>();
}

}  // namespace marey::cli
