// memory_profile.cpp: the memory of arrays over time, with the category of each.
#include <algorithm>
#include <utility>

#include <marey/event_list.h>
#include <marey/memory_profile.h>
#include <marey/modules.h>

#include "analyze/memory/live_memory.h"
#include "analyze/memory/memory_flow.h"
#include "trace/torch_names.h"

namespace marey {
namespace {

/// A category found for an array applies to all of its memory; one found for an allocation applies to all its
/// versions.
class MemoryCategories {
  public:
    MemoryCategories() = default;
    /// Blocks known to hold parameters and the like get a version even if no step used them.
    MemoryCategories(const EventTree& tree, const ArrayIds& ids, std::span<const FlowNode> nodes,
                     std::vector<MemoryBlock>& blocks);

    MemoryCategory get(std::uint32_t allocation, std::uint32_t version) const noexcept;

  private:
    friend class CategoryFinder;
    std::vector<std::uint32_t> array_in_;  ///< by allocation
    std::vector<std::size_t> first_;       ///< by allocation: where its versions are in by_version_
    std::vector<MemoryCategory> by_array_, by_allocation_, by_version_;
};

MemoryCategory MemoryCategories::get(std::uint32_t allocation, std::uint32_t version) const noexcept {
    if (allocation + 1 >= first_.size() || array_in_[allocation] == kNoRow) return MemoryCategory::Unknown;
    if (const MemoryCategory found = by_array_[array_in_[allocation]]; found != MemoryCategory::Unknown)
        return found;
    if (by_allocation_[allocation] != MemoryCategory::Unknown) return by_allocation_[allocation];
    const std::size_t slot = first_[allocation] + version;
    return slot < first_[allocation + 1] ? by_version_[slot] : MemoryCategory::Unknown;
}

/// Versions of all allocations are numbered consecutively, one slot each.
class CategoryFinder {
  public:
    CategoryFinder(const EventTree& tree, const ArrayIds& ids, std::span<const FlowNode> nodes,
                   std::vector<MemoryBlock>& blocks, MemoryCategories& found)
        : tree_(tree),
          trace_(tree.trace()),
          ids_(ids),
          nodes_(nodes),
          blocks_(blocks),
          found_(found),
          modules_(tree.trace()) {
        std::uint32_t arrays = 0;
        for (MemoryBlock& block : blocks_) {
            found_.array_in_.push_back(block.array);
            if (block.array != kNoRow) arrays = std::max(arrays, block.array + 1);
        }
        found_.by_array_.assign(arrays, MemoryCategory::Unknown);
        found_.by_allocation_.assign(blocks_.size(), MemoryCategory::Unknown);
        visit_parameters([&](const Argument& array, const Argument& gradient) {
            keep(array);
            keep(gradient);
        });
        visit_states([&](const Argument& state) { keep(state); });
        found_.first_.assign(1, 0);
        for (const MemoryBlock& block : blocks_)
            found_.first_.push_back(found_.first_.back() + block.versions);
        found_.by_version_.assign(found_.first_.back(), MemoryCategory::Unknown);
    }

    void run() {
        find_gradients_and_temporaries();
        visit_parameters(
            [&](const Argument& array, const Argument&) { set_array(array, MemoryCategory::Parameter); });
        find_inputs();
        find_parameters_by_flow();
        find_activations();
        visit_states([&](const Argument& state) { set_array(state, MemoryCategory::OptimizerState); });
        find_autograd_details();
    }

  private:
    using Flags = std::vector<char>;

    std::uint32_t allocation_of(const Argument& value) const noexcept {
        return value.kind == ValueKind::Array && value.array < ids_.arrays.size()
                   ? ids_.arrays[value.array].allocation
                   : 0;
    }
    /// The allocation has a version, even if nothing used it.
    void keep(const Argument& value) {
        MemoryBlock& block = blocks_[allocation_of(value)];
        if (block.array != kNoRow) block.versions = std::max(block.versions, 1u);
    }
    void visit_parameters(const auto& visit) const {
        for (std::uint32_t site = 0; site < trace_.sites().size(); ++site) {
            const ModuleInfo* const module = modules_.find_site(site);
            if (module == nullptr) continue;
            for (const ModuleParameter& parameter : module->parameters)
                visit(parameter.array, parameter.gradient);
        }
    }
    void visit_states(const auto& visit) const {
        for (std::uint32_t site = 0; site < trace_.sites().size(); ++site) {
            const ModuleInfo* const module = modules_.find_site(site);
            if (module == nullptr || !module->is_optimizer) continue;
            for (const ModuleParameter& parameter : module->parameters) {
                for (const ModuleParameter::State& state : parameter.state) visit(state.array);
            }
        }
    }

