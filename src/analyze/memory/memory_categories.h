// memory_categories.h: classifies arrays as parameters, gradients, activations and so on.
#pragma once

#include <span>
#include <vector>

#include <marey/event_list.h>
#include <marey/memory_profile.h>

namespace marey {

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

}  // namespace marey
