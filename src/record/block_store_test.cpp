// block_store_test.cpp: blocks handed out, returned, mapped from files, cut off.
#include "record/block_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace marey {
namespace {

using detail::BlockHeader;
using detail::BlockKind;
using detail::kBlockBytes;
using detail::kLargeBlocks;

void grow(BlockStore& store, std::size_t bytes) {
    BlockStore::Extent extent = store.reserve(bytes);
    ASSERT_EQ(store.map_extent(extent), 0);
    store.add(extent);
}

int temporary_file() {
    return memfd_create("block_store_test", MFD_CLOEXEC);
}

std::size_t file_bytes(int fd) {
    struct stat status {};
    fstat(fd, &status);
    return static_cast<std::size_t>(status.st_size);
}

void set_kind(Block& block, BlockKind kind) {
    block.header->kind = static_cast<std::uint16_t>(kind);
}

TEST(BlockStore, HandsOutNothingBeforeItHasGrown) {
    BlockStore store;
    EXPECT_EQ(store.take(1), nullptr);
    EXPECT_EQ(store.take(kLargeBlocks), nullptr);
    EXPECT_EQ(store.bytes(), 0u);
}

TEST(BlockStore, GrowsByWholeLargeBlocks) {
    BlockStore store;
    EXPECT_EQ(store.reserve(1).bytes, kLargeBlocks * kBlockBytes);
    EXPECT_EQ(store.reserve(kLargeBlocks * kBlockBytes + 1).bytes, 2 * kLargeBlocks * kBlockBytes);
}

TEST(BlockStore, HandsOutEveryBlockOnceAndTheyDoNotOverlap) {
    BlockStore store;
    grow(store, 4 * kLargeBlocks * kBlockBytes);
    EXPECT_EQ(store.free_large(), 4u);
    std::set<std::byte*> starts;
    for (int i = 0; i < 2; ++i) {
        Block* const large = store.take(kLargeBlocks);
        ASSERT_NE(large, nullptr);
        std::memset(large->data(), 0xee, large->capacity());
        for (std::size_t k = 0; k < kLargeBlocks; ++k) {
            EXPECT_TRUE(starts.insert(reinterpret_cast<std::byte*>(large->header) + k * kBlockBytes).second);
        }
    }
    for (std::size_t i = 0; i < 2 * kLargeBlocks; ++i) {
        Block* const small = store.take(1);
        ASSERT_NE(small, nullptr);
        EXPECT_EQ(small->header->blocks, 1u);
        std::memset(small->data(), 0xdd, small->capacity());
        EXPECT_TRUE(starts.insert(reinterpret_cast<std::byte*>(small->header)).second);
    }
    EXPECT_EQ(starts.size(), 4 * kLargeBlocks);
    EXPECT_EQ(store.take(1), nullptr);
    EXPECT_EQ(store.take(kLargeBlocks), nullptr);
}

TEST(BlockStore, CountsTheUsesOfABlockAndEmptiesItsHeader) {
    BlockStore store;
    grow(store, 1);
    Block* const block = store.take(kLargeBlocks);
    const std::uint32_t generation = block->header->generation;
    EXPECT_EQ(block->header->magic, detail::kBlockMagic);
    EXPECT_EQ(block->header->kind, static_cast<std::uint16_t>(BlockKind::Free));
    set_kind(*block, BlockKind::Log);
    block->header->committed = 4711;
    block->header->thread = 3;
    block->claims = 2;
    block->is_open = true;
    store.free_block(block);
    EXPECT_EQ(block->header->kind, static_cast<std::uint16_t>(BlockKind::Free));
    EXPECT_EQ(block->header->committed, 0u);
    Block* const again = store.take(kLargeBlocks);
    ASSERT_EQ(again, block);
    EXPECT_EQ(again->header->generation, generation + 1);
    EXPECT_EQ(again->header->thread, 0u);
    EXPECT_EQ(again->claims, 0u);
    EXPECT_FALSE(again->is_open);
    EXPECT_TRUE(again->in_use);
}

std::size_t resident_pages(const Block& block) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> pages(kLargeBlocks * kBlockBytes / page);
    EXPECT_EQ(mincore(block.header, pages.size() * page, pages.data()), 0);
    return static_cast<std::size_t>(
        std::count_if(pages.begin(), pages.end(), [](unsigned char is) { return (is & 1) != 0; }));
}

