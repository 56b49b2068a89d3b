// recorder.cpp: threads, arming, and the chunks that threads write into.
#include "record/recorder.h"

#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "record/clock.h"
#include "record/journal.h"
#include "record/thread_log.h"

namespace marey {

using detail::BlockHeader;
using detail::BlockKind;
using detail::JournalKind;
using detail::kBlockBytes;
using detail::kLargeBlocks;
using detail::load_relaxed;
using detail::store_release;
using detail::ThreadState;

std::atomic<Recorder*> Recorder::instance_{nullptr};

Recorder& Recorder::make() noexcept {
    static Recorder* const recorder = new Recorder;
    instance_.store(recorder, std::memory_order_release);
    return *recorder;
}

Recorder::Recorder() = default;

void Recorder::count_lost(std::uint64_t records) noexcept {
    __atomic_fetch_add(&lost_outside_, records, __ATOMIC_RELAXED);
}

bool Recorder::is_any_open() const noexcept {
    return std::any_of(sessions_.begin(), sessions_.end(),
                       [](const auto& session) { return !session->is_closed; });
}

// ---- threads ----

namespace {

pthread_key_t exit_key;

// Called when the first thread records. In general main has started by then, so that prepare_exit() runs
// before the destructors of libraries; what the library's constructor registers runs among them.
void handle_exits() noexcept {
    pthread_key_create(&exit_key, [](void*) { Recorder::get().retire_current_thread(); });
    std::atexit([] { Recorder::get().prepare_exit(); });
}

// Copies a thread's open ranges into a new block. The side stack is copied as far as it is used.
void copy_state(ThreadState& to, const ThreadState& from) noexcept {
    const BlockHeader block = to.block;
    std::memcpy(static_cast<void*>(&to), &from, offsetof(ThreadState, side));
    to.block = block;
    std::memcpy(to.side, from.side, std::min<std::size_t>(from.side_used, detail::kSideBytes));
}

}  // namespace

ThreadState* Recorder::handle_attention() noexcept {
    std::unique_lock lock(mutex_);
    if (disabled_) return nullptr;
    if (restart_environment_) {
        restart_environment_ = false;
        restarting_ = true;
        lock.unlock();
        start_environment_session();
        lock.lock();
        restarting_ = false;
        rearm();
        wake().notify_all();
    }
    wake().wait(lock, [this] { return !restarting_; });  // another thread's first range came a little earlier
    ThreadState* const state = detail::current_thread;
    if (state->owner == nullptr) {
        if (state != &unregistered_thread) return nullptr;
        ThreadEntry* const entry = register_current_thread();
        return entry != nullptr ? entry->state : nullptr;
    }
    auto& entry = *static_cast<ThreadEntry*>(state->owner);
    update_entry(entry);
    if (!entry.ended_elsewhere.empty()) remove_ended(entry, lock);
    return entry.state;
}

bool Recorder::end_elsewhere(std::uint32_t thread, const ThreadEntry::EndedElsewhere& ended) noexcept {
    std::lock_guard lock(mutex_);
    for (const auto& entry : threads_) {
        if (entry->id != thread) continue;
        try {
            entry->ended_elsewhere.push_back(ended);
        } catch (const std::bad_alloc&) {
            count_lost();  // its end is lost: it stays open until its thread ends
            return false;
        }
        std::lock_guard arming(entry->arming);
        entry->needs_attention = true;
        arm(*entry);
        return true;
    }
    return false;
}

// Called by the owner. Each stays in the list until its record is written and its slot is gone, so that a
// concurrent reader of the open stack sees its end.
void Recorder::remove_ended(ThreadEntry& entry, std::unique_lock<RecorderMutex>& lock) noexcept {
    auto& list = entry.ended_elsewhere;  // may grow at its end while this runs
    const std::size_t count = list.size();
    detail::store_relaxed(entry.state->busy, 1u);
    for (std::size_t i = 0; i < count; ++i) {
        const ThreadEntry::EndedElsewhere each = list[i];
        lock.unlock();
        const std::uint32_t index = find_open(*entry.state, each.index, each.start);
        if (index != detail::kNotOpen) {
            const bool nests =
                index + 1 == entry.state->depth && is_waited_for(site_of(*slot(*entry.state, index)));
            pop_open(*entry.state, index, each.end, nests ? 0 : detail::kRecordAsync);
        }
        lock.lock();
    }
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count));
}

