// step_result.cpp: the columns of what `marey steps` reports.
#include <marey/results.h>

#include "analyze/result_keys.h"
#include "base/enum_names.h"

namespace marey {
namespace step_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

struct StepRow {
    const Trace& trace;
    const StepReport& report;
    const StepInfo& step;
    bool is_median;
    Row thread() const { return step.thread; }
    /// Against the median; empty for a step that the window cuts off.
    std::optional<double> change() const {
        const auto median = static_cast<double>(report.durations.median_ns);
        return when(!step.is_partial, median > 0 ? static_cast<double>(step.duration_ns) / median - 1 : 0);
    }
    /// With its number, if the name does not have it.
    std::string title() const {
        const std::string number = std::to_string(step.number);
        return step.name + (step.name.ends_with("#" + number) ? "" : " " + number);
    }
};

struct TimesRow {
    const char* kind;
    const TimeStatistics& times;
};

struct DifferenceRow {
    const StepInfo& step;
    const StepDifference& difference;
    const char* place() const {
        static constexpr const char* kPlaces[] = {"inside", "other_threads", "devices"};
        return name_at(kPlaces, difference.place);
    }
};

}  // namespace
}  // namespace step_columns

Result step_result(const Trace& trace, const StepReport& report) {
    using namespace step_columns;
    auto window = window_table("step_window");
    window.add(trace);

    ResultRows<StepRow> steps("steps", "The steps of a loop, in order of time");
    steps.columns({
        {"number", [](auto& r) { return r.step.number; },
         "number in its name, or its index among the steps of its thread", "", No, None},
        {"name", [](auto& r) { return r.step.name; }, "name of its range"},
        {"title", &StepRow::title, "name and number", "step", Name},
        {"range", [](auto& r) { return r.step.range; }, "row of its range", "", No, None},
        {"start_ns", [](auto& r) { return r.step.start_ns; }, "start", "start", Yes, Time},
        {"duration_ns", [](auto& r) { return r.step.duration_ns; }, "length", "duration"},
        {"change", &StepRow::change, "difference to the median as a share of it", "vs median", Yes, Change,
         "cut off"},
        {"gap_ns", [](auto& r) { return when(r.step.gap_ns >= 0, r.step.gap_ns); },
         "time since the end of the previous step on its thread", "gap"},
        {"is_partial", [](auto& r) { return r.step.is_partial; }, "cut off by the window; in no statistics"},
        {"is_median", &StepRow::is_median, "the step that slow ones are compared with"},
    });
    steps.columns(thread_key<StepRow>("thread"));
    for (std::size_t i = 0; i < report.steps.size(); ++i)
        steps.add({trace, report, report.steps[i], report.durations.count > 0 && i == report.median_step});

    ResultRows<TimesRow> statistics("step_statistics",
                                    "Statistics of the steps and of the gaps between them");
    statistics.columns({{"kind", [](auto& r) { return std::string(r.kind); }, "duration or gap", "times"}});
    statistics.columns(statistics_columns<TimesRow>(
        "", [](auto& r) -> const TimeStatistics& { return r.times; }, "these times"));
    if (report.durations.count > 0) statistics.add({"duration", report.durations});
    if (report.gaps.count > 0) statistics.add({"gap", report.gaps});

    ResultRows<DifferenceRow> differences("step_differences",
                                          "Slow steps compared with the median step, by name");
    differences.columns({
        {"step", [](auto& r) { return r.step.number; }, "number of the slow step", "", No, None},
        {"range", [](auto& r) { return r.step.range; }, "row of its range", "", No, None},
        {"place", [](auto& r) { return std::string(r.place()); },
         "inside: on its own thread; other_threads and devices: at the same time", "place"},
        {"difference_ns", [](auto& r) { return r.difference.difference_ns(); }, "difference of the times",
         "difference"},
        {"slow_count", [](auto& r) { return r.difference.slow.count; }, "ranges in the slow step", "count"},
        {"slow_total_ns", [](auto& r) { return r.difference.slow.total_ns; }, "their time", "total"},
        {"slow_self_ns", [](auto& r) { return r.difference.slow.self_ns; }, "their self time"},
        {"median_count", [](auto& r) { return r.difference.median.count; }, "ranges in the median step",
         "in median"},
        {"median_total_ns", [](auto& r) { return r.difference.median.total_ns; }, "their time", "in median"},
        {"median_self_ns", [](auto& r) { return r.difference.median.self_ns; }, "their self time"},
        {"name", [](auto& r) { return when(!r.difference.is_rest, r.difference.name); }, "name of the ranges",
         "name", Name, Auto, "(in no range)"},
    });
    for (const SlowStep& slow : report.slowest) {
        for (const StepDifference& difference : slow.differences)
            differences.add({report.steps[slow.step], difference});
    }
    return made_result(trace, window, steps, statistics, differences);
}

}  // namespace marey
