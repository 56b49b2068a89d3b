// recorder.h: the only mutable object of the recording path: who records, into what, for whom.
//
// The recorder owns five parts and does what needs several of them. Each part may use those above it:
//
//   LogStore        spool.h             the blocks: plain memory, or the capture file
//   JournalWriter   journal_writer.h    the streams of captures: names, and the journal
//   SessionTable    session_table.h     the sessions, and their claims on chunks
//   Background      background.h        hands out blocks and keeps more ready, on the recorder's own thread
//   ThreadRegistry  thread_registry.h   the threads and other owners of logs, with their open ranges
//
// One lock, recorder_mutex, guards them all (recorder_mutex.h says when it is taken): a chunk change touches
// each. Annotations show who locks, and clang checks them: MAREY_EXCLUDES functions take the lock,
// MAREY_REQUIRES functions need it, MAREY_GUARDED_BY members are only used with it. Three things are used
// without it:
//
// - A thread's state, log and open stack (ThreadState), which only their owner writes. Others read them with
//   the lock held, so that the thread stays registered, and check for themselves what may be torn.
// - A thread's armed word, guarded by ThreadEntry::arming.
// - Lookups of names, and the atomics below.
//
// Order: source_mutex_, the log_lock of a log that is not a thread, recorder_mutex, ThreadEntry::arming.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/hot_path.h>
#include <marey/session.h>

#include "record/background.h"
#include "record/journal_writer.h"
#include "record/observers.h"
#include "record/raw_log.h"
#include "record/recorder_mutex.h"
#include "record/session_table.h"
#include "record/source.h"
#include "record/spool.h"
#include "record/thread_registry.h"

namespace marey {

class Recorder {
  public:
    /// Created at first use, never destroyed: threads may record until the very end of the process.
    static Recorder& get() noexcept {
        // Relaxed: data read through the pointer cannot have been read before it (see
        // NameTable::find_dynamic).
        Recorder* const recorder = instance_.load(kOrder);
        return recorder != nullptr ? *recorder : make();
    }

    JournalWriter& journal() noexcept { return journal_; }
    SessionTable& sessions() noexcept { return sessions_; }
    ThreadRegistry& threads() noexcept { return threads_; }
    Observers& observers() noexcept { return observers_; }
    const NameTable& names() noexcept { return journal_.names(); }

    // -- sessions (any thread; sessions.cpp) --
    struct Started {
        std::uint64_t id;
        std::string output_path;
    };
    /// Throws marey::Error when the capture cannot be made.
    Started start(const SessionOptions& options) MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    /// The same, for the session that the environment requests: a forked child starts its own. If it runs
    /// already, because the library was loaded before Python started, only its scopes change.
    void start_for_environment(const SessionOptions& options) MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    /// Ends it and returns its log; its capture file, if it has one, is complete afterwards. An unknown id
    /// (already ended, or inherited over a fork) gives false.
    bool stop(std::uint64_t id, RawLog& log) MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    /// The log so far.
    bool snapshot(std::uint64_t id, RawLog& log) MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    void discard(std::uint64_t id) noexcept MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    /// Whether the devices of a session are recorded for it now. Throws marey::Error when it is not running.
    void record_devices(std::uint64_t id, bool is_wanted) MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    /// Completes every capture file.
    void finish_all() noexcept MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    /// At exit, before the destructors of libraries: stops the sources, and completes the captures for which
    /// files must be made, because another library may have replaced open or rename. The capture that is
    /// written in place stays open, so that ranges of destructors are in it too.
    void prepare_exit() noexcept MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    /// At the very end of the process: completes that capture, with plain system calls.
    void finish_in_place() noexcept MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    /// Some session is open, whether or not it sees the calling thread.
    bool has_open_session() const noexcept { return has_open_session_.load(std::memory_order_relaxed); }
    void add_source(std::shared_ptr<Source> source) MAREY_EXCLUDES(source_mutex_, recorder_mutex);

    // -- slow paths of the calling thread; `busy` is set, nothing throws --
    /// Registers the calling thread, or does the work that kArmedAttention requests. Returns the state to
    /// continue with; null when the thread cannot be registered.
    detail::ThreadState* handle_attention() noexcept MAREY_EXCLUDES(recorder_mutex);
    /// Gets a new chunk for a record that ends at `ticks`. False: there is no space, and the record must be
    /// dropped.
    bool refill(ThreadEntry& entry, std::uint64_t ticks, std::size_t bytes) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    void retire_current_thread() noexcept MAREY_EXCLUDES(recorder_mutex);
    void name_current_thread(std::string_view name) noexcept MAREY_EXCLUDES(recorder_mutex);
    /// Ends a scope of another thread, which removes it when it next runs. False: that thread has ended.
    bool end_elsewhere(std::uint32_t thread, const ThreadEntry::EndedElsewhere& ended) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    void count_lost(std::uint64_t records = 1) noexcept {
        lost_outside_.fetch_add(records, std::memory_order_relaxed);
    }

    // -- logs that are not threads --
    ThreadEntry* make_log(std::string_view name) noexcept MAREY_EXCLUDES(recorder_mutex);
    void end_log(ThreadEntry* entry) noexcept MAREY_EXCLUDES(recorder_mutex);
    /// Does the work that kArmedAttention requests, for a log that is not a thread (its log_lock is held).
    void handle_log_attention(ThreadEntry& entry) noexcept MAREY_EXCLUDES(recorder_mutex);

