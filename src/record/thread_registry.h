// thread_registry.h: the living threads, and other owners of logs: their states, names and open ranges.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <marey/detail/hot_path.h>
#include <marey/detail/thread_safety.h>

#include "record/background.h"
#include "record/contexts.h"
#include "record/raw_log.h"
#include "record/source.h"

namespace marey {

struct ThreadObservers;

/// A thread (or another owner of a log) in the recorder. `state` is written by its owner alone, except for
/// `armed`. Members without a lock are set before others see the entry, or say who uses them.
struct ThreadEntry {
    std::uint32_t id = 0;
    std::int64_t os_tid = 0;
    std::uint64_t pthread_id = 0;
    std::uint64_t birth = 0;
    bool is_thread = true;  ///< false: a log that does not belong to a thread
    std::uint32_t name MAREY_GUARDED_BY(recorder_mutex) = 0;
    std::uint32_t chunks_taken MAREY_GUARDED_BY(recorder_mutex) = 0;

    detail::ThreadState* state = nullptr;  ///< replaced by its owner, with recorder_mutex held
    std::uint32_t* inline_word = nullptr;  ///< of its states
    Block* state_block MAREY_GUARDED_BY(recorder_mutex) = nullptr;
    std::shared_ptr<Spool> spool
        MAREY_GUARDED_BY(recorder_mutex);  ///< keeps `state_block` mapped; null: plain memory
    Block* chunk MAREY_GUARDED_BY(recorder_mutex) = nullptr;
    std::shared_ptr<Spool> chunk_spool MAREY_GUARDED_BY(recorder_mutex);  ///< keeps `chunk` mapped
    Block* last_full MAREY_GUARDED_BY(recorder_mutex) =
        nullptr;                        ///< the previous chunk, as long as its store is in use
    std::vector<Block*> open_segments;  ///< like `side_segment`: added by its owner, with recorder_mutex held
    Block* side_segment = nullptr;
    std::uint64_t period MAREY_GUARDED_BY(recorder_mutex) =
        0;                         ///< SessionTable::period when it last handled attention
    std::uint64_t full_since = 0;  ///< SessionTable::space_epoch when a chunk was refused; owner only
    Mutex log_lock;                ///< logs that are not threads: one writer at a time

    /// The thread's armed word, written by its owner (contexts) and the recorder: both hold `arming`, the
    /// recorder inside its own lock. `sessions` is written by the owner alone.
    ArmingLock arming;
    std::atomic<bool> needs_attention{false};    ///< set together with its bits as long as there are any
    const ContextSessions* sessions = nullptr;   ///< of the context that the thread runs under
    std::shared_ptr<const void> sessions_owner;  ///< of `sessions`, where no adoption owns it; owner only
    bool has_marks = false;                      ///< its log contains context marks; owner only
    std::uint64_t thread_observers_armed MAREY_GUARDED_BY(arming) = 0;  ///< bits that its own observers need

    /// A scope of this thread that another thread has ended. Its slot is removed when the thread handles
    /// attention.
    struct EndedElsewhere {
        std::uint32_t index;  ///< of its slot, if nothing below has ended since; or unknown (kOpenUnusual)
        std::uint64_t start;
        std::uint64_t end;
    };
    std::vector<EndedElsewhere> ended_elsewhere MAREY_GUARDED_BY(recorder_mutex);
    std::uint64_t left_parent = 0;  ///< in a child without fork handlers: when it forgot its open ranges
    std::uint32_t ended_early =
        0;  ///< ranges that end_open_calls() ended and that are still to be closed; owner only

