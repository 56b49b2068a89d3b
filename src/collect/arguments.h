// arguments.h: the values attached to the rows of a trace under construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "collect/session_filter.h"
#include "collect/stack_frames.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {

/// Decodes payloads (ValueHeader, log_format.h) into the arguments, list items, arrays and range details of
/// `data`. Values that are not needed add nothing, not even their strings.
class ArgumentDecoder {
  public:
    /// `frames` must outlive this.
    ArgumentDecoder(TraceData& data, StringPool& strings, const RequestedValues& wanted,
                    const FrameNames& frames)
        : data_(data), strings_(strings), wanted_(wanted), frames_(data, strings, frames) {}

    /// Appends the arguments of one row and, if there are any, a slice of the index; and the row's detail.
    /// Rows are given in ascending order. A truncated payload gives its complete values.
    void decode_range(std::span<const std::byte> payload, Row row);
    /// The same with the known values of its site, which are kept whatever the session requested.
    void decode_range(std::span<const std::byte> payload, std::span<const std::span<const std::byte>> of_site,
                      Row row);
    /// Likewise; instants have no details.
    void decode_instant(std::span<const std::byte> payload, Row row);

    std::uint64_t damaged() const noexcept { return damaged_; }
    /// Facts about the stacks so far. They are the value "Call stack", a list of texts.
    FrameTexts& frames() noexcept { return frames_; }

  private:
    /// Which part of a value and its items is kept; the rest becomes None with the original kind.
    struct ValueFilter {
        bool scalars;
        bool arrays;
        ArgumentRole role;
    };

    void decode(std::span<const std::byte> payload, RangeDetail& detail, bool is_of_site);
    bool read_top(std::span<const std::byte>& rest, RangeDetail& detail);
    bool read_of_site(std::span<const std::byte>& rest);
    void add_slice(std::vector<ArgumentSlice>& index, Row row, std::size_t first);
    bool read_facts(std::span<const std::byte>& rest, RangeDetail& detail);
    bool read_stack(std::span<const std::byte>& rest);
    void add_frame(std::uint64_t word);
    bool read_value(std::span<const std::byte>& rest, Argument& value, const ValueFilter& kept, int nesting);
    bool read_array(std::span<const std::byte>& rest, std::uint32_t dimensions, Argument& value);

    TraceData& data_;
    StringPool& strings_;
    RequestedValues wanted_;
    FrameTexts frames_;
    std::unordered_map<std::uint32_t, ListItems> numbered_stacks_;  ///< those seen so far
    StringId stack_key_ = 0;                                        ///< "Call stack", once there is one
    std::uint64_t damaged_ = 0;
};

}  // namespace marey
