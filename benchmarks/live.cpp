// live.cpp: reading captures while their programs write them.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <marey/control.h>
#include <marey/marey.h>
#include <marey/observe.h>
#include <marey/session.h>

#include "figure.h"

namespace {

const std::string kMarey = std::string(MAREY_BENCH_DIR) + "/marey";
std::string folder;

void sleep_ms(int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

// ---- other processes

struct Usage {
    double cpu_ms, wall_ms, memory_mib;
};

pid_t start(const std::vector<std::string>& words) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int file : {1, 2}) posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_WRONLY, 0);
    pid_t pid = 0;
    if (posix_spawn(&pid, words[0].c_str(), &actions, nullptr, arguments.data(), environ) != 0) std::abort();
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

Usage wait_for(pid_t pid, double begin) {
    rusage usage{};
    wait4(pid, nullptr, 0, &usage);
    const auto ms = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
    };
    return {ms(usage.ru_utime) + ms(usage.ru_stime), (bench::seconds(CLOCK_MONOTONIC) - begin) * 1e3,
            static_cast<double>(usage.ru_maxrss) / 1024};
}

Usage run(const std::vector<std::string>& words) {
    const double begin = bench::seconds(CLOCK_MONOTONIC);
    return wait_for(start(words), begin);
}

Usage median_of(int rounds, const std::vector<std::string>& words) {
    std::vector<double> cpu, wall, memory;
    for (int i = 0; i < rounds; ++i) {
        const Usage usage = run(words);
        cpu.push_back(usage.cpu_ms);
        wall.push_back(usage.wall_ms);
        memory.push_back(usage.memory_mib);
    }
    return {bench::median(cpu), bench::median(wall), bench::median(memory)};
}

/// A child that records, tells when it is ready and stays until it is killed.
template <class Work>
pid_t recorder(Work work) {
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    const pid_t pid = fork();
    if (pid == 0) {
        work();
        if (write(ready[1], "x", 1) != 1) _exit(1);
        while (true) pause();
    }
    char byte;
    if (read(ready[0], &byte, 1) != 1) std::abort();
    close(ready[0]);
    close(ready[1]);
    return pid;
}

void end(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
}

/// Threads that record so many ranges each, and stay inside two open ones.
void record_on_threads(int threads, std::int64_t ranges) {
    std::atomic<int> done{0};
    for (int i = 0; i < threads; ++i) {
        std::thread([&done, ranges] {
            MAREY_RANGE("outer");
            for (std::int64_t k = 0; k < ranges; ++k) {
                MAREY_RANGE("work");
            }
            MAREY_RANGE("open");
            ++done;
            while (true) pause();
        }).detach();
    }
    while (done != threads) sleep_ms(10);
}

// ---- figures

void ring_size() {
    const std::string path = folder + "/ring.marey";
    const pid_t pid = recorder([&] {
        auto* const session = new marey::Session(marey::SessionOptions{
            .output = path, .max_bytes = std::size_t{64} << 20, .policy = marey::Policy::Ring});
        record_on_threads(4, 5'000'000);
        static_cast<void>(session);
    });
    struct stat status {};
    stat(path.c_str(), &status);
    end(pid);
    bench::print("live_ring_bytes", "MiB", static_cast<double>(status.st_blocks) * 512 / (1 << 20),
                 "<= 68 MiB");
    unlink(path.c_str());
}

