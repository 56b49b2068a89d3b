// value_encoding.h: values to and from their bytes on the side stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include <kymo/detail/log_format.h>
#include <kymo/value.h>

namespace kymo {

class NameTable;

/// Which parts of inputs and outputs are kept.
struct ValueNeeds {
    bool shapes = false;    ///< metadata of arrays
    bool concrete = false;  ///< scalars, texts and lists of them
};

/// Appends values between `place` and `limit`; what does not fit is cut and marked so.
class ValueEncoder {
  public:
    ValueEncoder(std::byte* place, std::byte* limit) noexcept : cursor_(place), limit_(limit) {}
    std::byte* end() const noexcept { return cursor_; }

    void add_facts(const detail::RangeFacts& facts) noexcept;
    /// The innermost frames that fit.
    void add_stack(std::span<const std::uint64_t> frames, bool is_cut) noexcept;
    /// `flags` says what it is to its range; what `needs` does not name becomes None with its kind.
    /// One that does not fit marks the one before as truncated.
    void add(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs) noexcept;
    /// Marks the last value as truncated: more were given than are kept.
    void mark_cut() noexcept;

  private:
    bool fits(std::size_t bytes) const noexcept {
        return static_cast<std::size_t>(limit_ - cursor_) >= bytes;
    }
    void put(const void* bytes, std::size_t count) noexcept;
    void add_string(std::uint32_t key, std::uint8_t flags, std::string_view text) noexcept;
    void add_list(std::uint32_t key, std::uint8_t flags, std::span<const Value> items, ValueNeeds needs,
                  int nesting) noexcept;
    void add_array(std::uint32_t key, std::uint8_t flags, const ArrayView& array) noexcept;
    void add_nested(std::uint32_t key, std::uint8_t flags, const Value& value, ValueNeeds needs,
                    int nesting) noexcept;

    std::byte* cursor_;
    std::byte* limit_;
    std::byte* last_ = nullptr;  ///< head of the last value added
};

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

}  // namespace kymo
