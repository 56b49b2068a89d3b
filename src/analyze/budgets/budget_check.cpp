// budget_check.cpp: whether runs keep rules. Counts are exact; times are judged over runs.
#include <algorithm>
#include <cmath>
#include <limits>

#include <marey/budgets.h>
#include <marey/error.h>

#include "analyze/budgets/budget_values.h"
#include "analyze/compare/ratio_interval.h"

namespace marey {
namespace {

constexpr double kMuchSlower = 1.25;  // of the reference loop: the same machine in another state
constexpr double kSameRate = 0.01;
constexpr double kRoom = 1.1;  // for memory, in suggestions

std::string number_text(double number) {
    std::string text = std::to_string(number);
    text.erase(text.find_last_not_of('0') + 1);
    return text.ends_with('.') ? text.substr(0, text.size() - 1) : text;
}

/// How the machine of the runs differs from that of the baseline; empty: it does not.
std::string difference(const BudgetMachine& now, const BudgetMachine& then) {
    if (now.host != then.host)
        return "another machine: '" + now.host + "', the baseline is of '" + then.host + "'";
    const double rate = then.ticks_per_second == 0 ? 1 : now.ticks_per_second / then.ticks_per_second;
    if (now.clock != then.clock || std::abs(rate - 1) > kSameRate)
        return "another machine: its clock is not that of the baseline's";
    const double loop = then.range_ns == 0 || now.range_ns == 0 ? 1 : now.range_ns / then.range_ns;
    if (loop < kMuchSlower && loop > 1 / kMuchSlower) return "";
    return "the machine is in another state: its reference loop took " + number_text(std::round(loop * 100)) +
           "% of the baseline's time";
}

template <class Values>
double median_of(Values values) {
    std::ranges::sort(values);
    return values.empty() ? 0 : values[values.size() / 2];
}

}  // namespace

struct BudgetCheck::State {
    std::vector<BudgetRule> rules;
    std::string step_name;
    std::vector<BudgetRun> runs;

    BudgetMachine machine() const {
        BudgetMachine result = runs.front().machine;
        std::vector<double> costs;
        for (const BudgetRun& run : runs) {
            costs.push_back(run.machine.range_ns);
            if (run.machine.host != result.host) result.host += " and " + run.machine.host;
        }
        result.range_ns = median_of(std::move(costs));
        return result;
    }
    /// The values of a rule in the runs; those that are not known are left out.
    std::vector<double> values(std::size_t rule) const {
        std::vector<double> result;
        for (const BudgetRun& run : runs) {
            if (run.values[rule].is_known) result.push_back(run.values[rule].most);
        }
        return result;
    }
    /// Why a run may have more than its values say; empty: no reason.
    std::string doubt(const BudgetRule& rule) const {
        for (const BudgetRun& run : runs) {
            if (!run.doubt.empty()) return run.file + " " + run.doubt;
            // Its whole steps have all calls, but device work may be missing.
            const bool is_whole = rule.per_step && !rule.is_time() && rule.metric != BudgetMetric::Launches &&
                                  rule.metric != BudgetMetric::Copies;
            if (run.is_unfinished && !is_whole) return run.file + " is not finished";
        }
        return "";
    }

    void check_matches() const {
        if (runs.empty()) throw Error("check: a run is needed");
        for (std::size_t i = 0; i < rules.size(); ++i) {
            const BudgetRule& rule = rules[i];
            const bool is_none = rule.order == BudgetOrder::Equal && rule.limit == 0 && !rule.of_baseline;
            const bool has_match =
                std::ranges::any_of(runs, [&](const BudgetRun& run) { return run.values[i].has_match; });
            if (has_match || (is_none && rule.metric < BudgetMetric::Memory)) continue;
            throw Error(rule.file + ":" + std::to_string(rule.line) + ": matches nothing in " +
                        (runs.size() == 1 ? runs[0].file : std::to_string(runs.size()) + " runs") + ": " +
                        rule.text +
                        (rule.metric == BudgetMetric::Memory ? " (allocations were not recorded)"
                         : rule.is_time()                    ? ""
                                                             : " ('== 0' allows that)"));
        }
    }

    const std::vector<double>& baseline_of(const BudgetRule& rule, const Baseline* baseline) const {
        const std::string place = rule.file + ":" + std::to_string(rule.line) + ": ";
        if (baseline == nullptr)
            throw Error(place + "needs a baseline (--baseline FILE; --write-baseline makes one)");
        const auto found = baseline->values.find(rule.measure);
        if (found == baseline->values.end())
            throw Error(place + "the baseline lacks '" + rule.measure +
                        "': write it again with --write-baseline");
        return found->second;
    }

