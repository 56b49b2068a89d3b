// steps_verb.cpp: marey steps: the steps of a loop, and how the slow ones differ.
#include <algorithm>

#include <marey/results.h>

#include "cli/result_argument.h"
#include "cli/sample_text.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::uint64_t kDefaultSlowest = 3;
constexpr std::uint64_t kDefaultDifferences = 8;

/// "+1.20 ms", "-30 us".
std::string signed_time(std::int64_t ns) {
    return (ns < 0 ? "-" : "+") + format_duration(ns < 0 ? -ns : ns);
}

class StepsVerb final : public Verb {
  public:
    const char* help() const override { return "Show the steps of a loop, and why the slow ones were slow"; }
    const char* details() const override {
        return "Steps are ranges of scope step, ranges named ProfilerStep#n, or the ranges that --step-name\n"
               "selects. Slow steps are compared with the median step, name by name: first their own\n"
               "thread, then other threads and devices during the same time. Steps cut off by the\n"
               "session's window are marked and not included in the statistics. marey tree --step N\n"
               "shows one step. The main table is steps in docs/reference/results.md.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.text(name_, "--step-name", "PATTERN",
                     "Ranges to use as steps; * matches any text (ProfilerStep#*)");
        options.old_name("--name", "--step-name");
        options.number(slowest_, "--slowest", "Slow steps to explain (3)");
        options.number(differences_, "--differences", "Names to show for each slow step (8; 0 shows all)");
        output_.declare(options);
    }
    int run() override {
        output_.check();
        const Trace trace = with_function_names(capture_.load());
        const StepReport report = [&] {
            const Progress progress("comparing steps");
            return step_report(trace, {.name = name_, .slowest = slowest_.value_or(kDefaultSlowest)});
        }();
        if (report.steps.empty()) {
            throw Error(name_.empty() ? "steps: no range has scope step or is named ProfilerStep#n; use "
                                        "--step-name to select other ranges"
                                      : "steps: no range has a name that matches '" + name_ + "'");
        }
        const Result result = step_result(trace, report);
        return output_.print(result, [&] { return text(trace, report, result); });
    }

  private:
    std::string text(const Trace& trace, const StepReport& report, const Result& result) const {
        const Terminal terminal = standard_output();
        ResultTable steps = result.table("steps");
        const bool has_threads = std::ranges::any_of(
            report.steps, [&](const StepInfo& step) { return step.thread != report.steps.front().thread; });
        if (!has_threads) steps.columns[steps.column("thread")].shown = ResultShown::No;
        std::string text =
            output_.lines(steps, terminal) + "\n" + result_lines(result.table("step_statistics"), terminal);
        for (const SlowStep& slow : report.slowest) text += "\n" + explanation(report, slow, terminal);
        return end_lines(trace, terminal) + text + "\n" + footer(trace, terminal);
    }

    /// " 3" if the name does not contain the number.
    static std::string number(const StepInfo& step) {
        const std::string number = std::to_string(step.number);
        return step.name.ends_with("#" + number) ? "" : " " + number;
    }

    std::string explanation(const StepReport& report, const SlowStep& slow, const Terminal& terminal) const {
        const StepInfo& step = report.steps[slow.step];
        const StepInfo& median = report.steps[report.median_step];
        std::string text = styled(
            terminal, Style::Bold,
            fmt::format("{}{}: {}, {} vs {}{}", printable(step.name), number(step),
                        format_duration(step.duration_ns), signed_time(step.duration_ns - median.duration_ns),
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
            table.add({signed_time(difference.difference_ns()), format_duration(difference.slow.total_ns),
                       format_duration(difference.median.total_ns),
                       is_rest ? "" : format_count(difference.slow.count),
                       is_rest ? "" : format_count(difference.median.count),
                       is_rest ? "  (in no range)" : "  " + printable(difference.name)});
        }
    }

    CaptureArgument capture_;
    std::string name_;
    std::optional<std::uint64_t> slowest_;
    std::optional<std::uint64_t> differences_;
    ResultArgument output_{.verb = "steps", .table = "steps", .usual_limit = 40, .row = "step"};
};

}  // namespace

MAREY_VERB(steps, StepsVerb)

}  // namespace marey::cli
