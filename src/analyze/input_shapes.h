// input_shapes.h: the sizes of a range's input arrays: compared, hashed, and as text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <marey/trace.h>

#include "trace/trace_data.h"

namespace marey {

/// Groups that are split by the shapes of inputs. An input that is no single array has no extents.
class ShapeGroups {
  public:
    explicit ShapeGroups(const Trace& trace) : data_(trace.data()), entries_(kFirstSize) {}

    /// The number, from 0, of (base, shapes of these arguments): a new one when it was never asked for.
    std::uint32_t find(std::uint32_t base, std::uint32_t first, std::uint32_t count);
    std::uint32_t size() const noexcept { return used_; }

  private:
    static constexpr std::size_t kFirstSize = 1024;  // a power of two
    static constexpr std::uint32_t kFree = ~0u;
    struct Entry {
        std::uint64_t hash = 0;
        std::uint32_t base = 0;
        std::uint32_t group = kFree;
        std::size_t first = 0;  ///< its shapes: shapes_[first, first + size)
        std::size_t size = 0;
    };
    /// Writes the shapes to current_, each behind its number of dimensions; returns a hash of them.
    std::uint64_t read(std::uint32_t base, std::uint32_t first, std::uint32_t count);
    void grow();

    const TraceData& data_;
    std::vector<Entry> entries_;
    std::vector<std::int64_t> shapes_;   ///< of all groups
    std::vector<std::int64_t> current_;  ///< as long as the longest so far
    std::size_t current_size_ = 0;
    std::uint32_t used_ = 0;
};

/// Sizes of an input; empty for what is no array, not defined, or broken.
std::span<const std::int64_t> input_extents(const TraceData& data, const Argument& input) noexcept;
/// "[[8, 3], [3], []]", one entry per input.
std::string input_shapes_text(const Trace& trace, std::span<const Argument> arguments);

}  // namespace marey
