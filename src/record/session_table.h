// session_table.h: the sessions, and their claims on the chunks that threads fill.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/session.h>

#include "record/contexts.h"
#include "record/journal_writer.h"
#include "record/run_ledger.h"
#include "record/source.h"

namespace marey {

struct ThreadEntry;

/// A running session, or one that its size limit has closed and that has not been collected yet. Guarded by
/// recorder_mutex.
struct SessionEntry {
    std::uint64_t id = 0;
    SessionOptions options;
    std::string output_path;
    std::uint64_t max_bytes = 0;     ///< the limit in force: options.max_bytes, raised where it was too small
    std::uint32_t device_types = 0;  ///< devices whose work it needs, a bit each
    std::uint32_t timed_devices = 0;  ///< the subset on which ranges are timed with events
    bool pauses_devices = false;      ///< device recording is paused
    std::uint64_t start_ticks = 0;
    std::uint64_t end_ticks = 0;
    bool is_closed = false;  ///< its end is in the journal; it claims no more chunks
    bool is_full = false;    ///< policy drop: it claims no more chunks
    bool size_limit_reached = false;
    std::uint32_t tasks_thread = 0;      ///< the thread that started it, if it follows tasks
    std::shared_ptr<TaskSession> tasks;  ///< if it follows tasks: its entry in contexts
    std::deque<Block*> chunks;
    std::uint64_t claimed_bytes = 0;
    RunLedger* ledger = nullptr;     ///< counts them for all processes of the tree; null: no other counts
    std::uint64_t remote_bytes = 0;  ///< of messages added
    std::map<std::string, std::string> device_facts;  ///< as reported, by key

    bool claims_chunks() const noexcept { return !is_closed && !is_full; }
    /// Whether so many more bytes exceed its limit, or that of the tree: each process gets its first chunk.
    bool would_exceed(std::uint64_t bytes) const noexcept {
        return claimed_bytes + bytes > max_bytes ||
               (ledger != nullptr && claimed_bytes != 0 && ledger->would_exceed(bytes));
    }
};

/// A sealed chunk is recycled when no session and no reader claims it. Session ids are never reused.
class SessionTable {
  public:
    SessionTable(LogStore& store, JournalWriter& journal) noexcept : store_(store), journal_(journal) {}

    // -- any thread: these take the lock --
    bool is_running(std::uint64_t id) noexcept MAREY_EXCLUDES(recorder_mutex);
    /// Journals a message, which the caller has checked, for session `id`; fills in the missing fields of
    /// `record` (session, prefix, length). Throws marey::Error when the session is not running or would
    /// exceed its max_bytes.
    void add_remote_events(std::uint64_t id, detail::RemoteEventsRecord record, std::string_view prefix,
                           std::span<const std::byte> message) MAREY_EXCLUDES(recorder_mutex);
    /// A fact for the session's trace. Throws marey::Error when it is not running.
    void add_metadata(std::uint64_t id, std::string_view key, std::span<const std::byte> json)
        MAREY_EXCLUDES(recorder_mutex);
    /// A fact for the sessions that requested devices of this type.
    void add_device_fact(DeviceType type, std::string_view key, std::string_view json) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    /// marey::active_options.
    SessionOptions active_options() noexcept MAREY_EXCLUDES(recorder_mutex);
    /// The union of what the sessions need from sources.
    RecordingNeeds needs() noexcept MAREY_EXCLUDES(recorder_mutex);
    bool records_devices(std::uint64_t id) noexcept MAREY_EXCLUDES(recorder_mutex);
    bool writes_file(std::uint64_t id) noexcept MAREY_EXCLUDES(recorder_mutex);
    /// Changes when space may have become available for a thread whose chunk was refused. Needs no lock.
    std::uint64_t space_epoch() const noexcept { return space_epoch_.load(std::memory_order_relaxed); }
    void space_may_be_free() noexcept { space_epoch_.fetch_add(1, std::memory_order_relaxed); }