TEST(BlockStore, PartsOfARunThatWasUsedCountAsUsed) {
    BlockStore store;
    grow(store, 1);
    Block* const large = store.take(kLargeBlocks);
    // Records fill the places of the parts' headers, also with zeros.
    std::memset(large->data(), 0, large->capacity());
    store.free_block(large);
    for (std::size_t i = 0; i < kLargeBlocks; ++i) EXPECT_GT(store.take(1)->header->generation, 1u) << i;
}

TEST(BlockStore, PartsOfAnUnusedRunCountAsUnused) {
    BlockStore store;
    grow(store, 1);
    for (std::size_t i = 0; i < kLargeBlocks; ++i) EXPECT_EQ(store.take(1)->header->generation, 1u) << i;
}

TEST(BlockStore, ReturnsTheMemoryOfFreeBlocksExceptForTheBytesToKeep) {
    BlockStore store;
    grow(store, 3 * kLargeBlocks * kBlockBytes);
    Block* blocks[] = {store.take(kLargeBlocks), store.take(kLargeBlocks), store.take(kLargeBlocks)};
    for (Block* const block : blocks) std::memset(block->data(), 1, block->capacity());
    const std::size_t all = resident_pages(*blocks[0]);
    ASSERT_GT(all, 1u);
    const std::uint32_t generation = blocks[0]->header->generation;
    store.free_block(blocks[0]);
    store.free_block(blocks[1]);
    store.decommit(kLargeBlocks * kBlockBytes);
    EXPECT_EQ(resident_pages(*blocks[0]), 1u);
    EXPECT_EQ(resident_pages(*blocks[1]), all);  // the next to be taken
    EXPECT_EQ(resident_pages(*blocks[2]), all);  // in use
    EXPECT_EQ(store.take(kLargeBlocks), blocks[1]);
    Block* const again = store.take(kLargeBlocks);
    ASSERT_EQ(again, blocks[0]);
    EXPECT_EQ(again->header->generation, generation + 1);
    EXPECT_EQ(again->data()[again->capacity() - 1], std::byte{0});
}

TEST(BlockStore, WarmsTheBlockThatIsTakenNext) {
    BlockStore store;
    grow(store, 4 * kLargeBlocks * kBlockBytes);
    Block* blocks[4];
    for (Block*& block : blocks) block = store.take(kLargeBlocks);
    for (Block* const block : blocks) std::memset(block->data(), 1, block->capacity());
    const std::size_t all = resident_pages(*blocks[0]);
    EXPECT_EQ(store.take_cold(), nullptr);
    for (Block* const block : blocks) store.free_block(block);
    EXPECT_EQ(store.free_warm(), 4u);
    EXPECT_EQ(store.take_cold(), nullptr);
    store.decommit(kLargeBlocks * kBlockBytes);
    EXPECT_EQ(store.free_warm(), 1u);
    Block* const cold = store.take_cold();
    ASSERT_EQ(cold, blocks[2]);
    EXPECT_EQ(store.free_large(), 3u);
    EXPECT_EQ(resident_pages(*cold), 1u);
    BlockStore::warm(*cold);
    store.add_warm(cold);
    EXPECT_EQ(resident_pages(*cold), all);
    EXPECT_EQ(store.free_warm(), 2u);
    for (const int i : {3, 2, 1, 0}) EXPECT_EQ(store.take(kLargeBlocks), blocks[i]);
}

TEST(BlockStore, WritesThroughToItsFile) {
    const int fd = temporary_file();
    const int reader = dup(fd);
    {
        BlockStore store(fd, kBlockBytes);
        EXPECT_TRUE(store.is_file());
        grow(store, 1);
        Block* const block = store.take(1);
        std::memcpy(block->data(), "in the file", 11);
        char text[11] = {};
        ASSERT_EQ(pread(reader, text, sizeof text, kBlockBytes + sizeof(BlockHeader)), 11);
        EXPECT_EQ(std::string(text, sizeof text), "in the file");
    }
    close(reader);
}

TEST(BlockStore, AllocatesTheMemoryThatItMaps) {
    const int fd = temporary_file();
    BlockStore store(fd, kBlockBytes);
    BlockStore::Extent extent = store.reserve(1);
    ASSERT_EQ(store.map_extent(extent), 0);
    struct stat status {};
    fstat(fd, &status);
    EXPECT_GE(static_cast<std::size_t>(status.st_blocks) * 512, extent.bytes);
    BlockStore::prefault(extent);
    store.add(extent);
}

