// recorder.h: the only mutable object of the recording path: who records, into what, for whom.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <forward_list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <marey/detail/hot_path.h>
#include <marey/session.h>

#include "record/block_store.h"
#include "record/contexts.h"
#include "record/name_table.h"
#include "record/observers.h"
#include "record/raw_log.h"
#include "record/recorder_mutex.h"
#include "record/source.h"
#include "record/spool.h"

namespace marey {

/// A thread (or another owner of a log) in the recorder. `state` is written by its owner alone (except
/// `armed`); the rest is guarded by the recorder's lock, unless a member states otherwise.
struct ThreadEntry {
    std::uint32_t id = 0;
    std::int64_t os_tid = 0;
    std::uint64_t pthread_id = 0;
    std::uint32_t name = 0;
    std::uint64_t birth = 0;
    bool is_thread = true;  ///< false: a log that does not belong to a thread
    bool in_journal = false;
    std::uint32_t chunks_taken = 0;

    detail::ThreadState* state = nullptr;
    Block* state_block = nullptr;
    std::shared_ptr<Spool> spool;  ///< keeps `state_block` mapped; null: plain memory
    Block* chunk = nullptr;
    std::shared_ptr<Spool> chunk_spool;  ///< keeps `chunk` mapped
    Block* last_full = nullptr;          ///< the previous chunk, as long as its store is in use
    std::vector<Block*> open_segments;
    Block* side_segment = nullptr;
    std::uint64_t period = 0;      ///< Recorder::period_ when it last handled attention
    std::uint64_t full_since = 0;  ///< Recorder::space_epoch_ when a chunk was refused; owner only
    std::mutex log_lock;           ///< logs that are not threads: one writer at a time

    /// The thread's armed word, written by its owner (contexts) and the recorder: both hold `arming`, the
    /// recorder inside its own lock. `sessions` is written by the owner alone.
    ArmingLock arming;
    std::atomic<bool> needs_attention{false};    ///< set together with its bits as long as there are any
    const ContextSessions* sessions = nullptr;   ///< of the context that the thread runs under
    std::shared_ptr<const void> sessions_owner;  ///< of `sessions`, where no adoption owns it; owner only
    bool has_marks = false;                      ///< its log contains context marks; owner only
    std::uint64_t thread_observers_armed = 0;    ///< bits that its own observers need

    /// A scope of this thread that another thread has ended. Its slot is removed when the thread handles
    /// attention.
    struct EndedElsewhere {
        std::uint32_t index;  ///< of its slot, if nothing below has ended since; or unknown (kOpenUnusual)
        std::uint64_t start;
        std::uint64_t end;
    };
    std::vector<EndedElsewhere> ended_elsewhere;
    std::uint32_t ended_early =
        0;  ///< ranges that end_open_calls() ended and that are still to be closed; owner only
};

/// A running session, or one that its size limit has closed and that has not been collected yet.
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
    bool ceiling_reached = false;
    std::uint32_t tasks_thread = 0;      ///< the thread that started it, if it follows tasks
    std::shared_ptr<TaskSession> tasks;  ///< if it follows tasks: its entry in contexts
    std::deque<Block*> chunks;
    std::uint64_t claimed_bytes = 0;
    std::uint64_t remote_bytes = 0;                   ///< of messages added (remote_call.cpp)
    std::map<std::string, std::string> device_facts;  ///< as reported, by key
};

/// Locking: `mutex_` guards everything here unless a member states otherwise. It is taken at thread start and
/// exit, at chunk changes, at first uses of names and at session starts and stops; never on the inlined path,
/// and never while a trace is built. `source_mutex_` serialises calls into sources and is taken before
/// `mutex_`.
class Recorder {
  public:
    /// Created at first use, never destroyed: threads may record until the very end of the process.
    static Recorder& get() noexcept {
        // Relaxed: data read through the pointer cannot have been read before it (see
        // NameTable::find_dynamic).
        Recorder* const recorder = instance_.load(kOrder);
        return recorder != nullptr ? *recorder : make();
    }

