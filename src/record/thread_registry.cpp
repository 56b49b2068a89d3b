// thread_registry.cpp: registering threads, and the blocks that hold their open ranges.
#include "record/thread_registry.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "record/clocks/clock.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {

using detail::BlockHeader;
using detail::BlockKind;
using detail::JournalKind;
using detail::kLargeBlocks;
using detail::OpenSlot;
using detail::store_release;
using detail::ThreadState;

namespace {

pthread_key_t exit_key;
bool has_exit_key = false;

// Called when the first thread records. In general main has started by then, so that prepare_exit() runs
// before the destructors of libraries; what the library's constructor registers runs among them.
void handle_exits() noexcept {
    has_exit_key = pthread_key_create(&exit_key, [](void*) { Recorder::get().retire_current_thread(); }) == 0;
    std::atexit([] { Recorder::get().prepare_exit(); });
}

// With the one after the last: a signal handler may have interrupted the filling of it.
std::size_t used_slots(const ThreadState& state) noexcept {
    return std::min<std::size_t>(state.depth + std::size_t{1}, detail::kOpenSlots);
}

// Copies a thread's open ranges into a block whose unused slots are zero. Pages that are not used stay
// untouched: a page fault costs a forked child more than its ranges.
void copy_state(ThreadState& to, const ThreadState& from) noexcept {
    const BlockHeader block = to.block;
    const std::size_t slots = used_slots(from);
    if (const std::size_t before = used_slots(to); before > slots)
        std::memset(static_cast<void*>(to.slots + slots), 0, (before - slots) * sizeof(OpenSlot));
    std::memcpy(static_cast<void*>(&to), &from, offsetof(ThreadState, slots) + slots * sizeof(OpenSlot));
    to.block = block;
    std::memcpy(to.side, from.side, std::min<std::size_t>(from.side_used, detail::kSideBytes));
}

}  // namespace

ThreadEntry* ThreadRegistry::find(std::uint32_t id) const noexcept {
    for (const auto& entry : entries_) {
        if (entry->id == id) return entry.get();
    }
    return nullptr;
}

ThreadEntry* ThreadRegistry::find_os_thread(std::int64_t os_tid) const noexcept {
    for (const auto& entry : entries_) {
        if (entry->is_thread && entry->os_tid == os_tid) return entry.get();
    }
    return nullptr;
}

// ---- adding and removing ----

void ThreadRegistry::mark_process() noexcept {
    std::uint32_t* const mark = words_.take();
    if (mark == nullptr) return;  // then children without fork handlers are not noticed
    detail::store_relaxed(*mark, kOwnProcess);
    detail::store_release(process_mark, mark);
}

ThreadEntry* ThreadRegistry::add(std::unique_ptr<ThreadEntry> entry, std::string_view name) noexcept {
    entry->birth = Clock::now();
    entry->name = journal_.names().intern(name);
    entry->inline_word = words_.take();
    if (entry->inline_word == nullptr) return nullptr;
    if (!allocate_state(*entry)) {
        words_.give_back(entry->inline_word);
        return nullptr;
    }
    entries_.push_back(std::move(entry));
    write_start(*entries_.back());
    journal_.publish_names();
    return entries_.back().get();
}

ThreadEntry* ThreadRegistry::add_current() noexcept {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_exits);
    auto entry = std::make_unique<ThreadEntry>();
    entry->os_tid = syscall(SYS_gettid);
    entry->id = number_of(entry->os_tid);
    entry->pthread_id = static_cast<std::uint64_t>(pthread_self());
    char name[64] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    ThreadEntry* const added = add(std::move(entry), name);
    if (added == nullptr) return nullptr;
    pthread_setspecific(exit_key, added);
    added->state->off_begins = std::exchange(unregistered_off_begins, 0u);
    return added;
}

ThreadEntry* ThreadRegistry::add_log(std::string_view name) noexcept {
    auto entry = std::make_unique<ThreadEntry>();
    entry->id = next_id_++;
    entry->is_thread = false;
    return add(std::move(entry), name);
}

void ThreadRegistry::remove(ThreadEntry* entry) noexcept {
    SessionTable::remember_last_full(*entry, nullptr);
    journal_.write_losses(entry->id, *entry->state);
    detail::ThreadEndedRecord died{};
    died.thread = entry->id;
    died.ticks = Clock::now();
    journal_.write(JournalKind::ThreadEnded, died);
    for (Block* segment : entry->open_segments) segment->store->free_block(segment);
    if (entry->side_segment != nullptr) entry->side_segment->store->free_block(entry->side_segment);
    entry->state->owner = nullptr;
    entry->state_block->store->free_block(entry->state_block);
    free_fork_copies([entry](const ForkCopy& copy) { return copy.entry == entry; });
    words_.give_back(entry->inline_word);
    std::erase_if(entries_, [entry](const auto& each) { return each.get() == entry; });
}

