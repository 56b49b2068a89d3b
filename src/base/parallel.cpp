// parallel.cpp: items are handed out one by one; a single item, or a single core, starts no thread.
#include "base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include <marey/detail/thread_safety.h>

namespace marey {

unsigned usable_cores() {
    cpu_set_t cores;
    const int count = ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 0;
    return count > 0 ? static_cast<unsigned>(count) : std::max(1u, std::thread::hardware_concurrency());
}

void on_threads(unsigned threads, const std::function<void(unsigned)>& work) {
    if (threads <= 1) {
        work(0);
        return;
    }
    Mutex mutex;
    std::exception_ptr failure;
    const auto run = [&](unsigned number) noexcept {
        try {
            work(number);
        } catch (...) {
            const ScopedLock lock(mutex);
            if (failure == nullptr) failure = std::current_exception();
        }
    };
    std::vector<std::thread> pool;
    pool.reserve(threads - 1);
    try {
        for (unsigned i = 1; i < threads; ++i) pool.emplace_back(run, i);
    } catch (const std::exception&) {
        // No more threads can be started: the existing ones do all the work.
    }
    run(0);
    for (std::thread& thread : pool) thread.join();
    if (failure != nullptr) std::rethrow_exception(failure);
}

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work, unsigned threads) {
    if (threads == 0) threads = usable_cores();
    std::atomic<std::size_t> next{0};
    on_threads(static_cast<unsigned>(std::min<std::size_t>(threads, count)), [&](unsigned) {
        try {
            for (std::size_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;) work(item);
        } catch (...) {
            next.store(count, std::memory_order_relaxed);
            throw;
        }
    });
}

}  // namespace marey