TEST(BlockStore, CutsOffUnusedBlocks) {
    const int fd = temporary_file();
    BlockStore store(fd, kBlockBytes);
    grow(store, 2 * kLargeBlocks * kBlockBytes);
    grow(store, 2 * kLargeBlocks * kBlockBytes);
    EXPECT_EQ(file_bytes(fd), (1 + 4 * kLargeBlocks) * kBlockBytes);
    Block* const first = store.take(kLargeBlocks);
    Block* const second = store.take(1);
    std::memcpy(first->data(), "kept", 4);
    std::memcpy(second->data(), "kept", 4);
    const std::size_t used = store.used_file_bytes();
    store.trim();
    EXPECT_EQ(file_bytes(fd), used);
    EXPECT_LT(file_bytes(fd), (1 + 4 * kLargeBlocks) * kBlockBytes);
    EXPECT_EQ(std::memcmp(first->data(), "kept", 4), 0);
    EXPECT_EQ(std::memcmp(second->data(), "kept", 4), 0);
    // The remaining blocks still work, and so does growing again.
    while (store.take(1) != nullptr) {
    }
    EXPECT_LE(store.used_file_bytes(), file_bytes(fd));
    grow(store, 1);
    Block* const later = store.take(kLargeBlocks);
    ASSERT_NE(later, nullptr);
    std::memset(later->data(), 1, later->capacity());
    EXPECT_EQ(store.used_file_bytes(), file_bytes(fd));
}

TEST(BlockStore, AnExtentOfAFewBlocksHasSmallOnesOnly) {
    const int fd = temporary_file();
    BlockStore store(fd, kBlockBytes);
    BlockStore::Extent extent = store.reserve_small(5);
    ASSERT_EQ(store.map_extent(extent), 0);
    store.add(extent);
    EXPECT_EQ(file_bytes(fd), 6 * kBlockBytes);
    std::vector<Block*> taken;
    for (int i = 0; i < 5; ++i) {
        taken.push_back(store.take(1));
        ASSERT_NE(taken.back(), nullptr);
        std::memset(taken.back()->data(), 1, taken.back()->capacity());
    }
    EXPECT_EQ(store.take(1), nullptr);
    EXPECT_EQ(store.used_file_bytes(), file_bytes(fd));
    for (Block* block : taken) store.free_block(block);
    EXPECT_EQ(store.take(kLargeBlocks), nullptr);
    EXPECT_EQ(store.free_large(), 0U);
    EXPECT_NE(store.take(1), nullptr);
    store.trim();
    EXPECT_EQ(file_bytes(fd), store.used_file_bytes());
}

TEST(BlockStore, NeverCutsOffTheHeader) {
    const int fd = temporary_file();
    BlockStore store(fd, kBlockBytes);
    grow(store, 1);
    store.free_block(store.take(1));
    store.trim();
    EXPECT_EQ(file_bytes(fd), kBlockBytes);
}

TEST(BlockStore, KeepsTheContentsOfAFinishedFile) {
    const int fd = temporary_file();
    BlockStore store(fd, kBlockBytes);
    grow(store, 1);
    Block* const block = store.take(1);
    set_kind(*block, BlockKind::Log);
    block->header->committed = 16;
    store.freeze();
    store.free_block(block);
    EXPECT_EQ(block->header->kind, static_cast<std::uint16_t>(BlockKind::Log));
    EXPECT_EQ(block->header->committed, 16u);
    EXPECT_EQ(store.take(1), nullptr);
}

