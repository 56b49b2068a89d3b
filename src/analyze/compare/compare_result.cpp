// compare_result.cpp: the columns of comparisons.
#include <algorithm>

#include <marey/compare.h>

#include "analyze/result_keys.h"
#include "base/enum_names.h"

namespace marey {
namespace compare_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

template <std::size_t kCount, class Number>
std::string name_of(const std::string_view (&names)[kCount], Number number) {
    return std::string(names[static_cast<std::size_t>(number)]);
}

std::optional<double> change_of(const ComparedValue& value, double RatioInterval::*bound) {
    if (!value.interval) return std::nullopt;
    return (*value.interval).*bound - 1;
}

/// The columns of a compared value, which `Of` returns for a row.
template <class Row, class Of>
std::vector<RowColumn<Row>> value_columns() {
    return {
        {"verdict", [](auto& r) { return text_or_null(name_of(kVerdictNames, Of{}(r).verdict)); },
         "with several runs: slower, faster, same or cannot tell", "verdict", Used},
        {"difference", [](auto& r) { return Of{}(r).difference(); }, "new minus old", "change", Yes, None},
        {"old", [](auto& r) { return Of{}(r).before; }, "mean of the old runs, in the unit of the metric",
         "old", Yes, None},
        {"new", [](auto& r) { return Of{}(r).after; }, "mean of the new runs", "new", Yes, None},
        {"change",
         [](auto& r) {
             const ComparedValue value = Of{}(r);
             return value.interval ? std::optional(value.interval->ratio - 1)
                                   : when(value.before > 0, value.difference() / value.before);
         },
         "relative; with several runs, of their geometric means", "change %", Used, Change},
        {"change_low", [](auto& r) { return change_of(Of{}(r), &RatioInterval::low); },
         "lower end of its 95% interval", "from", Used, Change},
        {"change_high", [](auto& r) { return change_of(Of{}(r), &RatioInterval::high); },
         "upper end of its 95% interval", "to", Used, Change},
        {"more_runs", [](auto& r) { return Of{}(r).more_runs; },
         "further runs on each side after which the verdict would be another one, if it cannot tell"},
    };
}

struct OfRow {
    const ComparedValue& operator()(const auto& row) const { return row.it.value; }
};
struct OfWhole {
    const ComparedValue& operator()(const Comparison& whole) const { return whole.total; }
};

struct RowOf {
    const Comparison& whole;
    const ComparedRow& it;
};
struct CountOf {
    const Comparison& whole;
    const ComparedCount& it;
};
struct SideOf {
    const Comparison& whole;
    int side;
};

std::vector<RowColumn<CountOf>> count_columns() {
    return {
        {"kind", [](auto& r) { return name_of(kCountKindNames, r.it.kind); }, "what is counted", "", Yes},
        {"old", [](auto& r) { return r.it.old_least; }, "in the old run; of several, the least", "old", Yes,
         Count},
        {"old_most", [](auto& r) { return r.it.old_most; }, "of several, the most", "to", No, Count},
        {"new", [](auto& r) { return r.it.new_least; }, "in the new run; of several, the least", "new", Yes,
         Count},
        {"new_most", [](auto& r) { return r.it.new_most; }, "of several, the most", "to", No, Count},
        {"differs", [](auto& r) { return r.it.differs(); },
         "no run of one side has a count between those of the other side"},
    };
}

/// One sentence for people.
std::string warning_text(const CompareWarning& warning) {
    const auto both = [&](const std::string& what) {
        return what + ": " + warning.before + " and " + warning.after;
    };
    if (warning.code == "same_file")
        return "a run is compared with itself: the same recording is given twice";
    if (warning.code == "empty") return "a recording has no ranges";
    if (warning.code == "host") return both("the runs are from different machines") + ": compare counts only";
    if (warning.code == "clock") return both("the clocks differ");
    if (warning.code == "version") return both("the versions differ");
    if (warning.code == "options") return both("different things were recorded");
    if (warning.code == "format") return both("the times are of different kinds");
    if (warning.code == "lost") return "events were lost in a recording: counts are too small";
    if (warning.code == "unfinished") return "a recording is not finished: its program crashed or still runs";
    if (warning.code == "steps") return "only some runs have steps";
    if (warning.code == "many_names")
        return "there are " + warning.before +
               " names: --fold-numbers makes one of those that differ in numbers";
    return both("recording took much of the busiest thread's time") + ", which times include";
}

}  // namespace
}  // namespace compare_columns