    // -- the lock is held --
    using Entries = std::vector<std::unique_ptr<SessionEntry>>;
    const Entries& entries() const noexcept MAREY_REQUIRES(recorder_mutex) { return entries_; }
    /// Null: unknown, or ended.
    SessionEntry* find(std::uint64_t id) noexcept MAREY_REQUIRES(recorder_mutex);
    bool is_any_open() const noexcept MAREY_REQUIRES(recorder_mutex);
    std::uint64_t next_id() noexcept MAREY_REQUIRES(recorder_mutex) { return next_id_++; }
    void add(std::unique_ptr<SessionEntry> session) MAREY_REQUIRES(recorder_mutex);
    /// Releases its chunks and forgets it.
    void remove(std::uint64_t id) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Counts how often recording went from off to on: records from before must not be read as continuous
    /// with later ones.
    std::uint64_t period() const noexcept MAREY_REQUIRES(recorder_mutex) { return period_; }
    void begin_period() noexcept MAREY_REQUIRES(recorder_mutex) { ++period_; }
    /// The set of sessions of a thread that starts `session`, which follows its tasks.
    std::shared_ptr<const ContextSessions> make_context(const ContextSessions* outer,
                                                        const SessionEntry& session)
        MAREY_REQUIRES(recorder_mutex);

    // -- chunks; the lock is held --
    /// Some open session has a chunk.
    bool has_recorded() const noexcept MAREY_REQUIRES(recorder_mutex);
    /// The most that a session may still claim, and the highest limit of all.
    std::uint64_t claimable_bytes() const noexcept MAREY_REQUIRES(recorder_mutex);
    std::uint64_t size_limit() const noexcept MAREY_REQUIRES(recorder_mutex);
    /// The session claims a chunk that is being filled.
    static void claim(SessionEntry& session, Block* chunk) MAREY_REQUIRES(recorder_mutex);
    /// And those of ended threads, which the next new threads continue in.
    void claim_leftovers(SessionEntry& session) MAREY_REQUIRES(recorder_mutex);
    /// Makes a block that was just taken the chunk of a thread, for all sessions. False: none needs it any
    /// more, and it was returned.
    bool give(ThreadEntry& entry, Block* chunk, std::uint64_t ticks) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Lets a new thread continue in the chunk of an ended one. False: there is none with that much space.
    bool give_leftover(ThreadEntry& entry, std::size_t bytes) noexcept MAREY_REQUIRES(recorder_mutex);
    /// The thread leaves its chunk. `reusable`: another thread may continue in it.
    void leave(ThreadEntry& entry, bool reusable) noexcept MAREY_REQUIRES(recorder_mutex);
    static void remember_last_full(ThreadEntry& entry, Block* chunk) noexcept MAREY_REQUIRES(recorder_mutex);
    void release(Block* chunk) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Overwrites the session's oldest chunk that may be overwritten, if its thread left it before `until`.
    /// False: there is none.
    bool evict_oldest(SessionEntry& session, std::uint64_t until = ~std::uint64_t{0}) noexcept
        MAREY_REQUIRES(recorder_mutex);
    /// Overwrites what is older than rings by time keep.
    void evict_expired() noexcept MAREY_REQUIRES(recorder_mutex);
    /// Keeps the session's chunks alive, and mapped, until the reader of `log` is done.
    void hold(const SessionEntry& session, RawLog& log) MAREY_REQUIRES(recorder_mutex);
    /// The spool's leftover chunks stay in its file.
    void forget_spool() noexcept MAREY_REQUIRES(recorder_mutex);
    /// In the child of a fork: there are no sessions, and the chunks in plain memory are free. (The parent's
    /// file is not ours.)
    void forked() noexcept MAREY_REQUIRES(recorder_mutex);

  private:
    struct Claims;  // of a log that is being read
    void install(ThreadEntry& entry, Block* chunk) noexcept MAREY_REQUIRES(recorder_mutex);

    LogStore& store_;
    JournalWriter& journal_;
    Entries entries_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<Block*> leftovers_ MAREY_GUARDED_BY(recorder_mutex);  ///< of ended threads, with space left
    std::uint64_t next_id_ MAREY_GUARDED_BY(recorder_mutex) = 1;
    std::uint64_t next_context_ MAREY_GUARDED_BY(recorder_mutex) = 1;
    std::uint64_t next_sequence_ MAREY_GUARDED_BY(recorder_mutex) = 1;
    std::uint64_t period_ MAREY_GUARDED_BY(recorder_mutex) = 1;
    std::uint64_t forks_ MAREY_GUARDED_BY(recorder_mutex) =
        0;  ///< how many lie between this process and the first
    std::atomic<std::uint64_t> space_epoch_{1};
};

/// The options as captures and sources have them (detail::OptionBits).
std::uint32_t option_bits(const SessionOptions& options, std::uint32_t device_types) noexcept;
/// The committed records of a chunk.
LogSpan span_of(const Block& chunk) noexcept;

}  // namespace marey
