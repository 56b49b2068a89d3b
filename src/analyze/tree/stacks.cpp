// stacks.cpp: folded stacks: the value of a metric under each stack.
#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <unordered_map>

#include <marey/error.h>
#include <marey/results.h>
#include <marey/samples.h>

#include "analyze/events/innermost_ranges.h"
#include "analyze/gpu/device_time.h"
#include "analyze/tree/path_tree.h"
#include "analyze/tree/range_stack.h"
#include "base/work_meter.h"
#include "results/result_rows.h"

namespace marey {
namespace {

constexpr std::string_view kNoRange = "[memory]";  ///< for allocations outside any range

enum class Measure { HostTime, DeviceTime, Count, Bytes };
struct Metric {
    std::string_view name;
    Measure measure;
    DeviceType device = DeviceType::None;  ///< None: any device
};
constexpr Metric kMetrics[] = {
    {"self_cpu_time_total", Measure::HostTime},
    {"self_device_time_total", Measure::DeviceTime},
    {"self_cuda_time_total", Measure::DeviceTime, DeviceType::Cuda},
    {"self_xpu_time_total", Measure::DeviceTime, DeviceType::Xpu},
    {"self_mps_time_total", Measure::DeviceTime, DeviceType::Mps},
    {"self_privateuse1_time_total", Measure::DeviceTime, DeviceType::Other},
    {"count", Measure::Count},
    {"allocated_bytes", Measure::Bytes},
};

const Metric& metric_of(const std::string& name) {
    std::string known;
    for (const Metric& metric : kMetrics) {
        if (metric.name == name) return metric;
        known += (known.empty() ? "" : ", ") + std::string(metric.name);
    }
    throw Error("stacks: unknown metric '" + name + "'; known: " + known);
}

/// Whether the trace has anything that a metric can count.
bool has_values(const Trace& trace, const Metric& metric) {
    if (metric.measure == Measure::Bytes) return trace.memory().size() > 0;
    if (metric.measure != Measure::DeviceTime) return true;
    const auto tracks = trace.tracks();
    return std::ranges::any_of(tracks, [](const TrackInfo& track) {
        return track.range_count > 0 && track.device.type != DeviceType::Cpu;
    });
}

/// An entry as folded stacks print it.
std::string printed_entry(std::string_view text) {
    std::string entry(text);
    for (char& c : entry) {
        if (c == ' ' || c == ';' || c == '\t' || c == '\n' || c == '\r') c = '_';
    }
    return entry.empty() ? "_" : entry;
}

/// An entry of a tree, which has one node for all steps.
std::string tree_entry(std::string_view text) {
    return std::string(text.starts_with("ProfilerStep#") ? "ProfilerStep*" : text);
}

/// The distinct entries.
class Entries {
  public:
    explicit Entries(bool is_tree) : is_tree_(is_tree) {}
    std::uint32_t number(std::string_view text) {
        std::string entry = is_tree_ ? tree_entry(text) : printed_entry(text);
        const auto known = numbers_.find(entry);
        if (known != numbers_.end()) return known->second;
        const auto number = static_cast<std::uint32_t>(texts_.size());
        numbers_.emplace(texts_.emplace_back(std::move(entry)), number);
        return number;
    }
    const std::string& text(std::uint32_t number) const { return texts_[number]; }

  private:
    bool is_tree_;
    std::deque<std::string> texts_;  // a deque, because references must stay valid
    std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

class Folding {
  public:
    Folding(const Trace& trace, const StackOptions& options, bool is_tree)
        : entries_(is_tree),
          trace_(trace),
          options_(options),
          metric_(metric_of(options.metric)),
          meter_(trace.ranges().size()) {
        of_site_.reserve(trace.sites().size());
        for (const SiteInfo& site : trace.sites())
            of_site_.push_back(entries_.number(trace.string(site.name)));
        node_of_.resize(trace.ranges().size(), kNoRow);
        if (shows_ranges()) return;
        value_node_.resize(trace.ranges().size(), kNoRow);
        stacks_.emplace(trace);
        functions_count_ = !has_operators();
    }

    void run() {
        for (const TrackInfo& track : trace_.tracks()) place_track(track);
        switch (metric_.measure) {
            case Measure::HostTime:
            case Measure::Count:
                add_host();
                break;
            case Measure::DeviceTime:
                add_launched();
                break;
            case Measure::Bytes:
                add_allocations();
                break;
        }
    }