void ThreadRegistry::reset() noexcept {
    for (const auto& entry : entries_) entry->chunks_taken = 0;
}

void ThreadRegistry::forget_spool() noexcept {
    for (const auto& entry : entries_) {
        if (entry->last_full != nullptr && entry->last_full->store == &store_.spool->store())
            entry->last_full = nullptr;
    }
}

// ---- names and the journal ----

void ThreadRegistry::name_thread(std::int64_t os_tid, std::string_view name) noexcept {
    const ScopedLock lock(recorder_mutex);
    if (ThreadEntry* const entry = find_os_thread(os_tid)) set_name(*entry, name);
}

void ThreadRegistry::set_name(ThreadEntry& entry, std::string_view name) noexcept {
    entry.name = journal_.names().intern(name);
    journal_.publish_names();
    detail::ThreadNamedRecord record{};
    record.thread = entry.id;
    record.name = entry.name;
    journal_.write(JournalKind::ThreadNamed, record);
}

void ThreadRegistry::write_start(const ThreadEntry& entry) noexcept {
    detail::ThreadStartedRecord record{};
    record.thread = entry.id;
    record.name = entry.name;
    record.os_tid = entry.os_tid;
    record.pthread_id = entry.pthread_id;
    record.ticks = entry.birth;
    journal_.write(JournalKind::ThreadStarted, record);
}

void ThreadRegistry::write_start(const NotedThread& thread) noexcept {
    detail::ThreadStartedRecord record{};
    record.thread = thread.id;
    record.name = thread.name;
    record.os_tid = thread.os_tid;
    record.ticks = thread.birth;
    journal_.write(JournalKind::ThreadStarted, record);
}

void ThreadRegistry::write_starts() noexcept {
    for (const NotedThread& thread : noted_) {
        if (find(thread.id) == nullptr) write_start(thread);
    }
    for (const auto& entry : entries_) write_start(*entry);
}

