// proto_fixture.h: hand-made protobuf messages for tests.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace marey::testing {

/// Proto().number(8, 100).message(11, Proto().number(9, 1)).bytes(): fields in the order they are given.
class Proto {
  public:
    Proto& number(auto field, std::uint64_t value) {
        tag(field, 0);
        varint(value);
        return *this;
    }
    Proto& fixed64(auto field, std::uint64_t value) {
        tag(field, 1);
        for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> (8 * i));
        return *this;
    }
    Proto& real(auto field, double value) { return fixed64(field, std::bit_cast<std::uint64_t>(value)); }
    Proto& text(auto field, std::string_view value) {
        tag(field, 2);
        varint(value.size());
        bytes_ += value;
        return *this;
    }
    Proto& message(auto field, const Proto& value) { return text(field, value.bytes_); }
    const std::string& bytes() const { return bytes_; }

  private:
    void tag(auto field, unsigned type) { varint(static_cast<std::uint64_t>(field) << 3 | type); }
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
        bytes_ += static_cast<char>(value);
    }
    std::string bytes_;
};

}  // namespace marey::testing
