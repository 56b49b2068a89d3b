// fork_mutex.cpp: takes all of them before a fork, and releases them after it.
#include "base/fork_mutex.h"

#include <pthread.h>

#include <vector>

namespace marey {
namespace {

struct Registry {
    std::mutex mutex;  ///< guards the list; taken before all that are in it
    std::vector<ForkMutex*> list;
    std::atomic<std::uint32_t> generation{0};
};

Registry& registry() {
    static Registry& only = *new Registry;
    return only;
}

void take_all() {
    registry().mutex.lock();
    for (ForkMutex* each : registry().list) each->lock();
}

void free_all() {
    for (auto each = registry().list.rbegin(); each != registry().list.rend(); ++each) (*each)->unlock();
    registry().mutex.unlock();
}

void free_all_in_child() {
    registry().generation.fetch_add(1, std::memory_order_relaxed);
    free_all();
}

}  // namespace

ForkMutex::ForkMutex() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    if (all.list.empty()) pthread_atfork(take_all, free_all, free_all_in_child);
    all.list.push_back(this);
}

std::uint32_t fork_generation() noexcept {
    return registry().generation.load(std::memory_order_relaxed);
}

}  // namespace marey
