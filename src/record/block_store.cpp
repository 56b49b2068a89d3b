// block_store.cpp: extents, free lists, allocation on disk ahead of mapping.
#include "record/block_store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <span>

#include <marey/detail/counter.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace marey {

using detail::BlockHeader;
using detail::kBlockBytes;
using detail::kLargeBlocks;

namespace {

// Allocates [offset, offset + bytes) of the file on disk. Where the file system cannot, writes zeros instead.
int allocate_on_disk(int fd, std::size_t offset, std::size_t bytes) noexcept {
    if (const int error = check_file_limit(offset + bytes)) return error;
    if (fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0) return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
    static const std::byte zeros[64 * 1024] = {};
    while (bytes != 0) {
        const ssize_t written = pwrite(fd, zeros, std::min(bytes, sizeof zeros), static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written < 0 ? errno : ENOSPC;
        offset += static_cast<std::size_t>(written);
        bytes -= static_cast<std::size_t>(written);
    }
    return 0;
}

// For blocks that are not written to yet.
void fault_in(std::byte* address, std::size_t bytes) noexcept {
    if (madvise(address, bytes, MADV_POPULATE_WRITE) == 0) return;
    for (std::size_t at = 0; at < bytes; at += 4096)  // older kernels
        *reinterpret_cast<volatile char*>(address + at) = 0;
}

// Restores the pages of a cold large block. The page of the header stays: it counts the block's generations.
std::span<std::byte> decommit_range(const Block& block) noexcept {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    constexpr std::size_t kBytes = kBlockBytes * kLargeBlocks;
    if (page >= kBytes) return {};
    return {reinterpret_cast<std::byte*>(block.header) + page, kBytes - page};
}

}  // namespace

int check_file_limit(std::size_t bytes) noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
    return bytes > limit.rlim_cur ? EFBIG : 0;
}

BlockStore::~BlockStore() {
    abandon();
}

void BlockStore::abandon() noexcept {
    for (const Mapped& mapped : mapped_) munmap(mapped.extent.address, mapped.extent.bytes);
    mapped_.clear();
    map_ = {};
    free_small_.clear();
    free_large_.clear();
    bytes_ = 0;
    file_.close_file();
}

BlockStore::Extent BlockStore::reserve(std::size_t bytes) noexcept {
    const std::size_t large = kLargeBlocks * kBlockBytes;
    return reserve_small((bytes + large - 1) / large * kLargeBlocks);
}

BlockStore::Extent BlockStore::reserve_small(std::size_t blocks) noexcept {
    Extent extent;
    extent.bytes = blocks * kBlockBytes;
    extent.offset = next_offset_;
    if (is_file()) next_offset_ += extent.bytes;
    return extent;
}

int BlockStore::map_extent(Extent& extent) noexcept {
    if (is_file()) return map_file(extent);
    void* const address =
        mmap(nullptr, extent.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) return errno;
    // Huge pages are expensive after the machine has idled; small ones are steady.
    madvise(address, extent.bytes, MADV_NOHUGEPAGE);
    extent.address = static_cast<std::byte*>(address);
    return 0;
}

int BlockStore::map_file(Extent& extent) noexcept {
    constexpr int kMaxAttempts = 3;
    for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
        const int fd = file_.descriptor();
        if (fd < 0) return EBADF;
        int error = allocate_on_disk(fd, extent.offset, extent.bytes);
        void* address = MAP_FAILED;
        if (error == 0) {
            address = mmap(nullptr, extent.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                           static_cast<off_t>(extent.offset));
            if (address == MAP_FAILED) error = errno;
        }
        if (file_.is_ours(fd)) {
            if (error == 0) extent.address = static_cast<std::byte*>(address);
            return error;
        }
        if (address != MAP_FAILED) munmap(address, extent.bytes);  // another thread has closed it since
    }
    return EBADF;
}

std::string BlockStore::reason(int error) const {
    if (!is_file() || error != EBADF) return std::strerror(error);
    const int cause = file_.reopen_error();
    return std::string("the program closed its file descriptor, and the file cannot be reopened") +
           (cause != 0 ? std::string(" (") + std::strerror(cause) + ")" : std::string());
}

void BlockStore::prefault(const Extent& extent) noexcept {
    fault_in(extent.address, extent.bytes);
}

