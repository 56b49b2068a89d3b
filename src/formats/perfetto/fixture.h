// fixture.h: hand-made protobuf messages for tests.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace marey::testing {

/// Proto().number(8, 100).message(11, Proto().number(9, 1)).bytes(): fields in the order they are given.
class Proto {
  public:
    template <class Field>
    Proto& number(Field field, std::uint64_t value) {
        tag(field, 0);
        varint(value);
        return *this;
    }
    template <class Field>
    Proto& fixed64(Field field, std::uint64_t value) {
        tag(field, 1);
        for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
        return *this;
    }
    template <class Field>
    Proto& real(Field field, double value) {
        return fixed64(field, std::bit_cast<std::uint64_t>(value));
    }
    template <class Field>
    Proto& text(Field field, std::string_view value) {
        tag(field, 2);
        varint(value.size());
        bytes_ += value;
        return *this;
    }
    template <class Field>
    Proto& message(Field field, const Proto& value) {
        return text(field, value.bytes_);
    }
    const std::string& bytes() const { return bytes_; }

  private:
    template <class Field>
    void tag(Field field, unsigned type) {
        varint(static_cast<std::uint64_t>(field) << 3 | type);
    }
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
        bytes_ += static_cast<char>(value);
    }
    std::string bytes_;
};

}  // namespace marey::testing
