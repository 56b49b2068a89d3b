// fork_program.cpp: forks in one of many ways; lifecycle.cpp examines the captures that it leaves. Usage:
// fork_program MODE [ARGUMENT...]; a mode's exit code is 0 when everything went as the mode expects.
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <cstdlib>
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

#include "support/program_modes.h"

#if defined(__SANITIZE_THREAD__)
// A child of a process with threads starts one here (the recorder's), which works.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

namespace {

using marey::testing::Arguments;
using marey::testing::BusyThreads;
using marey::testing::child_work;
using marey::testing::wait_for;
using marey::testing::work;

// Forks; the child runs `body` and ends with exit(0) or as the body decides.
int in_child(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child == 0) {
        body();
        std::exit(0);
    }
    return wait_for(child);
}

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

}  // namespace

int main(int count_of, char** values) {
    // Static: a child that was forked by a thread has no access to main's stack, and leak detection would
    // report all this.
    static const Arguments arguments(values + 1, values + count_of);
    static const std::map<std::string, int (*)(const Arguments&)> modes = {
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
    };
    return modes.at(arguments.at(0))(arguments);
}
