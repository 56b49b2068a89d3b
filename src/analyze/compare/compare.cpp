// compare.cpp: the rows of a comparison, and what can be said of them.
#include <marey/compare.h>

#include <algorithm>
#include <cmath>

#include <marey/error.h>

#include "analyze/compare/compared_counts.h"
#include "analyze/compare/matched_paths.h"
#include "analyze/compare/ratio_interval.h"
#include "analyze/compare/run_paths.h"
#include "analyze/time_percentiles.h"

namespace marey {
namespace {

constexpr double kMuchOverhead = 0.1;
constexpr double kOverheadChange = 0.05;
constexpr std::size_t kManyNames = 100'000;

}  // namespace

struct RunComparison::State {
    CompareOptions options;
    std::shared_ptr<Comparison::Paths> paths = std::make_shared<Comparison::Paths>();
    std::vector<RunRecord> runs;
    std::vector<std::string> files[2];
    Comparison result;

    /// The values of one row in each run.
    struct Values {
        std::vector<double> of[2];
    };

    void check() const {
        for (const auto& its : files) {
            if (its.empty()) throw Error("compare: a run is needed on each side");
        }
        const bool has_times =
            options.metric == CompareMetric::Self || options.metric == CompareMetric::Total;
        if (options.by == CompareBy::Step && !has_times)
            throw Error("compare: steps are compared by their times only");
        if (options.in_turns && files[0].size() != files[1].size())
            throw Error("compare: runs recorded in turns are pairs, but one side has more runs");
    }

    void find_windows() {
        Values windows;
        for (const RunRecord& run : runs)
            windows.of[static_cast<int>(run.side)].push_back(static_cast<double>(run.window_ns) /
                                                             divisor(run));
        set_means(result.window, windows);
    }

    void find_steps() {
        bool has_all = true, is_equal = true;
        for (const RunRecord& run : runs) {
            has_all &= !run.steps.empty();
            is_equal &= run.steps.size() == runs.front().steps.size();
        }
        result.per_step = has_all && !is_equal && options.by != CompareBy::Step;
        for (int side = 0; side < 2; ++side) {
            std::vector<std::int64_t> times;
            for (const RunRecord& run : runs) {
                if (run.side != static_cast<CompareSide>(side)) continue;
                for (const RunStep& step : run.steps) times.push_back(step.duration_ns);
            }
            result.steps[side] = time_statistics(std::move(times));
        }
    }

    double divisor(const RunRecord& run) const {
        return result.per_step ? static_cast<double>(run.steps.size()) : 1;
    }

    /// Calls visit(node, value) for the nodes of a run.
    void visit_values(const RunRecord& run, const auto& visit) const {
        const CompareMetric metric = options.metric;
        if (metric == CompareMetric::Bytes || metric == CompareMetric::Peak) {
            for (const NodeBytes& bytes : run.bytes)
                visit(bytes.node,
                      static_cast<double>(metric == CompareMetric::Peak ? bytes.peak : bytes.allocated));
            return;
        }
        for (std::uint32_t node = 0; node < run.values.size(); ++node) {
            const NodeValues& values = run.values[node];
            const Place place = paths->tree.nodes[node].place;
            if (metric != CompareMetric::Calls &&
                place != (metric == CompareMetric::Gpu ? Place::Device : Place::Host))
                continue;
            if (metric == CompareMetric::Calls) {
                if (values.calls > 0) visit(node, static_cast<double>(values.calls));
            } else if (metric == CompareMetric::Total) {
                if (!is_inside_same_[node]) visit(node, static_cast<double>(values.total_ns));
            } else {
                visit(node, static_cast<double>(values.self_ns));
            }
        }
    }