    // -- sessions (any thread) --
    struct Started {
        std::uint64_t id;
        std::string output_path;
    };
    /// Throws marey::Error when the capture cannot be made.
    Started start(const SessionOptions& options);
    /// The same, for the session that the environment requests: a forked child starts its own.
    void start_for_environment(const SessionOptions& options);
    /// Ends it and returns its log; its capture file, if it has one, is complete afterwards. An unknown id
    /// (already ended, or inherited over a fork) gives false.
    bool stop(std::uint64_t id, RawLog& log);
    /// The log so far.
    bool snapshot(std::uint64_t id, RawLog& log);
    void discard(std::uint64_t id) noexcept;
    bool is_running(std::uint64_t id) noexcept;
    /// Journals a message, which the caller has checked, for session `id`; fills in the missing fields of
    /// `record` (session, prefix, length). Throws marey::Error when the session is not running or would
    /// exceed its max_bytes.
    void add_remote_events(std::uint64_t id, detail::RemoteEventsRecord record, std::string_view prefix,
                           std::span<const std::byte> message);
    /// Whether the devices of a session are recorded for it now. Throws marey::Error when it is not running.
    void record_devices(std::uint64_t id, bool is_wanted);
    /// A fact for the session's trace. Throws marey::Error when it is not running.
    void add_metadata(std::uint64_t id, std::string_view key, std::span<const std::byte> json);
    /// A fact for the sessions that requested devices of this type.
    void add_device_fact(DeviceType type, std::string_view key, std::string_view json) noexcept;
    /// The facts about this process that captures carry.
    detail::FileHeader process_facts() noexcept;
    /// Completes every capture file.
    void finish_all() noexcept;
    /// At exit, before the destructors of libraries: stops the sources, and completes the captures for which
    /// files must be made, because another library may have replaced open or rename. The capture that is
    /// written in place stays open, so that ranges of destructors are in it too.
    void prepare_exit() noexcept;
    /// At the very end of the process: completes that capture, with plain system calls.
    void finish_in_place() noexcept;

    // -- slow paths of the calling thread (thread_log.cpp); `busy` is set, nothing throws --
    /// Registers the calling thread, or does the work that kArmedAttention requests. Returns the state to
    /// continue with; null when the thread cannot be registered.
    detail::ThreadState* handle_attention() noexcept;
    /// Gets a new chunk for a record that ends at `ticks`. False: there is no space, and the record must be
    /// dropped.
    bool refill(ThreadEntry& entry, std::uint64_t ticks, std::size_t bytes) noexcept;
    /// The slot `index` of a thread's open stack, in whichever segment; null when there is no space for it.
    detail::OpenSlot* slot(detail::ThreadState& state, std::uint32_t index) noexcept;
    std::byte* side_segment(ThreadEntry& entry) noexcept;
    void retire_current_thread() noexcept;
    /// Ends a scope of another thread, which removes it when it next runs. False: that thread has ended.
    bool end_elsewhere(std::uint32_t thread, const ThreadEntry::EndedElsewhere& ended) noexcept;
    void name_current_thread(std::string_view name) noexcept;
    /// Names a thread by its system thread id. Does nothing for a thread that has not recorded.
    void name_thread(std::int64_t os_tid, std::string_view name) noexcept;
    void count_lost(std::uint64_t records = 1) noexcept;
    /// Sets a thread's armed word from its sessions and those of all threads; its `arming` is held.
    void arm(ThreadEntry& entry) noexcept;
    /// Some session is open, whether or not it sees the calling thread.
    bool has_open_session() const noexcept { return has_open_session_.load(std::memory_order_relaxed); }
    /// marey::active_options.
    SessionOptions active_options() noexcept;

    // -- names --
    std::uint32_t register_site(const detail::Site& site) noexcept;
    std::uint32_t intern_site(std::string_view name, std::string_view file, std::uint32_t line, Scope scope,
                              std::uint32_t flags = 0, std::string_view category = {}) noexcept;
    std::uint32_t intern_dynamic(std::string_view name, Scope scope, std::uint32_t category = 0) noexcept;
    std::uint32_t intern(std::string_view text) noexcept;
    std::uint32_t intern_key(std::string_view text) noexcept;
    std::uint32_t intern_module(std::string_view path, std::string_view build_id,
                                std::uint64_t bias) noexcept;
    const NameTable& names() const noexcept { return names_; }
    /// Called by the owner of a log before it writes a site that it may have looked up before the capture
    /// began.
    void use_site(std::uint32_t site) noexcept {
        if (!names_.is_shown(site)) [[unlikely]]
            use_hidden_site(site);
    }

    // -- observers --
    Observers& observers() noexcept { return observers_; }
    /// The process's node id, into captures that are being written too. -1: none.
    void set_node(std::int32_t node) noexcept;
    std::int32_t node() const noexcept { return node_.load(std::memory_order_relaxed); }

    // -- logs that are not threads --
    ThreadEntry* make_log(std::string_view name) noexcept;
    void end_log(ThreadEntry* entry) noexcept;
    /// Does the work that kArmedAttention requests, for a log that is not a thread (its log_lock is held).
    void handle_log_attention(ThreadEntry& entry) noexcept;

    // -- sources --
    void add_source(std::shared_ptr<Source> source);
    void set_absent(std::vector<AbsentStack> stacks) noexcept;
    void forget_absent(std::int64_t os_tid) noexcept;

