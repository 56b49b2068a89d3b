// background.cpp: the recorder's own thread: faults in blocks ahead of recording and takes a clock pair every
// second. It ends when there is nothing to record, or no other thread.
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#include "base/small_file.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {

using detail::kBlockBytes;
using detail::kLargeBlocks;

namespace {

// Whether the calling thread is the last one: the main thread has called pthread_exit, and every other thread
// has ended. The kernel keeps the main thread as a zombie, and counts it. False where /proc is not mounted.
bool is_last_thread() noexcept {
    const std::string status =
        read_small_file("/proc/self/stat");  // pid (name) state ...; a name may have ')'
    char state = 0;
    int threads = 0;
    const std::size_t name_end = status.rfind(')');
    return name_end != std::string::npos &&
           std::sscanf(status.c_str() + name_end + 1,
                       " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %d", &state,
                       &threads) == 2 &&
           state == 'Z' && threads == 2;
}

}  // namespace

// Needs mutex_.
void Recorder::start_background() noexcept {
    if (background_runs_ || is_exiting_) return;
    background_runs_ = true;
    // This thread must never run the program's signal handlers.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &background_starter_mask_);
    const auto run = [](void* recorder) -> void* {
        static_cast<Recorder*>(recorder)->background_loop();
        return nullptr;
    };
    if (pthread_create(&background_, nullptr, run, this) != 0)
        background_runs_ = false;  // threads then extend the store themselves: slower, but correct
    pthread_sigmask(SIG_SETMASK, &background_starter_mask_, nullptr);
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

// Needs mutex_. Large blocks to map, so that at most `ahead` are ready and never more than the sessions may
// still claim: a ring that has reached its limit reuses its blocks.
std::size_t Recorder::missing_blocks(std::size_t ahead) noexcept {
    std::uint64_t may_claim = 0;
    for (const auto& session : sessions_) {
        if (session->is_closed || session->is_full || session->claimed_bytes >= session->max_bytes) continue;
        may_claim = std::max(may_claim, session->max_bytes - session->claimed_bytes);
    }
    const std::size_t useful = static_cast<std::size_t>(may_claim / (kLargeBlocks * kBlockBytes));
    const BlockStore& store = current_store();
    const std::size_t ready =
        store.free_warm() + (store.reserved_bytes() - store.bytes()) / (kLargeBlocks * kBlockBytes);
    return std::min(ahead, useful) - std::min({ahead, useful, ready});
}

bool Recorder::needs_extent() noexcept {
    const bool has_recorded = std::any_of(sessions_.begin(), sessions_.end(), [](const auto& session) {
        return !session->is_closed && !session->chunks.empty();
    });
    return has_recorded && missing_blocks(ahead_) != 0;
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
                // A few blocks at a time: the first ones are needed soonest.
                BlockStore::Extent extent = store.reserve(std::min<std::size_t>(missing_blocks(ahead_), 16) *
                                                          kLargeBlocks * kBlockBytes);
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
        background_idles_ = !is_any_open();
        if (background_idles_) out_of_space = false;
        const std::cv_status status = wake().wait_for(lock, std::chrono::seconds(1));
        background_idles_ = false;
        if (status != std::cv_status::timeout) continue;
        if (!is_any_open()) return leave_background(false);
        if (is_last_thread()) return leave_background(true);
        out_of_space = false;
        if (next_sequence_ != paired_at || !threads_.empty()) journal_clock();
        paired_at = next_sequence_;
    }
}

// Called by the background thread, just before it ends by itself. If it is the last thread, the process ends
// with it: exit() runs the program's functions here, which must find an ordinary thread.
void Recorder::leave_background(bool is_last) noexcept {
    background_runs_ = false;
    pthread_detach(pthread_self());
    if (!is_last) return;
    detail::current_thread = &unregistered_thread;
    pthread_sigmask(SIG_SETMASK, &background_starter_mask_, nullptr);
}

}  // namespace marey