    /// Chooses a row for each node.
    void make_rows(const MatchedPaths& matched) {
        const auto& nodes = paths->tree.nodes;
        row_of_.assign(nodes.size(), kNoNode);
        if (options.by == CompareBy::Path) {
            for (std::uint32_t node = 0; node < nodes.size(); ++node) {
                const std::uint32_t partner = matched.partner[node];
                if (partner == kNoNode || row_of_[partner] == kNoNode) {
                    row_of_[node] = static_cast<std::uint32_t>(result.rows.size());
                    result.rows.emplace_back().match = matched.match[node];
                } else {
                    row_of_[node] = row_of_[partner];
                }
                ComparedRow& row = result.rows[row_of_[node]];
                row.is_device = nodes[node].place == Place::Device;
                if (has_[1][node]) row.node = node;
                if (has_[0][node]) row.old_node = node;
                const std::uint32_t above = nodes[node].parent;
                if (above == kNoRow || matched.match[above] != row.match) continue;
                if (row.match != RowMatch::New && row.match != RowMatch::Gone) continue;
                const std::uint32_t around = result.rows[row_of_[above]].inside;
                row.inside = around != kNoNode ? around : above;
            }
            for (ComparedRow& row : result.rows) {
                if (row.old_node != kNoNode) row.old_name = paths->name(row.old_node).text;
                row.name = row.node != kNoNode ? std::string(paths->name(row.node).text) : row.old_name;
            }
            return;
        }
        const bool by_name = options.by == CompareBy::Name;
        std::unordered_map<std::uint64_t, std::uint32_t> row_of_key;
        for (std::uint32_t node = 0; node < nodes.size(); ++node) {
            const PathNames::Name& name = paths->name(node);
            const std::uint64_t key =
                by_name ? matched.renamed[nodes[node].slot] : name.group * std::uint64_t{2} + name.is_device;
            const auto [place, is_new] =
                row_of_key.try_emplace(key, static_cast<std::uint32_t>(result.rows.size()));
            row_of_[node] = place->second;
            if (is_new) {
                ComparedRow& row = result.rows.emplace_back();
                row.name = by_name ? paths->names.names[key].text : paths->names.text(name.group);
                row.is_device = name.is_device;
                if (by_name) {
                    row.match = matched.name_match[key];
                    if (matched.old_of[key] != kNoNode)
                        row.old_name = paths->names.names[matched.old_of[key]].text;
                }
            }
            ComparedRow& row = result.rows[place->second];
            for (int side = 0; side < 2; ++side) {
                std::uint32_t& first = side == 1 ? row.node : row.old_node;
                if (has_[side][node] && first == kNoNode) first = node;
            }
        }
        if (by_name) return;
        for (ComparedRow& row : result.rows) {
            if (row.node == kNoNode) row.match = RowMatch::Gone;
            if (row.old_node == kNoNode) row.match = RowMatch::New;
        }
    }
    void find_recursion() {
        const auto& nodes = paths->tree.nodes;
        is_inside_same_.assign(nodes.size(), false);
        if (options.metric != CompareMetric::Total || options.by == CompareBy::Path) return;
        for (std::uint32_t node = 0; node < nodes.size(); ++node) {
            std::uint32_t above = nodes[node].parent;
            while (above != kNoRow && row_of_[above] != row_of_[node]) above = nodes[above].parent;
            is_inside_same_[node] = above != kNoRow;
        }
    }

    void add_values() {
        const double counts[2] = {static_cast<double>(result.files[0].size()),
                                  static_cast<double>(result.files[1].size())};
        Values totals;
        for (const RunRecord& run : runs) {
            const auto side = static_cast<int>(run.side);
            const double share = 1 / (counts[side] * divisor(run));
            double total = 0;
            visit_values(run, [&](std::uint32_t node, double value) {
                ComparedValue& to = result.rows[row_of_[node]].value;
                (side == 0 ? to.before : to.after) += value * share;
                const std::uint32_t above = paths->tree.nodes[node].parent;
                if (options.metric != CompareMetric::Total || above == kNoRow) total += value;
            });
            for (std::uint32_t node = 0; node < run.values.size(); ++node) {
                ComparedRow& row = result.rows[row_of_[node]];
                (side == 0 ? row.old_calls : row.new_calls) +=
                    static_cast<double>(run.values[node].calls) * share;
            }
            totals.of[side].push_back(total / divisor(run));
        }
        set_means(result.total, totals);
        result.total.interval = ratio_interval(totals.of[0], totals.of[1], options.in_turns);
        judge({&result.total}, options.effect);
    }
    static void set_means(ComparedValue& value, const Values& values) {
        for (int side = 0; side < 2; ++side) {
            double& mean = side == 0 ? value.before : value.after;
            for (const double each : values.of[side])
                mean += each / static_cast<double>(values.of[side].size());
        }
    }