    /// Judges a rule about counts or bytes.
    void judge_exact(std::size_t number, const Baseline* baseline, BudgetOutcome& to) const {
        const BudgetRule& rule = to.rule;
        double low = rule.limit, high = rule.limit;
        if (rule.of_baseline) {
            const auto [least, most] = std::ranges::minmax(baseline_of(rule, baseline));
            low = least * (1 + rule.limit), high = most * (1 + rule.limit);
        }
        to.limit = rule.order == BudgetOrder::AtLeast ? low : high;
        const auto beyond = [&](double value) {
            return rule.order == BudgetOrder::AtMost    ? value - high
                   : rule.order == BudgetOrder::AtLeast ? low - value
                                                        : std::max(value - high, low - value);
        };
        const std::string doubt = this->doubt(rule);
        std::size_t broken = 0;
        double worst = -std::numeric_limits<double>::infinity();
        for (const BudgetRun& run : runs) {
            const BudgetValue& value = run.values[number];
            const double its = beyond(value.least) > beyond(value.most) ? value.least : value.most;
            // A run that lacks events has at least as many as it shows.
            const bool is_certain = doubt.empty() || (rule.order != BudgetOrder::AtLeast && its > high);
            if (beyond(its) > 0 && is_certain) ++broken;
            if (beyond(its) <= worst) continue;
            worst = beyond(its);
            to.value = its;
            if (!value.note.empty()) to.why = "found " + value.note;
        }
        const auto add = [&](const std::string& text) { to.why += (to.why.empty() ? "" : "; ") + text; };
        // Findings depend on times: one in some of the runs may be chance.
        const bool is_chance = rule.metric == BudgetMetric::Findings && broken < runs.size();
        to.state = broken > 0 && !is_chance       ? BudgetState::Broken
                   : broken > 0 || !doubt.empty() ? BudgetState::CannotTell
                                                  : BudgetState::Kept;
        if (broken > 0 && runs.size() > 1)
            add("in " + std::to_string(broken) + " of " + std::to_string(runs.size()) + " runs");
        if (to.state == BudgetState::CannotTell && !doubt.empty()) add(doubt);
        if (rule.of_baseline) add("the limit is " + number_text(to.limit));
    }

    /// Prepares the judgement of a rule about times. `machine`: how it differs from the baseline's.
    void prepare_time(std::size_t number, const Baseline* baseline, const std::string& machine,
                      BudgetOutcome& to) const {
        const BudgetRule& rule = to.rule;
        const std::vector<double> values = this->values(number);
        for (const double value : values) to.value += value / static_cast<double>(values.size());
        std::vector<double> limits;
        if (rule.of_baseline) {
            for (const double value : baseline_of(rule, baseline)) {
                limits.push_back(value * (1 + rule.limit));
                to.limit += limits.back() / static_cast<double>(baseline_of(rule, baseline).size());
            }
        } else {
            to.limit = rule.limit;
            limits.assign(values.size(), rule.limit);
        }
        to.time.before = to.limit;
        to.time.after = to.value;
        to.state = BudgetState::CannotTell;
        to.why = doubt(rule);
        if (!to.why.empty()) return;
        if (values.size() < runs.size()) {
            to.why = "a run has no such call";
        } else if (!machine.empty()) {
            to.why = machine;
        } else if (!rule.of_baseline && runs.size() == 1) {
            const bool is_over =
                rule.order == BudgetOrder::AtMost ? to.value > to.limit : to.value < to.limit;
            to.state = is_over ? BudgetState::Broken : BudgetState::Kept;
        } else {
            // A limit without a baseline is the same for each run: pairs.
            to.time.interval = ratio_interval(limits, values, !rule.of_baseline);
            if (!to.time.interval)
                to.why = values.size() + limits.size() < 3 ? "one run on each side: times differ by chance"
                                                           : "a run has no time in it";
        }
    }

