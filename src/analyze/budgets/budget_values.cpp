// budget_values.cpp: one pass over the ranges of a run, which finds the rules of each call path once.
#include "analyze/budgets/budget_values.h"

#include <fnmatch.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include <marey/error.h>
#include <marey/findings.h>

#include "analyze/averages/site_groups.h"
#include "analyze/compare/run_paths.h"
#include "analyze/events/event_costs.h"
#include "analyze/time_percentiles.h"
#include "analyze/tree/step_ranges.h"
#include "analyze/unread_problems.h"
#include "base/parallel.h"
#include "trace/part_flags.h"

namespace marey {
namespace {

constexpr std::uint16_t kIncomplete = kBeganBefore | kUnfinished;

bool fits(const std::string& pattern, const std::string& text) {
    return text == pattern ||
           (pattern.find_first_of("*?[") != pattern.npos && ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0);
}

/// The texts by which rules can mean a name: the whole, and of functions the dotted name and its last parts.
std::vector<std::string> spellings(std::string_view name) {
    std::vector<std::string> result{std::string(name)};
    if (name == "ProfilerStep*") result.emplace_back("ProfilerStep#0");
    const PythonName python = parse_python_name(name);
    std::string rest = (python.path.empty() ? "" : "." + module_of(python.path) + ".") +
                       std::string(python.path.empty() ? name : python.function);
    for (std::size_t dot = rest.find('.'); dot != rest.npos; dot = rest.find('.', dot + 1))
        result.push_back(rest.substr(dot + 1));
    return result;
}

/// Finds the whole step that a time is in. A thread without steps belongs to those of the thread of its
/// process that has most.
class StepPlaces {
  public:
    StepPlaces(const Trace& trace, const std::string& pattern)
        : trace_(trace), of_thread_(trace.threads().size()) {
        const RangeColumns ranges = trace.ranges();
        for (const StepRange& step : find_steps(trace, pattern)) {
            if ((ranges.flags[step.row] & kIncomplete) != 0) continue;
            const std::int64_t start = ranges.start_ns[step.row];
            of_thread_[thread_of(step.row)].push_back({start, start + ranges.duration_ns[step.row], count++});
        }
        for (auto& steps : of_thread_) std::ranges::sort(steps, {}, &Step::start_ns);
        std::unordered_map<Row, Row> most;  // by process
        for (Row thread = 0; thread < of_thread_.size(); ++thread) {
            Row& best = most.try_emplace(trace.threads()[thread].process, thread).first->second;
            if (of_thread_[thread].size() > of_thread_[best].size()) best = thread;
        }
        for (Row thread = 0; thread < of_thread_.size(); ++thread)
            list_.push_back(of_thread_[thread].empty() ? most[trace.threads()[thread].process] : thread);
    }
    std::size_t count = 0;

    /// The number of the step in which a range began; `count` if there is none.
    std::size_t at(Row row) const {
        const std::vector<Step>& steps = of_thread_[list_[thread_of(row)]];
        const std::int64_t time = trace_.ranges().start_ns[row];
        const auto after = std::ranges::upper_bound(steps, time, {}, &Step::start_ns);
        return after == steps.begin() || time >= after[-1].end_ns ? count : after[-1].number;
    }

  private:
    struct Step {
        std::int64_t start_ns, end_ns;
        std::size_t number;
    };
    Row thread_of(Row row) const { return trace_.tracks()[trace_.track_of(row)].thread; }

    const Trace& trace_;
    std::vector<std::vector<Step>> of_thread_;
    std::vector<Row> list_;  ///< by thread: the thread whose steps count
};

class RunMeasure {
  public:
    RunMeasure(const Trace& trace, std::span<const BudgetRule> rules, const std::string& step_name)
        : trace_(trace),
          ranges_(trace.ranges()),
          rules_(rules),
          steps_(trace, step_name),
          options_{.step_name = step_name},
          parts_(rules.size()) {
        for (std::size_t i = 0; i < rules.size(); ++i) {
            if (rules[i].per_step) parts_[i].resize(steps_.count);
            if (rules[i].of == BudgetOf::Path) has_paths_ = true;
        }
    }

    BudgetRun run(const std::string& file) {
        result_.file = file;
        result_.values.resize(rules_.size());
        if (ranges_.size() == 0 && trace_.memory().size() == 0)
            throw Error(file + ": has no ranges to check");
        for (const BudgetRule& rule : rules_) {
            if (steps_.count == 0 && (rule.per_step || rule.of == BudgetOf::Steps))
                throw Error(file + ": has no whole step, which " + rule.file + ":" +
                            std::to_string(rule.line) +
                            " needs (--step-name PATTERN chooses the ranges that are steps)");
        }
        const bool has_findings = std::ranges::count(rules_, BudgetMetric::Findings, &BudgetRule::metric) > 0;
        RunRecord record;
        parallel_for(has_findings ? 2 : 1, [&](std::size_t part) {
            if (part == 1) {
                findings_ = explain(trace_, {.step_name = options_.step_name});
                return;
            }
            record = read_run(trace_, CompareSide::New, options_, paths_,
                              [this](Row row, std::uint32_t node, Row at) { visit(row, node, at); });
        });
        for (std::size_t i = 0; i < rules_.size(); ++i) finish(i, record);
        find_places();
        note_facts(record);
        return std::move(result_);
    }

