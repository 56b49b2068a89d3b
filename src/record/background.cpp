// background.cpp: extending the store, by the recorder's own thread or by the one that needs a block.
#include "record/background.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "base/process_stat.h"
#include "record/stack_numbers.h"
#include "record/thread_log.h"

namespace marey {

using detail::kBlockBytes;
using detail::kLargeBlocks;

namespace {

// Whether the calling thread is the last one: the main thread has called pthread_exit, and every other thread
// has ended. The kernel keeps the main thread as a zombie, and counts it. False where /proc is not mounted.
bool is_last_thread() noexcept {
    const ProcessStat own = ProcessStat::of_this();
    return own.text(ProcessStat::kState) == "Z" && own.number(ProcessStat::kThreads) == 2;
}

}  // namespace

Block* Background::take(std::size_t blocks, int& error) noexcept {
    BlockStore& store = store_.current();
    const bool is_late = blocks != 1 && store.free_warm() == 0;
    Block* block = store.take(blocks);
    // The background thread is late (or has had no reason yet): keep more blocks ready from now on.
    if ((block == nullptr || is_late) && !is_forking_) ahead_ = std::min<std::size_t>(ahead_ * 2, 64);
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
    if (!is_extending_ && needs_extent()) {
        begin_thread();  // if a fork has stopped it
        changed_.notify();
    }
    return block;
}

void Background::start() noexcept {
    if (!is_waiting_) begin_thread();
    if (is_idle_) changed_.notify();
}

void Background::begin_thread() noexcept {
    if (runs_ || is_forbidden_ || is_forking_) return;
    runs_ = true;
    // This thread must never run the program's signal handlers.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &starter_mask_);
    const auto enter = [](void* background) -> void* {
        static_cast<Background*>(background)->run();
        return nullptr;
    };
    if (pthread_create(&thread_, nullptr, enter, this) != 0)
        runs_ = false;  // threads then extend the store themselves: slower, but correct
    pthread_sigmask(SIG_SETMASK, &starter_mask_, nullptr);
}

void Background::stop() noexcept {
    if (!runs_) return;
    must_end_ = true;
    changed_.notify();
    const pthread_t thread = thread_;
    recorder_mutex.unlock();
    pthread_join(thread, nullptr);
    recorder_mutex.lock();
    must_end_ = false;
    runs_ = false;
}

void Background::before_fork() noexcept {
    stop();
    is_forking_ = true;
}

void Background::stop_for_good() noexcept {
    is_forbidden_ = true;
    stop();
}

void Background::wait_for_extension() {
    changed_.wait([this]() MAREY_REQUIRES(recorder_mutex) { return !is_extending_; });
}

void Background::forked() noexcept {
    runs_ = false;
    is_forking_ = false;
    is_idle_ = false;
    is_extending_ = false;
    is_waiting_ = true;
    changed_.forked();
}

// Large blocks to map, so that at most `ahead` are ready and never more than the sessions may still claim: a
// ring that has reached its limit reuses its blocks.
std::size_t Background::missing_blocks(std::size_t ahead) noexcept {
    const std::size_t useful =
        static_cast<std::size_t>(sessions_.claimable_bytes() / (kLargeBlocks * kBlockBytes));
    const BlockStore& store = store_.current();
    const std::size_t ready =
        store.free_warm() + (store.reserved_bytes() - store.bytes()) / (kLargeBlocks * kBlockBytes);
    return std::min(ahead, useful) - std::min({ahead, useful, ready});
}

bool Background::needs_extent() noexcept {
    return !is_waiting_ && sessions_.has_recorded() && missing_blocks(ahead_) != 0;
}

// Prepares a few blocks, without the lock. False: there is no space.
bool Background::extend() noexcept {
    const std::shared_ptr<Spool> spool = store_.spool;  // stays mapped
    BlockStore& store = store_.current();
    int error = 0;
    is_extending_ = true;
    if (Block* const cold = store.take_cold()) {
        recorder_mutex.unlock();
        BlockStore::warm(*cold);
        recorder_mutex.lock();
        store.add_warm(cold);
    } else {
        // A few blocks at a time: the first ones are needed soonest.
        BlockStore::Extent extent =
            store.reserve(std::min<std::size_t>(missing_blocks(ahead_), 16) * kLargeBlocks * kBlockBytes);
        recorder_mutex.unlock();
        error = store.map_extent(extent);
        if (error == 0) BlockStore::prefault(extent);
        recorder_mutex.lock();
        if (error == 0) {
            store.add(extent);
        } else {
            store.unreserve(extent);
        }
    }
    is_extending_ = false;
    changed_.notify();  // another thread may be waiting to close the store
    return error == 0;
}

void Background::run() noexcept {
    pthread_setname_np(pthread_self(), "marey");
    set_current_thread(&idle_thread);
    const ScopedLock lock(recorder_mutex);
    bool out_of_space = false;
    while (!must_end_) {
        if (!out_of_space && needs_extent()) {
            out_of_space = !extend();
            continue;
        }
        is_idle_ = !sessions_.is_any_open();
        if (is_idle_) out_of_space = false;
        const bool is_notified = changed_.wait_for(std::chrono::seconds(1));
        is_idle_ = false;
        if (is_notified) continue;
        if (!sessions_.is_any_open()) return leave(false);
        if (is_last_thread()) return leave(true);
        out_of_space = false;
        sessions_.evict_expired();
        if (sessions_.has_recorded()) journal_.write_clock();
        if (stack_numbers().is_behind()) journal_.mirror_stacks();
    }
}

// Called by the background thread, just before it ends by itself. If it is the last thread, the process ends
// with it: exit() runs the program's functions here, which must find an ordinary thread.
void Background::leave(bool is_last) noexcept {
    runs_ = false;
    pthread_detach(pthread_self());
    if (!is_last) return;
    set_current_thread(&unregistered_thread);
    pthread_sigmask(SIG_SETMASK, &starter_mask_, nullptr);
}

}  // namespace marey