TEST(BlockStore, ReportsWhenTheFileMustNotGrow) {
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{1 << 20, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    EXPECT_EQ(check_file_limit(1 << 20), 0);
    EXPECT_EQ(check_file_limit((1 << 20) + 1), EFBIG);
    BlockStore store(temporary_file(), kBlockBytes);
    BlockStore::Extent small = store.reserve(1);
    EXPECT_EQ(store.map_extent(small), 0);
    store.add(small);
    BlockStore::Extent large = store.reserve(1 << 20);
    EXPECT_EQ(store.map_extent(large), EFBIG);  // and no SIGXFSZ has ended this test
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_EQ(check_file_limit(std::size_t{1} << 50), 0);
}

TEST(BlockStore, ReportsWhyItCannotGrow) {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    BlockStore store(fd, kBlockBytes);
    BlockStore::Extent extent = store.reserve(1);
    EXPECT_NE(store.map_extent(extent), 0);
}

// A file on disk that the test may close without the store's knowledge.
class BlockStoreDescriptor : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/marey-block-store-XXXXXX";
        fd_ = mkstemp(name);
        ASSERT_GE(fd_, 0);
        path_ = name;
        store_.emplace(fd_, kBlockBytes);
        store_->file().set_path(path_);
    }
    void TearDown() override {
        store_.reset();
        unlink(path_.c_str());
    }
    // Does what a program does that closes all descriptors and then opens its own file.
    int reuse_descriptor() const {
        const int victim = temporary_file();
        EXPECT_EQ(pwrite(victim, "hello", 5, 0), 5);
        EXPECT_EQ(dup2(victim, fd_), fd_);
        close(victim);
        return fd_;
    }
    static void expect_untouched(int victim) {
        char text[6] = {};
        EXPECT_EQ(pread(victim, text, sizeof text, 0), 5);  // and so it is still open
        EXPECT_STREQ(text, "hello");
    }
    int fd_ = -1;
    std::string path_;
    std::optional<BlockStore> store_;
};

TEST_F(BlockStoreDescriptor, ContinuesWhenTheProgramHasClosedIt) {
    grow(*store_, 1);
    close(fd_);
    EXPECT_TRUE(store_->is_file());
    grow(*store_, 1);
    Block* const first = store_->take(kLargeBlocks);
    Block* const second = store_->take(kLargeBlocks);
    ASSERT_NE(second, nullptr);
    std::memcpy(second->data(), "in the file", 11);
    std::memcpy(first->data(), "in the file", 11);
    const int reader = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(file_bytes(reader), (1 + 2 * kLargeBlocks) * kBlockBytes);
    for (const std::size_t block : {std::size_t{1}, 1 + kLargeBlocks}) {
        char text[12] = {};
        const auto at = static_cast<off_t>(block * kBlockBytes + sizeof(BlockHeader));
        EXPECT_EQ(pread(reader, text, 11, at), 11);
        EXPECT_STREQ(text, "in the file");
    }
    close(reader);
}

TEST_F(BlockStoreDescriptor, NeverTouchesAFileThatReusesItsNumber) {
    grow(*store_, 1);
    const int victim = reuse_descriptor();
    grow(*store_, 1);
    expect_untouched(victim);
    store_->trim();
    expect_untouched(victim);
    store_.reset();
    expect_untouched(victim);
    const int reader = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(file_bytes(reader), kBlockBytes);
    close(reader);
    close(victim);
}

TEST_F(BlockStoreDescriptor, AbandonedLeavesAFileThatReusesItsNumberOpen) {
    const int victim = reuse_descriptor();
    store_->abandon();
    expect_untouched(victim);
    close(victim);
}

TEST_F(BlockStoreDescriptor, ReportsThatAClosedFileCannotBeReopened) {
    grow(*store_, 1);
    const int victim = reuse_descriptor();
    unlink(path_.c_str());
    BlockStore::Extent extent = store_->reserve(1);
    EXPECT_EQ(store_->map_extent(extent), EBADF);
    EXPECT_EQ(extent.address, nullptr);
    EXPECT_EQ(store_->reason(EBADF),
              "the program closed its file descriptor, and the file cannot be reopened (No such file or "
              "directory)");
    EXPECT_EQ(store_->reason(ENOSPC), "No space left on device");
    store_->unreserve(extent);
    EXPECT_NE(store_->take(kLargeBlocks), nullptr);  // its blocks can still be used
    store_->trim();
    store_.reset();
    expect_untouched(victim);
    close(victim);
}

TEST(BlockStore, AbandonsAFileWithoutTouchingIt) {
    const int fd = temporary_file();
    const int other = dup(fd);
    BlockStore store(fd, kBlockBytes);
    grow(store, 1);
    Block* const block = store.take(1);
    set_kind(*block, BlockKind::Log);
    store.abandon();
    EXPECT_FALSE(store.is_file());
    EXPECT_EQ(store.bytes(), 0u);
    BlockHeader header;
    ASSERT_EQ(pread(other, &header, sizeof header, kBlockBytes), static_cast<ssize_t>(sizeof header));
    EXPECT_EQ(header.kind, static_cast<std::uint16_t>(BlockKind::Log));
    EXPECT_EQ(file_bytes(other), (1 + kLargeBlocks) * kBlockBytes);
    close(other);
}

}  // namespace
}  // namespace marey
