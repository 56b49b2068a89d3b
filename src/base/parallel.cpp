// parallel.cpp: items are handed out one by one; a single one, or a single core, starts no thread.
#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace kymo {

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& work, unsigned threads) {
    if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t workers = std::min<std::size_t>(threads, count);
    if (workers <= 1) {
        for (std::size_t item = 0; item < count; ++item) work(item);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const auto take_items = [&]() noexcept {
        for (std::size_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
            try {
                work(item);
            } catch (...) {
                const std::lock_guard lock(mutex);
                if (failure == nullptr) failure = std::current_exception();
                next.store(count, std::memory_order_relaxed);
            }
        }
    };
    std::vector<std::thread> pool;
    pool.reserve(workers - 1);
    try {
        for (std::size_t i = 1; i < workers; ++i) pool.emplace_back(take_items);
    } catch (const std::system_error&) {
        // No more threads to be had: the ones there are do it all.
    }
    take_items();
    for (std::thread& thread : pool) thread.join();
    if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace kymo
