// sampled_profile.h: makes ranges of the samples in other tools' profiles. Their times are estimates: every
// range has the flag kSampled, and the trace has the problem "sampled" unless it has sums of calls.
#pragma once

#include <algorithm>
#include <map>
#include <utility>

#include <marey/error.h>

#include "analyze/tree/child_index.h"
#include "analyze/tree/path_tree.h"
#include "trace/trace_assembler.h"

namespace marey {

/// For traces with ranges made of samples, as their number is unknown.
inline void add_sampled_problem(TraceAssembler& assembler) {
    assembler.add_problem("sampled", "Times are estimates from samples, and counts are not calls.");
}

/// Collects samples: stacks with a weight, with or without a time.
class SampledProfile {
  public:
    /// `name` starts error messages; `bytes` is the size of the file, which limits how far shared stacks may
    /// expand.
    SampledProfile(std::string name, std::size_t bytes) : name_(std::move(name)), bytes_(bytes) {
        assembler_.clock().source = "samples";
    }

    TraceAssembler& assembler() { return assembler_; }
    /// The site of a frame. A line that no file has counts as none.
    std::uint32_t frame(std::string_view name, std::string_view file = {}, std::int64_t line = 0) {
        SiteInfo info = assembler_.named(name.empty() ? "(unknown)" : name);
        info.scope = Scope::Function;
        info.file = assembler_.string(file);
        info.line = line > 0 && line <= 0x7fffffff ? static_cast<std::uint32_t>(line) : 0;
        return assembler_.site(info);
    }
    /// A thread; the same one for the same process and thread name. `pid` and `tid` may be 0.
    std::uint32_t lane(std::int64_t pid, std::string_view process, std::int64_t tid, std::string_view thread,
                       std::int32_t rank = -1) {
        const auto [place, is_new_process] = processes_.try_emplace({pid, std::string(process)}, 0);
        if (is_new_process) {
            place->second =
                assembler_.add_process({.pid = pid, .node = rank, .name = assembler_.string(process)});
        }
        const auto [known, is_new] = lane_of_.try_emplace({place->second, tid, std::string(thread)}, 0);
        if (is_new) {
            ThreadInfo info{.process = place->second, .id = static_cast<std::uint32_t>(lane_of_.size())};
            info.os_tid = tid != 0 ? tid : info.id;
            info.name = assembler_.string(thread);
            known->second = assembler_.add_lane({assembler_.add_thread(info)});
            lanes_.resize(known->second + 1);
        }
        return known->second;
    }

    /// Throws marey::Error if a stack of that size would expand the file too far.
    /// Formats that share the entries of stacks could expand without limit.
    void check_size(std::size_t entries) const {
        entries += entries_;
        if (entries > kFreeEntries && entries / kMaxExpansion > bytes_)
            throw Error(name_ +
                        ": the stacks of its samples expand to more than 100 entries per byte of the file");
    }

    /// Adds a sample without a time. `stack` holds sites, outermost first. Samples of a lane are merged by
    /// their stacks and laid one after another. Weights of 0 or less are counted and left out. Throws
    /// marey::Error if the weights do not fit.
    ///
    /// Returns a number for add_more(); kNoRow if it was left out.
    std::uint32_t add(std::uint32_t lane, std::span<const std::uint32_t> stack, std::int64_t weight) {
        count_entries(stack.size());
        if (weight <= 0 || stack.empty()) {
            ++weightless_;
            return kNoRow;
        }
        const std::uint32_t node = path(lane, stack);
        add_more(lane, node, weight);
        return node;
    }
    /// The same number for a stack, without adding a sample. It becomes a range if it, or a stack that begins
    /// with it, gets a weight.
    std::uint32_t path(std::uint32_t lane, std::span<const std::uint32_t> stack) {
        std::uint32_t node = kNoRow;
        for (const std::uint32_t site : stack) node = lanes_[lane].tree.child(node, site);
        return node;
    }
    /// Adds weight to the stack of a sample.
    void add_more(std::uint32_t lane, std::uint32_t sample, std::int64_t weight) {
        LaneSamples& samples = lanes_[lane];
        if (weight > kMaxTimeNs - samples.weight)
            throw Error(name_ + ": the weights of its samples are too large");
        samples.weight += weight;
        samples.tree.nodes[sample].self_ns += weight;
    }
    /// For profiles that have sums of calls instead of samples: makes the stack of a sample stand for more
    /// calls. Every range is then a sum, and those without calls count as none.
    void add_calls(std::uint32_t lane, std::uint32_t sample, std::uint64_t calls) {
        has_calls_ = true;
        lanes_[lane].tree.nodes[sample].count += calls;
    }
    /// Adds a sample that stands for the time from `start_ns` on; the samples of a lane come in order of
    /// time. Ranges continue as long as consecutive samples share them.
    void add(std::uint32_t lane, std::span<const std::uint32_t> stack, std::int64_t start_ns,
             std::int64_t duration_ns) {
        count_entries(stack.size());
        LaneSamples& samples = lanes_[lane];
        start_ns = std::clamp(start_ns, -kMaxTimeNs, kMaxTimeNs);
        const std::int64_t end_ns =
            start_ns + std::clamp<std::int64_t>(duration_ns, 0, kMaxTimeNs - start_ns);
        if (end_ns == start_ns) ++weightless_;
        if (start_ns < samples.end_ns && !samples.timed.empty()) {
            ++disordered_;
            start_ns = samples.end_ns;
        }
        if (end_ns <= start_ns) return;
        // Ranges that the samples share go on, unless there is a gap.
        std::size_t shared = 0;
        if (start_ns == samples.end_ns) {
            while (shared < stack.size() && shared < samples.open.size() &&
                   samples.timed[samples.open[shared]].site == stack[shared])
                ++shared;
        }
        samples.open.resize(shared);
        for (const std::size_t range : samples.open) samples.timed[range].end_ns = end_ns;
        for (std::size_t i = shared; i < stack.size(); ++i) {
            samples.open.push_back(samples.timed.size());
            samples.timed.push_back({start_ns, end_ns, stack[i]});
        }
        samples.end_ns = end_ns;
    }