std::uint32_t ThreadRegistry::note_thread(std::int64_t os_tid, std::string_view name,
                                          std::uint64_t birth) noexcept {
    if (const ThreadEntry* const entry = find_os_thread(os_tid)) return entry->id;
    try {
        const NotedThread& noted =
            noted_.emplace_back(NotedThread{number_of(os_tid), os_tid, journal_.names().intern(name), birth});
        journal_.publish_names();
        write_start(noted);
        return noted.id;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

void ThreadRegistry::forget_noted(std::int64_t os_tid) noexcept {
    for (const NotedThread& each : noted_) {
        if (each.os_tid != os_tid || find(each.id) != nullptr) continue;
        detail::ThreadEndedRecord ended{};
        ended.thread = each.id;
        ended.ticks = Clock::now();
        journal_.write(JournalKind::ThreadEnded, ended);
    }
    std::erase_if(noted_, [os_tid](const NotedThread& each) { return each.os_tid == os_tid; });
}

void ThreadRegistry::write_losses() noexcept {
    for (const auto& entry : entries_) journal_.write_losses(entry->id, *entry->state);
}

// ---- blocks ----

bool ThreadRegistry::allocate_state(ThreadEntry& entry) noexcept {
    int error = 0;
    Block* const block = blocks_.take(1, error);
    if (block == nullptr) return false;
    block->claims = 1;
    auto* const state = reinterpret_cast<ThreadState*>(block->header);
    if (block->header->generation != 1)  // one that has not been used is zero
        std::memset(reinterpret_cast<std::byte*>(state) + sizeof(BlockHeader), 0,
                    offsetof(ThreadState, side) - sizeof(BlockHeader));
    block->header->thread = entry.id;
    entry.state = state;
    entry.state_block = block;
    entry.spool = store_.spool;
    entry.period = sessions_.period();
    state->names_number = journal_.names_number();
    state->owner = &entry;
    state->inline_word = entry.inline_word;
    state->gap_min_depth = ~0u;
    store_release(block->header->kind, static_cast<std::uint16_t>(BlockKind::Thread));
    return true;
}

// Gives `entry` a state block (and segments) of the current store with its open ranges. The old ones are
// untouched; `left` receives them.
bool ThreadRegistry::copy_to_current_store(ThreadEntry& entry, std::vector<Block*>& left) noexcept {
    ThreadState* const old_state = entry.state;
    Block* const old_block = entry.state_block;
    const std::shared_ptr<Spool> old_spool = entry.spool;
    if (!allocate_state(entry)) {
        entry.state = old_state;
        entry.state_block = old_block;
        entry.spool = old_spool;
        return false;
    }
    copy_state(*entry.state, *old_state);
    left.push_back(old_block);
    const auto copy_segment = [&](Block*& segment, std::size_t blocks, BlockKind kind)
                                  MAREY_REQUIRES(recorder_mutex) {
                                      int error = 0;
                                      Block* const fresh = blocks_.take(blocks, error);
                                      if (fresh == nullptr) return false;
                                      fresh->claims = 1;
                                      std::memcpy(fresh->data(), segment->data(), fresh->capacity());
                                      fresh->header->thread = entry.id;
                                      fresh->header->segment = segment->header->segment;
                                      store_release(fresh->header->kind, static_cast<std::uint16_t>(kind));
                                      left.push_back(std::exchange(segment, fresh));
                                      return true;
                                  };
    for (std::size_t i = 0; i < entry.open_segments.size(); ++i) {
        if (copy_segment(entry.open_segments[i], 1, BlockKind::OpenSegment)) continue;
        entry.open_segments.resize(i);  // no space: the innermost ranges of a very deep thread are lost
        entry.state->depth = static_cast<std::uint32_t>(detail::kOpenSlots + i * detail::kSlotsPerSegment);
    }
    if (entry.side_segment != nullptr &&
        !copy_segment(entry.side_segment, kLargeBlocks, BlockKind::SideSegment)) {
        entry.side_segment = nullptr;
    }
    return true;
}

void ThreadRegistry::move_to_current_store(ThreadEntry& entry) noexcept {
    const std::shared_ptr<Spool> old_spool = entry.spool;  // mapped until we are done with it
    ThreadState* const old_state = entry.state;
    std::vector<Block*> left;
    if (!copy_to_current_store(entry, left)) return;
    const std::uint64_t copied = entry.state->dropped;
    if (entry.is_thread) set_current_thread(entry.state);
    // Of signal handlers since the copy.
    add_dropped(*entry.state, detail::load_relaxed(old_state->dropped) - copied);
    old_state->owner = nullptr;
    for (Block* block : left) block->store->free_block(block);
}

OpenSlot* ThreadRegistry::slot(ThreadState& state, std::uint32_t index) noexcept {
    if (index < detail::kOpenSlots) return &state.slots[index];
    if (state.owner == nullptr) return nullptr;
    auto& entry = *static_cast<ThreadEntry*>(state.owner);
    const std::size_t segment = (index - detail::kOpenSlots) / detail::kSlotsPerSegment;
    if (segment == entry.open_segments.size()) {
        const ScopedLock lock(recorder_mutex);
        int error = 0;
        Block* const block = blocks_.take(1, error);
        if (block == nullptr) return nullptr;
        block->claims = 1;
        block->header->thread = entry.id;
        block->header->segment = static_cast<std::uint32_t>(segment);
        std::memset(block->data(), 0, block->capacity());
        store_release(block->header->kind, static_cast<std::uint16_t>(BlockKind::OpenSegment));
        entry.open_segments.push_back(block);
    }
    return entry.slot(index);
}

std::byte* ThreadRegistry::side_segment(ThreadEntry& entry) noexcept {
    if (entry.side_segment == nullptr) {
        const ScopedLock lock(recorder_mutex);
        int error = 0;
        Block* const block = blocks_.take(kLargeBlocks, error);
        if (block == nullptr) return nullptr;
        block->claims = 1;
        block->header->thread = entry.id;
        store_release(block->header->kind, static_cast<std::uint16_t>(BlockKind::SideSegment));
        entry.side_segment = block;
    }
    return entry.side_segment->data();
}

// ---- fork ----

void ThreadRegistry::before_fork(const ThreadState* forking) noexcept {
    for (const auto& entry : entries_) {
        if (!entry->spool) continue;
        if (entry->is_thread) {
            if (entry->state == forking) copy_for_child(*entry);
        } else if (entry->log_lock.try_lock()) {
            const ScopedLock log(entry->log_lock, std::adopt_lock);
            copy_for_child(*entry);
        }
    }
}

void ThreadRegistry::copy_for_child(ThreadEntry& entry) noexcept {
    for (ForkCopy& copy : fork_copies_) {
        if (copy.entry != &entry || !entry.open_segments.empty() || entry.side_segment != nullptr) continue;
        copy_state(*copy.state, *entry.state);
        copy.period = sessions_.period();
        copy.is_current = true;
        return;
    }
    ForkCopy copy{
        &entry,       entry.state, entry.state_block, entry.spool, entry.open_segments, entry.side_segment,
        entry.period, true};
    const std::shared_ptr<Spool> spool = std::exchange(store_.spool, nullptr);  // copies are plain memory
    std::vector<Block*> left;
    const bool is_copied = copy_to_current_store(entry, left);
    store_.spool = spool;
    if (!is_copied) return;  // the child uses the parent's state as it is by then
    copy.swap();
    fork_copies_.push_back(std::move(copy));
}

// The copies of threads with few open ranges are kept for the next fork.
void ThreadRegistry::after_fork_in_parent() noexcept {
    free_fork_copies(
        [](const ForkCopy& copy) { return !copy.open_segments.empty() || copy.side_segment != nullptr; });
    for (ForkCopy& copy : fork_copies_) copy.is_current = false;
}

template <typename Condition>
void ThreadRegistry::free_fork_copies(Condition is_unused) noexcept {
    std::erase_if(fork_copies_, [&](const ForkCopy& copy) MAREY_REQUIRES(recorder_mutex) {
        if (!is_unused(copy)) return false;
        copy.state_block->store->free_block(copy.state_block);
        for (Block* segment : copy.open_segments) segment->store->free_block(segment);
        if (copy.side_segment != nullptr) copy.side_segment->store->free_block(copy.side_segment);
        return true;
    });
}

void ThreadRegistry::ForkCopy::swap() noexcept {
    std::swap(entry->state, state);
    std::swap(entry->state_block, state_block);
    std::swap(entry->spool, spool);
    std::swap(entry->open_segments, open_segments);
    std::swap(entry->side_segment, side_segment);
    std::swap(entry->period, period);
}

const ThreadEntry* ThreadRegistry::own_entry() const noexcept {
    const void* const own = has_exit_key ? pthread_getspecific(exit_key) : nullptr;
    for (const auto& entry : entries_) {
        if (entry.get() == own) return entry.get();
    }
    return nullptr;
}

// A new state without open ranges: the blocks of the old one are in the parent's file, and the parent has
// gone on.
bool ThreadRegistry::renew_state(ThreadEntry& entry) noexcept {
    const ThreadState& old = *entry.state;
    ThreadObservers* const observers = entry.observers();
    void* const tracer = old.tracer;
    const std::uint64_t next_async = old.next_async;
    const bool is_intact = detail::load_acquire(old.owner) == &entry;
    entry.open_segments.clear();
    entry.side_segment = nullptr;
    if (!allocate_state(entry)) return false;
    entry.state->next_async = next_async;
    entry.left_parent = Clock::now();
    if (!is_intact) return true;
    entry.state->observers = observers;
    entry.state->tracer = tracer;
    return true;
}

std::vector<std::shared_ptr<Spool>> ThreadRegistry::forked(const ThreadEntry* own,
                                                           bool is_prepared) noexcept {
    absent_.clear();
    noted_.clear();
    std::vector<std::shared_ptr<Spool>> parent_spools;
    Entries kept;
    free_fork_copies([](const ForkCopy& copy) { return !copy.is_current; });
    for (ForkCopy& copy : fork_copies_) {
        copy.swap();
        parent_spools.push_back(std::move(copy.spool));
    }
    fork_copies_.clear();
    for (auto& entry : entries_) {
        if (entry->spool) parent_spools.push_back(entry->spool);
        if (entry->chunk_spool) parent_spools.push_back(std::move(entry->chunk_spool));
        entry->chunk = nullptr;
        entry->last_full = nullptr;
        if (entry.get() == own || !entry->is_thread) {
            kept.push_back(std::move(entry));
            continue;
        }
        // A thread that takes part in the fork may not have seen it yet: its word stays 0.
        if (is_prepared) words_.give_back(entry->inline_word);
        if (entry->state_block->store == &store_.memory) {
            store_.memory.free_block(entry->state_block);
            for (Block* segment : entry->open_segments) store_.memory.free_block(segment);
            if (entry->side_segment != nullptr) store_.memory.free_block(entry->side_segment);
        }
    }
    entries_.clear();
    for (auto& each : kept) {
        ThreadEntry& entry = *each;
        std::vector<Block*> left;  // the parent's blocks: neither returned nor written to
        if (entry.spool && !(is_prepared ? copy_to_current_store(entry, left) : renew_state(entry))) continue;
        entry.chunks_taken = 0;
        entry.state->cursor = entry.state->limit = nullptr;
        entry.state->context = 0;
        entry.sessions = nullptr;  // its slots stay
        entry.has_marks = false;
        if (entry.is_thread) {
            entry.os_tid = syscall(SYS_gettid);  // resolved already, unlike gettid()
            set_current_thread(entry.state);
        } else {
            std::construct_at(&entry.log_lock);  // a thread that the child does not have may have held it
            std::construct_at(&entry.arming);
        }
        entries_.push_back(std::move(each));
    }
    return parent_spools;
}

}  // namespace marey