void Recorder::update_entry(ThreadEntry& entry) noexcept {
    // Records from before recording was last off must not be read as continuous with the next ones.
    if (entry.period != period_) leave_chunk(entry, false);
    entry.period = period_;
    if (entry.spool != spool_) {
        use_open_sites(entry);
        move_to_current_store(entry);
    }
    entry.state->names_number = names_number_;
    std::lock_guard lock(entry.arming);
    entry.needs_attention = false;
    arm(entry);
}

bool Recorder::allocate_state_block(ThreadEntry& entry) noexcept {
    int error = 0;
    Block* const block = take_block(1, error);
    if (block == nullptr) return false;
    block->claims = 1;
    auto* const state = reinterpret_cast<ThreadState*>(block->header);
    std::memset(reinterpret_cast<std::byte*>(state) + sizeof(BlockHeader), 0,
                offsetof(ThreadState, side) - sizeof(BlockHeader));
    block->header->thread = entry.id;
    entry.state = state;
    entry.state_block = block;
    entry.spool = spool_;
    entry.period = period_;
    state->names_number = names_number_;
    state->owner = &entry;
    state->gap_min_depth = ~0u;
    store_release(block->header->kind, static_cast<std::uint16_t>(BlockKind::Thread));
    return true;
}

ThreadEntry* Recorder::register_current_thread() noexcept {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, handle_exits);
    auto entry = std::make_unique<ThreadEntry>();
    entry->os_tid = syscall(SYS_gettid);
    entry->id = number_of_thread(entry->os_tid);
    entry->pthread_id = static_cast<std::uint64_t>(pthread_self());
    entry->birth = Clock::now();
    char name[64] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    entry->name = names_.intern(name);
    if (!allocate_state_block(*entry)) return nullptr;
    pthread_setspecific(exit_key, entry.get());
    entry->state->off_begins = std::exchange(unregistered_off_begins, 0u);
    threads_.push_back(std::move(entry));
    ThreadEntry& added = *threads_.back();
    if (!sessions_.empty()) journal_thread(added);
    publish_names();
    arm(added);  // not visible to other threads yet: we hold the recorder's lock
    detail::current_thread = added.state;
    return &added;
}

