// lifecycle_program.cpp: ends, executes and loads in one of many ways; lifecycle.cpp and
// io_failures.cpp examine the captures that it leaves. Usage: lifecycle_program MODE [ARGUMENT...]; a mode's
// exit code is 0 (or stated below) when everything went as the mode expects.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <marey/all.h>
#include <marey/c.h>

#include "support/program_modes.h"

extern char** environ;

namespace {

using marey::testing::Arguments;
using marey::testing::BusyThreads;
using marey::testing::child_work;
using marey::testing::wait_for;
using marey::testing::work;

bool marks_its_end = false;

// Destroyed after main, in the middle of exit().
struct AtEnd {
    ~AtEnd() {
        if (marks_its_end) {
            MAREY_RANGE("static destructor");
        }
    }
} at_end;

Arguments arguments_of(const Arguments& arguments) {
    return {arguments.begin() + 1, arguments.end()};
}

void execute(const Arguments& arguments) {
    std::vector<char*> raw;
    for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
    raw.push_back(nullptr);
    execv("/proc/self/exe", raw.data());
    _exit(91);
}

[[noreturn]] void crash() {
    signal(SIGSEGV, SIG_DFL);  // the sanitizers' handlers would end it with a report
    signal(SIGABRT, SIG_DFL);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    raise(SIGSEGV);
    _exit(92);
}

// ---- ends

int work_mode(const Arguments& arguments) {
    marks_its_end = true;
    work(std::stoi(arguments.at(1)));
    std::puts("done");
    return arguments.size() > 2 ? std::stoi(arguments[2]) : 0;
}

int end_mode(const Arguments& arguments) {
    MAREY_RANGE("open at the end");
    work(100);
    if (arguments.at(1) == "_exit") _exit(3);
    if (arguments[1] == "quick_exit") {
        std::at_quick_exit([] { MAREY_RANGE("in quick_exit"); });
        std::quick_exit(4);
    }
    if (arguments[1] == "abort") {
        signal(SIGABRT, SIG_DFL);
        std::abort();
    }
    crash();
}

// Two sessions into files, and then a crash while both run.
int two_sessions_mode(const Arguments& arguments) {
    marey::Session first(marey::SessionOptions{.name = "first", .output = arguments.at(1)});
    work(10);
    marey::Session second(marey::SessionOptions{.name = "second", .output = arguments.at(2)});
    child_work(20);
    crash();
}

// The first of two captures exceeds the file size limit by now, and has to be cut out.
int file_limit_mode(const Arguments& arguments) {
    marey::Session first(marey::SessionOptions{.output = arguments.at(1)});
    work(100'000);
    marey::Session second(marey::SessionOptions{.output = arguments.at(2)});
    const rlimit limit{512 << 10, 512 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::size_t recorded = first.stop().ranges().size();
    second.stop();
    return recorded == 100'000 ? 6 : 1;
}

int exit_from_thread(const Arguments&) {
    new BusyThreads(3);  // still running while the process ends
    std::thread([] {
        marks_its_end = true;
        work(1000);
        std::exit(7);
    }).join();
    return 1;
}

// The main thread ends by pthread_exit. The recorder's own thread must not keep the process alive, and must
// not run signal handlers.
int main_thread_ends(const Arguments& arguments) {
    const std::string& how = arguments.at(1);
    work(10);
    if (how == "after its session") marey::Session(marey::SessionOptions{}).discard();
    static const pthread_t main_thread = pthread_self();
    static std::atomic<bool> ran_elsewhere{false};
    signal(SIGUSR1, [](int) {
        if (!pthread_equal(pthread_self(), main_thread)) ran_elsewhere = true;
    });
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    kill(getpid(), SIGUSR1);  // pending: only the recorder's thread could run the handler now
    int received = 0;
    sigwait(&usr1, &received);
    std::puts(ran_elsewhere ? "a handler ran on another thread" : "no handler ran on another thread");
    std::atexit([] {
        MAREY_RANGE("in atexit");
        std::puts("atexit");
    });
    marks_its_end = !how.starts_with("SIG");
    if (!marks_its_end) {
        static const int number = how == "SIGTERM" ? SIGTERM : SIGINT;
        std::thread([] {
            for (std::string pid, name, state; state != "Z"; usleep(1000))  // tsan cannot join this thread
                std::ifstream("/proc/self/stat") >> pid >> name >> state;
            kill(getpid(), number);
            while (true) pause();
        }).detach();
    }
    if (how == "with a thread") std::thread([] { pthread_join(main_thread, nullptr); }).detach();
    pthread_exit(nullptr);
}

// ---- other programs

int exec_mode(const Arguments&) {
    MAREY_RANGE("open at exec");
    work(10);
    execute({"lifecycle_program", "work", "20"});
    return 1;
}

int spawn_mode(const Arguments& arguments) {
    work(10);
    const char* const raw[] = {"lifecycle_program", "work", "20", nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(raw), environ) != 0)
        return 1;
    const int spawned = wait_for(child);
    // The shell itself is not linked with Marey and leaves nothing.
    const int status = std::system((arguments.at(0) + " work 30 >/dev/null").c_str());
    return spawned + status;
}

// ---- libraries

int plugin_mode(const Arguments& arguments) {
    for (int i = 0; i < 2; ++i) {
        void* const handle = dlopen(arguments.at(1).c_str(), RTLD_NOW | RTLD_LOCAL);
        CHECK(handle != nullptr);
        const auto plugin_work = reinterpret_cast<void (*)(int)>(dlsym(handle, "plugin_work"));
        CHECK(plugin_work != nullptr);
        plugin_work(10);
        dlclose(handle);
        // It must really be unloaded: otherwise this shows nothing. (The sanitizers keep libraries.)
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        CHECK(dlopen(arguments[1].c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr);
#endif
    }
    work(1);
    return 0;
}

int second_copy_mode(const Arguments& arguments) {
    work(10);
    void* const copy = dlopen(arguments.at(1).c_str(), RTLD_NOW | RTLD_LOCAL);
    CHECK(copy != nullptr);
    using Start = std::uint64_t (*)(const char*, char*, std::size_t);
    const auto start = reinterpret_cast<Start>(dlsym(copy, "marey_session_start"));
    CHECK(start != nullptr);
    CHECK(start != &marey_session_start);  // the copy's own function
    char error[200] = {};
    CHECK(start("", error, sizeof error) == 0);
    CHECK(std::strstr(error, "another copy") != nullptr);
    work(10);
    return 0;
}

int wrong_layout_mode(const Arguments&) {
    static constinit marey::detail::Site foreign{
        "foreign", __FILE__, __LINE__, marey::Scope::User, marey::detail::SiteName::Plain, 999'999, 0};
    for (int i = 0; i < 3; ++i) marey::detail::ScopedRange range(foreign, marey::Scope::User);
    work(1);
    return 0;
}

}  // namespace

int main(int count_of, char** values) {
    // Static: a child that was forked by a thread has no access to main's stack, and leak detection would
    // report all this.
    static const Arguments all(values, values + count_of);
    static const std::map<std::string, int (*)(const Arguments&)> modes = {
        {"work", work_mode},
        {"end", end_mode},
        {"two_sessions", two_sessions_mode},
        {"file_limit", file_limit_mode},
        {"exit_from_thread", exit_from_thread},
        {"main_thread_ends", main_thread_ends},
        {"exec", exec_mode},
        {"plugin", plugin_mode},
        {"second_copy", second_copy_mode},
        {"wrong_layout", wrong_layout_mode},
    };
    const std::string& mode = all.at(1);
    if (mode == "spawn") return spawn_mode(all);
    static const Arguments arguments = arguments_of(all);
    return modes.at(mode)(arguments);
}