void now_of_a_large_capture() {
    const std::string path = folder + "/large.marey";
    const pid_t pid = recorder([&] {
        auto* const session =
            new marey::Session(marey::SessionOptions{.output = path, .max_bytes = std::size_t{2} << 30});
        record_on_threads(100, 670'000);
        static_cast<void>(session);
    });
    const Usage none = median_of(7, {kMarey, "--version"});
    const Usage now = median_of(7, {kMarey, "now", path});
    const Usage info = run({kMarey, "info", path});
    bench::print("live_now_cpu", "ms", {now.cpu_ms - none.cpu_ms}, "marey info", {info.cpu_ms}, "<= 15 ms");
    bench::print("live_now_memory", "MiB", {now.memory_mib - none.memory_mib}, "marey info",
                 {info.memory_mib}, "<= 24 MiB");
    end(pid);
    unlink(path.c_str());
}

void now_of_a_job() {
    const std::string job = folder + "/job";
    mkdir(job.c_str(), 0700);
    std::vector<pid_t> pids;
    for (int i = 0; i < 64; ++i) {
        pids.push_back(recorder([&] {
            marey::set_node_id(i);
            auto* const session = new marey::Session(
                marey::SessionOptions{.output = job + "/rank" + std::to_string(i) + ".marey"});
            record_on_threads(2, 10'000);
            static_cast<void>(session);
        }));
    }
    bench::print("live_now_64", "ms", median_of(5, {kMarey, "now", job}).wall_ms, "<= 500 ms");
    for (const pid_t pid : pids) end(pid);
}

/// Records on this thread until `is_over`, with about 100 ns of work in each range; counts them.
struct Load {
    std::atomic<bool> is_over{false};
    std::atomic<std::int64_t> ranges{0};
    std::atomic<double> worst_gap_ms{0};
    std::thread thread;

    Load() {
        thread = std::thread([this] {
            bench::Work work;
            double before = bench::seconds(CLOCK_MONOTONIC);
            while (!is_over.load(std::memory_order_relaxed)) {
                constexpr int kBatch = 100;
                for (int i = 0; i < kBatch; ++i) {
                    MAREY_RANGE("work");
                    work();
                }
                ranges.fetch_add(kBatch, std::memory_order_relaxed);
                const double now = bench::seconds(CLOCK_MONOTONIC);
                worst_gap_ms = std::max(worst_gap_ms.load(), (now - before) * 1e3);
                before = now;
            }
        });
    }
    ~Load() {
        is_over = true;
        thread.join();
    }
};

void top_of_a_busy_program() {
    const std::string path = folder + "/busy.marey";
    marey::Session session(marey::SessionOptions{
        .output = path, .max_bytes = std::size_t{256} << 20, .policy = marey::Policy::Ring});
    Load load;
    sleep_ms(500);
    const std::int64_t before = load.ranges;
    const Usage top = run({kMarey, "top", path, "--count", "4"});
    const double millions = static_cast<double>(load.ranges - before) / 1e6;
    bench::print("live_top_per_million", "ms", top.cpu_ms / millions, "<= 60 ms");
}

/// CPU time of a thread per range, with and without everything that can look at it.
void recording_thread() {
    const std::string path = folder + "/watched.marey";
    const auto measure = [] {
        constexpr std::int64_t kRanges = 1'000'000;
        return bench::thread_ns(kRanges, [] {
            bench::Work work;
            for (std::int64_t i = 0; i < kRanges; ++i) {
                MAREY_RANGE("work");
                work();
            }
        });
    };
    marey::Session session(marey::SessionOptions{
        .output = path, .max_bytes = std::size_t{64} << 20, .policy = marey::Policy::Ring});
    measure();
    std::vector<double> with, without;
    for (int pair = 0; pair < 30; ++pair) {
        std::vector<std::string> watch{kMarey, "watch", path};
        for (int i = 0; i < 10; ++i) {
            watch.emplace_back("--when");
            watch.push_back("work" + std::to_string(i) + " > 1s");
        }
        const pid_t watcher = start(watch), top = start({kMarey, "top", path});
        std::atomic<bool> is_over{false};
        std::thread now([&] {
            while (!is_over) {
                run({kMarey, "now", path});
                sleep_ms(100);
            }
        });
        with.push_back(measure());
        is_over = true;
        now.join();
        end(watcher);
        end(top);
        without.push_back(measure());
    }
    bench::print("live_recording_thread", "ns", with, "nobody looks", without, "<= 1.02");
}

void snapshot_in_process() {
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    const std::string path = folder + "/full.marey", out = folder + "/out.marey";
    const std::string plain = folder + "/plain", copy = folder + "/copy";
    if (FILE* const file = std::fopen(plain.c_str(), "w")) {
        std::vector<char> bytes(kBytes);
        for (std::size_t i = 0; i < kBytes; i += 8) bytes[i] = static_cast<char>(i >> 3);
        std::fwrite(bytes.data(), 1, kBytes, file);
        std::fclose(file);
    }
    marey::Session session(
        marey::SessionOptions{.output = path, .max_bytes = kBytes, .policy = marey::Policy::Ring});
    std::vector<double> snapshots, copies, gaps, quiet_gaps;
    Load load;
    sleep_ms(1500);
    for (int i = 0; i < 7; ++i) {
        load.worst_gap_ms = 0;
        const double begin = bench::seconds(CLOCK_MONOTONIC);
        session.snapshot_to(out);
        snapshots.push_back((bench::seconds(CLOCK_MONOTONIC) - begin) * 1e3);
        gaps.push_back(load.worst_gap_ms);
        load.worst_gap_ms = 0;
        copies.push_back(run({"/bin/cp", plain, copy}).wall_ms);
        quiet_gaps.push_back(load.worst_gap_ms);
    }
    bench::print("live_snapshot_in_process", "ms", snapshots, "cp of 64 MiB", copies, "<= 1.5");
    bench::print("live_snapshot_gap", "ms", bench::median(gaps) - bench::median(quiet_gaps), "<= 1 ms");
}

/// From the end of a slow range to its snapshot.
void watch_delay() {
    const std::string path = folder + "/slow.marey", out = folder + "/snapshots";
    mkdir(out.c_str(), 0700);
    marey::Session session(marey::SessionOptions{.output = path});
    const auto count = [&] {
        DIR* const entries = opendir(out.c_str());
        int files = 0;
        while (const dirent* const entry = readdir(entries)) {
            const std::string name = entry->d_name;
            files += name.ends_with(".marey") ? 1 : 0;
        }
        closedir(entries);
        return files;
    };
    const pid_t watcher = start({kMarey, "watch", path, "--when", "slow > 10ms", "--after", "0s", "--every",
                                 "0s", "--last", "2s", "-o", out});
    sleep_ms(500);
    std::vector<double> delays;
    for (int i = 0; i < 5; ++i) {
        {
            MAREY_RANGE("slow");
            sleep_ms(37 + 41 * i);
        }
        const double begin = bench::seconds(CLOCK_MONOTONIC);
        while (count() != i + 1 && bench::seconds(CLOCK_MONOTONIC) - begin < 10) sleep_ms(1);
        delays.push_back((bench::seconds(CLOCK_MONOTONIC) - begin) * 1e3);
    }
    end(watcher);
    bench::print("live_watch_delay", "ms", bench::median(delays), "<= 1000 ms");
}

/// From the request to the first range.
void start_delay() {
    const pid_t pid = recorder([] {
        marey::allow_control();
        std::thread([] {
            while (true) {
                MAREY_RANGE("work");
                sleep_ms(1);
            }
        }).detach();
    });
    std::vector<double> delays;
    for (int i = 0; i < 9; ++i) {
        const std::string path = folder + "/asked" + std::to_string(i) + ".marey";
        const double begin = bench::seconds(CLOCK_MONOTONIC);
        marey::start_recording(pid, {.options = "out=" + path});
        delays.push_back((bench::seconds(CLOCK_MONOTONIC) - begin) * 1e3);
        marey::stop_recording(pid);
    }
    end(pid);
    bench::print("live_start", "ms", bench::median(delays), "<= 20 ms");
}

}  // namespace

int main() {
    char name[] = "/tmp/marey-bench-XXXXXX";
    if (mkdtemp(name) == nullptr) return 1;
    folder = name;
    setenv("XDG_RUNTIME_DIR", name, 1);
    // Those that fork come first.
    ring_size();
    now_of_a_large_capture();
    now_of_a_job();
    start_delay();
    watch_delay();
    top_of_a_busy_program();
    snapshot_in_process();
    recording_thread();
    return std::system(("rm -rf " + folder).c_str());
}