    std::uint32_t array_of(const FlowEdge& edge) const noexcept { return blocks_[edge.allocation].array; }
    std::size_t input_slot(const FlowEdge& edge) const noexcept {
        return found_.first_[edge.allocation] + edge.version;
    }
    std::size_t output_slot(const FlowEdge& edge) const noexcept {
        return found_.first_[edge.allocation] + edge.output_version();
    }
    MemoryCategory input_category(const FlowEdge& edge) const noexcept {
        return found_.get(edge.allocation, edge.version);
    }
    MemoryCategory output_category(const FlowEdge& edge) const noexcept {
        return found_.get(edge.allocation, edge.output_version());
    }
    void set_array(const Argument& value, MemoryCategory category) {
        const std::uint32_t array = blocks_[allocation_of(value)].array;
        if (array != kNoRow) found_.by_array_[array] = category;
    }
    void set_version(std::size_t slot, MemoryCategory category) {
        if (found_.by_version_[slot] == MemoryCategory::Unknown) found_.by_version_[slot] = category;
    }
    static bool is_learned(MemoryCategory category) noexcept {
        return category == MemoryCategory::Gradient || category == MemoryCategory::Parameter;
    }

    /// Arrays that the autograd engine accumulates, or takes unchanged, are gradients from then on.
    void find_accumulated() {
        const RangeColumns ranges = trace_.ranges();
        for (Row range = 0; range < ranges.size(); ++range) {
            const SiteInfo& site = trace_.sites()[ranges.site[range]];
            if (site.scope != Scope::BackwardFunction || trace_.string(site.name) != kAccumulateGradient)
                continue;
            const auto children = tree_.children(range);
            const auto first =
                std::ranges::find_if(children, [&](std::uint32_t child) { return child < ranges.size(); });
            if (first == children.end()) continue;
            if (!accumulates_gradient(trace_.range_name(*first))) continue;
            for (const Argument& value : trace_.range_arguments(*first)) {
                if (value.role != ArgumentRole::Input) continue;
                set_array(value, MemoryCategory::Gradient);
                break;
            }
        }
    }
    void find_gradients_and_temporaries() {
        visit_parameters([&](const Argument&, const Argument& gradient) {
            set_array(gradient, MemoryCategory::Gradient);
        });
        find_accumulated();
        for (const FlowNode& node : nodes_) {
            for (const FlowEdge& edge : node.edges) {
                if (edge.is_temporary()) found_.by_allocation_[edge.allocation] = MemoryCategory::Temporary;
            }
        }
    }

    /// Arrays with a version that comes, or will come, from a gradient or a parameter. A property of one
    /// version applies to all versions, so this repeats until nothing changes.
    Flags trainable_arrays() const {
        Flags learn(found_.by_array_.size(), 0);
        for (bool has_more = true; has_more;) {
            has_more = false;
            const auto add = [&](std::uint32_t array) {
                has_more |= learn[array] == 0;
                learn[array] = 1;
            };
            for (const FlowNode& node : nodes_) {
                bool takes_any = false;
                for (const FlowEdge& edge : node.edges) {
                    if (!edge.is_input()) continue;
                    if (learn[array_of(edge)] == 0 && !is_learned(input_category(edge))) continue;
                    takes_any = true;
                    add(array_of(edge));
                }
                if (!takes_any) continue;
                for (const FlowEdge& edge : node.edges) {
                    if (edge.is_output()) add(array_of(edge));
                }
            }
        }
        return learn;
    }