    // -- fork, second copies, tests --
    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;
    /// This copy of the library never records. `why` is printed unless it is empty.
    void disable(const char* why) noexcept;
    /// Puts a problem into the captures being written and, if `print`, on standard error once.
    void note(std::string_view code, std::string_view text, bool print = true) noexcept;
    void add_cost(detail::CostKind kind, std::uint64_t picoseconds) noexcept;
    /// Which call an open range of a thread is part of.
    void note_open_part(std::uint32_t thread, std::uint64_t start, std::uint64_t call,
                        std::uint8_t flags) noexcept;
    void add_site_values(std::uint32_t site, std::uint64_t ticks,
                         std::span<const KeyedValue> values) noexcept;
    struct Usage {
        std::size_t threads, sessions, memory_bytes, journal_bytes;
    };
    Usage usage() noexcept;

  private:
    friend class Observers;
    Recorder();
    static Recorder& make() noexcept;
#if defined(__SANITIZE_THREAD__)
    static constexpr std::memory_order kOrder = std::memory_order_acquire;
#else
    static constexpr std::memory_order kOrder = std::memory_order_relaxed;
#endif
    static std::atomic<Recorder*> instance_;

    void use_hidden_site(std::uint32_t site) noexcept;
    void add_run_time_names(RawLog& log) const;
    // All of these need mutex_.
    void journal_fact(std::uint64_t session, std::string_view key, std::span<const std::byte> json);
    void rearm() noexcept;
    ThreadEntry* register_current_thread() noexcept;
    bool allocate_state_block(ThreadEntry& entry) noexcept;
    bool copy_to_current_store(ThreadEntry& entry, std::vector<Block*>& left) noexcept;
    void copy_for_child(const ThreadEntry& entry) noexcept;
    const void* as_forked(const void* place) const noexcept;  // the copy, or the place itself
    void move_to_current_store(ThreadEntry& entry) noexcept;
    void update_entry(ThreadEntry& entry) noexcept;
    void remove_ended(ThreadEntry& entry, std::unique_lock<RecorderMutex>& lock) noexcept;
    void leave_chunk(ThreadEntry& entry, bool reusable) noexcept;
    static void remember_last_full(ThreadEntry& entry, Block* chunk) noexcept;
    void release_chunk(Block* chunk) noexcept;
    void install_chunk(ThreadEntry& entry, Block* chunk) noexcept;
    void end_entry(ThreadEntry* entry) noexcept;
    bool out_of_space(int error) noexcept;
    Block* take_block(std::size_t blocks, int& error) noexcept;
    BlockStore& current_store() noexcept {
        return spool_ ? spool_->store() : memory_;
    }
    bool make_room(std::size_t bytes) noexcept;
    void evict_oldest(SessionEntry& session) noexcept;
    void close_session(SessionEntry& session, std::uint64_t ticks) noexcept;
    void collect(SessionEntry& session, RawLog& log) noexcept;
    std::shared_ptr<const ContextSessions> make_context(const ThreadEntry& entry,
                                                        const SessionEntry& session);
    void finish_output(SessionEntry& session) noexcept;
    void forget(std::uint64_t id) noexcept;
    void close_spool() noexcept;
    void copy_open_payload(const ThreadEntry& entry, std::uint32_t side,
                           std::vector<std::byte>& payload) noexcept;
    /// Ranges that another thread has ended have their end.
    std::vector<OpenRange> open_ranges(const ThreadEntry& entry) noexcept;
    SessionEntry* find(std::uint64_t id) noexcept;
    bool is_any_open() const noexcept;
    void write_journal(std::span<const std::byte> record) noexcept;
    template <class Record>
    void journal(detail::JournalKind kind, Record record, std::span<const std::byte> tail = {}) noexcept;
    void journal_thread(ThreadEntry& entry) noexcept;
    void name_entry(ThreadEntry& entry, std::string_view name) noexcept;
    void journal_clock() noexcept;
    void journal_costs() noexcept;
    void journal_losses(const ThreadEntry& entry) noexcept;
    void count_overwritten(std::uint32_t thread) noexcept;
    void publish_names() noexcept;
    void use_open_sites(ThreadEntry& entry) noexcept;
    void add_note(std::string_view code, std::string_view text, bool print = true) noexcept;
    // These need source_mutex_.
    RecordingNeeds needs() noexcept;
    void notify_sources() noexcept;
    void flush_sources(bool wait_for_devices) noexcept;
    bool records_devices(std::uint64_t id) noexcept;

    // Threads whose calls are known but that have not recorded (absent_threads.cpp).
    std::uint32_t number_of_thread(std::int64_t os_tid) noexcept;
    std::vector<OpenRange> absent_open_ranges() noexcept;