    // -- arming --
    /// Sets a thread's armed word from its sessions and those of all threads.
    void arm(ThreadEntry& entry) noexcept MAREY_REQUIRES(entry.arming);
    /// Sets those of all threads, after a change of sessions or observers.
    void rearm() noexcept MAREY_REQUIRES(recorder_mutex);

    // -- the process --
    /// The process's node id, into captures that are being written too. -1: none.
    void set_node(std::int32_t node) noexcept MAREY_EXCLUDES(recorder_mutex);
    std::int32_t node() const noexcept { return node_.load(std::memory_order_relaxed); }
    void before_fork() noexcept MAREY_ACQUIRE(source_mutex_, recorder_mutex);
    void after_fork_in_parent() noexcept MAREY_RELEASE(source_mutex_, recorder_mutex);
    void after_fork_in_child(bool is_prepared = true) noexcept MAREY_RELEASE(source_mutex_, recorder_mutex);
    /// The same in a child without fork handlers. Does not record there if a thread of the parent was inside
    /// the recorder.
    void leave_parent() noexcept MAREY_UNCHECKED_LOCKS;
    /// This copy of the library never records. `why` is printed unless it is empty.
    void disable(const char* why) noexcept MAREY_EXCLUDES(recorder_mutex);
    struct Usage {
        std::size_t threads, sessions, memory_bytes, journal_bytes;
    };
    Usage usage() noexcept MAREY_EXCLUDES(recorder_mutex);

  private:
    explicit Recorder(bool records = true);
    static Recorder& make() noexcept;
#if defined(__SANITIZE_THREAD__)
    static constexpr std::memory_order kOrder = std::memory_order_acquire;
#else
    static constexpr std::memory_order kOrder = std::memory_order_relaxed;
#endif
    static std::atomic<Recorder*> instance_;

    // Threads (recorder.cpp).
    void update_entry(ThreadEntry& entry) noexcept MAREY_REQUIRES(recorder_mutex);
    void remove_ended(ThreadEntry& entry) noexcept MAREY_REQUIRES(recorder_mutex);
    bool make_room(std::size_t bytes) noexcept MAREY_REQUIRES(recorder_mutex);
    bool out_of_space(int error) noexcept MAREY_REQUIRES(recorder_mutex);
    // Sessions (sessions.cpp).
    bool continue_for_environment(const SessionOptions& options)
        MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    void open_output(SessionEntry& session) MAREY_REQUIRES(recorder_mutex);
    void close_session(SessionEntry& session, std::uint64_t ticks) noexcept MAREY_REQUIRES(recorder_mutex);
    void collect(SessionEntry& session, RawLog& log) noexcept MAREY_REQUIRES(recorder_mutex);
    void finish_output(SessionEntry& session) noexcept MAREY_REQUIRES(recorder_mutex);
    bool end_session(std::uint64_t id, RawLog* log) noexcept MAREY_EXCLUDES(source_mutex_, recorder_mutex);
    void forget(SessionEntry& session) noexcept MAREY_REQUIRES(recorder_mutex);
    void close_spool() noexcept MAREY_REQUIRES(recorder_mutex);
    void notify_sources() noexcept MAREY_REQUIRES(source_mutex_) MAREY_EXCLUDES(recorder_mutex);
    void flush_sources(bool wait_for_devices) noexcept MAREY_REQUIRES(source_mutex_);

    LogStore store_;
    JournalWriter journal_{store_};
    SessionTable sessions_{store_, journal_};
    Background background_{store_, journal_, sessions_};
    ThreadRegistry threads_{store_, journal_, sessions_, background_};
    Observers observers_;

    RunLedger ledger_ MAREY_GUARDED_BY(recorder_mutex);

    std::atomic<std::int32_t> node_{-1};
    std::atomic<std::uint64_t> lost_outside_{0};  ///< records of threads that could not be registered
    /// Bits that the sessions of all threads need on every thread, those that any session needs in logs that
    /// are not threads, and whether there is any session: written by rearm(), read by any thread.
    std::atomic<std::uint64_t> shared_armed_{0};
    std::atomic<std::uint64_t> logs_armed_{0};
    std::atomic<bool> has_open_session_{false};
    bool disabled_ MAREY_GUARDED_BY(recorder_mutex) = false;
    std::uint64_t environment_session_ MAREY_GUARDED_BY(recorder_mutex) = 0;  ///< its id while it runs
    bool restart_environment_ MAREY_GUARDED_BY(recorder_mutex) =
        false;  ///< a forked child starts its own when it first records
    bool restarting_ MAREY_GUARDED_BY(recorder_mutex) = false;  ///< a thread of that child is starting it
    RecorderCondition restarted_;
    bool is_exiting_ MAREY_GUARDED_BY(recorder_mutex) =
        false;  ///< only finish_in_place() is left to do: sources are off

    SourceMutex source_mutex_;
    std::vector<std::shared_ptr<Source>> sources_ MAREY_GUARDED_BY(source_mutex_);
    detail::ThreadState* forking_thread_ MAREY_GUARDED_BY(recorder_mutex) = nullptr;
    const ThreadEntry* forking_entry_ MAREY_GUARDED_BY(recorder_mutex) = nullptr;
    ThreadObservers* forking_observers_ MAREY_GUARDED_BY(recorder_mutex) = nullptr;
    bool forking_enabled_ MAREY_GUARDED_BY(recorder_mutex) = true;
};

/// Starts the session that the environment requests, if any. Called once, when the library is loaded, and in
/// a forked child when it first records.
void start_environment_session() noexcept;

}  // namespace marey