    /// Its observers, if its state is still the one in `state`: a parent that has gone on may use the memory
    /// for something else.
    ThreadObservers* observers() const noexcept {
        auto* const found = static_cast<ThreadObservers*>(detail::load_acquire(state->observers));
        return detail::load_acquire(state->owner) == this ? found : nullptr;
    }
    /// The slot `index` of its open stack, in whichever segment; null when there is no such segment.
    detail::OpenSlot* slot(std::uint32_t index) const noexcept {
        if (index < detail::kOpenSlots) return &state->slots[index];
        const std::size_t segment = (index - detail::kOpenSlots) / detail::kSlotsPerSegment;
        if (segment >= open_segments.size()) return nullptr;
        return reinterpret_cast<detail::OpenSlot*>(open_segments[segment]->data()) +
               (index - detail::kOpenSlots) % detail::kSlotsPerSegment;
    }
};

/// Logical thread ids start from 1 and are never reused.
class ThreadRegistry {
  public:
    ThreadRegistry(LogStore& store, JournalWriter& journal, SessionTable& sessions,
                   Background& blocks) noexcept
        : store_(store), journal_(journal), sessions_(sessions), blocks_(blocks) {}

    // -- the owner of the state or entry, or a reader of what is open; the lock is taken to add memory --
    /// The slot `index` of a thread's open stack; null when there is no space for it.
    detail::OpenSlot* slot(detail::ThreadState& state, std::uint32_t index) noexcept
        MAREY_EXCLUDES(recorder_mutex);
    std::byte* side_segment(ThreadEntry& entry) noexcept MAREY_EXCLUDES(recorder_mutex);

    // -- any thread: these take the lock --
    /// Names a thread by its system thread id. Does nothing for a thread that has not recorded.
    void name_thread(std::int64_t os_tid, std::string_view name) noexcept MAREY_EXCLUDES(recorder_mutex);
    /// See set_absent_threads() and forget_absent_thread(). Returns how many could not be kept.
    std::size_t set_absent(std::vector<AbsentStack> stacks) noexcept MAREY_EXCLUDES(recorder_mutex);
    void forget_absent(std::int64_t os_tid) noexcept MAREY_EXCLUDES(recorder_mutex);

    // -- the lock is held --
    /// Marks this process as the owner of the recorder.
    void mark_process() noexcept MAREY_REQUIRES(recorder_mutex);
    using Entries = std::vector<std::unique_ptr<ThreadEntry>>;
    const Entries& entries() const noexcept MAREY_REQUIRES(recorder_mutex) { return entries_; }
    /// Null: it has ended.
    ThreadEntry* find(std::uint32_t id) const noexcept MAREY_REQUIRES(recorder_mutex);
    /// Registers the calling thread, or a log that is not a thread. Null: there is no space.
    ThreadEntry* add_current() noexcept MAREY_REQUIRES(recorder_mutex);
    ThreadEntry* add_log(std::string_view name) noexcept MAREY_REQUIRES(recorder_mutex);
    /// It has left its chunk.
    void remove(ThreadEntry* entry) noexcept MAREY_REQUIRES(recorder_mutex);
    /// The logical id of a thread by its system thread id: also of one that has not recorded. `birth`: when
    /// it was first seen. Threads that have not recorded stay in the list until they are forgotten.
    std::uint32_t note_thread(std::int64_t os_tid, std::string_view name, std::uint64_t birth) noexcept
        MAREY_REQUIRES(recorder_mutex);
    void forget_noted(std::int64_t os_tid) noexcept MAREY_REQUIRES(recorder_mutex);
    void set_name(ThreadEntry& entry, std::string_view name) noexcept MAREY_REQUIRES(recorder_mutex);
    /// Gives it a state in the current store, with its open ranges. Called by its owner, which has left its
    /// chunk.
    void move_to_current_store(ThreadEntry& entry) noexcept MAREY_REQUIRES(recorder_mutex);
    void write_starts() noexcept MAREY_REQUIRES(recorder_mutex);
    void write_losses() noexcept MAREY_REQUIRES(recorder_mutex);
    /// The open ranges of all threads, while they run (open_ranges.cpp). Ranges that another thread has ended
    /// have their end.
    std::vector<OpenRange> open_ranges() noexcept MAREY_REQUIRES(recorder_mutex);
    /// The last session has ended.
    void reset() noexcept MAREY_REQUIRES(recorder_mutex);
    /// The spool is about to be closed.
    void forget_spool() noexcept MAREY_REQUIRES(recorder_mutex);

