// compress_test.cpp: compressing and decompressing frames.
#include "base/compress.h"

#include <gtest/gtest.h>

#include <marey/error.h>

namespace marey {
namespace {

TEST(Compress, GivesBackItsInputOrReportsThatItCannot) {
    const std::vector<std::byte> bytes(10'000, std::byte{7});
    if (!can_compress()) {
        EXPECT_THROW(compress(bytes, 3), Error);
        EXPECT_THROW(decompress(bytes, 3), Error);
        return;
    }
    const std::vector<std::byte> frame = compress(bytes, 19);
    EXPECT_LT(frame.size(), 100u);
    EXPECT_EQ(decompress(frame, bytes.size()), bytes);
    EXPECT_THROW(decompress(frame, bytes.size() - 1), Error);
    EXPECT_THROW(decompress(frame, bytes.size() + 1), Error);
    std::vector<std::byte> damaged = frame;
    damaged.back() ^= std::byte{1};
    EXPECT_THROW(decompress(damaged, bytes.size()), Error);
    EXPECT_EQ(decompress(compress({}, 1), 0).size(), 0u);
}

}  // namespace
}  // namespace marey
