// compared_counts.cpp: counts by name in each run. A count that is the same for each call of the caller
// follows from the caller's, so it is not a cause.
#include "analyze/compare/compared_counts.h"

#include <algorithm>
#include <cmath>

namespace marey {
namespace {

constexpr std::size_t kKinds = std::size(kCountKindNames);

class Counting {
  public:
    Counting(Comparison& result, const Comparison::Paths& paths, const std::vector<RunRecord>& runs,
             const MatchedPaths& matched, const std::vector<bool> (&has)[2])
        : result_(result),
          paths_(paths),
          nodes_(paths.tree.nodes),
          runs_(runs),
          matched_(matched),
          has_(has) {}

    void run() {
        const std::size_t names = paths_.names.names.size();
        for (int side = 0; side < 2; ++side) calls_[side].assign(nodes_.size(), 0);
        for (const RunRecord& run : runs_) add_run(run);
        find_causes();
        for (std::uint32_t name = 0; name < names; ++name) {
            if (calls_of_.size() > name) add_count(paths_.names.names[name].kind, name, calls_of_[name]);
        }
        for (const CountKind kind :
             {CountKind::CopiedBytes, CountKind::Allocations, CountKind::AllocatedBytes}) {
            for (const auto& [name, span] : sparse_[static_cast<int>(kind)]) add_count(kind, name, span);
        }
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
            totals_[kind].fill(result_.files);
            if (totals_[kind].most[0] > 0 || totals_[kind].most[1] > 0)
                result_.totals.push_back(counted(static_cast<CountKind>(kind), totals_[kind]));
        }
        const auto order = [](const ComparedCount& count) {
            const double change =
                std::abs(count.new_least + count.new_most - count.old_least - count.old_most);
            return std::pair(count.causes == 0, -change);
        };
        std::ranges::stable_sort(result_.counts, {}, order);
    }

  private:
    /// The least and the most of the runs of both sides.
    struct Spans {
        double least[2] = {0, 0}, most[2] = {0, 0};
        std::size_t runs[2] = {0, 0};

        void add(int side, double value) {
            least[side] = runs[side] == 0 ? value : std::min(least[side], value);
            most[side] = std::max(most[side], value);
            ++runs[side];
        }
        /// In the other runs, it did not occur.
        void fill(const std::vector<std::string> (&files)[2]) {
            for (int side = 0; side < 2; ++side) {
                if (runs[side] < files[side].size()) least[side] = 0;
            }
        }
    };

    void add_run(const RunRecord& run) {
        const auto side = static_cast<int>(run.side);
        const double steps = result_.per_step ? static_cast<double>(run.steps.size()) : 1;
        std::vector<double> calls(paths_.names.names.size());
        std::vector<double> kinds(kKinds);
        for (std::uint32_t node = 0; node < run.values.size(); ++node) {
            const auto count = static_cast<double>(run.values[node].calls);
            calls_[side][node] += count;
            calls[matched_.renamed[nodes_[node].slot]] += count;
            kinds[static_cast<int>(paths_.name(node).kind)] += count;
        }
        calls_of_.resize(calls.size());
        for (std::size_t name = 0; name < calls.size(); ++name) {
            if (calls[name] > 0) calls_of_[name].add(side, calls[name] / steps);
        }
        std::unordered_map<std::uint32_t, double> sums[kKinds];
        for (const NodeBytes& bytes : run.bytes) {
            const std::uint32_t name = matched_.renamed[nodes_[bytes.node].slot];
            const auto put = [&](CountKind kind, double value) {
                if (value > 0) sums[static_cast<int>(kind)][name] += value;
                kinds[static_cast<int>(kind)] += value;
            };
            put(CountKind::CopiedBytes, static_cast<double>(bytes.copied));
            put(CountKind::Allocations, static_cast<double>(bytes.allocations));
            put(CountKind::AllocatedBytes, static_cast<double>(bytes.allocated));
        }
        for (std::size_t kind = 0; kind < kKinds; ++kind) {
            for (const auto& [name, value] : sums[kind]) sparse_[kind][name].add(side, value / steps);
        }
        for (double& kind : kinds) kind /= steps;
        kinds[static_cast<int>(CountKind::Steps)] = static_cast<double>(run.steps.size());
        for (std::size_t kind = 0; kind < kKinds; ++kind) totals_[kind].add(side, kinds[kind]);
    }

