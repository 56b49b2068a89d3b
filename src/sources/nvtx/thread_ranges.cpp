// thread_ranges.cpp: finds the stacks of a thread, and deletes them when it ends.
#include "sources/nvtx/thread_ranges.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace marey {

constinit thread_local ThreadRanges* ThreadRanges::own_ = nullptr;
constinit thread_local bool ThreadRanges::is_making_ = false;

ThreadRanges::ThreadRanges(std::uint64_t first_number) : next_number_(first_number) {
    last_ = &stacks_.emplace_back(DomainStack{0, {}});
}

bool NvtxStack::grow() noexcept {
    const std::uint32_t more = capacity_ * 2 + 16;
    std::unique_ptr<detail::Opened[]> larger(new (std::nothrow) detail::Opened[more]);
    if (larger == nullptr) return false;
    std::copy_n(ranges_.get(), size_, larger.get());
    ranges_ = std::move(larger);
    capacity_ = more;
    return true;
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

NvtxStack* ThreadRanges::find(std::uintptr_t domain) noexcept {
    for (DomainStack& each : stacks_) {
        if (each.domain == domain) return &(last_ = &each)->open;
    }
    // Programs that keep creating domains leave empty stacks. The stack of the default domain stays.
    if (stacks_.size() >= kKept) {
        std::erase_if(stacks_, [](const DomainStack& each) { return each.domain != 0 && each.open.empty(); });
        last_ = &stacks_.front();
    }
    try {
        last_ = &stacks_.emplace_back(DomainStack{domain, {}});
    } catch (const std::bad_alloc&) {
        return nullptr;  // a failed insertion moves nothing: `last_` is still valid
    }
    return &last_->open;
}

}  // namespace marey
