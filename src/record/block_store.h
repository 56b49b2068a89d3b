// block_store.h: blocks of memory, anonymous or mapped from a capture file, handed out and returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <marey/detail/log_format.h>

#include "record/file_handle.h"
#include "record/recorder_mutex.h"

namespace marey {

class BlockStore;

/// 0, or EFBIG when a file must not grow to `bytes` (RLIMIT_FSIZE). Checked before every growth, because the
/// kernel answers the attempt with SIGXFSZ, which ends the program.
int check_file_limit(std::size_t bytes) noexcept;

/// A run of blocks: the memory of one chunk, one thread's state, or one part of a stream.
struct Block {
    detail::BlockHeader* header = nullptr;
    BlockStore* store = nullptr;
    std::uint32_t claims MAREY_GUARDED_BY(recorder_mutex) =
        0;                     ///< sessions and builds that still need its contents
    std::uint32_t blocks = 0;  ///< length in units of kBlockBytes
    std::uint32_t place = 0;   ///< in the file, in the same units
    bool in_use MAREY_GUARDED_BY(recorder_mutex) = false;  ///< handed out, not returned
    bool is_cold MAREY_GUARDED_BY(recorder_mutex) =
        false;  ///< free, and its memory was returned to the system
    bool is_open MAREY_GUARDED_BY(recorder_mutex) =
        false;  ///< a thread's current chunk, or one that the next thread continues in
    std::uint32_t last_full_of MAREY_GUARDED_BY(recorder_mutex) =
        0;  ///< the thread whose last full chunk this is
    std::uint64_t left_ticks MAREY_GUARDED_BY(recorder_mutex) = 0;  ///< when its thread left this chunk
    Block* whole MAREY_GUARDED_BY(recorder_mutex) =
        nullptr;  ///< of a small run: the first one split off the same large run
    std::uint32_t free_parts MAREY_GUARDED_BY(recorder_mutex) =
        0;  ///< in that first one: how many of them are free

    std::byte* data() const noexcept {
        return reinterpret_cast<std::byte*>(header) + sizeof(detail::BlockHeader);
    }
    std::size_t capacity() const noexcept {
        return blocks * detail::kBlockBytes - sizeof(detail::BlockHeader);
    }
};

/// Where blocks come from: anonymous memory, or a file whose blocks are allocated on disk before they are
/// mapped (so that a full disk is an error here and never a SIGBUS in the program). It grows by extents,
/// which stay mapped until it is destroyed.
class BlockStore {
  public:
    /// Anonymous memory.
    BlockStore() noexcept = default;
    /// An open, writable file whose first `header_bytes` belong to the caller. Takes over the descriptor.
    BlockStore(int fd, std::size_t header_bytes) noexcept
        : file_(fd), header_bytes_(header_bytes), next_offset_(header_bytes) {}
    ~BlockStore();
    BlockStore(const BlockStore&) = delete;
    BlockStore& operator=(const BlockStore&) = delete;

    bool is_file() const noexcept { return file_.is_held(); }
    /// Keeps FileHeader's map of small blocks there from now on.
    void set_map(std::span<std::uint8_t> map) noexcept MAREY_REQUIRES(recorder_mutex) { map_ = map; }
    FileHandle& file() noexcept { return file_; }
    const FileHandle& file() const noexcept { return file_; }

    /// A run of 1 or kLargeBlocks blocks with a zeroed, Free header whose generation has been incremented;
    /// null when none is free (then extend). Small runs are split off large ones, and join when all are free.
    Block* take(std::size_t blocks) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Marks it Free, so that readers of the file ignore it; it still belongs to its taker.
    void hide(Block* block) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Marks it Free and keeps it for the next taker.
    void free_block(Block* block) noexcept MAREY_REQUIRES(recorder_mutex);
    std::size_t free_large() const noexcept MAREY_REQUIRES(recorder_mutex) {
        return free_large_.size() + joinable_;
    }
    bool has_free_small() const noexcept MAREY_REQUIRES(recorder_mutex) { return !free_small_.empty(); }
    /// The free blocks that have their memory; they are taken first.
    std::size_t free_warm() const noexcept MAREY_REQUIRES(recorder_mutex);
    /// Anonymous memory: returns the memory of free large blocks to the system, except for `keep_bytes`. The
    /// blocks can be taken as before; their pages come back when they are written.
    void decommit(std::size_t keep_bytes) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Takes one of those cold blocks out of the list until add_warm() puts it back; null: there is none. The
    /// caller warms it without the lock.
    Block* take_cold() noexcept MAREY_REQUIRES(recorder_mutex);
    static void warm(const Block& block) noexcept;
    void add_warm(Block* block) noexcept MAREY_REQUIRES(recorder_mutex);