    /// Inputs contribute to gradients or are used with parameters, and are not trainable.
    void find_inputs() {
        const Flags learn = trainable_arrays();
        Flags contributes(found_.by_version_.size(), 0);
        for (std::size_t i = nodes_.size(); i-- != 0;) {
            const auto does = [&](const FlowEdge& edge) {
                return (edge.is_input() &&
                        (is_learned(input_category(edge)) || contributes[input_slot(edge)] != 0)) ||
                       (edge.is_output() &&
                        (is_learned(output_category(edge)) || contributes[output_slot(edge)] != 0));
            };
            if (std::ranges::none_of(nodes_[i].edges, does)) continue;
            for (const FlowEdge& edge : nodes_[i].edges) {
                if (edge.is_input()) contributes[input_slot(edge)] = 1;
                if (edge.is_output()) contributes[output_slot(edge)] = 1;
            }
        }
        for (const FlowNode& node : nodes_) {
            if (!node.is_backward) continue;
            for (const FlowEdge& edge : node.edges) {
                if (edge.is_output()) contributes[output_slot(edge)] = 0;
            }
        }
        for (std::uint32_t allocation = 1; allocation < blocks_.size(); ++allocation) {
            if (blocks_[allocation].array == kNoRow || learn[blocks_[allocation].array] != 0) continue;
            for (std::size_t slot = found_.first_[allocation]; slot < found_.first_[allocation + 1]; ++slot) {
                if (contributes[slot] != 0) set_version(slot, MemoryCategory::Input);
            }
        }
    }

    /// Finds parameters of programs whose modules and optimizers were not observed: they are used with inputs
    /// in the forward pass, contribute to gradients and are updated by them.
    void find_parameters_by_flow() {
        Flags forward(found_.by_version_.size(), 0), candidates = forward, leads = forward;
        for (std::uint32_t allocation = 1; allocation < blocks_.size(); ++allocation) {
            for (std::uint32_t version = 0; version < blocks_[allocation].versions; ++version) {
                if (found_.get(allocation, version) == MemoryCategory::Input)
                    forward[found_.first_[allocation] + version] = 1;
            }
        }
        for (const FlowNode& node : nodes_) {
            bool takes_forward = false, has_gradient = false;
            for (const FlowEdge& edge : node.edges) {
                takes_forward |= edge.is_input() && forward[input_slot(edge)] != 0;
                has_gradient |= (edge.is_input() && input_category(edge) == MemoryCategory::Gradient) ||
                                (edge.is_output() && output_category(edge) == MemoryCategory::Gradient);
            }
            if (node.is_backward || has_gradient || !takes_forward) continue;
            for (const FlowEdge& edge : node.edges) {
                if (edge.is_output()) forward[output_slot(edge)] = 1;
            }
            for (const FlowEdge& edge : node.edges) {
                if (edge.is_input() && forward[input_slot(edge)] == 0) candidates[input_slot(edge)] = 1;
            }
        }
        for (std::size_t i = nodes_.size(); i-- != 0;) {  // `leads`: leads to a gradient
            const std::vector<FlowEdge>& edges = nodes_[i].edges;
            const auto does = [&](const FlowEdge& edge) {
                return edge.is_output() &&
                       (output_category(edge) == MemoryCategory::Gradient || leads[output_slot(edge)] != 0);
            };
            if (std::ranges::none_of(edges, does)) continue;
            for (const FlowEdge& edge : edges) {
                if (edge.is_input()) leads[input_slot(edge)] = 1;
            }
        }
        const Flags learn = trainable_arrays();
        std::vector<std::uint32_t> parameters;
        for (std::uint32_t allocation = 1; allocation < blocks_.size(); ++allocation) {
            const std::uint32_t array = blocks_[allocation].array;
            if (array == kNoRow || learn[array] == 0) continue;
            for (std::size_t slot = found_.first_[allocation]; slot < found_.first_[allocation + 1]; ++slot) {
                if (candidates[slot] != 0 && leads[slot] != 0) parameters.push_back(array);
            }
        }
        for (const std::uint32_t array : parameters) found_.by_array_[array] = MemoryCategory::Parameter;
    }

    /// Activations are computed in the forward pass from inputs and parameters only.
    void find_activations() {
        for (const FlowNode& node : nodes_) {
            if (node.is_backward) continue;
            bool from_inputs = false, from_others = false;
            for (const FlowEdge& edge : node.edges) {
                if (!edge.is_input()) continue;
                const MemoryCategory category = input_category(edge);
                if (category == MemoryCategory::Input || category == MemoryCategory::Activation) {
                    from_inputs = true;
                } else if (category != MemoryCategory::Parameter && category != MemoryCategory::Temporary) {
                    from_others = true;
                }
            }
            if (!from_inputs || from_others) continue;
            for (const FlowEdge& edge : node.edges) {
                if (edge.is_output()) set_version(output_slot(edge), MemoryCategory::Activation);
            }
        }
    }

