// memory_profile.h: what the memory of a program that learns is for: how its arrays flow from operator to
// operator, which are parameters, gradients, activations, ..., and when each was held.
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

/// What memory is for. The numbers are those of PyTorch's exported timelines.
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
/// "parameter", "optimizer state", ...; "unknown" for unknown numbers. Never null.
MAREY_API const char* memory_category_name(MemoryCategory category) noexcept;

/// The memory of arrays, one after another while addresses are used again.
struct MemoryBlock {
    std::uint32_t array = kNoRow;  ///< ArrayId::array; kNoRow: no array was ever seen in it
    Row process = kNoRow;
    Device device{};
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::uint32_t versions = 0;  ///< how often it was written, and 1; 0: nothing took it
};

/// What a step of the flow does with an allocation. Every write makes a new version, from 0.
struct FlowEdge {
    std::uint32_t allocation = 0;
    std::uint32_t version = 0;  ///< that it takes; not where is_taken
    bool is_taken = false;      ///< it allocates it
    bool is_freed = false;
    bool is_written = false;  ///< not where is_freed

    bool is_input() const noexcept { return !is_taken; }
    bool is_output() const noexcept { return is_freed ? false : is_taken || is_written; }
    std::uint32_t output_version() const noexcept { return is_taken ? 0 : version + 1; }
    /// It does not outlive the step.
    bool is_temporary() const noexcept { return is_taken && is_freed; }
};

/// A step of the flow: an operator that no other operator called, an evaluation of a backward node, or an
/// allocation report in neither.
struct FlowNode {
    std::uint32_t node = 0;  ///< as EventTree numbers it
    std::int64_t start_ns = 0;
    bool is_backward = false;     ///< it is, or is inside, an evaluation of a backward node
    std::vector<FlowEdge> edges;  ///< in order of (array, allocation)
};

/// The numbers are PyTorch's.
enum class MemoryAction : std::uint8_t { Preexisting = 1, Create = 2, IncrementVersion = 3, Destroy = 4 };

struct MemoryEvent {
    static constexpr std::int64_t kBefore = std::numeric_limits<std::int64_t>::min();

    std::int64_t time_ns = kBefore;  ///< kBefore: before the window
    MemoryAction action = MemoryAction::Create;
    std::uint32_t allocation = 0;  ///< 0: memory in which no array was ever seen
    std::uint32_t version = 0;     ///< IncrementVersion: of the old one
    std::int64_t bytes = 0;
    Row process = kNoRow;
    Device device{};
    MemoryCategory category = MemoryCategory::Unknown;
    MemoryCategory next_category = MemoryCategory::Unknown;  ///< IncrementVersion: of the new one
};

/// Of a trace that has allocation reports and inputs that say which arrays they are (PyTorch's operators,
/// with shapes and memory); calls of modules and optimizers tell more. Of any other trace all memory is
/// unknown. Cheap to copy; may be read from several threads.
class MAREY_API MemoryProfile {
  public:
    explicit MemoryProfile(Trace trace);

    const Trace& trace() const noexcept;
    const ArrayIds& ids() const noexcept;
    std::span<const MemoryBlock> blocks() const noexcept;  ///< by the number of the allocation; 0 is none
    std::span<const FlowNode> nodes() const noexcept;      ///< in order of time
    MemoryCategory category(std::uint32_t allocation, std::uint32_t version) const noexcept;
    std::span<const MemoryEvent> timeline() const noexcept;  ///< in order of (time, action)

  private:
    struct Data;
    std::shared_ptr<const Data> data_;
};

}  // namespace marey
