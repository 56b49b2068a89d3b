// checksum_test.cpp: the guarantees of the checksum.
#include "base/checksum.h"

#include <cstddef>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace marey {
namespace {

std::uint64_t of(std::string_view text) {
    return checksum64(std::as_bytes(std::span(text)));
}

TEST(Checksum, NeverChanges) {
    EXPECT_EQ(of(""), 0xeaa6fa3d2e3b73eeu);
    EXPECT_EQ(of("phonograph"), 0x254d03ff104cb27au);
}

TEST(Checksum, EveryFlippedBitAndEveryLostZeroShows) {
    std::vector<std::byte> bytes(61);
    std::set<std::uint64_t> seen{checksum64(bytes)};
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        EXPECT_TRUE(seen.insert(checksum64(bytes)).second) << bit;
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
    while (!bytes.empty()) {
        bytes.pop_back();
        EXPECT_TRUE(seen.insert(checksum64(bytes)).second) << bytes.size();
    }
}

}  // namespace
}  // namespace marey