    void find_autograd_details() {
        for (const FlowNode& node : nodes_) {
            if (!node.is_backward) continue;
            for (const FlowEdge& edge : node.edges) {
                if (!edge.is_output()) continue;
                const std::uint32_t version = edge.output_version();
                const MemoryCategory before =
                    version == 0 ? MemoryCategory::Unknown : found_.get(edge.allocation, version - 1);
                if (before == MemoryCategory::Unknown || before == MemoryCategory::AutogradDetail)
                    set_version(output_slot(edge), MemoryCategory::AutogradDetail);
            }
        }
    }

    const EventTree& tree_;
    const Trace& trace_;
    const ArrayIds& ids_;
    std::span<const FlowNode> nodes_;
    std::vector<MemoryBlock>& blocks_;
    MemoryCategories& found_;
    ModuleTable modules_;
};

MemoryCategories::MemoryCategories(const EventTree& tree, const ArrayIds& ids,
                                   std::span<const FlowNode> nodes, std::vector<MemoryBlock>& blocks) {
    CategoryFinder(tree, ids, nodes, blocks, *this).run();
}

}  // namespace

const char* memory_category_name(MemoryCategory category) noexcept {
    static constexpr const char* kNames[kMemoryCategories] = {
        "parameter",  "optimizer state", "input",           "temporary",
        "activation", "gradient",        "autograd detail", "unknown"};
    const auto index = static_cast<std::size_t>(category);
    return kNames[index < kMemoryCategories ? index : kMemoryCategories - 1];
}

struct MemoryProfile::Data {
    explicit Data(Trace given) : trace(std::move(given)), ids(array_ids(trace)) {
        blocks.resize(std::max<std::size_t>(1, ids.array_in.size()));
        for (std::size_t i = 1; i < blocks.size(); ++i) blocks[i].array = ids.array_in[i];
        measure_blocks();
        if (blocks.size() > 1) {
            const EventTree tree(trace);
            nodes = memory_flow(tree, ids, blocks);
            categories = MemoryCategories(tree, ids, nodes, blocks);
        }
        write_timeline();
    }

    Row process_of(Row thread) const noexcept {
        return thread < trace.threads().size() ? trace.threads()[thread].process : kNoRow;
    }

    /// The extent of an array in its memory. Its fields may have any value.
    std::int64_t reach_of(const ArrayInfo& array) const noexcept {
        if (array.layout != Layout::Strided || !array.has_strides) return 0;
        const std::span<const std::int64_t> extents = trace.array_extents();
        if (array.first_extent + 2 * std::size_t{array.dimensions} > extents.size()) return 0;
        std::int64_t elements = array.dimensions == 0 ? 1 : 0;
        for (std::size_t i = 0; i < array.dimensions; ++i) {
            std::int64_t product = 0;
            if (!__builtin_mul_overflow(extents[array.first_extent + i],
                                        extents[array.first_extent + array.dimensions + i], &product))
                elements = std::max(elements, product);
        }
        std::int64_t bytes = 0;
        return __builtin_mul_overflow(elements, std::int64_t{dtype_bytes(array.dtype)}, &bytes) ? 0 : bytes;
    }
    void measure_blocks() {
        const Row only = trace.processes().size() == 1 ? 0 : kNoRow;
        for (std::size_t row = 0; row < ids.arrays.size(); ++row) {
            if (ids.arrays[row].allocation == 0) continue;
            const ArrayInfo& array = trace.arrays()[row];
            MemoryBlock& block = blocks[ids.arrays[row].allocation];
            block.device = array.device;
            block.address = array.storage;
            block.process = only;
            block.bytes = std::max(block.bytes, reach_of(array));
        }
        const MemoryColumns memory = trace.memory();
        for (std::size_t row = 0; row < ids.reports.size(); ++row) {
            if (ids.reports[row].allocation == 0) continue;
            MemoryBlock& block = blocks[ids.reports[row].allocation];
            block.device = memory.device[row];
            block.address = memory.address[row];
            block.process = process_of(memory.thread[row]);
            block.bytes =
                memory.bytes[row] < 0 ? wrapping_difference(0, memory.bytes[row]) : memory.bytes[row];
        }
    }

    MemoryEvent event_of(std::int64_t time, MemoryAction action, std::uint32_t allocation,
                         std::uint32_t version) const {
        const MemoryBlock& block = blocks[allocation];
        MemoryEvent event{time,          action,       allocation, version, block.bytes,
                          block.process, block.device, {},         {}};
        event.category = categories.get(allocation, version);
        event.next_category = action == MemoryAction::IncrementVersion
                                  ? categories.get(allocation, version + 1)
                                  : MemoryCategory::Unknown;
        return event;
    }

