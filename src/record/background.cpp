// background.cpp: the recorder's own thread: faults in blocks ahead of recording and takes a clock pair every
// second.
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>

#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {

using detail::kBlockBytes;
using detail::kLargeBlocks;

// Needs mutex_.
void Recorder::start_background() noexcept {
    if (background_runs_) return;
    background_runs_ = true;
    // This thread must never run the program's signal handlers.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const auto run = [](void* recorder) -> void* {
        static_cast<Recorder*>(recorder)->background_loop();
        return nullptr;
    };
    if (pthread_create(&background_, nullptr, run, this) != 0)
        background_runs_ = false;  // threads then extend the store themselves: slower, but correct
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// A process that forks should have no thread that the program did not start: Python warns about such threads.
// The next block that is taken starts it again.
void Recorder::stop_background(std::unique_lock<RecorderMutex>& lock) noexcept {
    if (!background_runs_) return;
    background_stops_ = true;
    wake().notify_all();
    lock.unlock();
    pthread_join(background_, nullptr);
    lock.lock();
    background_stops_ = false;
    background_runs_ = false;
}

// Needs mutex_. Keeps `ahead_` large blocks ready, but never more than the sessions may still claim.
bool Recorder::needs_extent() noexcept {
    std::uint64_t may_claim = 0;
    bool recorded = false;
    for (const auto& session : sessions_) {
        if (session->is_closed || session->is_full) continue;
        recorded = recorded || !session->chunks.empty();
        if (session->claimed_bytes < session->max_bytes) {
            may_claim = std::max(may_claim, session->max_bytes - session->claimed_bytes);
        }
    }
    const std::size_t ready = current_store().free_warm();
    return recorded && ready < ahead_ && ready * kLargeBlocks * kBlockBytes < may_claim;
}

void Recorder::background_loop() noexcept {
    pthread_setname_np(pthread_self(), "marey");
    detail::current_thread = &idle_thread;
    std::unique_lock lock(mutex_);
    bool out_of_space = false;
    std::uint64_t paired_at = 0;  // next_sequence_ when the last pair was taken
    while (!background_stops_) {
        if (!out_of_space && needs_extent()) {
            const std::shared_ptr<Spool> spool = spool_;
            BlockStore& store = current_store();
            if (Block* const cold = store.take_cold()) {
                extending_ = true;
                lock.unlock();
                BlockStore::warm(*cold);
                lock.lock();
                store.add_warm(cold);
            } else {
                const std::size_t missing = ahead_ - std::min(ahead_, store.free_warm());
                // A few blocks at a time: the first ones are needed soonest.
                BlockStore::Extent extent =
                    store.reserve(std::min<std::size_t>(missing, 16) * kLargeBlocks * kBlockBytes);
                extending_ = true;
                lock.unlock();
                const int error = store.map_extent(extent);
                if (error == 0) BlockStore::prefault(extent);
                lock.lock();
                if (error == 0) {
                    store.add(extent);
                } else {
                    store.unreserve(extent);
                }
                out_of_space = error != 0;
            }
            extending_ = false;
            wake().notify_all();  // another thread may be waiting to close the store
            continue;
        }
        if (is_any_open()) {
            if (wake().wait_for(lock, std::chrono::seconds(1)) == std::cv_status::timeout) {
                out_of_space = false;
                const bool recorded = next_sequence_ != paired_at || !threads_.empty();
                if (recorded && is_any_open()) journal_clock();
                paired_at = next_sequence_;
            }
        } else {
            out_of_space = false;
            background_idles_ = true;
            wake().wait(lock);
            background_idles_ = false;
        }
    }
}

}  // namespace marey
