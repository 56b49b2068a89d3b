// recorder.cpp: the threads that record: attention, arming, and the chunks that they write into.
#include "record/recorder.h"
#include "record/recorder_parts.h"

#include <errno.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "record/clocks/clock.h"
#include "record/thread_log.h"

namespace marey {

using detail::kBlockBytes;
using detail::kLargeBlocks;
using detail::ThreadState;

constinit RecorderMutex recorder_mutex;
std::atomic<Recorder*> Recorder::instance_{nullptr};

JournalWriter& recorder_journal() noexcept {
    return Recorder::get().journal();
}
const NameTable& recorder_names() noexcept {
    return Recorder::get().names();
}
ThreadRegistry& recorder_threads() noexcept {
    return Recorder::get().threads();
}

Recorder& Recorder::make() noexcept {
    // Not from the heap, which may have no space for it: a program with a small RLIMIT_AS must not end here.
    alignas(Recorder) static std::byte place[sizeof(Recorder)];
    static Recorder* const recorder = new (place) Recorder;
    instance_.store(recorder, std::memory_order_release);
    return *recorder;
}

Recorder::Recorder(bool records) {
    const ScopedLock lock(recorder_mutex);
    disabled_ = !records;
    if (records) threads_.mark_process();
}

// ---- threads ----

ThreadState* Recorder::handle_attention() noexcept {
    const ScopedLock lock(recorder_mutex);
    if (disabled_) return nullptr;
    if (restart_environment_) {
        restart_environment_ = false;
        restarting_ = true;
        recorder_mutex.unlock();
        start_environment_session();
        recorder_mutex.lock();
        restarting_ = false;
        rearm();
        restarted_.notify();
    }
    // Another thread's first range may have come a little earlier.
    restarted_.wait([this]() MAREY_REQUIRES(recorder_mutex) { return !restarting_; });
    ThreadState* const state = detail::current_thread;
    if (state->owner == nullptr) {
        ThreadEntry* const added = state == &unregistered_thread ? threads_.add_current() : nullptr;
        if (added == nullptr) return nullptr;
        const ScopedLock arming(added->arming);
        arm(*added);
        set_current_thread(added->state);
        return added->state;
    }
    auto& entry = *static_cast<ThreadEntry*>(state->owner);
    update_entry(entry);
    if (!entry.ended_elsewhere.empty()) remove_ended(entry);
    return entry.state;
}

bool Recorder::end_elsewhere(std::uint32_t thread, const ThreadEntry::EndedElsewhere& ended) noexcept {
    const ScopedLock lock(recorder_mutex);
    ThreadEntry* const entry = threads_.find(thread);
    if (entry == nullptr) return false;
    try {
        entry->ended_elsewhere.push_back(ended);
    } catch (const std::bad_alloc&) {
        count_lost();  // its end is lost: it stays open until its thread ends
        return false;
    }
    const ScopedLock arming(entry->arming);
    entry->needs_attention = true;
    arm(*entry);
    return true;
}

// Called by the owner. Each stays in the list until its record is written and its slot is gone, so that a
// concurrent reader of the open stack sees its end.
void Recorder::remove_ended(ThreadEntry& entry) noexcept {
    auto& list = entry.ended_elsewhere;  // may grow at its end while this runs
    const std::size_t count = list.size();
    detail::store_relaxed(entry.state->busy, 1u);
    for (std::size_t i = 0; i < count; ++i) {
        const ThreadEntry::EndedElsewhere each = list[i];
        recorder_mutex.unlock();
        const std::uint32_t index = find_open(*entry.state, each.index, each.start);
        if (index != detail::kNotOpen) {
            const bool nests = index + 1 == entry.state->depth && is_waited_for(site_of(*entry.slot(index)));
            pop_open(*entry.state, index, each.end, nests ? 0 : detail::kRecordAsync);
        }
        recorder_mutex.lock();
    }
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count));
}

