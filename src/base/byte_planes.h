// byte_planes.h: splits numbers so that similar bytes are together, which makes them compress well.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace marey {

/// One plane for the length and sign of each number, then one for each byte of the numbers of 1, 2, 3 and 4
/// bytes (low first), then one for the longer numbers as a whole. Part of the formats that store it.
inline constexpr std::size_t kBytePlanes = 12;
using BytePlanes = std::array<std::vector<std::byte>, kBytePlanes>;

/// In the first plane: added to the length (0 to 8) of a negative number, whose absolute value is stored.
inline constexpr std::uint8_t kNegativeNumber = 0x10;
inline constexpr std::size_t kLongNumberPlane = 11;

/// The plane of byte `i` of a number of `length` bytes.
constexpr std::size_t byte_plane(std::size_t length, std::size_t i) noexcept {
    return length <= 4 ? 1 + length * (length - 1) / 2 + i : kLongNumberPlane;
}
static_assert(byte_plane(4, 3) + 1 == kLongNumberPlane && kLongNumberPlane + 1 == kBytePlanes);

/// Numbers are two's complement.
BytePlanes split_into_planes(std::span<const std::uint64_t> numbers);

/// The inverse: as many numbers as the first plane has bytes. Throws marey::Error on planes whose sizes do
/// not match.
std::vector<std::uint64_t> join_planes(const std::array<std::span<const std::byte>, kBytePlanes>& planes);

}  // namespace marey