  private:
    struct Match {
        std::uint32_t rule;
        bool is_inner;  ///< a node around it matches, too
        double amount = 0;
    };
    struct NodeRules {
        std::vector<Match> matches;
        Row first = kNoRow;
    };

    bool can_measure(BudgetMetric metric, std::uint32_t node) const {
        constexpr CountKind kKinds[] = {CountKind::Launches, CountKind::Copies, CountKind::Synchronisations,
                                        CountKind::Collectives};  // from BudgetMetric::Launches on
        const Place place = paths_.tree.nodes[node].place;
        if (metric == BudgetMetric::Calls || metric == BudgetMetric::Time) return place != Place::Device;
        if (metric == BudgetMetric::Self) return place == Place::Host;
        if (metric == BudgetMetric::Gpu) return place == Place::Device;
        return paths_.name(node).kind == kKinds[static_cast<int>(metric) - 1];
    }

    /// Short names from the root down: "/main/load".
    std::string path_text(std::uint32_t node) const {
        std::string text;
        for (; node != kNoRow; node = paths_.tree.nodes[node].parent) {
            const std::string_view name = paths_.name(node).text;
            const PythonName python = parse_python_name(name);
            text.insert(0, "/" + std::string(python.path.empty() ? name : python.function));
        }
        return text;
    }

    /// The rules that ranges of this name may count for: those of paths always.
    const std::vector<std::uint32_t>& rules_of_name(std::uint32_t slot) {
        if (slot >= of_name_.size()) of_name_.resize(slot * std::size_t{2} + 1);
        std::optional<std::vector<std::uint32_t>>& found = of_name_[slot];
        if (found) return *found;
        found.emplace();
        const std::vector<std::string> names = spellings(paths_.names.names[slot].text);
        for (std::uint32_t i = 0; i < rules_.size(); ++i) {
            const BudgetRule& rule = rules_[i];
            const auto is_meant = [&](const std::string& text) { return fits(rule.pattern, text); };
            const bool is_any = rule.of == BudgetOf::All && rule.metric < BudgetMetric::Memory;
            if (is_any || rule.of == BudgetOf::Path ||
                (rule.of == BudgetOf::Name && std::ranges::any_of(names, is_meant)))
                found->push_back(i);
        }
        return *found;
    }

    /// The rules that a node's ranges count for.
    NodeRules& rules_at(std::uint32_t node) {
        if (node >= of_node_.size()) of_node_.resize(node * std::size_t{2} + 1);
        std::optional<NodeRules>& found =
            of_node_[node];  // stays there: the nodes above have smaller numbers
        if (found) return *found;
        found.emplace();
        const std::string path = has_paths_ ? path_text(node) : "";
        for (const std::uint32_t i : rules_of_name(paths_.tree.nodes[node].slot)) {
            const BudgetRule& rule = rules_[i];
            const bool is_match = rule.of != BudgetOf::Path || path.ends_with("/" + rule.pattern) ||
                                  fits("*/" + rule.pattern, path);
            if (!is_match || !can_measure(rule.metric, node)) continue;
            bool is_inner = false;
            std::uint32_t above = rule.metric == BudgetMetric::Time ? paths_.tree.nodes[node].parent : kNoRow;
            for (; above != kNoRow && !is_inner; above = paths_.tree.nodes[above].parent)
                is_inner = std::ranges::count(rules_at(above).matches, i, &Match::rule) > 0;
            found->matches.push_back({i, is_inner});
        }
        return *found;
    }

    void visit(Row row, std::uint32_t node, Row at) {
        NodeRules& found = rules_at(node);
        if (found.first == kNoRow) found.first = at;
        for (Match& match : found.matches) {
            const BudgetRule& rule = rules_[match.rule];
            if (rule.device >= 0 && trace_.tracks()[trace_.track_of(row)].device.index != rule.device)
                continue;
            result_.values[match.rule].has_match = true;
            if (match.is_inner) continue;
            const double amount = value_of(rule.metric, row);
            match.amount += amount;
            std::vector<double>& parts = parts_[match.rule];
            if (rule.per_step) {
                if (const std::size_t step = steps_.at(at); step < steps_.count) parts[step] += amount;
            } else if (rule.statistic == BudgetStatistic::Sum) {
                result_.values[match.rule].most += amount;
            } else if ((ranges_.flags[row] & kIncomplete) == 0) {
                parts.push_back(amount);
            }
        }
    }
    double value_of(BudgetMetric metric, Row row) const {
        if (metric == BudgetMetric::Time) return static_cast<double>(trace_.clipped_duration_ns(row));
        if (metric == BudgetMetric::Self || metric == BudgetMetric::Gpu)
            return static_cast<double>(ranges_.self_ns[row]);
        return (ranges_.flags[row] & kFurtherPart) != 0 ? 0
                                                        : static_cast<double>(calls_of(trace_, ranges_, row));
    }

