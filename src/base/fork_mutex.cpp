// fork_mutex.cpp: takes all of them before a fork, and releases them after it.
#include "base/fork_mutex.h"

#include <pthread.h>

#include <vector>

namespace marey {
namespace {

struct Registry {
    Mutex mutex;  ///< guards the list; taken before all that are in it
    std::vector<ForkMutex*> list MAREY_GUARDED_BY(mutex);
    std::atomic<std::uint32_t> generation{0};
};

Registry& registry() {
    static Registry& only = *new Registry;
    return only;
}

// Both leave or find all locks held, which the analysis cannot follow through a list.
void take_all() MAREY_UNCHECKED_LOCKS {
    registry().mutex.lock();
    for (ForkMutex* each : registry().list) each->lock();
}

void free_all() MAREY_UNCHECKED_LOCKS {
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
    const ScopedLock lock(all.mutex);
    if (all.list.empty()) pthread_atfork(take_all, free_all, free_all_in_child);
    all.list.push_back(this);
}

std::uint32_t fork_generation() noexcept {
    return registry().generation.load(std::memory_order_relaxed);
}

}  // namespace marey