Result diff_result(const Comparison& comparison, std::size_t rows) {
    using namespace compare_columns;
    ResultRows<Comparison> whole("diff", "The comparison as a whole", true);
    whole.columns({
        {"by", [](auto& r) { return name_of(kCompareByNames, r.options.by); }, "what the rows are"},
        {"metric", [](auto& r) { return name_of(kCompareMetricNames, r.options.metric); },
         "the values that are compared: times in ns, calls or bytes"},
        {"old_runs", [](auto& r) { return r.run_count(CompareSide::Old); }, "number of old runs"},
        {"new_runs", [](auto& r) { return r.run_count(CompareSide::New); }, "number of new runs"},
        {"in_turns", [](auto& r) { return r.options.in_turns; }, "the runs were recorded in pairs"},
        {"per_step", [](auto& r) { return r.per_step; }, "values and counts are per step"},
    });
    whole.columns(value_columns<Comparison, OfWhole>());
    whole.columns({
        {"old_window_ns", [](auto& r) { return r.window.before; }, "length of the old recordings", "", No,
         Duration},
        {"new_window_ns", [](auto& r) { return r.window.after; }, "length of the new recordings", "", No,
         Duration},
    });
    whole.add(comparison);

    ResultRows<RowOf> table("diff_rows", "Rows of both sides; their differences add up to that of the whole");
    table.columns(value_columns<RowOf, OfRow>());
    table.columns({
        {"old_calls", [](auto& r) { return r.it.old_calls; }, "mean number of calls", "calls", Yes, Count},
        {"new_calls", [](auto& r) { return r.it.new_calls; }, "mean number of calls", "new calls", Yes,
         Count},
        {"match", [](auto& r) { return name_of(kRowMatchNames, r.it.match); },
         "how the row was found in the old runs: same, line (on another line), moved (below another parent), "
         "guess (of the same kind at the same position), new or gone",
         "match", Yes},
        {"is_device", [](auto& r) { return r.it.is_device; }, "ran on a device"},
        {"name", [](auto& r) { return r.it.name; }, "name in the new runs; of gone rows, in the old ones",
         "name", Call},
        {"old_name", [](auto& r) { return text_or_null(r.it.old_name); }, "if it was another one"},
        {"path", [](auto& r) { return r.whole.path(r.it.node); }, "names from the root down, new runs"},
        {"old_path", [](auto& r) { return r.whole.path(r.it.old_node); }, "the same in the old runs"},
    });
    for (std::size_t i = 0; i < std::min(rows, comparison.rows.size()); ++i)
        table.add({comparison, comparison.rows[i]});
    for (ResultTable* const each : {&whole.table, &table.table}) {
        const CompareMetric metric = comparison.options.metric;
        for (const char* const key : {"difference", "old", "new"})
            each->columns[each->column(key)].unit =
                metric == CompareMetric::Calls                                    ? Count
                : metric == CompareMetric::Bytes || metric == CompareMetric::Peak ? Bytes
                                                                                  : Duration;
        each->columns[each->column("difference")].is_signed = true;
    }

    ResultRows<CountOf> kinds("diff_totals", "Counts of both sides, by kind");
    kinds.columns(count_columns());
    for (const ComparedCount& total : comparison.totals) kinds.add({comparison, total});
    ResultRows<CountOf> counts("diff_counts", "Names whose counts differ, and new, gone and renamed names");
    counts.columns(count_columns());
    counts.columns({
        {"match", [](auto& r) { return name_of(kRowMatchNames, r.it.match); }, "as in diff_rows", "", Yes},
        {"causes", [](auto& r) { return r.it.causes; },
         "paths on which the number per call of the caller changed; 0: it follows from a caller's"},
        {"name", [](auto& r) { return r.it.name; }, "the name", "name", Call},
        {"old_name", [](auto& r) { return text_or_null(r.it.old_name); }, "if it was another one"},
        {"path", [](auto& r) { return r.whole.path(r.it.node); }, "the path where it changed most"},
        {"inside", [](auto& r) { return r.whole.path(r.it.inside); },
         "of new and gone names: the path of such a name that has all calls inside"},
    });
    for (const ComparedCount& count : comparison.counts) counts.add({comparison, count});

    ResultRows<SideOf> steps("diff_steps", "The steps of both sides");
    struct OfSteps {
        const TimeStatistics& operator()(const SideOf& row) const { return row.whole.steps[row.side]; }
    };
    steps.columns(
        {{"side", [](auto& r) { return r.side == 0 ? "old" : "new"; }, "old or new", "steps", Yes}});
    steps.columns(statistics_columns<SideOf>("", OfSteps(), "steps"));
    for (int side = 0; side < 2; ++side) {
        if (comparison.steps[side].count > 0) steps.add({comparison, side});
    }
    ResultRows<CompareWarning> warnings("diff_warnings", "Reasons for caution");
    warnings.columns({
        {"code", &CompareWarning::code, "short and stable name", "code"},
        {"old", &CompareWarning::before, "what the old runs have", "old"},
        {"new", &CompareWarning::after, "what the new runs have", "new"},
        {"text", [](auto& r) { return warning_text(r); }, "the reason in one sentence", "text", Name},
    });
    for (const CompareWarning& warning : comparison.warnings) warnings.add(warning);
    return made_result({}, whole, table, kinds, counts, steps, warnings);
}

}  // namespace marey
