// value_encoding.h: decodes values from the side stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include <marey/detail/value_encoder.h>
#include <marey/detail/values.h>
#include <marey/value.h>

namespace marey {

class NameTable;

using detail::ValueEncoder;
using detail::ValueNeeds;

/// The string id of a key, found without a lock after the first time; 0: it cannot be recorded.
std::uint32_t key_string(std::string_view key) noexcept;

/// The values of one range with the ids of their keys; those beyond kMaxValues are left out. Made before the
/// thread is busy: new keys are recorded.
class ValueKeys {
  public:
    explicit ValueKeys(Span<const KeyedValue> values) noexcept
        : values_(values.size() > detail::kMaxValues ? values.first(detail::kMaxValues) : values) {
        for (std::size_t i = 0; i < values_.size(); ++i) keys_[i] = key_string(values_[i].key);
    }
    bool empty() const noexcept { return values_.empty(); }
    void add_to(ValueEncoder& encoder) const noexcept {
        for (std::size_t i = 0; i < values_.size(); ++i)
            encoder.add(keys_[i], 0, values_[i].value, {true, true});
    }
    /// Returns the end of the encoded values.
    std::byte* encode(std::byte* place, std::byte* limit) const noexcept {
        ValueEncoder encoder(place, limit);
        add_to(encoder);
        return encoder.end();
    }

  private:
    Span<const KeyedValue> values_;
    std::uint32_t keys_[detail::kMaxValues];
};

/// The bytes of the sizes and strides that follow an array's header.
std::size_t extent_bytes(const detail::ArrayHeader& head, std::uint32_t dimensions) noexcept;
/// Takes an array from the start of `rest`: its header, and its sizes and, if they are known, its strides,
/// which are appended to `extents`. False: it is incomplete.
bool take_array(std::span<const std::byte>& rest, std::uint32_t dimensions, detail::ArrayHeader& head,
                std::vector<std::int64_t>& extents);
inline bool has_strides(const detail::ArrayHeader& head) noexcept {
    return (head.flags & (detail::kArrayStrides | detail::kArrayContiguous)) != 0;
}
inline ArrayAccess access_of(const detail::ArrayHeader& head) noexcept {
    return (head.flags & detail::kArrayWritten) != 0 ? ArrayAccess::Write
           : (head.flags & detail::kArrayRead) != 0  ? ArrayAccess::Read
                                                     : ArrayAccess::Unknown;
}

/// The keyword values of a payload, as views of it. Both the payload and this must outlive their use.
class DecodedKeywords {
  public:
    DecodedKeywords(std::span<const std::byte> payload, const NameTable& names);
    std::span<const KeyedValue> values() const noexcept { return values_; }

  private:
    bool read(std::span<const std::byte>& rest, KeyedValue& value, std::uint8_t& flags, int nesting);

    const NameTable& names_;
    std::vector<KeyedValue> values_;
    std::deque<std::vector<Value>> lists_;
    std::deque<ArrayView> arrays_;
    std::deque<std::vector<std::int64_t>> extents_;
};

}  // namespace marey