    void write_timeline() {
        std::vector<char> is_taken(blocks.size(), 0);
        for (const DeviceReports& device : reports_by_device(trace)) write_reports(device, is_taken);
        for (std::uint32_t i = 1; i < blocks.size(); ++i) {
            if (blocks[i].array != kNoRow && blocks[i].versions != 0 && is_taken[i] == 0)
                timeline.push_back(event_of(MemoryEvent::kBefore, MemoryAction::Preexisting, i, 0));
        }
        for (const FlowNode& node : nodes) {
            for (const FlowEdge& edge : node.edges) {
                if (edge.is_written && !edge.is_taken)
                    timeline.push_back(event_of(node.start_ns, MemoryAction::IncrementVersion,
                                                edge.allocation, edge.version));
            }
        }
        std::ranges::stable_sort(timeline, {},
                                 [](const MemoryEvent& a) { return std::pair(a.time_ns, a.action); });
    }

    /// The event for one report: of an array's memory, or of memory without an array.
    MemoryEvent report_event(std::uint32_t row, MemoryAction action) const {
        const MemoryColumns memory = trace.memory();
        const std::int64_t time =
            action == MemoryAction::Preexisting ? MemoryEvent::kBefore : memory.time_ns[row];
        if (ids.reports[row].array != kNoRow) {
            const std::uint32_t allocation = ids.reports[row].allocation;
            const std::uint32_t last = std::max(blocks[allocation].versions, 1u) - 1;
            return event_of(time, action, allocation, action == MemoryAction::Destroy ? last : 0);
        }
        return MemoryEvent{
            .time_ns = time,
            .action = action,
            .bytes = memory.bytes[row] < 0 ? wrapping_difference(0, memory.bytes[row]) : memory.bytes[row],
            .process = process_of(memory.thread[row]),
            .device = memory.device[row]};
    }
    void write_reports(const DeviceReports& device, std::vector<char>& is_taken) {
        const MemoryColumns memory = trace.memory();
        LiveMemory live(memory);
        for (const std::uint32_t row : device.rows) {
            const auto before = live.live().find(memory.address[row]);
            const std::uint32_t hidden = before != live.live().end() ? before->second : kNoRow;
            const LiveMemory::Change change = live.follow(row);
            const bool is_of_array = ids.reports[row].array != kNoRow;
            if (change.effect == LiveMemory::Effect::None) continue;
            if (change.effect == LiveMemory::Effect::Taken) {
                if (change.hides_free &&
                    hidden != kNoRow) {  // the free was not reported, but must have happened
                    timeline.push_back(report_event(hidden, MemoryAction::Destroy));
                    timeline.back().time_ns = memory.time_ns[row];
                }
                if (is_of_array) is_taken[ids.reports[row].allocation] = 1;
                timeline.push_back(report_event(row, MemoryAction::Create));
                continue;
            }
            // Memory of arrays is added with the arrays that were only observed.
            if (change.effect == LiveMemory::Effect::Earlier && !is_of_array)
                timeline.push_back(report_event(row, MemoryAction::Preexisting));
            timeline.push_back(report_event(row, MemoryAction::Destroy));
        }
    }

    Trace trace;
    ArrayIds ids;
    std::vector<MemoryBlock> blocks;
    std::vector<FlowNode> nodes;
    MemoryCategories categories;
    std::vector<MemoryEvent> timeline;
};

MemoryProfile::MemoryProfile(Trace trace) : data_(std::make_shared<const Data>(std::move(trace))) {}

const Trace& MemoryProfile::trace() const noexcept {
    return data_->trace;
}
const ArrayIds& MemoryProfile::ids() const noexcept {
    return data_->ids;
}
std::span<const MemoryBlock> MemoryProfile::blocks() const noexcept {
    return data_->blocks;
}
std::span<const FlowNode> MemoryProfile::nodes() const noexcept {
    return data_->nodes;
}
MemoryCategory MemoryProfile::category(std::uint32_t allocation, std::uint32_t version) const noexcept {
    return data_->categories.get(allocation, version);
}
std::span<const MemoryEvent> MemoryProfile::timeline() const noexcept {
    return data_->timeline;
}

}  // namespace marey
