// lifecycle_program.cpp: ends, forks, executes and loads in one of many ways; lifecycle.cpp and
// io_failures.cpp examine the captures that it leaves. Usage: lifecycle_program MODE [ARGUMENT...]; a mode's
// exit code is 0 (or stated below) when everything went as the mode expects.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <marey/all.h>
#include <marey/c.h>

#if defined(__SANITIZE_THREAD__)
// A child of a process with threads starts one here (the recorder's), which works.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

extern char** environ;

namespace {

bool marks_its_end = false;

// Destroyed after main, in the middle of exit().
struct AtEnd {
    ~AtEnd() {
        if (marks_its_end) {
            MAREY_RANGE("static destructor");
        }
    }
} at_end;

using Arguments = std::vector<std::string>;

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

int wait_for(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) return 90;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

// Forks; the child runs `body` and ends with exit(0) or as the body decides.
int in_child(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
        body();
        std::exit(0);
    }
    return wait_for(child);
}

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

// ---- forks

int fork_mode(const Arguments&) {
    work(10);
    std::optional<int> result;
    {
        MAREY_RANGE("open at fork");
        const pid_t child = fork();
        if (child == 0) {
            child_work(20);
        } else {
            result = wait_for(child);
            work(10);
        }
    }
    return result.value_or(0);
}

int fork_movable(const Arguments&) {
    marey::Range range("movable at fork");
    const pid_t child = fork();
    range.end();  // the first thing that the child does
    if (child == 0) child_work(1);
    return child == 0 ? 0 : wait_for(child);
}

int fork_silent(const Arguments&) {
    work(10);
    MAREY_RANGE("open at fork");
    return in_child([] { std::exit(0); }) + in_child([] { _exit(0); });
}

// A handler for children that runs before the recorder's, which is registered when its library is loaded.
int child_waits_for = -1;
void wait_in_child() {
    char letter = 0;
    if (child_waits_for >= 0) (void)!read(child_waits_for, &letter, 1);
}
void watch_forks() {
    pthread_atfork(nullptr, nullptr, wait_in_child);
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)() = watch_forks;

struct Descent {
    int levels, last, pipe[2];
    pid_t child = -1;
    int result = 0;

    // Forks at the innermost level. The parent closes and opens levels before the child's handlers run.
    void down(int level) {
        if (level == levels) {
            child_waits_for = pipe[0];
            child = fork();
            if (child == 0) *program_invocation_name = 'T';  // a title
            if (child == 0) child_work(1);
            return;
        }
        MAREY_RANGE("level", "text", std::to_string(level) + std::string(100, '.'));
        down(level + 1);
        if (child != 0 && level == last) down_again(level);
    }
    void down_again(int level) {
        MAREY_RANGE("parent's level", "text", std::string(150, '!'));
        if (level < levels) return down_again(level + 1);
        result = write(pipe[1], "x", 1) == 1 ? wait_for(child) : 89;
    }
};

int fork_while_recording(const Arguments& arguments) {
    for (std::size_t i = 1; i < arguments.size(); i += 2) {
        Descent descent{std::stoi(arguments[i]), std::stoi(arguments.at(i + 1)), {}};
        if (pipe(descent.pipe) == 0) descent.down(0);
        if (descent.child <= 0 || descent.result != 0) return descent.child < 0 ? 88 : descent.result;
    }
    return 0;
}

// The forking thread is gone in the parent before the child's handlers run.
int fork_and_leave(const Arguments&) {
    int ends[2];
    if (pipe(ends) != 0) return 88;
    child_waits_for = ends[0];
    pid_t child = -1;
    std::thread([&child] {
        {
            MAREY_RANGE("open at fork");
            child = fork();
            if (child == 0) child_work(1);
        }
        if (child == 0) std::exit(0);
    }).join();
    return write(ends[1], "x", 1) == 1 ? wait_for(child) : 89;
}

// The recorder's threads, by their name: a sanitizer may have threads too.
int recorder_threads() {
    int count = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::ifstream(task.path() / "comm") >> name;
        count += name == "marey" ? 1 : 0;
    }
    return count;
}

// A thread that has just started has no name yet, one that has just ended may still be listed.
bool recorder_threads_become(int expected) {
    for (int tries = 0; tries < 100000; ++tries) {
        if (recorder_threads() == expected) return true;
        std::this_thread::yield();
    }
    return false;
}

// A fork leaves only the program's threads; recording continues without a gap and starts its own thread
// again.
int fork_alone(const Arguments&) {
    work(10);
    if (!recorder_threads_become(1)) return 2;
    if (in_child([] { std::exit(recorder_threads_become(0) ? 0 : 1); }) != 0) return 3;
    if (!recorder_threads_become(0)) return 4;
    work(100000);
    return recorder_threads_become(1) ? 0 : 5;
}