    /// Planned address space: reserved under the lock, then mapped without it, then added under it.
    struct Extent {
        std::byte* address = nullptr;
        std::size_t bytes = 0;
        std::size_t offset = 0;  ///< in the file
    };
    Extent reserve(std::size_t bytes) noexcept MAREY_REQUIRES(recorder_mutex);
    /// For less than a large run: its blocks are small ones for good.
    Extent reserve_small(std::size_t blocks) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Undoes a reservation that could not be mapped. If another one followed it, the file keeps a hole.
    void unreserve(const Extent& extent) noexcept MAREY_REQUIRES(recorder_mutex) {
        if (is_file() && extent.offset + extent.bytes == next_offset_) next_offset_ = extent.offset;
    }
    /// 0, or an errno: ENOSPC, EDQUOT, EFBIG, ENOMEM; EBADF when the program has closed the file's descriptor
    /// and the file cannot be reopened.
    int map_extent(Extent& extent) noexcept;
    /// A readable text for such an error.
    std::string reason(int error) const;
    /// Faults the pages in, so that recording threads do not have to.
    static void prefault(const Extent& extent) noexcept;
    void add(const Extent& extent) MAREY_REQUIRES(recorder_mutex);
    /// Bytes mapped so far.
    std::size_t bytes() const noexcept MAREY_REQUIRES(recorder_mutex) { return bytes_; }
    /// The same with the extents of a file that are being mapped.
    std::size_t reserved_bytes() const noexcept MAREY_REQUIRES(recorder_mutex) {
        return is_file() ? next_offset_ - header_bytes_ : bytes_;
    }

    /// File stores: bytes up to the end of the last block in use; the rest may be cut off.
    std::size_t used_file_bytes() const noexcept MAREY_REQUIRES(recorder_mutex);
    /// File stores: unmaps free blocks after used_file_bytes() and truncates the file there.
    void trim() noexcept MAREY_REQUIRES(recorder_mutex);
    /// From now on returned blocks keep their contents and are not handed out again: the file is finished.
    void freeze() noexcept MAREY_REQUIRES(recorder_mutex) { frozen_ = true; }
    /// Unmaps everything and closes the file; its blocks become invalid. For the child of a fork.
    void abandon() noexcept MAREY_REQUIRES(recorder_mutex);

  private:
    struct Mapped {
        Extent extent;
        std::unique_ptr<Block[]> blocks;  // one per kBlockBytes; runs use their first
    };
    int map_file(Extent& extent) noexcept;
    std::vector<Block*>::const_iterator first_warm() const noexcept MAREY_REQUIRES(recorder_mutex);
    void split(Block& whole, std::size_t parts) MAREY_REQUIRES(recorder_mutex);
    void join_free() noexcept MAREY_REQUIRES(recorder_mutex);
    void mark(const Block& block) noexcept MAREY_REQUIRES(recorder_mutex);

    FileHandle file_;
    bool frozen_ MAREY_GUARDED_BY(recorder_mutex) = false;
    std::size_t header_bytes_ = 0;
    std::size_t next_offset_ MAREY_GUARDED_BY(recorder_mutex) = 0;
    std::size_t bytes_ MAREY_GUARDED_BY(recorder_mutex) = 0;
    std::span<std::uint8_t> map_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<Mapped> mapped_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<Block*> free_small_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<Block*> free_large_ MAREY_GUARDED_BY(recorder_mutex);  // cold ones first
    std::size_t joinable_ MAREY_GUARDED_BY(recorder_mutex) =
        0;  // large runs that were split and are free again
};

}  // namespace marey