    /// After all times were judged together.
    static void finish_time(BudgetOutcome& to) {
        if (!to.time.interval) return;
        const bool is_most = to.rule.order == BudgetOrder::AtMost;
        if (to.time.verdict == (is_most ? Verdict::Slower : Verdict::Faster)) {
            to.state = BudgetState::Broken;
        } else if (is_most ? to.time.interval->high <= 1 : to.time.interval->low >= 1) {
            to.state = BudgetState::Kept;
        } else {
            to.why = "the 95% interval over runs includes the limit";
            if (to.time.more_runs)
                to.why += "; " + std::to_string(*to.time.more_runs) + " more runs would tell";
        }
    }
};

BudgetCheck::BudgetCheck(std::vector<BudgetRule> rules, std::string step_name)
    : state_(new State{std::move(rules), std::move(step_name), {}}) {}
BudgetCheck::~BudgetCheck() = default;

void BudgetCheck::add(const Trace& trace, const std::string& file) {
    BudgetRun run = measure_budgets(trace, state_->rules, state_->step_name, file);
    for (const BudgetRun& other : state_->runs) {
        if (other.identity == run.identity)
            throw Error(file + ": is the same recording as " + other.file + ", which counts as one run");
    }
    state_->runs.push_back(std::move(run));
}

Baseline BudgetCheck::baseline() const {
    state_->check_matches();
    Baseline result{.machine = state_->machine(), .runs = state_->runs.size()};
    for (std::size_t i = 0; i < state_->rules.size(); ++i) {
        const BudgetRule& rule = state_->rules[i];
        std::string reason = state_->doubt(rule);
        std::vector<double> values = state_->values(i);
        if (values.size() < result.runs) reason = "a run has no call of " + rule.measure;
        if (!reason.empty()) throw Error("check: the runs cannot be a baseline: " + reason);
        const bool is_equal = std::ranges::adjacent_find(values, std::ranges::not_equal_to()) == values.end();
        if (is_equal && !rule.is_time()) values.resize(1);
        result.values[rule.measure] = std::move(values);
    }
    return result;
}

BudgetReport BudgetCheck::report(const Baseline* baseline, bool trusts_machine) const {
    state_->check_matches();
    BudgetReport report{.runs = state_->runs.size(),
                        .baseline_runs = baseline == nullptr ? 0 : baseline->runs};
    const std::string machine =
        baseline == nullptr || trusts_machine ? "" : difference(state_->machine(), baseline->machine);
    std::vector<ComparedValue*> times;
    report.outcomes.resize(state_->rules.size());
    for (std::size_t i = 0; i < state_->rules.size(); ++i) {
        BudgetOutcome& outcome = report.outcomes[i];
        outcome.rule = state_->rules[i];
        if (outcome.rule.is_time()) {
            state_->prepare_time(i, baseline, machine, outcome);
            times.push_back(&outcome.time);
        } else {
            state_->judge_exact(i, baseline, outcome);
        }
        for (const BudgetRun& run : state_->runs) {
            if (!outcome.file.empty()) break;
            outcome.file = run.values[i].file;
            outcome.line = run.values[i].line;
        }
    }
    judge(std::move(times), 0);
    for (BudgetOutcome& outcome : report.outcomes) State::finish_time(outcome);
    std::ranges::stable_sort(report.outcomes, {}, [](const BudgetOutcome& outcome) {
        return outcome.state == BudgetState::Broken ? 0 : outcome.state == BudgetState::CannotTell ? 1 : 2;
    });
    return report;
}

std::string BudgetCheck::suggestion() const {
    constexpr std::size_t kCalls = 8;
    std::string text, findings;
    std::size_t calls = 0;
    for (std::size_t i = 0; i < state_->rules.size(); ++i) {
        const BudgetRule& rule = state_->rules[i];
        const std::vector<double> values = state_->values(i);
        const auto has_match = [&](const BudgetRun& run) { return run.values[i].has_match; };
        if (values.size() < state_->runs.size() || !std::ranges::all_of(state_->runs, has_match)) continue;
        const auto [least, most] = std::ranges::minmax(values);
        if (rule.metric == BudgetMetric::Findings) {
            if (most == 0) findings += (findings.empty() ? "" : ", ") + rule.findings[0];
            continue;
        }
        if (most == 0 || (rule.metric == BudgetMetric::Calls && ++calls > kCalls)) continue;
        std::string limit = std::to_string(std::llround(most));
        if (rule.metric == BudgetMetric::Memory)
            limit = std::to_string(std::llround(std::ceil(most * kRoom / 0x1p20))) + " Mi";
        std::string line = rule.text;
        if (!rule.of_baseline) line.replace(line.rfind("<= 0") + 3, 1, limit);
        const bool varies = least != most && !rule.of_baseline && rule.metric != BudgetMetric::Memory;
        text += line + (varies ? "  # at least " + std::to_string(std::llround(least)) : "") + "\n";
    }
    return text + (findings.empty() ? "" : "findings == 0 of " + findings + "\n");
}

std::size_t BudgetReport::count(BudgetState state) const noexcept {
    return static_cast<std::size_t>(std::ranges::count(outcomes, state, &BudgetOutcome::state));
}

BudgetState BudgetReport::state() const noexcept {
    return outcomes.empty() ? BudgetState::Kept : outcomes.front().state;
}

}  // namespace marey
