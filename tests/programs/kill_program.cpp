// kill_program.cpp: records at full speed on four threads, and keeps its own count in shared memory, until it
// is killed. Usage: kill_program CAPTURE ACCOUNT MAX POLICY
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include <marey/all.h>
#include <marey/c.h>

#include "support/kill_account.h"

namespace {

// Opens and closes ranges as fast as it can. Each operation is counted before and after it.
void record_for_ever(kill_test::ThreadAccount& account, int number) {
    marey::thread_name("worker " + std::to_string(number));
    std::string names[kill_test::kNames];
    for (int i = 0; i < kill_test::kNames; ++i) names[i] = kill_test::range_name(i);
    account.depth.store(0);
    for (std::uint64_t sequence = 0;;) {
        MAREY_RANGE("outer");
        account.depth.store(1);
        for (int i = 0; i < 50; ++i) {
            const auto name = static_cast<std::uint32_t>(sequence % kill_test::kNames);
            account.pending.store(name);
            {
                MAREY_RANGE_DYNAMIC(names[name]);
                account.depth.store(2);
            }
            account.ended.store(++sequence);
            account.depth.store(1);
        }
        account.depth.store(0);
    }
}

}  // namespace

int main(int, char** argv) {
    const int fd = open(argv[2], O_RDWR);
    void* const shared = mmap(nullptr, sizeof(kill_test::Account), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) return 3;
    auto& account = *static_cast<kill_test::Account*>(shared);
    marey::SessionOptions options;
    options.output = argv[1];
    options.max_bytes = std::strtoull(argv[3], nullptr, 10);
    options.policy = std::string(argv[4]) == "ring" ? marey::Policy::Ring : marey::Policy::Stop;
    {
        marey::Session earlier(marey::SessionOptions{});  // its names are used again
        for (int i = 0; i < kill_test::kNames; ++i) {
            MAREY_RANGE_DYNAMIC(kill_test::range_name(i));
        }
        earlier.discard();
    }
    marey::Session session(options);
    account.started.store(1);
    for (int i = 0; i < kill_test::kThreads; ++i) {
        std::thread(record_for_ever, std::ref(account.threads[i]), i).detach();
    }
    // Threads start and end, and other sessions come and go, all the time.
    for (;;) {
        std::thread([] { MAREY_RANGE("born to die"); }).join();
        marey::Session other(marey::SessionOptions{.max_bytes = 1 << 20, .policy = marey::Policy::Ring});
        other.discard();
    }
}
