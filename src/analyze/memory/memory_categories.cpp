// memory_categories.cpp: derives the purpose of memory from its uses and from the data flow. The order of the
// steps matters: each step keeps the categories found by earlier ones.
#include "analyze/memory/memory_categories.h"

#include <algorithm>

#include <marey/modules.h>

namespace marey {

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
    template <class Visit>
    void visit_parameters(const Visit& visit) const {
        for (std::uint32_t site = 0; site < trace_.sites().size(); ++site) {
            const ModuleInfo* const module = modules_.find_site(site);
            if (module == nullptr) continue;
            for (const ModuleParameter& parameter : module->parameters)
                visit(parameter.array, parameter.gradient);
        }
    }
    template <class Visit>
    void visit_states(const Visit& visit) const {
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
            if (site.scope != Scope::BackwardFunction ||
                trace_.string(site.name) != "torch::autograd::AccumulateGrad")
                continue;
            const auto children = tree_.children(range);
            const auto first = std::find_if(children.begin(), children.end(),
                                            [&](std::uint32_t child) { return child < ranges.size(); });
            if (first == children.end()) continue;
            const std::string_view name = trace_.range_name(*first);
            if (name != "aten::detach" && name != "aten::add_") continue;
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
            if (std::none_of(nodes_[i].edges.begin(), nodes_[i].edges.end(), does)) continue;
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
            if (std::none_of(edges.begin(), edges.end(), does)) continue;
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

}  // namespace marey
