// memory_profile.h: the memory of a machine learning program by category: how arrays flow from operator to
// operator, which are parameters, gradients, activations and so on, and when each was held.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include <marey/array_ids.h>
#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The purpose of memory. The numbers are those of PyTorch's exported timelines.
enum class MemoryCategory : std::uint8_t {
    Parameter = 0,
    OptimizerState = 1,
    Input = 2,
    Temporary = 3,
    Activation = 4,
    Gradient = 5,
    AutogradDetail = 6,
    Unknown = 7,
};
inline constexpr std::size_t kMemoryCategories = 8;
/// Returns "parameter", "optimizer state", ...; "unknown" for unknown numbers. Never null.
MAREY_API const char* memory_category_name(MemoryCategory category) noexcept;

/// One allocation. Addresses can be reused by later allocations.
struct MemoryBlock {
    std::uint32_t array = kNoRow;  ///< ArrayId::array; kNoRow: no array was seen in it
    Row process = kNoRow;
    Device device{};
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::uint32_t versions = 0;  ///< number of writes plus 1; 0: no step of the flow uses it
};

/// The use of an allocation by a step of the flow. Every write creates a new version, from 0.
struct FlowEdge {
    std::uint32_t allocation = 0;
    std::uint32_t version = 0;  ///< the version that the step uses; unset with is_taken
    bool is_taken = false;      ///< the step allocates it
    bool is_freed = false;
    bool is_written = false;  ///< unset with is_freed

    bool is_input() const noexcept { return !is_taken; }
    bool is_output() const noexcept { return is_freed ? false : is_taken || is_written; }
    std::uint32_t output_version() const noexcept { return is_taken ? 0 : version + 1; }
    /// Allocated and freed by the same step.
    bool is_temporary() const noexcept { return is_taken && is_freed; }
};

/// A step of the flow: an operator that was not called by another operator, an evaluation of a backward node,
/// or an allocation report outside both.
struct FlowNode {
    std::uint32_t node = 0;  ///< node number in EventTree
    std::int64_t start_ns = 0;
    bool is_backward = false;     ///< is, or is inside, an evaluation of a backward node
    std::vector<FlowEdge> edges;  ///< in order of (array, allocation)
};

/// A change of an allocation. The numbers are those of PyTorch.
enum class MemoryAction : std::uint8_t { Preexisting = 1, Create = 2, IncrementVersion = 3, Destroy = 4 };

/// One event of the memory timeline.
struct MemoryEvent {
    static constexpr std::int64_t kBefore = std::numeric_limits<std::int64_t>::min();

    std::int64_t time_ns = kBefore;  ///< kBefore: before the window
    MemoryAction action = MemoryAction::Create;
    std::uint32_t allocation = 0;  ///< 0: memory in which no array was seen
    std::uint32_t version = 0;     ///< IncrementVersion: the old version
    std::int64_t bytes = 0;
    Row process = kNoRow;
    Device device{};
    MemoryCategory category = MemoryCategory::Unknown;
    MemoryCategory next_category = MemoryCategory::Unknown;  ///< IncrementVersion: that of the new version
};

/// The memory profile of a trace with allocation reports and inputs with object ids (PyTorch operators,
/// recorded with shapes and memory); calls of modules and optimizers add more detail. In any other trace all
/// memory is unknown. Cheap to copy; safe to read from several threads.
class MAREY_API MemoryProfile {
  public:
    explicit MemoryProfile(Trace trace);

    const Trace& trace() const noexcept;
    const ArrayIds& ids() const noexcept;
    std::span<const MemoryBlock> blocks() const noexcept;  ///< by allocation number; entry 0 is unused
    std::span<const FlowNode> nodes() const noexcept;      ///< in order of time
    MemoryCategory category(std::uint32_t allocation, std::uint32_t version) const noexcept;
    std::span<const MemoryEvent> timeline() const noexcept;  ///< in order of (time, action)

  private:
    struct Data;
    std::shared_ptr<const Data> data_;
};

}  // namespace marey