// Gives `entry` a state block (and segments) of the current store with its open ranges. The old ones are
// untouched; `left` receives them. Called by the owner itself, so nothing else of it runs at the same time.
bool Recorder::copy_to_current_store(ThreadEntry& entry, std::vector<Block*>& left) noexcept {
    ThreadState* const old_state = entry.state;
    Block* const old_block = entry.state_block;
    const std::shared_ptr<Spool> old_spool = entry.spool;
    if (!allocate_state_block(entry)) {
        entry.state = old_state;
        entry.state_block = old_block;
        entry.spool = old_spool;
        return false;
    }
    copy_state(*entry.state, *static_cast<const ThreadState*>(as_forked(old_state)));
    left.push_back(old_block);
    const auto copy_segment = [&](Block*& segment, std::size_t blocks, BlockKind kind) {
        int error = 0;
        Block* const fresh = take_block(blocks, error);
        if (fresh == nullptr) return false;
        fresh->claims = 1;
        const auto* const from = static_cast<const BlockHeader*>(as_forked(segment->header));
        std::memcpy(fresh->data(), from + 1, fresh->capacity());
        fresh->header->thread = entry.id;
        fresh->header->segment = from->segment;
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

void Recorder::move_to_current_store(ThreadEntry& entry) noexcept {
    leave_chunk(entry, false);
    const std::shared_ptr<Spool> old_spool = entry.spool;  // mapped until we are done with it
    ThreadState* const old_state = entry.state;
    std::vector<Block*> left;
    if (!copy_to_current_store(entry, left)) return;
    if (entry.is_thread) detail::current_thread = entry.state;
    old_state->owner = nullptr;
    for (Block* block : left) block->store->free_block(block);
}

void Recorder::retire_current_thread() noexcept {
    set_enabled(true);
    ThreadState* const state = detail::current_thread;
    if (state->owner == nullptr) return;
    {
        auto& entry = *static_cast<ThreadEntry*>(state->owner);
        const SlowPath path;
        std::unique_lock lock(mutex_);
        if (path && !entry.ended_elsewhere.empty()) remove_ended(entry, lock);
    }
    close_all_open(*state);
    detail::current_thread = &idle_thread;  // code that still runs on this thread is not recorded
    std::lock_guard lock(mutex_);
    observers_.forget_thread(static_cast<ThreadObservers*>(std::exchange(state->observers, nullptr)));
    end_entry(static_cast<ThreadEntry*>(state->owner));
}

void Recorder::set_node(std::int32_t node) noexcept {
    std::lock_guard lock(mutex_);
    node_.store(node, std::memory_order_relaxed);
    if (spool_) spool_->set_node(node);
}

void Recorder::end_entry(ThreadEntry* entry) noexcept {
    leave_chunk(*entry, true);
    remember_last_full(*entry, nullptr);
    if (!sessions_.empty()) {
        journal_losses(*entry);
        detail::ThreadEndedRecord died{};
        died.thread = entry->id;
        died.ticks = Clock::now();
        journal(JournalKind::ThreadEnded, died);
    }
    for (Block* segment : entry->open_segments) segment->store->free_block(segment);
    if (entry->side_segment != nullptr) entry->side_segment->store->free_block(entry->side_segment);
    entry->state->owner = nullptr;
    entry->state_block->store->free_block(entry->state_block);
    std::erase_if(threads_, [entry](const auto& each) { return each.get() == entry; });
}

void Recorder::name_current_thread(std::string_view name) noexcept {
    const ScopedEnable enabled;
    if (detail::current_thread->owner == nullptr && handle_attention() == nullptr) return;
    std::lock_guard lock(mutex_);
    name_entry(*static_cast<ThreadEntry*>(detail::current_thread->owner), name);
}

void Recorder::name_thread(std::int64_t os_tid, std::string_view name) noexcept {
    std::lock_guard lock(mutex_);
    for (const auto& entry : threads_) {
        if (entry->is_thread && entry->os_tid == os_tid) return name_entry(*entry, name);
    }
}

void Recorder::name_entry(ThreadEntry& entry, std::string_view name) noexcept {
    entry.name = names_.intern(name);
    publish_names();
    if (!entry.in_journal) return;
    detail::ThreadNamedRecord record{};
    record.thread = entry.id;
    record.name = entry.name;
    journal(JournalKind::ThreadNamed, record);
}

ThreadEntry* Recorder::make_log(std::string_view name) noexcept {
    std::lock_guard lock(mutex_);
    if (disabled_) return nullptr;
    auto entry = std::make_unique<ThreadEntry>();
    entry->id = next_thread_++;
    entry->is_thread = false;
    entry->birth = Clock::now();
    entry->name = names_.intern(name);
    if (!allocate_state_block(*entry)) return nullptr;
    threads_.push_back(std::move(entry));
    ThreadEntry& added = *threads_.back();
    publish_names();
    if (!sessions_.empty()) journal_thread(added);
    arm(added);  // not visible to other threads yet: we hold the recorder's lock
    return &added;
}

void Recorder::end_log(ThreadEntry* entry) noexcept {
    std::lock_guard lock(mutex_);
    end_entry(entry);
}

void Recorder::handle_log_attention(ThreadEntry& entry) noexcept {
    std::lock_guard lock(mutex_);
    update_entry(entry);
}

// ---- chunks ----

Block* Recorder::take_block(std::size_t blocks, int& error) noexcept {
    BlockStore& store = current_store();
    const bool is_late = blocks != 1 && store.free_warm() == 0;
    Block* block = store.take(blocks);
    // The background thread is late (or has had no reason yet): keep more blocks ready from now on.
    if (block == nullptr || is_late) ahead_ = std::min<std::size_t>(ahead_ * 2, 64);
    if (block == nullptr) {
        // More each time: an extension made by the recording thread itself pauses the program.
        const std::size_t large = kLargeBlocks * kBlockBytes;
        const std::size_t more = blocks == 1 ? 1 : std::max<std::size_t>(missing_blocks(ahead_ / 2), 1);
        BlockStore::Extent extent = store.reserve(more * large);
        error = store.map_extent(extent);
        if (error != 0 && extent.bytes > large) {  // there may be space for less
            store.unreserve(extent);
            extent = store.reserve(large);
            error = store.map_extent(extent);
        }
        if (error == 0) {
            store.add(extent);
            block = store.take(blocks);
        } else {
            store.unreserve(extent);
        }
    }
    if (!extending_ && needs_extent()) {
        start_background();  // if a fork has stopped it
        wake().notify_all();
    }
    return block;
}

void Recorder::release_chunk(Block* chunk) noexcept {
    if (--chunk->claims == 0 && !chunk->is_open) {
        chunk->store->free_block(chunk);
        __atomic_fetch_add(&space_epoch_, 1, __ATOMIC_RELAXED);
    }
}

void Recorder::remember_last_full(ThreadEntry& entry, Block* chunk) noexcept {
    Block* const before = std::exchange(entry.last_full, chunk);
    // It may have been returned since, and belong to another thread.
    if (before != nullptr && before->last_full_of == entry.id) before->last_full_of = 0;
    if (chunk != nullptr) chunk->last_full_of = entry.id;
}

void Recorder::leave_chunk(ThreadEntry& entry, bool reusable) noexcept {
    Block* const chunk = std::exchange(entry.chunk, nullptr);
    ThreadState& state = *entry.state;
    state.cursor = state.limit = nullptr;
    if (chunk == nullptr) return;
    // Not a chunk of a finished file: its blocks go with the last thread that uses it.
    const bool stays = chunk->store == &memory_ || chunk->store == &current_store();
    remember_last_full(entry, stays ? chunk : nullptr);
    const std::size_t left = chunk->capacity() - load_relaxed(chunk->header->committed);
    // An earlier chunk may still be claimed by a reader; the running sessions do not claim it.
    const bool is_claimed = chunk->claims != 0 && entry.period == period_ && is_any_open();
    if (reusable && chunk->store == &current_store() && is_claimed && left >= 256) {
        leftover_chunks_.push_back(chunk);  // the next new thread continues in it
        entry.chunk_spool.reset();
        return;
    }
    chunk->is_open = false;
    if (chunk->claims == 0) chunk->store->free_block(chunk);
    entry.chunk_spool.reset();
}

// The oldest chunk that may be overwritten. Every living thread keeps the chunk that it fills and the one
// before, so that a thread that gets no core, or sleeps, still has its last records.
void Recorder::evict_oldest(SessionEntry& session) noexcept {
    auto leftover = leftover_chunks_.end();
    const auto oldest = std::find_if(session.chunks.begin(), session.chunks.end(), [&](Block* chunk) {
        if (!chunk->is_open) return chunk->last_full_of == 0;
        leftover = std::find(leftover_chunks_.begin(), leftover_chunks_.end(), chunk);
        return leftover != leftover_chunks_.end();
    });
    if (oldest == session.chunks.end()) return;
    if (leftover != leftover_chunks_.end()) {
        (*leftover)->is_open = false;
        leftover_chunks_.erase(leftover);
    }
    Block* const chunk = *oldest;
    session.chunks.erase(oldest);
    session.claimed_bytes -= chunk->blocks * kBlockBytes;
    count_overwritten(chunk->header->thread);
    // Others may still claim it; the file has lost it now, so that the rest of the thread has no holes.
    if (session.id == spool_owner_ && chunk->store == &spool_->store()) chunk->store->hide(chunk);
    release_chunk(chunk);
}

// Applies the size limits before a chunk of `bytes` is taken. True when some session still needs it.
bool Recorder::make_room(std::size_t bytes) noexcept {
    bool wanted = false;
    bool closed = false;
    for (const auto& each : sessions_) {
        SessionEntry& session = *each;
        if (session.is_closed || session.is_full) continue;
        const std::uint64_t least = 2 * bytes * threads_.size();
        if (session.max_bytes < least) {
            session.max_bytes = least;
            add_note("ceiling_raised", "the size limit of " + std::to_string(session.options.max_bytes) +
                                           " bytes is less than two chunks for each of " +
                                           std::to_string(threads_.size()) + " threads; it was raised");
        }
        if (session.claimed_bytes + bytes > session.max_bytes) {
            session.ceiling_reached = true;
            if (session.options.policy == Policy::Ring) {
                while (session.claimed_bytes + bytes > session.max_bytes) {
                    const std::uint64_t before = session.claimed_bytes;
                    evict_oldest(session);
                    if (session.claimed_bytes == before) break;
                }
            } else if (session.options.policy == Policy::Drop) {
                session.is_full = true;
                continue;
            } else {
                close_session(session, Clock::now());
                closed = true;
                continue;
            }
        }
        wanted = true;
    }
    if (closed) rearm();
    return wanted;
}

// No memory or disk space is left: acts as if the size limit were reached. True when a chunk has become free.
bool Recorder::out_of_space(int error) noexcept {
    bool freed = false;
    bool closed = false;
    for (const auto& each : sessions_) {
        SessionEntry& session = *each;
        if (session.is_closed || session.is_full) continue;
        session.ceiling_reached = true;
        const std::string where = spool_ ? spool_->path() : std::string("memory");
        const char* then = "recording stops";
        if (session.options.policy == Policy::Ring) {
            const std::size_t before = session.chunks.size();
            evict_oldest(session);
            freed = freed || session.chunks.size() != before;
            session.max_bytes = std::max<std::uint64_t>(session.claimed_bytes, 1);
            then = "the oldest records are overwritten from now on";
        } else if (session.options.policy == Policy::Drop) {
            session.is_full = true;
            then = "new records are dropped from now on";
        } else {
            close_session(session, Clock::now());
            closed = true;
        }
        // The file is unchanged; only its descriptor is gone.
        const char* const code = spool_ && error == EBADF ? "descriptor_closed" : "no_space";
        add_note(code, where + ": " + current_store().reason(error) + "; " + then);
    }
    if (closed) rearm();
    return freed;
}

bool Recorder::refill(ThreadEntry& entry, std::uint64_t ticks, std::size_t bytes) noexcept {
    if (entry.full_since == __atomic_load_n(&space_epoch_, __ATOMIC_RELAXED)) return false;
    std::lock_guard lock(mutex_);
    leave_chunk(entry, false);
    ThreadState& state = *entry.state;

    if (entry.chunks_taken == 0 && !leftover_chunks_.empty()) {
        Block* const chunk = leftover_chunks_.back();
        const std::size_t left = chunk->capacity() - load_relaxed(chunk->header->committed);
        if (chunk->store == &current_store() && left >= bytes + 2 * sizeof(detail::LongRecord)) {
            leftover_chunks_.pop_back();
            ++entry.chunks_taken;
            install_chunk(entry, chunk);
            detail::LongRecord* const record = append_long(state, detail::RecordKind::ThreadSwitch, 0);
            record->time = entry.birth;
            record->word2 = entry.id;
            commit(state);
            return true;
        }
    }

    std::uint64_t ceiling = 0;
    for (const auto& session : sessions_) {
        if (!session->is_closed) ceiling = std::max(ceiling, session->max_bytes);
    }
    const std::uint64_t share = ceiling / std::max<std::size_t>(threads_.size(), 1);
    bool large = entry.chunks_taken != 0 && share >= 16 * kLargeBlocks * kBlockBytes;
    // A ring that may not grow any more uses what it has, also while its last extents are being mapped: the
    // small chunks that earlier threads left, and then what it overwrites.
    BlockStore& store = current_store();
    if (store.reserved_bytes() >= ceiling && store.free_large() == 0) {
        for (const auto& session : sessions_) {
            if (!store.has_free_small() && !session->is_closed && session->options.policy == Policy::Ring)
                evict_oldest(*session);
        }
        large = large && (store.free_large() != 0 || !store.has_free_small());
    }
    const std::size_t blocks = large ? kLargeBlocks : 1;
    Block* chunk = nullptr;
    if (make_room(blocks * kBlockBytes)) {
        int error = 0;
        chunk = take_block(blocks, error);
        if (chunk == nullptr && out_of_space(error)) chunk = take_block(blocks, error);
        if (chunk == nullptr && blocks != 1 && is_any_open()) chunk = current_store().take(1);
    }
    if (chunk == nullptr) {
        entry.full_since = __atomic_load_n(&space_epoch_, __ATOMIC_RELAXED);
        return false;
    }
    ++entry.chunks_taken;
    BlockHeader& header = *chunk->header;
    header.thread = entry.id;
    header.sequence = next_sequence_++;
    header.base_ticks = ticks;
    header.pair = Clock::pair();
    for (const auto& session : sessions_) {
        if (session->is_closed || session->is_full) continue;
        session->chunks.push_back(chunk);
        session->claimed_bytes += chunk->blocks * kBlockBytes;
        ++chunk->claims;
    }
    if (chunk->claims == 0) {  // the last session ended while space was made
        chunk->store->free_block(chunk);
        entry.full_since = __atomic_load_n(&space_epoch_, __ATOMIC_RELAXED);
        return false;
    }
    chunk->is_open = true;
    store_release(header.kind, static_cast<std::uint16_t>(BlockKind::Log));
    install_chunk(entry, chunk);
    return true;
}

void Recorder::install_chunk(ThreadEntry& entry, Block* chunk) noexcept {
    ThreadState& state = *entry.state;
    entry.chunk = chunk;
    entry.chunk_spool = chunk->store == &memory_ ? nullptr : spool_;
    state.chunk_data = chunk->data();
    state.committed = &chunk->header->committed;
    state.base_ticks = chunk->header->base_ticks;
    state.cursor = chunk->data() + load_relaxed(chunk->header->committed);
    state.limit = chunk->data() + chunk->capacity() / detail::kRecordUnit * detail::kRecordUnit;
}

detail::OpenSlot* Recorder::slot(ThreadState& state, std::uint32_t index) noexcept {
    if (index < detail::kOpenSlots) return &state.slots[index];
    if (state.owner == nullptr) return nullptr;
    auto& entry = *static_cast<ThreadEntry*>(state.owner);
    const std::size_t segment = (index - detail::kOpenSlots) / detail::kSlotsPerSegment;
    if (segment > entry.open_segments.size()) return nullptr;
    if (segment == entry.open_segments.size()) {
        std::lock_guard lock(mutex_);
        int error = 0;
        Block* const block = take_block(1, error);
        if (block == nullptr) return nullptr;
        block->claims = 1;
        block->header->thread = entry.id;
        block->header->segment = static_cast<std::uint32_t>(segment);
        std::memset(block->data(), 0, block->capacity());
        store_release(block->header->kind, static_cast<std::uint16_t>(BlockKind::OpenSegment));
        entry.open_segments.push_back(block);
    }
    auto* const slots = reinterpret_cast<detail::OpenSlot*>(entry.open_segments[segment]->data());
    return &slots[(index - detail::kOpenSlots) % detail::kSlotsPerSegment];
}

std::byte* Recorder::side_segment(ThreadEntry& entry) noexcept {
    if (entry.side_segment == nullptr) {
        std::lock_guard lock(mutex_);
        int error = 0;
        Block* const block = take_block(kLargeBlocks, error);
        if (block == nullptr) return nullptr;
        block->claims = 1;
        block->header->thread = entry.id;
        store_release(block->header->kind, static_cast<std::uint16_t>(BlockKind::SideSegment));
        entry.side_segment = block;
    }
    return entry.side_segment->data();
}

// ---- the journal ----

void Recorder::write_journal(std::span<const std::byte> record) noexcept {
    journal_.insert(journal_.end(), record.begin(), record.end());
    if (spool_) spool_->append_journal(record);
}

void Recorder::journal_thread(ThreadEntry& entry) noexcept {
    detail::ThreadStartedRecord record{};
    record.thread = entry.id;
    record.name = entry.name;
    record.os_tid = entry.os_tid;
    record.pthread_id = entry.pthread_id;
    record.ticks = entry.birth;
    journal(JournalKind::ThreadStarted, record);
    entry.in_journal = true;
}

void Recorder::journal_clock() noexcept {
    detail::ClockRecord record{};
    record.pair = Clock::pair();
    journal(JournalKind::Clock, record);
}

void Recorder::journal_losses(const ThreadEntry& entry) noexcept {
    detail::LossesRecord record{};
    record.thread = entry.id;
    record.dropped = load_relaxed(entry.state->dropped);
    record.resyncs = load_relaxed(entry.state->resyncs);
    record.clamped = load_relaxed(entry.state->clamped);
    if (const auto found = overwritten_.find(entry.id); found != overwritten_.end()) {
        record.overwritten_chunks = found->second.chunks;
    }
    if (record.dropped + record.resyncs + record.clamped + record.overwritten_chunks == 0) return;
    journal(JournalKind::Losses, record);
}

// One record per thread and session, updated in place: the journal of a ring that runs for days stays small.
void Recorder::count_overwritten(std::uint32_t thread) noexcept {
    Overwritten& overwritten = overwritten_[thread];
    ++overwritten.chunks;
    if (overwritten.in_file != nullptr) {
        store_release(*overwritten.in_file, overwritten.chunks);
    } else if (spool_) {
        detail::LossesRecord record{};
        record.head = {static_cast<std::uint16_t>(JournalKind::Losses), 0, sizeof record};
        record.thread = thread;
        record.overwritten_chunks = overwritten.chunks;
        overwritten.in_file = spool_->append_losses(record);
    }
}

void Recorder::add_note(std::string_view code, std::string_view text, bool print) noexcept {
    if (std::find(noted_.begin(), noted_.end(), text) != noted_.end()) return;
    noted_.emplace_back(text);
    if (print) warn(text);
    detail::NoteRecord record{};
    record.code = names_.intern(code);
    record.text = names_.intern(text);
    record.count = 1;
    publish_names();
    if (!sessions_.empty()) journal(JournalKind::Note, record);
}

void Recorder::note(std::string_view code, std::string_view text, bool print) noexcept {
    std::lock_guard lock(mutex_);
    add_note(code, text, print);
}

void Recorder::note_open_part(std::uint32_t thread, std::uint64_t start, std::uint64_t call,
                              std::uint8_t flags) noexcept {
    detail::OpenPartRecord record{};
    record.start = start;
    record.call = call;
    record.thread = thread;
    record.flags = flags;
    std::lock_guard lock(mutex_);
    if (!sessions_.empty()) journal(detail::JournalKind::OpenPart, record);
}

Recorder::Usage Recorder::usage() noexcept {
    std::lock_guard lock(mutex_);
    return {threads_.size(), sessions_.size(), memory_.bytes(), journal_.size()};
}

void Recorder::disable(const char* why) noexcept {
    std::lock_guard lock(mutex_);
    disabled_ = true;
    rearm();
    if (*why != '\0') warn(why);
}

}  // namespace marey
