// byte_planes.cpp: two passes each way: lengths first, so that no plane is read past its end.
#include "base/byte_planes.h"

#include <bit>

#include <marey/error.h>

namespace marey {
namespace {

constexpr std::size_t kMaxBytes = 8;

std::uint64_t to_magnitude(std::uint64_t number) noexcept {
    return number >> 63 != 0 ? 0 - number : number;
}

// How many bytes each plane but the first has, given how many numbers there are of each length.
std::array<std::size_t, kBytePlanes> plane_sizes(const std::array<std::size_t, kMaxBytes + 1>& counts) {
    std::array<std::size_t, kBytePlanes> sizes{};
    for (std::size_t length = 1; length <= kMaxBytes; ++length) {
        for (std::size_t i = 0; i < length; ++i) sizes[byte_plane(length, i)] += counts[length];
    }
    return sizes;
}

}  // namespace

BytePlanes split_into_planes(std::span<const std::uint64_t> numbers) {
    BytePlanes planes;
    planes[0].resize(numbers.size());
    std::array<std::size_t, kMaxBytes + 1> counts{};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto length = static_cast<std::size_t>((std::bit_width(to_magnitude(numbers[i])) + 7) / 8);
        ++counts[length];
        planes[0][i] = static_cast<std::byte>(length | (numbers[i] >> 63 != 0 ? kNegativeNumber : 0));
    }
    const std::array<std::size_t, kBytePlanes> sizes = plane_sizes(counts);
    std::array<std::byte*, kBytePlanes> at{};
    for (std::size_t plane = 1; plane < kBytePlanes; ++plane) {
        planes[plane].resize(sizes[plane]);
        at[plane] = planes[plane].data();
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::size_t length = std::to_integer<std::size_t>(planes[0][i]) & 0x0f;
        const std::uint64_t value = to_magnitude(numbers[i]);
        for (std::size_t k = 0; k < length; ++k)
            *at[byte_plane(length, k)]++ = static_cast<std::byte>(value >> (8 * k));
    }
    return planes;
}

std::vector<std::uint64_t> join_planes(const std::array<std::span<const std::byte>, kBytePlanes>& planes) {
    std::array<std::size_t, kMaxBytes + 1> counts{};
    for (const std::byte head : planes[0]) {
        const std::size_t length = std::to_integer<std::size_t>(head) & 0x0f;
        if (length > kMaxBytes || (std::to_integer<std::uint8_t>(head) & ~(kNegativeNumber | 0x0f)) != 0)
            throw Error("a number in a column is malformed");
        ++counts[length];
    }
    const std::array<std::size_t, kBytePlanes> sizes = plane_sizes(counts);
    std::array<const std::byte*, kBytePlanes> at{};
    for (std::size_t plane = 1; plane < kBytePlanes; ++plane) {
        if (planes[plane].size() != sizes[plane])
            throw Error("the sizes of a column's byte planes do not match");
        at[plane] = planes[plane].data();
    }
    std::vector<std::uint64_t> numbers(planes[0].size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const auto head = std::to_integer<std::uint8_t>(planes[0][i]);
        const std::size_t length = head & 0x0f;
        std::uint64_t value = 0;
        for (std::size_t k = 0; k < length; ++k)
            value |= std::to_integer<std::uint64_t>(*at[byte_plane(length, k)]++) << (8 * k);
        numbers[i] = (head & kNegativeNumber) != 0 ? 0 - value : value;
    }
    return numbers;
}

}  // namespace marey