void BlockStore::add(const Extent& extent) {
    Mapped mapped{extent, std::make_unique<Block[]>(extent.bytes / kBlockBytes)};
    const std::size_t runs = extent.bytes / (kBlockBytes * kLargeBlocks);
    const auto first_place = static_cast<std::uint32_t>(extent.offset / kBlockBytes);
    free_large_.reserve(free_large_.size() + runs);
    for (std::size_t run = runs; run-- != 0;) {
        Block& block = mapped.blocks[run * kLargeBlocks];
        block.header = reinterpret_cast<BlockHeader*>(extent.address + run * kLargeBlocks * kBlockBytes);
        block.store = this;
        block.blocks = kLargeBlocks;
        block.place = first_place + static_cast<std::uint32_t>(run * kLargeBlocks);
        free_large_.push_back(&block);
    }
    if (const std::size_t rest = extent.bytes / kBlockBytes % kLargeBlocks; rest != 0) {
        Block& first = mapped.blocks[runs * kLargeBlocks];
        first.header = reinterpret_cast<BlockHeader*>(extent.address + runs * kLargeBlocks * kBlockBytes);
        first.place = first_place + static_cast<std::uint32_t>(runs * kLargeBlocks);
        split(first, rest);
    }
    bytes_ += extent.bytes;
    mapped_.push_back(std::move(mapped));
}

Block* BlockStore::take(std::size_t blocks) noexcept {
    if (frozen_) return nullptr;
    std::vector<Block*>& list = blocks == 1 ? free_small_ : free_large_;
    if (blocks == 1 && list.empty() && !free_large_.empty()) {
        Block* const whole = free_large_.back();
        free_large_.pop_back();
        split(*whole, kLargeBlocks);
        ++joinable_;
    }
    if (blocks != 1 && list.empty() && joinable_ != 0) join_free();
    if (list.empty()) return nullptr;
    Block* const block = list.back();
    list.pop_back();
    if (blocks == 1 && block->whole->free_parts-- == kLargeBlocks) --joinable_;
    BlockHeader& header = *block->header;
    detail::store_release(header.committed, std::uint64_t{0});  // before reading: one page fault, not two
    const std::uint32_t generation = header.generation + 1;
    header = BlockHeader{};
    header.generation = generation;
    header.blocks = static_cast<std::uint16_t>(block->blocks);
    header.magic = detail::kBlockMagic;
    block->claims = 0;
    block->in_use = true;
    block->is_cold = false;
    block->is_open = false;
    block->last_full_of = 0;
    mark(*block);
    return block;
}

void BlockStore::mark(const Block& block) noexcept {
    if (block.blocks != 1 || block.place / 8 >= map_.size()) return;
    std::uint8_t& bits = map_[block.place / 8];
    const unsigned bit = 1u << block.place % 8;
    detail::store_relaxed(bits, static_cast<std::uint8_t>(block.in_use ? bits | bit : bits & ~bit));
}

// Parts of an incomplete large run never join: fewer than kLargeBlocks of them can be free.
void BlockStore::split(Block& whole, std::size_t parts) {
    whole.is_cold = false;
    whole.free_parts = static_cast<std::uint32_t>(parts);
    // In a run that was used, the headers of its parts are among its records.
    const std::uint32_t generation = whole.header->generation;
    for (std::size_t i = parts; i-- != 0;) {
        Block& part = (&whole)[i];
        part.header =
            reinterpret_cast<BlockHeader*>(reinterpret_cast<std::byte*>(whole.header) + i * kBlockBytes);
        if (generation != 0) part.header->generation = generation;
        part.store = this;
        part.blocks = 1;
        part.place = whole.place + static_cast<std::uint32_t>(i);
        part.whole = &whole;
        free_small_.push_back(&part);
    }
}

// Without this, a ring whose threads first need small chunks and later large ones would need space for both.
void BlockStore::join_free() noexcept {
    free_large_.reserve(free_large_.size() + joinable_);
    std::erase_if(free_small_, [this](Block* part) MAREY_REQUIRES(recorder_mutex) {
        if (part->whole->free_parts != kLargeBlocks) return false;
        if (part == part->whole) free_large_.push_back(part);
        return true;
    });
    for (Block* whole : free_large_) whole->blocks = kLargeBlocks;
    joinable_ = 0;
}