    std::vector<FoldedStack> stacks() const {
        const bool is_time = metric_.measure == Measure::HostTime || metric_.measure == Measure::DeviceTime;
        const std::int64_t unit = is_time && options_.microseconds ? 1000 : 1;
        std::vector<FoldedStack> stacks;
        std::vector<std::uint32_t> path;
        for (std::uint32_t i = 0; i < tree_.nodes.size(); ++i) {
            const std::int64_t value = tree_.nodes[i].self_ns / unit;
            if (value <= 0) continue;
            path.clear();
            for (std::uint32_t node = i; node != kNoRow; node = tree_.nodes[node].parent)
                path.push_back(node);
            FoldedStack& stack = stacks.emplace_back();
            stack.value = value;
            for (auto node = path.rbegin(); node != path.rend(); ++node) {
                if (node != path.rbegin()) stack.stack += ';';
                stack.stack += entries_.text(tree_.nodes[*node].slot);
            }
        }
        return stacks;
    }

    std::vector<StackNode> nodes() const {
        std::vector<StackNode> nodes;
        nodes.reserve(tree_.nodes.size());
        for (const auto& node : tree_.nodes)
            nodes.push_back({entries_.text(node.slot), node.parent, std::max<std::int64_t>(node.self_ns, 0)});
        return nodes;
    }

  private:
    bool shows_ranges() const { return options_.frames == StackFrames::Ranges; }
    const SiteInfo& site(Row row) const { return trace_.sites()[trace_.ranges().site[row]]; }

    /// Whether the trace has ranges other than Python calls, device work and user annotations.
    bool has_operators() const {
        constexpr ScopeSet kOthers{Scope::PythonFunction, Scope::CFunction, Scope::GarbageCollection,
                                   Scope::User,           Scope::Step,      Scope::Device,
                                   Scope::DeviceRuntime};
        const RangeColumns ranges = trace_.ranges();
        return std::ranges::any_of(ranges.site, [&](std::uint32_t number) {
            return !kOthers.contains(trace_.sites()[number].scope);
        });
    }

    std::uint32_t value_node(Row row) const { return shows_ranges() ? node_of_[row] : value_node_[row]; }

    /// The node of `entry` under `around`, or `around` if the stack has reached its maximum depth.
    std::uint32_t child(std::uint32_t around, std::uint32_t entry) {
        const std::uint32_t length = around == kNoRow ? 1 : lengths_[around] + 1;
        if (length > options_.max_entries) return around;
        const std::uint32_t node = tree_.child(around, entry);
        if (node == lengths_.size()) lengths_.push_back(length);
        return node;
    }

    /// kNoRow, or the entry of a thread.
    std::uint32_t base(Row thread) {
        if (!options_.by_thread) return kNoRow;
        const ThreadInfo& info = trace_.threads()[thread];
        const std::string_view name = trace_.string(info.name);
        return child(kNoRow,
                     entries_.number(name.empty() ? "thread " + std::to_string(info.id) : std::string(name)));
    }

    /// Assigns each range of a track the node of its stack, and the node that receives its values.
    void place_track(const TrackInfo& track) {
        if (track.range_count == 0) return;
        const RangeColumns ranges = trace_.ranges();
        const std::uint32_t base = this->base(track.thread);
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            meter_.add_row(row);
            const Row parent = ranges.parent[row];
            const std::uint32_t around = parent == kNoRow ? base : node_of_[parent];
            const std::uint32_t entry = of_site_[ranges.site[row]];
            if (shows_ranges()) {
                node_of_[row] = child(around, entry);
                continue;
            }
            if (is_stack_entry(site(row).scope)) {
                node_of_[row] = child(around, entry);
                if (functions_count_) value_node_[row] = node_of_[row];
            } else {
                node_of_[row] = around;
                const std::uint32_t place = around == base ? kNoRow : around;
                const std::uint32_t stack = stacks_->is_of_place(row) ? place : stack_from(row, base);
                value_node_[row] = stack == kNoRow || !options_.append_name ? stack : child(stack, entry);
            }
        }
    }

    /// The node of a stack that was recorded elsewhere; kNoRow if the stack is empty.
    std::uint32_t stack_from(Row row, std::uint32_t base) {
        std::vector<std::string_view> entries;
        stacks_->visit(row, std::numeric_limits<std::size_t>::max(),
                       [&](std::string_view entry) { entries.push_back(entry); });
        std::uint32_t node = base;
        for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry)
            node = child(node, entries_.number(*entry));
        return entries.empty() ? kNoRow : node;
    }

    void add(std::uint32_t node, std::int64_t value) {
        if (node != kNoRow) tree_.nodes[node].self_ns += value;
    }