int fork_from_thread(const Arguments&) {
    MAREY_RANGE("open on main");
    int result = 0;
    std::thread([&] {
        marey::thread_name("forker");
        MAREY_RANGE("open on forker");
        result = in_child([] {
            child_work(5);
            std::thread([] { child_work(5); }).join();
        });
    }).join();
    return result;
}

int fork_without_records(const Arguments&) {
    return in_child([] { child_work(5); });
}

// The child's first ranges are on many threads at once.
int fork_threads(const Arguments&) {
    work(1);
    return in_child([] {
        std::barrier start(8);
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
                start.arrive_and_wait();
                child_work(1);
            });
        }
        for (std::thread& thread : threads) thread.join();
    });
}

int fork_exec(const Arguments&) {
    work(1);
    const pid_t child = fork();
    if (child == 0) {
        execl("/bin/true", "true", nullptr);
        _exit(91);
    }
    return wait_for(child);
}

int fork_grandchildren(const Arguments&) {
    work(1);
    const int silent = in_child([] {  // records nothing itself
        if (in_child([] { child_work(7); }) != 0) std::exit(1);
    });
    const int recording = in_child([] {
        child_work(1);
        MAREY_RANGE("open in the child");
        if (in_child([] { child_work(9); }) != 0) std::exit(1);
    });
    return silent + recording;
}

int fork_storm(const Arguments& arguments) {
    const BusyThreads busy(3);
    MAREY_RANGE("open at fork");
    for (int i = 0; i < std::stoi(arguments.at(1)); ++i) {
        const bool ends_properly = i % 2 == 0;
        const int result = in_child([&] {
            child_work(1000);
            if (!ends_properly) _exit(0);
        });
        if (result != 0) return result;
    }
    return 0;
}

// For long: the recorder's own thread runs, waits and is woken in the child, as it did in the parent.
int fork_repeatedly(const Arguments&) {
    work(300'000);
    return in_child([] {
        child_work(500'000);
        std::thread([] { child_work(500'000); }).join();
    });
}

int fork_log(const Arguments&) {
    const marey_writer& writer = *marey_writer_table(MAREY_WRITER_VERSION);
    marey_log* const stream = writer.log_create("stream");
    const marey_site site = writer.intern("streamed", nullptr, 0, MAREY_SCOPE_USER);
    const auto append = [&](int count) {
        for (int i = 0; i < count; ++i) {
            const std::uint64_t now = writer.now();
            if (writer.range(stream, site, now, now, 0) == 0) std::exit(1);
        }
    };
    append(10);
    const int result = in_child([&] {
        child_work(1);
        append(3);
        writer.log_close(stream);
    });
    append(10);
    writer.log_close(stream);
    return result;
}

#define CHECK(condition)                                                 \
    do {                                                                 \
        if (!(condition)) {                                              \
            std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
            std::_Exit(1);                                               \
        }                                                                \
    } while (false)

std::size_t count(const marey::Trace& trace, std::string_view name) {
    std::size_t found = 0;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) found += trace.range_name(row) == name;
    return found;
}

// The program's own session, into a file when there is an argument, runs across a fork.
int session_across_fork(const Arguments& arguments) {
    marey::SessionOptions options;
    if (arguments.size() > 1) options.output = arguments[1];
    marey::Session session(options);
    std::optional<int> result;
    {
        MAREY_RANGE("open at fork");
        work(10);
        const pid_t child = fork();
        if (child == 0) {
            CHECK(!session.is_running());
            CHECK(!marey::is_recording());
            child_work(5);
            CHECK(session.snapshot().ranges().size() == 0);
            CHECK(session.stop().ranges().size() == 0);
            marey::Session own(marey::SessionOptions{});
            child_work(3);
            const marey::Trace trace = own.stop();
            CHECK(count(trace, "child work") == 3);
            CHECK(count(trace, "work") == 0);
            CHECK(count(trace, "open at fork") == 1);
            CHECK((trace.ranges().flags[0] & marey::kBeganBefore) != 0);
            _exit(0);
        }
        result = wait_for(child);
    }
    work(10);
    CHECK(session.is_running());
    const marey::Trace trace = session.stop();
    CHECK(count(trace, "work") == 20);
    CHECK(count(trace, "open at fork") == 1);
    CHECK(count(trace, "child work") == 0);
    return *result;
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
        {"fork", fork_mode},
        {"fork_movable", fork_movable},
        {"fork_alone", fork_alone},
        {"fork_silent", fork_silent},
        {"fork_while_recording", fork_while_recording},
        {"fork_and_leave", fork_and_leave},
        {"fork_from_thread", fork_from_thread},
        {"fork_without_records", fork_without_records},
        {"fork_threads", fork_threads},
        {"fork_exec", fork_exec},
        {"fork_grandchildren", fork_grandchildren},
        {"fork_storm", fork_storm},
        {"fork_repeatedly", fork_repeatedly},
        {"fork_log", fork_log},
        {"session_across_fork", session_across_fork},
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
