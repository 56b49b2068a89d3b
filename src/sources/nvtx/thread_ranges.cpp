// thread_ranges.cpp: finding stacks, and their end with their thread.
#include "sources/nvtx/thread_ranges.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>

namespace kymo {

constinit thread_local ThreadRanges* ThreadRanges::own_ = nullptr;
constinit thread_local bool ThreadRanges::is_making_ = false;

ThreadRanges::ThreadRanges(std::uint64_t first_number) : next_number_(first_number) {
    stacks_.push_back({0, {}});
}

// Ranges that a thread leaves open are unfinished: the recorder closes them.
ThreadRanges* ThreadRanges::make() noexcept {
    if (is_making_) return nullptr;
    is_making_ = true;
    static std::atomic<std::uint64_t> threads{1};
    static const pthread_key_t exit_key = [] {
        pthread_key_t key{};
        pthread_key_create(&key, [](void* ranges) {
            own_ = nullptr;
            delete static_cast<ThreadRanges*>(ranges);
        });
        return key;
    }();
    try {
        std::unique_ptr<ThreadRanges> made(
            new ThreadRanges(threads.fetch_add(1, std::memory_order_relaxed) << 40));
        pthread_setspecific(exit_key, made.get());
        own_ = made.release();
    } catch (const std::bad_alloc&) {
    }
    is_making_ = false;
    return own_;
}

void ThreadRanges::find(std::uintptr_t domain) {
    for (std::size_t i = 0; i < stacks_.size(); ++i) {
        if (stacks_[i].domain != domain) continue;
        last_ = i;
        return;
    }
    // Programs that make domains all the time leave empty stacks behind.
    if (stacks_.size() >= kKept) {
        std::erase_if(stacks_, [](const DomainStack& each) { return each.open.empty(); });
        last_ = 0;
    }
    stacks_.push_back({domain, {}});
    last_ = stacks_.size() - 1;
}

}  // namespace kymo