void Recorder::update_entry(ThreadEntry& entry) noexcept {
    // Records from before recording was last off must not be read as continuous with the next ones.
    if (entry.period != sessions_.period()) sessions_.leave(entry, false);
    entry.period = sessions_.period();
    if (entry.spool != store_.spool) {
        // Its open ranges get into another spool. (A signal handler may have interrupted the filling of a
        // slot, so that one without a start counts too.)
        for (std::uint32_t index = 0; index < entry.state->depth; ++index)
            journal_.names().use(site_of(*entry.slot(index)));
        journal_.publish_names();
        sessions_.leave(entry, false);
        threads_.move_to_current_store(entry);
    }
    entry.state->names_number = journal_.names_number();
    const ScopedLock arming(entry.arming);
    entry.needs_attention = false;
    arm(entry);
}

void Recorder::retire_current_thread() noexcept {
    check_thread();
    set_enabled(true);
    ThreadState* const state = detail::current_thread;
    if (state->owner == nullptr) return;
    auto& entry = *static_cast<ThreadEntry*>(state->owner);
    {
        const SlowPath path(kNoRecord);
        const ScopedLock lock(recorder_mutex);
        if (path && !entry.ended_elsewhere.empty()) remove_ended(entry);
    }
    close_all_open(*state);
    set_current_thread(&idle_thread);  // code that still runs on this thread is not recorded
    const ScopedLock lock(recorder_mutex);
    observers_.forget_thread(static_cast<ThreadObservers*>(std::exchange(state->observers, nullptr)));
    sessions_.leave(entry, true);
    threads_.remove(&entry);
}

void Recorder::name_current_thread(std::string_view name) noexcept {
    const ScopedEnable enabled;
    if (detail::current_thread->owner == nullptr && handle_attention() == nullptr) return;
    const ScopedLock lock(recorder_mutex);
    threads_.set_name(*static_cast<ThreadEntry*>(detail::current_thread->owner), name);
}

ThreadEntry* Recorder::make_log(std::string_view name) noexcept {
    const ScopedLock lock(recorder_mutex);
    ThreadEntry* const added = disabled_ ? nullptr : threads_.add_log(name);
    if (added == nullptr) return nullptr;
    const ScopedLock arming(added->arming);
    arm(*added);
    return added;
}

void Recorder::end_log(ThreadEntry* entry) noexcept {
    const ScopedLock lock(recorder_mutex);
    sessions_.leave(*entry, true);
    threads_.remove(entry);
}

void Recorder::handle_log_attention(ThreadEntry& entry) noexcept {
    const ScopedLock lock(recorder_mutex);
    update_entry(entry);
}

// ---- arming ----

void Recorder::arm(ThreadEntry& entry) noexcept {
    const std::atomic<std::uint64_t>& everywhere = entry.is_thread ? shared_armed_ : logs_armed_;
    std::uint64_t bits = everywhere.load(std::memory_order_relaxed) | entry.thread_observers_armed;
    if (entry.sessions != nullptr) bits |= entry.sessions->armed();
    if (bits != 0 && entry.needs_attention) bits |= detail::kArmedAttention;
    set_armed(*entry.state, bits);
}

void Recorder::rearm() noexcept {
    std::uint64_t shared = observers_.armed();
    std::uint64_t logs = shared;  // a device works for all: traces leave out what other tasks launched
    for (const auto& session : sessions_.entries()) {
        if (session->is_closed) continue;
        logs |= armed_bits(session->options);
        if (session->tasks == nullptr) shared |= armed_bits(session->options);
    }
    if (disabled_) shared = logs = 0;
    const bool restart = restart_environment_;
    if (restart) shared = logs = ~std::uint64_t{0} >> 32;
    shared_armed_.store(shared, std::memory_order_relaxed);
    logs_armed_.store(logs, std::memory_order_relaxed);
    has_open_session_.store(sessions_.is_any_open(), std::memory_order_relaxed);
    // A thread that has never recorded comes to handle_attention() first.
    set_armed(unregistered_thread, shared != 0 ? shared | detail::kArmedAttention : 0);
    for (const auto& entry : threads_.entries()) {
        const ScopedLock arming(entry->arming);
        entry->needs_attention = restart || entry->spool != store_.spool ||
                                 entry->period != sessions_.period() || !entry->ended_elsewhere.empty();
        arm(*entry);
    }
    sessions_.space_may_be_free();
}

