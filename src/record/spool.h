// spool.h: the capture file while it is being written: its header, its two streams and its blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "record/block_store.h"
#include "record/raw_log.h"
#include "record/recorder_mutex.h"

namespace marey {

/// Facts about this process for captures.
void fill_file_header(detail::FileHeader& header) noexcept MAREY_REQUIRES(recorder_mutex);
/// From now on, headers do not have the arguments of the process.
void hide_command_line() noexcept MAREY_REQUIRES(recorder_mutex);

/// "app.7.marey" for "app.marey" and ".7". A path without a suffix gets the part at its end.
std::string insert_before_suffix(const std::string& path, const std::string& part);
/// Finds an unused name: `wanted`, then `stem.<pid>.marey`, then `stem.<pid>.<n>.marey`.
std::string alternative_path(const std::string& wanted, int attempt);
/// The first such name that is not taken by a file nor contained in `claimed`, for a capture that is written
/// later. Throws marey::Error when no file can be created there.
std::string free_path(const std::string& wanted, std::span<const std::string> claimed);
/// Whether the process that the capture at `path` belongs to still runs.
bool is_being_recorded(const std::string& path) noexcept;

/// The process's capture file. Appended records survive the death of the process at once: they are in mapped
/// pages of the file.
class Spool {
  public:
    /// Creates the file under the first free name; it appears with a valid header or not at all. Throws
    /// marey::Error naming the file and the cause.
    static std::shared_ptr<Spool> create(const std::string& requested_path) MAREY_REQUIRES(recorder_mutex);
    ~Spool();

    const std::string& path() const noexcept { return path_; }
    BlockStore& store() noexcept { return store_; }
    void set_node(std::int32_t node) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Appends complete stream records. False when the disk is full: they are lost to the file.
    bool append_names(std::span<const std::byte> records) noexcept MAREY_REQUIRES(recorder_mutex) {
        return append(names_, records);
    }
    bool append_journal(std::span<const std::byte> records) noexcept MAREY_REQUIRES(recorder_mutex) {
        return append(journal_, records);
    }
    /// Appends it and returns its `overwritten_chunks`, which the caller may update in place; null when the
    /// disk is full.
    std::uint64_t* append_losses(const detail::LossesRecord& losses) noexcept MAREY_REQUIRES(recorder_mutex);

    /// Room for kStackNodes nodes of stacks, zeroed; null when the disk is full.
    std::byte* take_stacks_block(std::uint32_t number) noexcept MAREY_REQUIRES(recorder_mutex);

    /// Every session in it has stopped: marks the header as finished and cuts off the unused end. Blocks are
    /// never reused afterwards.
    void finish() noexcept MAREY_REQUIRES(recorder_mutex);
    bool is_finished() const noexcept { return finished_; }
    /// False when the name has been removed or now leads to another file.
    bool is_in_place() const noexcept;
    /// Whether the file still has a name, though maybe not one that this process can reach (after chroot).
    bool has_name() noexcept;
    /// Renames the file (the spool continues, its first session's capture takes the old name).
    void move_aside() noexcept MAREY_REQUIRES(recorder_mutex);
    /// Undoes that: the capture could not be cut out, so the spool itself remains as one.
    void move_back(const std::string& path) noexcept MAREY_REQUIRES(recorder_mutex);
    /// The file is removed when the spool is finished: its contents have been copied elsewhere.
    bool is_temporary() const noexcept { return temporary_; }
    /// In the child of a fork: releases the parent's file without touching it.
    void abandon() noexcept MAREY_REQUIRES(recorder_mutex);

  private:
    struct Stream {
        detail::BlockKind kind;
        Block* current = nullptr;
        Block* spare = nullptr;  // so that the report of a full disk still has space
    };
    Spool(int fd, std::string path, detail::FileHeader* header) noexcept;
    void set_path(std::string path);
    bool append(Stream& stream, std::span<const std::byte> records) noexcept MAREY_REQUIRES(recorder_mutex);
    bool append_large(Stream& stream, std::span<const std::byte> record) noexcept
        MAREY_REQUIRES(recorder_mutex);
    Block* take_block(detail::BlockKind kind) noexcept MAREY_REQUIRES(recorder_mutex);

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

using WriteBytes = std::function<void(std::span<const std::byte>)>;
/// Writes a finished capture with the given streams and chunks, some blocks at a time.
void write_capture(detail::FileHeader file, std::span<const std::byte> names,
                   std::span<const std::byte> journal, std::span<const LogSpan> spans,
                   const WriteBytes& write);
/// The same under the first free name, which it returns. Throws marey::Error.
std::string write_cut(const std::string& requested_path, std::span<const std::byte> names,
                      std::span<const std::byte> journal, std::span<const LogSpan> spans)
    MAREY_REQUIRES(recorder_mutex);

/// Where the blocks of logs are: in plain memory, or in the capture file while there is one.
struct LogStore {
    BlockStore memory MAREY_GUARDED_BY(recorder_mutex);
    std::shared_ptr<Spool> spool
        MAREY_GUARDED_BY(recorder_mutex);  ///< present as long as a session needs a file
    std::uint64_t owner MAREY_GUARDED_BY(recorder_mutex) =
        0;  ///< the session that the spool is the output of

    BlockStore& current() noexcept MAREY_REQUIRES(recorder_mutex) { return spool ? spool->store() : memory; }
};

}  // namespace marey