    /// `unit`: what one nanosecond stands for if the weights are not times ("byte", "sample"); else empty.
    Trace finish(std::string_view unit) {
        place_ranges();
        std::string text =
            "Times are estimates from " + std::to_string(samples_) + " samples, and counts are not calls.";
        if (!unit.empty())
            text = "The file has no times: 1 ns stands for 1 " + std::string(unit) + ", in " +
                   std::to_string(samples_) + " samples; counts are not calls.";
        assembler_.add_problem("sampled", text, samples_);
        assembler_.add_problem("weightless_samples", "Samples without a weight or a stack were left out.",
                               weightless_);
        if (disordered_ != 0)
            assembler_.add_problem("disordered_samples", "Samples overlapped; they were cut.", disordered_);
        return assembler_.finish();
    }
    /// For a file whose samples were merged by its tool, so that their number is unknown.
    Trace finish_merged() {
        place_ranges();
        if (!has_calls_) add_sampled_problem(assembler_);
        return assembler_.finish();
    }

    /// Times beyond this are clamped, so that sums of two do not overflow.
    static constexpr std::int64_t kMaxTimeNs = std::int64_t{1} << 61;
    std::uint64_t samples() const noexcept { return samples_; }

  private:
    static constexpr std::uint64_t kFreeEntries = std::uint64_t{16} << 20;
    static constexpr std::uint64_t kMaxExpansion = 100;
    struct Timed {
        std::int64_t start_ns, end_ns;
        std::uint32_t site;
    };
    struct LaneSamples {
        PathTree tree;  ///< of samples without times; slots are sites
        std::int64_t weight = 0;
        std::vector<Timed> timed;       ///< a parent before its children
        std::vector<std::size_t> open;  ///< in `timed`, outermost first
        std::int64_t end_ns = 0;        ///< of the last sample with a time
    };

    void count_entries(std::size_t entries) {
        ++samples_;
        check_size(entries);
        entries_ += entries;
    }
    void place_tree(std::uint32_t lane, const LaneSamples& samples) {
        const std::vector<PathTree::Node>& nodes = samples.tree.nodes;
        std::vector<std::int64_t> total(nodes.size());
        std::vector<std::uint32_t> parents(nodes.size()), order(nodes.size());
        for (std::uint32_t i = static_cast<std::uint32_t>(nodes.size()); i-- > 0;) {
            total[i] += nodes[i].self_ns;
            parents[i] = nodes[i].parent;
            order[i] = i;
            if (parents[i] != kNoRow) total[parents[i]] += total[i];
        }
        const ChildIndex children(parents, order);
        std::vector<std::pair<std::uint32_t, std::int64_t>>
            rest;  // nodes and their starts, the next one last
        const auto push = [&](std::span<const std::uint32_t> siblings, std::int64_t start_ns) {
            const std::size_t first = rest.size();
            for (const std::uint32_t node : siblings) {
                rest.emplace_back(node, start_ns);
                start_ns += total[node];
            }
            std::reverse(rest.begin() + static_cast<std::ptrdiff_t>(first), rest.end());
        };
        push(children.roots(), 0);
        while (!rest.empty()) {
            const auto [node, start_ns] = rest.back();
            rest.pop_back();
            const TraceAssembler::RangeId range =
                assembler_.add_range(lane, start_ns, total[node], nodes[node].slot, kSampled);
            if (has_calls_) assembler_.add_calls(range, nodes[node].count);
            push(children.of(node), start_ns);
        }
    }
    void place_ranges() {
        for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
            place_tree(lane, lanes_[lane]);
            for (const Timed& range : lanes_[lane].timed)
                assembler_.add_range(lane, range.start_ns, range.end_ns - range.start_ns, range.site,
                                     kSampled);
            lanes_[lane] = {};
        }
    }

    std::string name_;
    std::size_t bytes_;
    TraceAssembler assembler_;
    std::map<std::pair<std::int64_t, std::string>, Row> processes_;
    std::map<std::tuple<Row, std::int64_t, std::string>, std::uint32_t> lane_of_;
    std::vector<LaneSamples> lanes_;
    std::uint64_t samples_ = 0, entries_ = 0, weightless_ = 0, disordered_ = 0;
    bool has_calls_ = false;
};

/// For samples at these ascending times: the time until the next one, but the median of these times if that
/// is a tenth of it or less, because the thread was not running then.
inline std::vector<std::int64_t> sample_durations(std::span<const std::int64_t> times_ns) {
    std::vector<std::int64_t> durations, gaps;
    for (std::size_t i = 0; i + 1 < times_ns.size(); ++i) {
        durations.push_back(std::max<std::int64_t>(times_ns[i + 1] - times_ns[i], 0));
        if (durations.back() > 0) gaps.push_back(durations.back());
    }
    constexpr std::int64_t kOnlySampleNs = 1'000'000;
    std::int64_t usual = kOnlySampleNs;
    if (!gaps.empty()) {
        const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
        std::nth_element(gaps.begin(), middle, gaps.end());
        usual = *middle;
    }
    if (!times_ns.empty()) durations.push_back(usual);
    for (std::int64_t& duration : durations) {
        if (duration / 10 >= usual) duration = usual;
    }
    return durations;
}

}  // namespace marey
