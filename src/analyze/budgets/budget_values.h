// budget_values.h: the values that rules limit, in one run.
#pragma once

#include <marey/budgets.h>

namespace marey {

struct BudgetValue {
    double least = 0, most = 0;  ///< they differ only if each step has to be equal to the limit
    bool is_known = false;       ///< false: a statistic of no value
    bool has_match = false;
    std::string note{};  ///< the findings
    std::string file{};  ///< as in BudgetOutcome
    std::uint32_t line = 0;
};

struct BudgetRun {
    std::string file;
    std::vector<BudgetValue> values{};  ///< by rule
    std::string doubt{};                ///< why counts may be too small; empty: they are not
    bool is_unfinished = false;         ///< then only values of whole steps are complete
    BudgetMachine machine{};
    std::uint64_t identity = 0;  ///< equal for equal recordings
};

/// Takes linear time in the ranges of the trace. Throws marey::Error if a rule is about steps and it has
/// none.
BudgetRun measure_budgets(const Trace& trace, std::span<const BudgetRule> rules, const std::string& step_name,
                          const std::string& file);

}  // namespace marey
