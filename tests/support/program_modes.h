// program_modes.h: work to record, and arguments, for programs that have several modes.
#pragma once

#include <sys/wait.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <marey/marey.h>

#define CHECK(condition)                                                 \
    do {                                                                 \
        if (!(condition)) {                                              \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            std::_Exit(1);                                               \
        }                                                                \
    } while (false)

namespace marey::testing {

using Arguments = std::vector<std::string>;

inline void work(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        MAREY_RANGE("work");
    }
}

inline void child_work(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        MAREY_RANGE("child work");
    }
}

/// Threads that record as fast as they can until this object is destroyed. Detached, because ThreadSanitizer
/// then accepts that they do not exist in a forked child.
class BusyThreads {
  public:
    explicit BusyThreads(int count) : running_(count), started_(count + 1) {
        for (int i = 0; i < count; ++i) std::thread([this] { record(); }).detach();
        started_.arrive_and_wait();
    }
    ~BusyThreads() {
        done_.store(true);
        while (running_.load() != 0) std::this_thread::yield();
    }

  private:
    void record() {
        { MAREY_RANGE("busy"); }
        started_.arrive_and_wait();
        while (!done_.load(std::memory_order_relaxed)) {
            MAREY_RANGE("busy");
            MAREY_RANGE("busy inner", "n", 1);
        }
        running_.fetch_sub(1);
    }

    std::atomic<bool> done_{false};
    std::atomic<int> running_;
    std::barrier<> started_;
};

inline int wait_for(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 90;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

}  // namespace marey::testing