    void finish(std::size_t number, const RunRecord& record) {
        const BudgetRule& rule = rules_[number];
        BudgetValue& value = result_.values[number];
        std::vector<double>& parts = parts_[number];
        value.is_known = true;
        if (rule.metric == BudgetMetric::Memory) {
            for (const auto& [device, bytes] : record.peaks) {
                if (rule.device >= 0 && (device.type == DeviceType::Cpu || device.index != rule.device))
                    continue;
                value.has_match = true;
                value.most = std::max(value.most, static_cast<double>(bytes));
            }
        } else if (rule.metric == BudgetMetric::Findings) {
            value.has_match = true;
            for (const Finding& finding : findings_) {
                if (!rule.findings.empty() && !std::ranges::binary_search(rule.findings, finding.id))
                    continue;
                ++value.most;
                value.note += (value.note.empty() ? "" : ", ") + finding.id;
            }
        } else if (rule.of == BudgetOf::Steps) {
            value.has_match = true;
            for (const RunStep& step : record.steps) parts.push_back(static_cast<double>(step.duration_ns));
            if (rule.statistic == BudgetStatistic::Sum)
                for (const double part : parts) value.most += part;
        }
        if (rule.statistic != BudgetStatistic::Sum) {
            value.is_known = !parts.empty();
            if (value.is_known) value.most = statistic_of(parts, rule);
        }
        value.least = value.most;
        if (rule.per_step && rule.order == BudgetOrder::Equal && rule.percent == 100)
            value.least = *std::ranges::min_element(parts);
    }
    static double statistic_of(std::vector<double>& parts, const BudgetRule& rule) {
        if (rule.statistic != BudgetStatistic::Percentile)
            return std::accumulate(parts.begin(), parts.end(), 0.0) / static_cast<double>(parts.size());
        const std::size_t rank = rule.percent == 0 ? 0 : nearest_rank(parts.size(), rule.percent);
        const auto found = parts.begin() + static_cast<std::ptrdiff_t>(rank);
        std::ranges::nth_element(parts, found);
        return *found;
    }

    /// For each rule, the nearest place in the program around the ranges with the largest part of the value.
    void find_places() {
        std::vector<std::pair<double, Row>> largest(rules_.size(), {-1, kNoRow});
        for (const std::optional<NodeRules>& node : of_node_) {
            if (!node) continue;
            for (const Match& match : node->matches)
                largest[match.rule] = std::max(largest[match.rule], {match.amount, node->first});
        }
        for (std::size_t i = 0; i < rules_.size(); ++i) {
            Row row = largest[i].second;
            const auto is_program = [&] {
                const SiteInfo& site = trace_.sites()[ranges_.site[row]];
                return site.file != 0 && is_program_file(trace_.string(site.file));
            };
            while (row != kNoRow && !is_program()) row = ranges_.parent[row];
            if (row == kNoRow) continue;
            result_.values[i].file = trace_.string(trace_.sites()[ranges_.site[row]].file);
            result_.values[i].line = trace_.sites()[ranges_.site[row]].line;
        }
    }

    void note_facts(const RunRecord& record) {
        result_.identity = record.identity;
        result_.is_unfinished = record.is_unfinished;
        const bool is_summed = std::ranges::any_of(trace_.range_details(), [&](const RangeDetail& detail) {
            return (ranges_.flags[detail.range] & kSampled) != 0;
        });
        if (record.is_lossy) result_.doubt = "lost events";
        if (record.facts.at("format") == "samples" && !is_summed) result_.doubt = "is made of samples";
        for (const ProblemInfo& problem : trace_.problems()) {
            if (result_.doubt.empty() && is_loss(problem.code))
                result_.doubt = "is incomplete (" + problem.code + ")";
        }
        BudgetMachine& machine = result_.machine;
        if (!trace_.processes().empty()) machine.host = trace_.string(trace_.processes().front().host);
        machine.clock = trace_.clock().source;
        machine.ticks_per_second = trace_.clock().ticks_per_second;
        machine.range_ns = EventCosts(trace_).range_ns;
    }

    const Trace& trace_;
    const RangeColumns ranges_;
    std::span<const BudgetRule> rules_;
    const StepPlaces steps_;
    const CompareOptions options_;
    Comparison::Paths paths_;
    bool has_paths_ = false;
    std::vector<std::optional<std::vector<std::uint32_t>>> of_name_;  ///< by slot
    std::vector<std::optional<NodeRules>> of_node_;
    std::vector<std::vector<double>> parts_;  ///< by rule: of steps or calls
    std::vector<Finding> findings_;
    BudgetRun result_;
};

}  // namespace

BudgetRun measure_budgets(const Trace& trace, std::span<const BudgetRule> rules, const std::string& step_name,
                          const std::string& file) {
    return RunMeasure(trace, rules, step_name).run(file);
}

}  // namespace marey
