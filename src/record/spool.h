// spool.h: the capture file while it is being written: its header, its two streams and its blocks.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "record/block_store.h"

namespace marey {

/// Facts of this process, as captures carry them. Needs the recorder's lock.
void fill_file_header(detail::FileHeader& header) noexcept;

/// Finds a name that nobody has: `wanted`, then `stem.<pid>.marey`, then `stem.<pid>.<n>.marey`.
std::string alternative_path(const std::string& wanted, int attempt);
/// The first such name that no file has and that `claimed` does not hold, for a capture that is written
/// later. Throws marey::Error when none can be made there.
std::string free_path(const std::string& wanted, std::span<const std::string> claimed);

/// The process's capture file. Everything needs the recorder's lock. What has been appended survives the
/// death of the process at once: it is in mapped pages of the file.
class Spool {
  public:
    /// Makes the file under the first free name; it appears with a valid header or not at all.
    /// Throws marey::Error naming the file and the cause.
    static std::shared_ptr<Spool> create(const std::string& requested_path);
    ~Spool();

    const std::string& path() const noexcept { return path_; }
    BlockStore& store() noexcept { return store_; }
    void set_node(std::int32_t node) noexcept;
    /// Appends whole stream records. False when the disk has no room: they are lost to the file.
    bool append_names(std::span<const std::byte> records) noexcept { return append(names_, records); }
    bool append_journal(std::span<const std::byte> records) noexcept { return append(journal_, records); }

    /// Every session in it has stopped: says so in the header, cuts off what is unused. Blocks are never
    /// reused after.
    void finish() noexcept;
    bool is_finished() const noexcept { return finished_; }
    /// False when the name has been removed or now leads to another file.
    bool is_in_place() const noexcept;
    /// Gives the file another name (the spool lives on, its first session's capture takes the old one).
    void move_aside() noexcept;
    /// Undoes that: the capture could not be cut out, so the spool itself stays as one.
    void move_back(const std::string& path) noexcept;
    /// The file goes when the spool is finished: what it holds has been copied elsewhere.
    bool is_temporary() const noexcept { return temporary_; }
    /// In the child of a fork: lets go of the parent's file without touching it.
    void abandon() noexcept;

  private:
    struct Stream {
        detail::BlockKind kind;
        Block* current = nullptr;
        Block* spare = nullptr;  // so that the news of a full disk still finds room
    };
    Spool(int fd, std::string path, detail::FileHeader* header) noexcept;
    void set_path(std::string path);
    bool append(Stream& stream, std::span<const std::byte> records) noexcept;
    bool append_large(Stream& stream, std::span<const std::byte> record) noexcept;
    Block* take_block(detail::BlockKind kind) noexcept;

    BlockStore store_;
    std::string path_;
    detail::FileHeader* header_;
    Stream names_{detail::BlockKind::Names};
    Stream journal_{detail::BlockKind::Journal};
    std::uint64_t next_stream_block_ = 1;
    bool finished_ = false;
    bool temporary_ = false;
    bool abandoned_ = false;
};

/// A log chunk to be copied into a capture of its own.
struct CutChunk {
    const Block* block;
    std::uint64_t committed;
};
/// Writes a finished capture with the given streams and chunks, under the first free name, which it returns.
/// Throws marey::Error.
std::string write_cut(const std::string& requested_path, std::span<const std::byte> names,
                      std::span<const std::byte> journal, std::span<const CutChunk> chunks);

}  // namespace marey
