// arguments.h: the strings of a trace under construction, and the values attached to its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "collect/view.h"
#include "trace/trace_data.h"

namespace kymo {

/// Adds strings to a list without repeating any. The list must outlive this and be changed by nobody else.
class StringPool {
  public:
    explicit StringPool(std::vector<std::string>& strings);
    StringId intern(std::string_view text);

  private:
    struct Hash {
        using is_transparent = void;
        const std::vector<std::string>* strings;
        std::size_t operator()(StringId id) const { return std::hash<std::string_view>()((*strings)[id]); }
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    struct Equal {
        using is_transparent = void;
        const std::vector<std::string>* strings;
        bool operator()(StringId a, StringId b) const { return (*strings)[a] == (*strings)[b]; }
        bool operator()(std::string_view a, StringId b) const { return a == (*strings)[b]; }
        bool operator()(StringId a, std::string_view b) const { return (*strings)[a] == b; }
    };
    std::vector<std::string>& strings_;
    std::unordered_set<StringId, Hash, Equal> ids_;
};

/// Decodes payloads (ValueHeader, log_format.h) into the arguments, list items, arrays and range details of
/// `data`. What is not wanted leaves nothing behind, not even its strings.
class ArgumentDecoder {
  public:
    ArgumentDecoder(TraceData& data, StringPool& strings, const WantedValues& wanted = {})
        : data_(data), strings_(strings), wanted_(wanted) {}

    /// Appends the arguments of one row and, if there are any, a slice of the index; and the row's detail.
    /// Rows are given in ascending order. A payload that breaks off gives what is whole before that.
    void decode_range(std::span<const std::byte> payload, Row row);
    /// Likewise; instants have no details.
    void decode_instant(std::span<const std::byte> payload, Row row);

    std::uint64_t damaged() const noexcept { return damaged_; }

  private:
    /// What is kept of a value and of the items in it; the rest becomes None that says what it was.
    struct Kept {
        bool scalars;
        bool arrays;
        ArgumentRole role;
    };

    void decode(std::span<const std::byte> payload, Row row, std::vector<ArgumentSlice>& index,
                RangeDetail& detail);
    bool read_top(std::span<const std::byte>& rest, RangeDetail& detail);
    bool read_facts(std::span<const std::byte>& rest, RangeDetail& detail);
    bool read_value(std::span<const std::byte>& rest, Argument& value, const Kept& kept, int nesting);
    bool read_array(std::span<const std::byte>& rest, std::uint32_t dimensions, Argument& value);

    TraceData& data_;
    StringPool& strings_;
    WantedValues wanted_;
    std::uint64_t damaged_ = 0;
};

/// The other way: appends one value in the form that the decoder reads.
void encode_argument(const TraceData& data, const Argument& argument, std::vector<std::byte>& payload);
void encode_detail(const RangeDetail& detail, std::vector<std::byte>& payload);

}  // namespace kymo