void BlockStore::hide(Block* block) noexcept {
    detail::store_release(block->header->kind, static_cast<std::uint16_t>(detail::BlockKind::Free));
}

void BlockStore::free_block(Block* block) noexcept {
    if (frozen_) return;
    detail::store_release(block->header->committed, std::uint64_t{0});
    hide(block);
    block->in_use = false;
    block->is_open = false;
    mark(*block);
    (block->blocks == 1 ? free_small_ : free_large_).push_back(block);
    if (block->blocks == 1 && ++block->whole->free_parts == kLargeBlocks) ++joinable_;
}

void BlockStore::decommit(std::size_t keep_bytes) noexcept {
    if (is_file()) return;
    // Blocks that are taken next are kept.
    const std::size_t keep = std::min(keep_bytes / (kBlockBytes * kLargeBlocks), free_large_.size());
    for (std::size_t i = 0; i < free_large_.size() - keep; ++i) {
        Block& block = *free_large_[i];
        const std::span<std::byte> memory = decommit_range(block);
        if (block.is_cold || memory.empty()) continue;
        block.is_cold = madvise(memory.data(), memory.size(), MADV_DONTNEED) == 0;
    }
}

std::vector<Block*>::const_iterator BlockStore::first_warm() const noexcept {
    return std::find_if(free_large_.rbegin(), free_large_.rend(),
                        [](const Block* each) MAREY_REQUIRES(recorder_mutex) { return each->is_cold; })
        .base();
}

std::size_t BlockStore::free_warm() const noexcept {
    return static_cast<std::size_t>(free_large_.end() - first_warm()) + joinable_;
}

Block* BlockStore::take_cold() noexcept {
    const auto cold_end = first_warm();
    if (frozen_ || cold_end == free_large_.begin()) return nullptr;
    Block* const block = *(cold_end - 1);
    free_large_.erase(cold_end - 1);
    return block;
}

void BlockStore::warm(const Block& block) noexcept {
    const std::span<std::byte> memory = decommit_range(block);
    fault_in(memory.data(), memory.size());
}

void BlockStore::add_warm(Block* block) noexcept {
    block->is_cold = false;
    free_large_.insert(first_warm(), block);  // where one was taken from: there is capacity
}

std::size_t BlockStore::used_file_bytes() const noexcept {
    std::size_t used = header_bytes_;
    for (const Mapped& mapped : mapped_) {
        const std::size_t count = mapped.extent.bytes / kBlockBytes;
        for (std::size_t i = 0; i < count; ++i) {
            const Block& block = mapped.blocks[i];
            if (block.in_use) used = std::max(used, mapped.extent.offset + (i + block.blocks) * kBlockBytes);
        }
    }
    return used;
}

void BlockStore::trim() noexcept {
    if (!is_file()) return;
    const std::size_t end = used_file_bytes();
    const auto is_cut = [&](const Block* block) MAREY_REQUIRES(recorder_mutex) {
        for (const Mapped& mapped : mapped_) {
            const auto* const address = reinterpret_cast<const std::byte*>(block->header);
            if (address < mapped.extent.address || address >= mapped.extent.address + mapped.extent.bytes)
                continue;
            return mapped.extent.offset + static_cast<std::size_t>(address - mapped.extent.address) >= end;
        }
        return false;
    };
    std::erase_if(free_small_, [&](Block* part) MAREY_REQUIRES(recorder_mutex) {
        if (!is_cut(part)) return false;
        if (part->whole->free_parts-- == kLargeBlocks) --joinable_;
        return true;
    });
    std::erase_if(free_large_, is_cut);
    for (Mapped& mapped : mapped_) {
        Extent& extent = mapped.extent;
        if (extent.offset + extent.bytes <= end) continue;
        const std::size_t keep = extent.offset >= end ? 0 : end - extent.offset;
        syscall(SYS_munmap, extent.address + keep, extent.bytes - keep);
        bytes_ -= extent.bytes - keep;
        extent.bytes = keep;
    }
    if (next_offset_ == end) return;  // the file ends there
    next_offset_ = end;
    const int fd = file_.descriptor();
    // System calls, as in FileHandle::is_ours(). On failure it is longer than needed, and nothing is lost.
    if (fd >= 0) syscall(SYS_ftruncate, fd, static_cast<off_t>(end));
}

}  // namespace marey