    // -- fork; the lock is held --
    /// The entry of the calling thread, without a look at its state, which may be the parent's. Null: none.
    const ThreadEntry* own_entry() const noexcept MAREY_REQUIRES(recorder_mutex);
    /// Copies the states in the parent's file that a child takes over: both have the file, and the parent
    /// continues.
    void before_fork(const detail::ThreadState* forking) noexcept MAREY_REQUIRES(recorder_mutex);
    void after_fork_in_parent() noexcept MAREY_REQUIRES(recorder_mutex);
    /// In the child, only the forking thread `own` continues, with the ranges that it had open; every session
    /// of the child shows them as begun before it (a flag in the slots would prevent closing them inline).
    /// Logs that are not threads continue too. They all get new states. Returns the parent's files.
    /// `is_prepared`: before_fork() was called. Otherwise ranges that were open in a file are forgotten,
    /// because the parent may have ended them since.
    std::vector<std::shared_ptr<Spool>> forked(const ThreadEntry* own, bool is_prepared) noexcept
        MAREY_REQUIRES(recorder_mutex);

  private:
    /// A thread that was in these calls when a tracer began and has not recorded since.
    struct AbsentThread {
        std::uint32_t id;
        bool in_journal;
        AbsentStack stack;
    };
    /// A thread that was sampled before it has recorded.
    struct NotedThread {
        std::uint32_t id;
        std::int64_t os_tid;
        std::uint32_t name;
        std::uint64_t birth;
    };
    /// The memory of an entry that a child uses in place of its parent's.
    struct ForkCopy {
        ThreadEntry* entry;
        detail::ThreadState* state;
        Block* state_block;
        std::shared_ptr<Spool> spool;
        std::vector<Block*> open_segments;
        Block* side_segment;
        std::uint64_t period;
        bool is_current;  ///< of the fork that is under way
        void swap() noexcept MAREY_REQUIRES(recorder_mutex);
    };
    ThreadEntry* add(std::unique_ptr<ThreadEntry> entry, std::string_view name) noexcept
        MAREY_REQUIRES(recorder_mutex);
    ThreadEntry* find_os_thread(std::int64_t os_tid) const noexcept MAREY_REQUIRES(recorder_mutex);
    std::uint32_t number_of(std::int64_t os_tid) noexcept MAREY_REQUIRES(recorder_mutex);
    void write_start(const ThreadEntry& entry) noexcept MAREY_REQUIRES(recorder_mutex);
    void write_start(const NotedThread& thread) noexcept MAREY_REQUIRES(recorder_mutex);
    bool allocate_state(ThreadEntry& entry) noexcept MAREY_REQUIRES(recorder_mutex);
    bool renew_state(ThreadEntry& entry) noexcept MAREY_REQUIRES(recorder_mutex);
    bool copy_to_current_store(ThreadEntry& entry, std::vector<Block*>& left) noexcept
        MAREY_REQUIRES(recorder_mutex);
    void copy_for_child(ThreadEntry& entry) noexcept MAREY_REQUIRES(recorder_mutex);
    template <typename Condition>
    void free_fork_copies(Condition is_unused) noexcept MAREY_REQUIRES(recorder_mutex);
    void add_open(const ThreadEntry& entry, std::vector<OpenRange>& open) noexcept
        MAREY_REQUIRES(recorder_mutex);
    void add_absent(AbsentThread& thread, std::vector<OpenRange>& open) noexcept
        MAREY_REQUIRES(recorder_mutex);

    LogStore& store_;
    JournalWriter& journal_;
    SessionTable& sessions_;
    Background& blocks_;
    ChildWords words_ MAREY_GUARDED_BY(recorder_mutex);
    Entries entries_ MAREY_GUARDED_BY(recorder_mutex);
    std::uint32_t next_id_ MAREY_GUARDED_BY(recorder_mutex) = 1;
    std::vector<AbsentThread> absent_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<NotedThread> noted_ MAREY_GUARDED_BY(recorder_mutex);
    std::vector<ForkCopy> fork_copies_ MAREY_GUARDED_BY(recorder_mutex);
};

}  // namespace marey