void Recorder::disable(const char* why) noexcept {
    const ScopedLock lock(recorder_mutex);
    disabled_ = true;
    rearm();
    if (*why != '\0') warn(why);
}

// ---- chunks ----

// Applies the size limits before a chunk of `bytes` is taken. True when some session still needs it.
bool Recorder::make_room(std::size_t bytes) noexcept {
    bool wanted = false;
    bool closed = false;
    for (const auto& each : sessions_.entries()) {
        SessionEntry& session = *each;
        if (!session.claims_chunks()) continue;
        const std::uint64_t least = 2 * bytes * threads_.entries().size();
        if (session.max_bytes < least) {
            session.max_bytes = least;
            journal_.add_note("size_limit_raised",
                              "the size limit of " + std::to_string(session.options.max_bytes) +
                                  " bytes is less than two chunks for each of " +
                                  std::to_string(threads_.entries().size()) + " threads; it was raised");
        }
        if (session.would_exceed(bytes)) {
            session.size_limit_reached = true;
            if (session.options.policy == Policy::Ring) {
                while (session.would_exceed(bytes) && sessions_.evict_oldest(session)) {
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
    for (const auto& each : sessions_.entries()) {
        SessionEntry& session = *each;
        if (!session.claims_chunks()) continue;
        session.size_limit_reached = true;
        const std::string where = store_.spool ? store_.spool->path() : std::string("memory");
        const char* then = "recording stops";
        if (session.options.policy == Policy::Ring) {
            freed = sessions_.evict_oldest(session) || freed;
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
        const char* const code = store_.spool && error == EBADF ? "descriptor_closed" : "no_space";
        journal_.add_note(code, where + ": " + store_.current().reason(error) + "; " + then);
    }
    if (closed) rearm();
    return freed;
}

bool Recorder::refill(ThreadEntry& entry, std::uint64_t ticks, std::size_t bytes) noexcept {
    if (entry.full_since == sessions_.space_epoch()) return false;
    const ScopedLock lock(recorder_mutex);
    sessions_.leave(entry, false);
    sessions_.evict_expired();
    if (sessions_.give_leftover(entry, bytes)) return true;
    if (entry.chunks_taken != 0) background_.be_ready();

    const std::uint64_t limit = sessions_.size_limit();
    const std::uint64_t share = limit / std::max<std::size_t>(threads_.entries().size(), 1);
    bool large = entry.chunks_taken != 0 && share >= 16 * kLargeBlocks * kBlockBytes;
    // A ring that may not grow any more uses what it has, also while its last extents are being mapped: the
    // small chunks that earlier threads left, and then what it overwrites.
    BlockStore& store = store_.current();
    if (store.reserved_bytes() >= limit && store.free_large() == 0) {
        for (const auto& session : sessions_.entries()) {
            if (!store.has_free_small() && !session->is_closed && session->options.policy == Policy::Ring)
                sessions_.evict_oldest(*session);
        }
        large = large && (store.free_large() != 0 || !store.has_free_small());
    }
    const std::size_t blocks = large ? kLargeBlocks : 1;
    Block* chunk = nullptr;
    if (make_room(blocks * kBlockBytes)) {
        int error = 0;
        chunk = background_.take(blocks, error);
        if (chunk == nullptr && out_of_space(error)) chunk = background_.take(blocks, error);
        if (chunk == nullptr && blocks != 1 && sessions_.is_any_open()) chunk = store_.current().take(1);
    }
    if (chunk != nullptr && sessions_.give(entry, chunk, ticks)) return true;
    entry.full_since = sessions_.space_epoch();
    return false;
}

// ---- the process ----

void Recorder::set_node(std::int32_t node) noexcept {
    const ScopedLock lock(recorder_mutex);
    node_.store(node, std::memory_order_relaxed);
    if (store_.spool) store_.spool->set_node(node);
}

Recorder::Usage Recorder::usage() noexcept {
    const ScopedLock lock(recorder_mutex);
    return {threads_.entries().size(), sessions_.entries().size(), store_.memory.bytes(),
            journal_.bytes().size()};
}

}  // namespace marey