    /// The largest rows, whichever way they differ: the choice must not favour differences.
    void test_rows() {
        const auto size = [](const ComparedRow& row) { return std::max(row.value.before, row.value.after); };
        const double least = options.min_share * std::max(result.total.before, result.total.after);
        std::vector<std::uint32_t> chosen;
        for (std::uint32_t i = 0; i < result.rows.size(); ++i) {
            if (size(result.rows[i]) >= least && size(result.rows[i]) > 0) chosen.push_back(i);
        }
        std::ranges::stable_sort(chosen, std::ranges::greater(),
                                 [&](std::uint32_t row) { return size(result.rows[row]); });
        if (chosen.size() > options.max_tested) chosen.resize(options.max_tested);
        std::unordered_map<std::uint32_t, Values> values;
        for (const std::uint32_t row : chosen) values[row];
        for (const RunRecord& run : runs) {
            const auto side = static_cast<int>(run.side);
            for (auto& [row, its] : values) its.of[side].push_back(0);
            visit_values(run, [&](std::uint32_t node, double value) {
                if (const auto found = values.find(row_of_[node]); found != values.end())
                    found->second.of[side].back() += value / divisor(run);
            });
        }
        std::vector<ComparedValue*> tested;
        for (auto& [row, its] : values) {
            result.rows[row].value.interval = ratio_interval(its.of[0], its.of[1], options.in_turns);
            tested.push_back(&result.rows[row].value);
        }
        judge(std::move(tested), options.effect);
    }

    void order_rows() {
        std::erase_if(result.rows,
                      [](const ComparedRow& row) { return row.value.before == 0 && row.value.after == 0; });
        for (ComparedRow& row : result.rows) {
            if (row.old_name == row.name) row.old_name.clear();
        }
        std::ranges::stable_sort(result.rows, [](const ComparedRow& a, const ComparedRow& b) {
            const auto is_decided = [](const ComparedRow& row) {
                return row.value.verdict == Verdict::Slower || row.value.verdict == Verdict::Faster;
            };
            if (is_decided(a) != is_decided(b)) return is_decided(a);
            return std::abs(a.value.difference()) > std::abs(b.value.difference());
        });
    }

    void compare_steps() {
        std::map<std::int64_t, ComparedRow> steps;
        Values totals;
        for (const RunRecord& run : runs) {
            const auto side = static_cast<int>(run.side);
            const auto count = static_cast<double>(result.files[side].size());
            double total = 0;
            for (const RunStep& step : run.steps) {
                ComparedRow& row = steps[step.number];
                (side == 0 ? row.value.before : row.value.after) +=
                    static_cast<double>(step.duration_ns) / count;
                (side == 0 ? row.old_calls : row.new_calls) += 1 / count;
                total += static_cast<double>(step.duration_ns);
            }
            totals.of[side].push_back(total);
        }
        for (auto& [number, row] : steps) {
            row.name = "step " + std::to_string(number);
            row.match = row.old_calls == 0   ? RowMatch::New
                        : row.new_calls == 0 ? RowMatch::Gone
                                             : RowMatch::Path;
            result.rows.push_back(std::move(row));
        }
        set_means(result.total, totals);
        result.total.interval = ratio_interval(totals.of[0], totals.of[1], options.in_turns);
        judge({&result.total}, options.effect);
    }

    static std::string percent(double share) { return std::to_string(std::lround(share * 100)) + "%"; }

