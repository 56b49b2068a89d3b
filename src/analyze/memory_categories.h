// memory_categories.h: which arrays are parameters, gradients, activations, ...
#pragma once

#include <span>
#include <vector>

#include <marey/event_list.h>
#include <marey/memory_profile.h>

namespace marey {

/// What is known of an array holds for all of its memory, what is known of an allocation for all its
/// versions.
class MemoryCategories {
  public:
    MemoryCategories() = default;
    /// Marks blocks that are known to hold parameters and the like, though no step used them, as having a
    /// version.
    MemoryCategories(const EventTree& tree, const ArrayIds& ids, std::span<const FlowNode> nodes,
                     std::vector<MemoryBlock>& blocks);

    MemoryCategory get(std::uint32_t allocation, std::uint32_t version) const noexcept;

  private:
    friend class CategoryFinder;
    std::vector<std::uint32_t> array_in_;  ///< by allocation
    std::vector<std::size_t> first_;       ///< by allocation: where its versions are in by_version_
    std::vector<MemoryCategory> by_array_, by_allocation_, by_version_;
};

}  // namespace marey
