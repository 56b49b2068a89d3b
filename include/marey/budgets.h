// budgets.h: rules that recordings of a program must keep, such as `calls "load" <= 12 per step`, and whether
// they do. docs/guide/ci.md describes the rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/compare.h>
#include <marey/detail/export.h>
#include <marey/result_table.h>
#include <marey/trace.h>

namespace marey {

/// The values that rules limit. Times vary from run to run; everything else is exact.
enum class BudgetMetric : std::uint8_t {
    Calls,
    Launches,  ///< kernels
    Copies,
    Synchronisations,
    Collectives,
    Time,  ///< including the ranges inside; a range inside another that matches adds nothing
    Self,
    Gpu,       ///< time of device work
    Memory,    ///< most bytes held at any time
    Findings,  ///< of explain()
};
inline constexpr std::string_view kBudgetMetricNames[] = {
    "calls", "launches", "copies", "synchronisations", "collectives",
    "time",  "self",     "gpu",    "memory",           "findings"};

enum class BudgetOf : std::uint8_t { All, Name, Path, Device, Steps };
enum class BudgetOrder : std::uint8_t { AtMost, AtLeast, Equal };
/// How the values of single calls, or with per_step of single steps, become one.
enum class BudgetStatistic : std::uint8_t { Sum, Mean, Percentile };

/// One line of a file with rules.
struct BudgetRule {
    BudgetMetric metric = BudgetMetric::Calls;
    BudgetOf of = BudgetOf::All;
    std::string pattern{};     ///< of names or paths, with *, ? and [...]
    std::int32_t device = -1;  ///< its number
    BudgetStatistic statistic = BudgetStatistic::Sum;
    unsigned percent = 0;  ///< of Percentile; 0 is the least, 100 the most
    bool per_step = false;
    BudgetOrder order = BudgetOrder::AtMost;
    bool of_baseline = false;
    double limit = 0;                     ///< a count, ns or bytes; of_baseline: 0.1 is 10% more
    std::vector<std::string> findings{};  ///< ids; empty: all

    std::string file{};     ///< of the rule
    std::string text{};     ///< as written, without a comment
    std::string measure{};  ///< what it limits, in a form of its own: the key in baselines
    std::uint32_t line = 0;

    bool is_time() const noexcept { return metric >= BudgetMetric::Time && metric <= BudgetMetric::Gpu; }
};

/// Reads rules. Throws marey::Error with file, line, column and what was expected; also for rules that
/// contradict each other. `file` is their name in errors.
MAREY_API std::vector<BudgetRule> parse_budgets(std::string_view text, const std::string& file);

/// The machine of a run, as far as times depend on it.
struct BudgetMachine {
    std::string host, clock;
    double ticks_per_second = 0;
    /// The time to record a range, which every recording process measures in a loop; 0: unknown.
    double range_ns = 0;
};

/// The values that earlier runs had, by BudgetRule::measure, and one for each run if they differ.
struct Baseline {
    BudgetMachine machine{};
    std::size_t runs = 0;
    std::map<std::string, std::vector<double>> values{};
};
/// Returns JSON with one line for each measure; equal baselines are equal texts.
MAREY_API std::string baseline_json(const Baseline& baseline);
/// Throws marey::Error, which names the file, if the text is not a baseline.
MAREY_API Baseline parse_baseline(std::string_view text, const std::string& file);

enum class BudgetState : std::uint8_t { Kept, Broken, CannotTell };
inline constexpr std::string_view kBudgetStateNames[] = {"kept", "broken", "cannot tell"};

struct BudgetOutcome {
    BudgetRule rule{};
    BudgetState state = BudgetState::Kept;
    double value = 0;  ///< of the runs: the mean of times; otherwise the one that is farthest from the limit
    double limit = 0;  ///< in the unit of the value; for a limit of the baseline, what follows from it
    /// Of times: the ratio to the limit. `verdict` is Slower or Faster if it is decided.
    ComparedValue time{};
    std::string why{};   ///< unless it is simply kept
    std::string file{};  ///< the place in the program where the value comes from; empty: unknown
    std::uint32_t line = 0;
};

struct MAREY_API BudgetReport {
    std::vector<BudgetOutcome> outcomes{};  ///< broken ones first, then those that cannot be told
    std::size_t runs = 0, baseline_runs = 0;
    std::size_t count(BudgetState state) const noexcept;
    /// CannotTell only if no rule is broken.
    BudgetState state() const noexcept;
};

/// Checks runs that are added one by one; of each trace only the values of the rules are kept.
class MAREY_API BudgetCheck {
  public:
    /// `step_name`: as in StepOptions.
    explicit BudgetCheck(std::vector<BudgetRule> rules, std::string step_name = {});
    ~BudgetCheck();

    /// Adds a run. Takes linear time in its ranges. Throws marey::Error if it cannot be checked: it is empty,
    /// was added before, or has no steps although a rule is about them.
    void add(const Trace& trace, const std::string& file);
    /// The values of the runs. Throws marey::Error if one of them is not complete.
    Baseline baseline() const;
    /// Throws marey::Error if a rule matches nothing in any run (unless it says "== 0") or needs a baseline
    /// that is missing or lacks its value. Times are compared with a baseline of another machine only if
    /// `trusts_machine`.
    BudgetReport report(const Baseline* baseline = nullptr, bool trusts_machine = false) const;
    /// The rules, with limits that the runs just keep: a file to start with.
    std::string suggestion() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Returns rules for what stands out in a trace, to be measured with more runs before
/// BudgetCheck::suggestion().
MAREY_API std::vector<BudgetRule> candidate_budgets(const Trace& trace, const std::string& step_name = {});

/// Returns the tables of a report; docs/reference/results.md describes them.
MAREY_API Result check_result(const BudgetReport& report);

}  // namespace marey