    void warn() {
        const auto add = [&](std::string code, std::string before = "", std::string after = "") {
            result.warnings.push_back({std::move(code), std::move(before), std::move(after)});
        };
        std::map<std::string, std::string> values[2];  // of all runs of a side, if they are equal
        double overhead[2] = {0, 0};
        std::size_t names = 0, without_steps = 0;
        bool is_lossy = false, is_unfinished = false, is_same = false, is_empty = false;
        for (const RunRecord& run : runs) {
            const auto side = static_cast<int>(run.side);
            for (const auto& [code, value] : run.facts) values[side].emplace(code, value);
            overhead[side] = std::max(overhead[side], run.overhead);
            names = std::max(names, run.names);
            is_lossy |= run.is_lossy;
            is_unfinished |= run.is_unfinished;
            is_empty |= std::ranges::all_of(run.values, [](const NodeValues& of) { return of.calls == 0; });
            without_steps += run.steps.empty();
            for (const RunRecord& other : runs)
                is_same |= &other < &run && other.identity == run.identity && run.window_ns > 0;
        }
        if (is_same) add("same_file");
        if (is_empty) add("empty");
        for (const auto& [code, before] : values[0]) {
            const auto after = values[1].find(code);
            if (after == values[1].end() || after->second == before) continue;
            if (before.empty() || after->second.empty()) continue;  // not every format has it
            const std::size_t end = code.find(' ');
            const std::string what = end == code.npos ? "" : code.substr(end + 1) + " ";
            add(code.substr(0, end), what + before, what + after->second);
        }
        const double more = std::abs(overhead[0] - overhead[1]);
        if (std::max(overhead[0], overhead[1]) > kMuchOverhead || more > kOverheadChange)
            add("overhead", percent(overhead[0]), percent(overhead[1]));
        if (is_lossy) add("lost");
        if (is_unfinished) add("unfinished");
        if (without_steps > 0 && without_steps < runs.size()) add("steps");
        if (names > kManyNames && !options.fold_numbers) add("many_names", std::to_string(names));
    }

    void find_presence() {
        for (auto& has : has_) has.assign(paths->tree.nodes.size(), false);
        for (const RunRecord& run : runs) {
            std::vector<bool>& has = has_[static_cast<int>(run.side)];
            for (std::uint32_t node = 0; node < run.values.size(); ++node) {
                const NodeValues& values = run.values[node];
                if (values.calls > 0 || values.self_ns != 0) has[node] = true;
            }
            for (const NodeBytes& bytes : run.bytes) has[bytes.node] = true;
        }
        for (auto node = static_cast<std::uint32_t>(has_[0].size());
             node-- > 0;) {  // what is above has it, too
            const std::uint32_t above = paths->tree.nodes[node].parent;
            for (auto& has : has_) {
                if (above != kNoRow && has[node]) has[above] = true;
            }
        }
    }

    Comparison compare() {
        check();
        result = Comparison();
        result.options = options;
        std::ranges::copy(files, result.files);
        find_steps();
        find_windows();
        find_presence();
        const MatchedPaths matched(*paths, has_);
        note_places(matched);
        if (options.by == CompareBy::Step) {
            compare_steps();
        } else {
            make_rows(matched);
            find_recursion();
            add_values();
            test_rows();
        }
        order_rows();
        compare_counts(result, *paths, runs, matched, has_);
        warn();
        result.paths = paths;
        return std::move(result);
    }

    void note_places(const MatchedPaths& matched) {
        paths->match = matched.match;
        paths->old_of = paths->new_of = std::vector<std::uint32_t>(matched.partner.size(), kNoNode);
        for (std::uint32_t node = 0; node < matched.partner.size(); ++node)
            (has_[0][node] ? paths->new_of : paths->old_of)[node] = matched.partner[node];
    }

  private:
    std::vector<bool> has_[2];           ///< by side and node
    std::vector<std::uint32_t> row_of_;  ///< by node
    std::vector<bool> is_inside_same_;   ///< by node: a node above it has the same row
};

RunComparison::RunComparison(CompareOptions options) : state_(std::make_unique<State>()) {
    state_->options = std::move(options);
}
RunComparison::~RunComparison() = default;

void RunComparison::add(const Trace& trace, CompareSide side, const std::string& file) {
    state_->runs.push_back(read_run(trace, side, state_->options, *state_->paths));
    state_->files[static_cast<int>(side)].push_back(file);
}

Comparison RunComparison::compare() {
    return state_->compare();
}
Comparison RunComparison::compare(CompareMetric metric) {
    state_->options.metric = metric;
    return state_->compare();
}

std::vector<std::string> Comparison::path(std::uint32_t node) const {
    std::vector<std::string> names;
    for (; paths && node != kNoNode; node = paths->tree.nodes[node].parent)
        names.emplace_back(paths->name(node).text);
    std::ranges::reverse(names);
    return names;
}

}  // namespace marey
