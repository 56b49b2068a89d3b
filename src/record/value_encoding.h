// value_encoding.h: decodes values from the side stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include <marey/detail/value_encoder.h>
#include <marey/value.h>

namespace marey {

class NameTable;

using detail::ValueEncoder;
using detail::ValueNeeds;

/// The string id of a key, found without a lock after the first time; 0: it cannot be recorded.
std::uint32_t key_string(std::string_view key) noexcept;

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