    /// For each name: on how many paths its number per call of the caller changed.
    void find_causes() {
        causes_.assign(paths_.names.names.size(), {});
        for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
            if (!has_[1][node] && matched_.partner[node] != kNoNode) continue;  // its partner counts
            const std::uint32_t before = matched_.partner[node] != kNoNode ? matched_.partner[node] : node;
            const double old_calls = calls_[0][before], new_calls = calls_[1][node];
            if (old_calls * caller_calls(1, node) == new_calls * caller_calls(0, before)) continue;
            if (has_new_caller(node)) continue;
            Cause& cause = causes_[matched_.renamed[nodes_[node].slot]];
            ++cause.paths;
            const double change = std::abs(new_calls / runs(1) - old_calls / runs(0));
            if (cause.node != kNoNode && change <= cause.change) continue;
            cause.node = node;
            cause.change = change;
        }
    }
    double runs(int side) const { return static_cast<double>(result_.files[side].size()); }
    /// The calls of the caller in all runs; for outermost ranges, the number of runs or steps.
    double caller_calls(int side, std::uint32_t node) const {
        for (std::uint32_t above = nodes_[node].parent; above != kNoRow; above = nodes_[above].parent) {
            if (calls_[side][above] > 0) return calls_[side][above];
        }
        if (!result_.per_step) return runs(side);
        double steps = 0;
        for (const RunRecord& run : runs_) {
            if (static_cast<int>(run.side) == side) steps += static_cast<double>(run.steps.size());
        }
        return steps;
    }
    bool has_new_caller(std::uint32_t node) const {
        const std::uint32_t above = nodes_[node].parent;
        return above != kNoRow && is_one_sided(matched_.match[above]);
    }
    static bool is_one_sided(RowMatch match) { return match == RowMatch::New || match == RowMatch::Gone; }

    ComparedCount counted(CountKind kind, const Spans& spans) const {
        return {.kind = kind,
                .old_least = spans.least[0],
                .old_most = spans.most[0],
                .new_least = spans.least[1],
                .new_most = spans.most[1]};
    }

    void add_count(CountKind kind, std::uint32_t name, Spans spans) {
        spans.fill(result_.files);
        ComparedCount count = counted(kind, spans);
        count.match = matched_.name_match[name];
        count.causes = causes_[name].paths;
        count.node = causes_[name].node;
        const bool is_guess = count.match == RowMatch::Guess && count.causes + moves_of(name) > 0;
        if (!count.differs() && !is_guess) return;
        count.name = paths_.names.names[name].text;
        if (matched_.old_of[name] != kNoNode) count.old_name = paths_.names.names[matched_.old_of[name]].text;
        if (is_one_sided(count.match)) count.inside = outermost(name);
        if (count.inside != kNoNode) count.causes = 0;
        result_.counts.push_back(std::move(count));
    }
    std::size_t moves_of(std::uint32_t name) const { return matched_.old_of[name] != kNoNode ? 1 : 0; }

    /// The outermost node with a new (or gone) name around all nodes of such a name; kNoNode: none.
    std::uint32_t outermost(std::uint32_t name) {
        if (outermost_.empty()) {
            outermost_.assign(paths_.names.names.size(), kUnseen);
            std::vector<std::uint32_t> around(nodes_.size(), kNoNode);
            for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
                const std::uint32_t above = nodes_[node].parent;
                if (above != kNoRow)
                    around[node] = around[above] != kNoNode                                ? around[above]
                                   : is_one_sided(matched_.name_match[nodes_[above].slot]) ? above
                                                                                           : kNoNode;
                std::uint32_t& of = outermost_[nodes_[node].slot];
                if (of == kUnseen || around[node] == kNoNode) of = around[node];
            }
        }
        const std::uint32_t found = outermost_[name];
        return found == kUnseen || found == kNoNode || nodes_[found].slot == name ? kNoNode : found;
    }

    struct Cause {
        std::size_t paths = 0;
        std::uint32_t node = kNoNode;
        double change = 0;
    };
    static constexpr std::uint32_t kUnseen = kNoNode - 1;

    Comparison& result_;
    const Comparison::Paths& paths_;
    const std::vector<PathTree::Node>& nodes_;
    const std::vector<RunRecord>& runs_;
    const MatchedPaths& matched_;
    const std::vector<bool> (&has_)[2];
    std::vector<double> calls_[2];  ///< by node: of all runs
    std::vector<Spans> calls_of_;   ///< by name
    std::map<std::uint32_t, Spans> sparse_[kKinds];
    Spans totals_[kKinds];
    std::vector<Cause> causes_;             ///< by name
    std::vector<std::uint32_t> outermost_;  ///< by name
};

}  // namespace

void compare_counts(Comparison& result, const Comparison::Paths& paths, const std::vector<RunRecord>& runs,
                    const MatchedPaths& matched, const std::vector<bool> (&has)[2]) {
    Counting(result, paths, runs, matched, has).run();
}

}  // namespace marey