    void add_host() {
        const RangeColumns ranges = trace_.ranges();
        for (const TrackInfo& track : trace_.tracks()) {
            if (place_of(track) != Place::Host) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row)
                add(value_node(row), metric_.measure == Measure::Count ? 1 : ranges.self_ns[row]);
        }
    }

    /// Whether the ranges of a track are work of the requested devices.
    bool is_selected(const TrackInfo& track) const {
        return place_of(track) == Place::Device &&
               (metric_.device == DeviceType::None || metric_.device == track.device.type);
    }

    void add_launched() {
        const RangeColumns ranges = trace_.ranges();
        const std::vector<LaunchedTime> all = launched_times(trace_);
        const DeviceTimes times = device_times(trace_, all);
        for (const LaunchedTime& launched : all) {
            if (!is_selected(trace_.tracks()[trace_.track_of(launched.range)])) continue;
            const Row owner = launched.owner;
            const Scope scope = site(owner).scope;
            if (scope == Scope::DeviceRuntime) continue;  // no range encloses the call
            const std::int64_t time =
                launched.is_timed ? std::max<std::int64_t>(times.self[owner], 0) : launched.duration_ns;
            if (!shows_ranges()) {
                add(is_stack_entry(scope) ? node_of_[owner] : value_node_[owner], time);
            } else if (launched.is_timed) {
                add(node_of_[owner], time);
            } else {
                node_of_[launched.range] = child(node_of_[owner], of_site_[ranges.site[launched.range]]);
            }
        }
        if (!shows_ranges()) return;
        EnclosingWork work(trace_);
        for (const TrackInfo& track : trace_.tracks()) {
            if (!is_selected(track)) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const Row range = work.at(row);
                if (range != kNoRow) add(node_of_[range], ranges.self_ns[row]);
            }
        }
    }

    void add_allocations() {
        const MemoryColumns memory = trace_.memory();
        InnermostRanges innermost(trace_);
        for (std::size_t i = 0; i < memory.size(); ++i) {
            if (memory.bytes[i] <= 0 || memory.out_of_memory[i] != 0) continue;
            const Row row = innermost.at(memory.thread[i], memory.time_ns[i]);
            if (row != kNoRow) {
                add(value_node(row), memory.bytes[i]);
            } else if (shows_ranges()) {
                add(child(base(memory.thread[i]), entries_.number(kNoRange)), memory.bytes[i]);
            }
        }
    }

    Entries entries_;
    const Trace& trace_;
    const StackOptions& options_;
    const Metric& metric_;
    WorkMeter meter_;                     ///< of ranges that have their nodes
    std::optional<RangeStacks> stacks_;   ///< Python
    bool functions_count_ = false;        ///< Python: functions have their own values
    std::vector<std::uint32_t> of_site_;  ///< the entry for each site's name
    PathTree tree_;                       ///< of entries; self_ns holds the value in any unit
    std::vector<std::uint32_t> lengths_;  ///< per node: length of its stack
    std::vector<std::uint32_t> node_of_;  ///< per range: the node for the ranges inside it
    std::vector<std::uint32_t>
        value_node_;  ///< Python: the node that receives a range's values; kNoRow: none
};

/// Samples have host time only.
Trace counted_trace(const Trace& trace, const StackOptions& options) {
    const bool has_time = metric_of(options.metric).measure == Measure::HostTime;
    return has_time ? with_sampled_functions(trace, options.with_waits) : trace;
}

}  // namespace

std::vector<std::string> stack_metrics() {
    std::vector<std::string> names;
    for (const Metric& metric : kMetrics) names.emplace_back(metric.name);
    return names;
}

std::vector<FoldedStack> fold_stacks(const Trace& trace, const StackOptions& options) {
    if (!has_values(trace, metric_of(options.metric))) return {};  // saves a pass over all ranges
    const Trace counted = counted_trace(trace, options);
    Folding folding(counted, options, false);
    folding.run();
    return folding.stacks();
}

std::vector<StackNode> stack_tree(const Trace& trace, const StackOptions& options) {
    if (!has_values(trace, metric_of(options.metric))) return {};
    const Trace counted = counted_trace(trace, options);
    Folding folding(counted, options, true);
    folding.run();
    return folding.nodes();
}

Result stack_result(std::span<const FoldedStack> stacks) {
    ResultRows<FoldedStack> rows("stacks", "Folded stacks, for flame graphs");
    rows.columns({
        {"stack", &FoldedStack::stack, "entries, outermost first, joined by ;", "stack"},
        {"value", &FoldedStack::value, "sum of the metric in ranges with exactly this stack", "value"},
    });
    for (const FoldedStack& stack : stacks) rows.add(stack);
    return made_result({}, rows);
}

}  // namespace marey
