// bare_fork_program.cpp: makes child processes without fork handlers; bare_fork.cpp examines the captures.
// Usage: bare_fork_program MODE HOW, where HOW is _Fork, clone or vfork. A mode's exit code is 0 if
// everything went as it expects.
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <marey/all.h>
#include <marey/c.h>

namespace {

constexpr int kNotSupported = 77;
bool uses_clone = false;
int go_on[2];  // a pipe: the child waits for its parent

// Neither runs fork handlers.
pid_t bare_fork() {
    if (uses_clone)
        return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    static const auto call = reinterpret_cast<pid_t (*)()>(dlsym(RTLD_DEFAULT, "_Fork"));  // glibc 2.34
    if (call == nullptr) std::_Exit(kNotSupported);
    return call();
}

void work(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        MAREY_RANGE("work");
    }
}

void child_work(int rounds) {
    for (int i = 0; i < rounds; ++i) {
        MAREY_RANGE("child work");
    }
}

int wait_for(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 90;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

void wait_for_parent() {
    char letter = 0;
    (void)!read(go_on[0], &letter, 1);
}

int let_child_go_on(pid_t child) {
    return write(go_on[1], "x", 1) == 1 ? wait_for(child) : 89;
}

// Both record at the same time, each more than a chunk.
int both() {
    work(10);
    const pid_t child = bare_fork();
    if (child == 0) {
        child_work(200'000);
        std::exit(0);
    }
    work(200'000);
    return wait_for(child);
}

// Ranges are open at the fork, and the child ends them: with values, without an object, and movable.
int with_open_ranges() {
    marey_begin_named("begun");
    marey::Range movable("movable");
    pid_t child = -1;
    {
        MAREY_RANGE("open");
        MAREY_RANGE("open with values", "n", 7);
        child = bare_fork();
        if (child == 0) wait_for_parent();
        if (child == 0) child_work(10);
    }
    movable.end();
    marey_end();
    if (child == 0) {
        child_work(10);
        std::exit(0);
    }
    work(1000);
    return let_child_go_on(child);
}

// The child ends as any program does, and has recorded nothing.
int silent() {
    work(10);
    const pid_t child = bare_fork();
    if (child == 0) std::exit(0);
    const int result = wait_for(child);
    work(10);
    return result;
}

// Before the child records, the forking thread is gone, and its memory is used for other logs.
int and_leave() {
    pid_t child = -1;
    std::thread([&child] {
        MAREY_RANGE("open");
        child = bare_fork();
        if (child != 0) return;
        wait_for_parent();
        child_work(10);
        std::exit(0);
    }).join();
    for (int i = 0; i < 8; ++i) std::thread([] { work(20'000); }).join();
    return let_child_go_on(child);
}

// Other threads of the child record first, then the one that was forked.
int with_threads() {
    work(10);
    const pid_t child = bare_fork();
    if (child != 0) {
        work(1000);
        return wait_for(child);
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([] { child_work(100); });
    for (std::thread& thread : threads) thread.join();
    child_work(100);
    std::exit(0);
}

// Children of children, by turns with handlers and without.
int generations() {
    work(1);
    const pid_t child = bare_fork();
    if (child != 0) return wait_for(child);
    child_work(1);
    const pid_t second = fork();
    if (second != 0) std::exit(wait_for(second));
    child_work(2);
    const pid_t third = bare_fork();
    if (third != 0) std::exit(wait_for(third));
    child_work(3);
    std::exit(0);
}

// Many children while other threads record. The parent's threads may be inside the recorder: then a child
// records nothing, but it must not hang or crash.
int storm() {
    std::atomic<bool> is_done{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&is_done] {
            while (!is_done.load(std::memory_order_relaxed)) work(1);
        });
    }
    int result = 0;
    for (int i = 0; i < 50 && result == 0; ++i) {
        const pid_t child = bare_fork();
        if (child == 0) {
            child_work(1000);
            std::_Exit(0);
        }
        result = wait_for(child);
    }
    is_done = true;
    for (std::thread& thread : threads) thread.join();
    return result;
}

// A session of the program itself is over in the child.
int own_session() {
    marey::Session session(marey::SessionOptions{});
    work(10);
    const pid_t child = bare_fork();
    if (child == 0) {
        child_work(10);
        const bool is_over = !session.is_running() && session.stop().ranges().size() == 0;
        std::_Exit(is_over ? 0 : 1);
    }
    work(10);
    const int result = wait_for(child);
    return session.stop().ranges().size() == 20 ? result : 2;
}

// The child of vfork() has its parent's memory: it is not a new process to the recorder.
int shared_memory() {
    work(10);
    const pid_t child = vfork();
    if (child == 0) {
        child_work(5);
        _exit(0);
    }
    const int result = wait_for(child);
    work(10);
    return result;
}

}  // namespace

int main(int count, char** arguments) {
    const std::map<std::string, int (*)()> modes = {
        {"both", both},       {"open", with_open_ranges}, {"silent", silent},
        {"leave", and_leave}, {"threads", with_threads},  {"generations", generations},
        {"storm", storm},     {"session", own_session},   {"vfork", shared_memory}};
    if (count != 3 || modes.count(arguments[1]) == 0 || pipe(go_on) != 0) return 91;
    uses_clone = arguments[2] == std::string("clone");
    return modes.at(arguments[1])();
}
