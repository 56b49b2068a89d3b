// sampled_profile.cpp: merges samples into ranges.
#include "formats/sampled_profile.h"

#include <algorithm>

#include <marey/error.h>

#include "analyze/tree/child_index.h"
#include "formats/file_header.h"

namespace marey {
namespace {

constexpr std::uint64_t kFreeEntries = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxExpansion = 100;

}  // namespace

SampledProfile::SampledProfile(std::string name, std::size_t bytes) : name_(std::move(name)), bytes_(bytes) {
    assembler_.clock().source = "samples";
}

std::uint32_t SampledProfile::frame(std::string_view name, std::string_view file, std::uint32_t line) {
    SiteInfo info = assembler_.named(name.empty() ? "(unknown)" : name);
    info.scope = Scope::Function;
    info.file = assembler_.string(file);
    info.line = line;
    return assembler_.site(info);
}

std::uint32_t SampledProfile::lane(std::int64_t pid, std::string_view process, std::int64_t tid,
                                   std::string_view thread, std::int32_t rank) {
    const auto [place, is_new_process] = processes_.try_emplace({pid, std::string(process)}, 0);
    if (is_new_process) {
        ProcessInfo info;
        info.pid = pid;
        info.node = rank;
        info.name = assembler_.string(process);
        place->second = assembler_.add_process(info);
    }
    const auto [known, is_new] = lane_of_.try_emplace({place->second, tid, std::string(thread)}, 0);
    if (is_new) {
        ThreadInfo info;
        info.process = place->second;
        info.id = static_cast<std::uint32_t>(lane_of_.size());
        info.os_tid = tid != 0 ? tid : info.id;
        info.name = assembler_.string(thread);
        known->second = assembler_.add_lane({assembler_.add_thread(info)});
        lanes_.resize(known->second + 1);
    }
    return known->second;
}

void SampledProfile::count_entries(std::size_t entries) {
    ++samples_;
    check_size(entries);
    entries_ += entries;
}

/// Formats that share the entries of stacks could expand without limit.
void SampledProfile::check_size(std::size_t entries) const {
    entries += entries_;
    if (entries > kFreeEntries && entries / kMaxExpansion > bytes_)
        throw Error(name_ +
                    ": the stacks of its samples expand to more than 100 entries per byte of the file");
}

std::uint32_t SampledProfile::add(std::uint32_t lane, std::span<const std::uint32_t> stack,
                                  std::int64_t weight) {
    count_entries(stack.size());
    if (weight <= 0 || stack.empty()) {
        ++weightless_;
        return kNoRow;
    }
    const std::uint32_t node = path(lane, stack);
    add_more(lane, node, weight);
    return node;
}

std::uint32_t SampledProfile::path(std::uint32_t lane, std::span<const std::uint32_t> stack) {
    std::uint32_t node = kNoRow;
    for (const std::uint32_t site : stack) node = lanes_[lane].tree.child(node, site);
    return node;
}

void SampledProfile::add_more(std::uint32_t lane, std::uint32_t sample, std::int64_t weight) {
    LaneSamples& samples = lanes_[lane];
    if (weight > kMaxTimeNs - samples.weight)
        throw Error(name_ + ": the weights of its samples are too large");
    samples.weight += weight;
    samples.tree.nodes[sample].self_ns += weight;
}

void SampledProfile::add_calls(std::uint32_t lane, std::uint32_t sample, std::uint64_t calls) {
    has_calls_ = true;
    lanes_[lane].tree.nodes[sample].count += calls;
}

void SampledProfile::add(std::uint32_t lane, std::span<const std::uint32_t> stack, std::int64_t start_ns,
                         std::int64_t duration_ns) {
    count_entries(stack.size());
    LaneSamples& samples = lanes_[lane];
    start_ns = std::clamp(start_ns, -kMaxTimeNs, kMaxTimeNs);
    const std::int64_t end_ns = start_ns + std::clamp<std::int64_t>(duration_ns, 0, kMaxTimeNs - start_ns);
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

void SampledProfile::place_tree(std::uint32_t lane, const LaneSamples& samples) {
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
    std::vector<std::pair<std::uint32_t, std::int64_t>> rest;  // nodes and their starts, the next one last
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

void SampledProfile::place_ranges() {
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
        place_tree(lane, lanes_[lane]);
        for (const Timed& range : lanes_[lane].timed)
            assembler_.add_range(lane, range.start_ns, range.end_ns - range.start_ns, range.site, kSampled);
        lanes_[lane] = {};
    }
}

Trace SampledProfile::finish_merged() {
    place_ranges();
    if (!has_calls_) add_sampled_problem(assembler_);
    return assembler_.finish();
}

Trace SampledProfile::finish(std::string_view unit) {
    place_ranges();
    std::string text =
        "Times are estimates from " + std::to_string(samples_) + " samples, and counts are not calls.";
    if (!unit.empty())
        text = "The file has no times: 1 ns stands for 1 " + std::string(unit) + ", in " +
               std::to_string(samples_) + " samples; counts are not calls.";
    assembler_.add_problem("sampled", text, samples_);
    if (weightless_ != 0)
        assembler_.add_problem("weightless_samples", "Samples without a weight or a stack were left out.",
                               weightless_);
    if (disordered_ != 0)
        assembler_.add_problem("disordered_samples", "Samples overlapped; they were cut.", disordered_);
    return assembler_.finish();
}

void add_sampled_problem(TraceAssembler& assembler) {
    assembler.add_problem("sampled", "Times are estimates from samples, and counts are not calls.");
}

std::vector<std::int64_t> sample_durations(std::span<const std::int64_t> times_ns) {
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

Trace read_profile_file(const std::string& path,
                        Trace (*read)(std::string_view text, const std::string& name)) {
    std::string damage;
    Trace trace = read(read_whole_file(path, damage), path);
    if (damage.empty()) return trace;
    const auto data = changeable_data(std::move(trace));
    data->problems.push_back({"cut_short", "Only the part before the damage was read: " + damage, 1});
    return Trace(data);
}

}  // namespace marey