    struct Claims;  // holds blocks of a log that is being read

    RecorderMutex mutex_;
    NameTable names_;
    Observers observers_;
    std::atomic<std::int32_t> node_{-1};
    std::vector<std::byte> journal_;  ///< cleared when the last session has ended
    std::size_t names_in_spool_ = 0;  ///< bytes of the names stream in the spool
    std::uint32_t names_number_ = 1;  ///< counts the spools: each has its own run-time names
    BlockStore memory_;
    std::shared_ptr<Spool> spool_;
    std::uint64_t spool_owner_ = 0;                      ///< the session that the spool is the output of
    std::vector<std::unique_ptr<ThreadEntry>> threads_;  ///< the living
    struct Overwritten {
        std::uint64_t chunks = 0;
        std::uint64_t* in_file =
            nullptr;  ///< the same in the capture, for readers after a crash; null: not yet
    };
    std::unordered_map<std::uint32_t, Overwritten> overwritten_;  ///< by thread
    std::vector<Block*> leftover_chunks_;                         ///< of ended threads, with space left
    std::vector<std::unique_ptr<SessionEntry>> sessions_;
    std::uint32_t next_thread_ = 1;
    std::uint64_t next_session_ = 1;
    std::uint64_t next_context_ = 1;
    std::uint64_t next_sequence_ = 1;
    std::uint64_t fork_generation_ = 0;
    std::uint64_t period_ = 1;        ///< counts how often recording went from off to on
    std::uint64_t lost_outside_ = 0;  ///< records of threads that could not be registered; atomic
    std::uint64_t space_epoch_ = 1;   ///< incremented when space may have become available; atomic
    bool disabled_ = false;
    /// Bits that the sessions of all threads need on every thread, and whether there is any session: written
    /// by rearm(), read by any thread.
    std::atomic<std::uint64_t> shared_armed_{0};
    std::atomic<bool> has_open_session_{false};
    std::uint64_t environment_session_ = 0;  ///< its id while it runs
    bool restart_environment_ = false;       ///< a forked child starts its own when it first records
    bool restarting_ = false;                ///< a thread of that child is starting it
    bool is_exiting_ = false;                ///< only finish_in_place() is left to do: sources are off
    std::vector<std::string> noted_;
    /// A thread that was in these calls when a tracer began and has not recorded since.
    struct AbsentThread {
        std::uint32_t id;
        bool in_journal;
        AbsentStack stack;
    };
    std::vector<AbsentThread> absent_;

    // The background thread (background.cpp).
    /// The first is in use. The others are from before forks: they still count waiters that this process does
    /// not have, and one of them may have held their lock, so they are never touched again.
    std::forward_list<std::condition_variable_any> wakes_ = std::forward_list<std::condition_variable_any>(1);
    std::condition_variable_any& wake() noexcept {
        return wakes_.front();
    }
    pthread_t background_{};
    bool background_runs_ = false;
    bool background_stops_ = false;          ///< it must end
    bool background_idles_ = false;          ///< no session runs: it waits a second for one, then ends
    sigset_t background_starter_mask_{};     ///< signals that were blocked in the thread that started it
    bool extending_ = false;                 ///< it is mapping or warming without the lock
    std::vector<detail::CostRecord> costs_;  ///< measured once, at the first start
    std::vector<detail::CostRecord> source_costs_;  ///< measured by sources
    std::size_t ahead_ = 2;                         ///< large blocks to keep ready
    void start_background() noexcept;
    void stop_background(std::unique_lock<RecorderMutex>& lock) noexcept;
    void background_loop() noexcept;
    void leave_background(bool is_last) noexcept;
    std::size_t missing_blocks(std::size_t ahead) noexcept;
    bool needs_extent() noexcept;
    void measure_costs() noexcept;

    std::mutex source_mutex_;
    std::vector<std::shared_ptr<Source>> sources_;
    detail::ThreadState* forking_thread_ = nullptr;
    /// The state of the parent's file that a child takes over, as it was at the fork: both have the file, and
    /// the parent continues.
    struct ForkCopy {
        const void* place;
        std::unique_ptr<std::byte[]> bytes;
    };
    std::vector<ForkCopy> fork_copies_;
    bool forking_enabled_ = true;
};

/// The options of a session in the text form of the MAREY environment variable,
/// "out=app.marey,max=512MB,policy=ring". Throws marey::Error naming the part that is invalid.
SessionOptions parse_options(std::string_view text);
/// Starts the session that the environment requests, if any. Called once, when the library is loaded, and in
/// a forked child when it first records.
void start_environment_session() noexcept;
/// Prints "marey: ..." on standard error: the only way in which recording ever reports to the user.
void warn(std::string_view text) noexcept;

}  // namespace marey
