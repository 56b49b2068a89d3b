// budget_result.cpp: the columns of checks.
#include <marey/budgets.h>

#include "analyze/result_keys.h"

namespace marey {
namespace check_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

std::string name_of(BudgetState state) {
    return std::string(kBudgetStateNames[static_cast<int>(state)]);
}

/// The value or the limit as a count, a time or bytes; null if the rule is about another of them.
std::optional<std::int64_t> count_of(const BudgetRule& rule, double value) {
    return when(!rule.is_time() && rule.metric != BudgetMetric::Memory, static_cast<std::int64_t>(value));
}
std::optional<double> time_of(const BudgetRule& rule, double value) {
    return when(rule.is_time(), value);
}
std::optional<std::int64_t> bytes_of(const BudgetRule& rule, double value) {
    return when(rule.metric == BudgetMetric::Memory, static_cast<std::int64_t>(value));
}

std::optional<double> change(const BudgetOutcome& of, double RatioInterval::*bound) {
    if (!of.time.interval) return std::nullopt;
    return (*of.time.interval).*bound * (1 + (of.rule.of_baseline ? of.rule.limit : 0)) - 1;
}

}  // namespace
}  // namespace check_columns

Result check_result(const BudgetReport& report) {
    using namespace check_columns;
    ResultRows<BudgetReport> whole("check", "The check as a whole", true);
    whole.columns({
        {"state", [](auto& r) { return name_of(r.state()); },
         "broken if a rule is broken, otherwise cannot tell if one cannot be told, otherwise kept"},
        {"rules", [](auto& r) { return r.outcomes.size(); }, "number of rules"},
        {"kept", [](auto& r) { return r.count(BudgetState::Kept); }, "rules that are kept"},
        {"broken", [](auto& r) { return r.count(BudgetState::Broken); }, "rules that are broken"},
        {"cannot_tell", [](auto& r) { return r.count(BudgetState::CannotTell); },
         "rules of which the runs do not tell"},
        {"runs", [](auto& r) { return r.runs; }, "number of runs"},
        {"baseline_runs", [](auto& r) { return r.baseline_runs; }, "number of runs in the baseline; 0: none"},
    });
    whole.add(report);

    ResultRows<BudgetOutcome> rows("check_rules", "Each rule, broken ones first");
    rows.columns({
        {"state", [](auto& r) { return name_of(r.state); }, "kept, broken or cannot tell", "state"},
        {"count", [](auto& r) { return count_of(r.rule, r.value); },
         "of counts: the value of the runs that is worst for the rule", "count", Used, Count},
        {"time_ns", [](auto& r) { return time_of(r.rule, r.value); }, "of times: the mean of the runs",
         "time", Used, Duration},
        {"bytes", [](auto& r) { return bytes_of(r.rule, r.value); }, "of memory: the most of the runs",
         "memory", Used, Bytes},
        {"limit_count",
         [](auto& r) { return when(!r.rule.is_time() && r.rule.metric != BudgetMetric::Memory, r.limit); },
         "of counts: the limit; that of a baseline may be no whole number", "", No, None},
        {"limit_ns", [](auto& r) { return time_of(r.rule, r.limit); }, "of times: the limit", "", No,
         Duration},
        {"limit_bytes", [](auto& r) { return bytes_of(r.rule, r.limit); }, "of memory: the limit", "", No,
         Bytes},
        {"change", [](auto& r) { return change(r, &RatioInterval::ratio); },
         "of times of several runs: relative to the baseline, or else to the limit", "change", Used, Change},
        {"change_low", [](auto& r) { return change(r, &RatioInterval::low); },
         "lower end of its 95% interval", "from", Used, Change},
        {"change_high", [](auto& r) { return change(r, &RatioInterval::high); },
         "upper end of its 95% interval", "to", Used, Change},
        {"rule", [](auto& r) { return r.rule.text; }, "the rule as written", "rule", Name},
        {"why", [](auto& r) { return text_or_null(r.why); },
         "what led to the state, if the numbers do not say it", "why", Used},
        {"more_runs", [](auto& r) { return r.time.more_runs; },
         "further runs that would tell, if it cannot be told"},
        {"budgets", [](auto& r) { return r.rule.file; }, "the file with the rule"},
        {"budgets_line", [](auto& r) { return std::int64_t{r.rule.line}; }, "its line", "", No, None},
        {"file", [](auto& r) { return text_or_null(r.file); },
         "the place in the program where most of the value comes from"},
        {"line", [](auto& r) { return when(r.line > 0, std::int64_t{r.line}); }, "its line", "", No, None},
    });
    for (const BudgetOutcome& outcome : report.outcomes) rows.add(outcome);
    return made_result({}, whole, rows);
}

}  // namespace marey
