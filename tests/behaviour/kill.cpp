// kill.cpp: a program is killed, or its capture read, at a random moment; all of its records must be there.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>
#include <marey/detail/log_format.h>

#include "support/kill_account.h"

namespace {

class Kill : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/marey-kill-XXXXXX";
        folder_ = mkdtemp(name);
        const int fd = open((folder_ + "/account").c_str(), O_RDWR | O_CREAT, 0600);
        ASSERT_EQ(ftruncate(fd, sizeof(kill_test::Account)), 0);
        void* const shared =
            mmap(nullptr, sizeof(kill_test::Account), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ASSERT_NE(shared, MAP_FAILED);
        close(fd);
        account_ = static_cast<kill_test::Account*>(shared);
    }
    void TearDown() override {
        munmap(account_, sizeof(kill_test::Account));
        std::filesystem::remove_all(folder_);
    }

    // Starts the program, and waits until its first worker has ended `ranges`, and each other one at least
    // one.
    pid_t start(const char* max_bytes, const char* policy, std::uint64_t ranges) {
        std::filesystem::remove(capture());
        std::memset(static_cast<void*>(account_), 0, sizeof(kill_test::Account));
        const std::string program = MAREY_TEST_BIN_DIR "/kill_program";
        const std::string capture_path = capture();
        const std::string account_path = folder_ + "/account";
        const pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);  // it records for ever
            execl(program.c_str(), program.c_str(), capture_path.c_str(), account_path.c_str(), max_bytes,
                  policy, nullptr);
            _exit(127);
        }
        // If it is killed before its session has started, nothing is guaranteed.
        while (account_->started.load() == 0 || account_->threads[0].ended.load() < ranges) usleep(100);
        for (const kill_test::ThreadAccount& thread : account_->threads) {
            while (thread.ended.load() < std::min<std::uint64_t>(ranges, 1)) usleep(100);
        }
        return child;
    }

    // Kills the program after `microseconds` of recording (0: as early as possible).
    void run_and_kill(const char* max_bytes, const char* policy, unsigned microseconds,
                      std::uint64_t ranges = 0) {
        const pid_t child = start(max_bytes, policy, ranges);
        usleep(microseconds);
        end(child);
    }

    void end(pid_t child) {
        kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status)) << "the program ended by itself: " << status;
    }

    /// Returns what it was. Without a map, readers have to visit all blocks.
    std::uint32_t set_map_bytes(std::uint32_t bytes) {
        constexpr auto kAt = static_cast<off_t>(offsetof(marey::detail::FileHeader, map_bytes));
        const int file = open(capture().c_str(), O_RDWR);
        std::uint32_t before = 0;
        EXPECT_EQ(pread(file, &before, sizeof before, kAt), static_cast<ssize_t>(sizeof before));
        EXPECT_EQ(pwrite(file, &bytes, sizeof bytes, kAt), static_cast<ssize_t>(sizeof bytes));
        close(file);
        return before;
    }

    std::string capture() const { return folder_ + "/killed.marey"; }

    struct Worker {
        std::vector<std::string> open;
        std::vector<int> closed;  ///< numbers of the inner ranges, in order
    };
    // The ranges of a worker, which have no hole.
    static void read(const marey::Trace& trace, int number, Worker& worker) {
        const marey::RangeColumns ranges = trace.ranges();
        for (const marey::TrackInfo& track : trace.tracks()) {
            const std::string_view name = trace.string(trace.threads()[track.thread].name);
            if (name != "worker " + std::to_string(number)) continue;
            for (marey::Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const std::string range(trace.range_name(row));
                if ((ranges.flags[row] & marey::kUnfinished) != 0) {
                    worker.open.push_back(range);
                } else if (range != "outer") {
                    worker.closed.push_back(std::stoi(range.substr(6)));
                }
            }
        }
        for (std::size_t i = 1; i < worker.closed.size(); ++i) {
            ASSERT_EQ(worker.closed[i], (worker.closed[i - 1] + 1) % kill_test::kNames)
                << "a hole before the end, at " << i;
        }
    }

    void check() {
        const marey::Trace trace = marey::Trace::load(capture());
        EXPECT_FALSE(trace.window().finished);
        for (int worker = 0; worker < kill_test::kThreads; ++worker) {
            SCOPED_TRACE("worker " + std::to_string(worker));
            const kill_test::ThreadAccount& account = account_->threads[worker];
            const std::uint64_t ended = account.ended.load();
            Worker found;
            read(trace, worker, found);
            const auto& [open, closed] = found;
            if (ended > 2) {
                ASSERT_FALSE(closed.empty());
                // How many the capture has beyond (or short of) the program's own count, modulo the names.
                const int last = closed.back();
                const int own = static_cast<int>((ended - 1) % kill_test::kNames);
                int missing = (own - last + kill_test::kNames) % kill_test::kNames;
                if (missing == kill_test::kNames - 1) missing = -1;  // ended, not yet counted
                EXPECT_GE(missing, -1);
                EXPECT_LE(missing, 2) << "own count " << ended;
            }
            // The program's list of open ranges to within one operation.
            const std::uint32_t depth = account.depth.load();
            const std::size_t shown = open.size();
            EXPECT_LE(shown, depth + 1u);
            EXPECT_GE(shown + 1u, depth);
            if (shown >= 1) {
                EXPECT_EQ(open[0], "outer");
            }
            if (shown >= 2) {
                const int number = std::stoi(open[1].substr(6));
                const int pending = static_cast<int>(account.pending.load());
                EXPECT_TRUE(number == pending || (number + 1) % kill_test::kNames == pending)
                    << number << pending;
            }
        }
    }

    std::string folder_;
    kill_test::Account* account_ = nullptr;
};

// MAREY_KILLS is the number of kills; the default is short enough for every run of the suite.
int kills() {
    const char* const text = getenv("MAREY_KILLS");
    return text != nullptr ? std::atoi(text) : 200;
}

TEST_F(Kill, LosesNothingAtARandomMoment) {
    std::mt19937 random(20261);
    for (int i = 0; i < kills(); ++i) {
        SCOPED_TRACE("kill " + std::to_string(i));
        // As it starts, in the first round of its ring, and after many rounds; small rings change chunks
        // every 2,000 ranges, large ones every 16,000.
        const unsigned longest[] = {1'000, 30'000, 100'000};
        const unsigned pause = random() % longest[i % 3];
        const char* const size = i % 2 == 0 ? "6000000" : "33554432";
        run_and_kill(size, "ring", pause);
        check();
        if (HasFatalFailure() || HasNonfatalFailure()) return;
    }
}

std::map<std::string, std::uint64_t> problems_of(const marey::Trace& trace) {
    std::map<std::string, std::uint64_t> problems;
    for (const marey::ProblemInfo& problem : trace.problems()) problems[problem.code] = problem.count;
    return problems;
}

TEST_F(Kill, AFullRingReportsThatOlderRecordsWereOverwritten) {
    for (int i = 0; i < 5; ++i) {
        // A worker has ended as many ranges as four rings hold.
        run_and_kill("6000000", "ring", 0, 4 * 6'000'000 / 16);
        const marey::Trace trace = marey::Trace::load(capture());
        EXPECT_TRUE(trace.window().size_limit_reached);
        std::uint64_t overwritten = 0;
        for (const marey::ThreadInfo& thread : trace.threads()) overwritten += thread.overwritten_chunks;
        EXPECT_GT(overwritten, 0u);
        auto problems = problems_of(trace);
        EXPECT_EQ(problems["size_limit_reached"], 1u);
        EXPECT_EQ(problems["overwritten"], overwritten);
        check();
    }
}

TEST_F(Kill, ACaptureIsConsistentWhileItsProgramWrites) {
    const pid_t child = start("6000000", "ring", 1'000'000);
    int large = 0;
    for (int i = 0; i < 10; ++i) {
        const marey::Trace trace = marey::Trace::load(capture());
        auto problems = problems_of(trace);
        EXPECT_FALSE(trace.window().finished);
        EXPECT_EQ(problems["running"], 1u);
        for (const char* const code : {"crashed", "misplaced", "damaged_chunk", "truncated"})
            EXPECT_EQ(problems[code], 0u) << code;
        std::size_t ranges = 0;
        for (int worker = 0; worker < kill_test::kThreads; ++worker) {
            Worker found;
            read(trace, worker, found);
            EXPECT_LE(found.open.size(), 2u);
            ranges += found.closed.size();
        }
        large += ranges > 10'000 ? 1 : 0;
    }
    EXPECT_GE(large, 8) << "a reader that waits for a core may find all of what it began to read overwritten";
    end(child);
    auto problems = problems_of(marey::Trace::load(capture()));
    EXPECT_EQ(problems["running"], 0u);
    EXPECT_EQ(problems["crashed"], 1u);
}

// Read from its first ranges on, until it is full and beyond.
TEST_F(Kill, ACaptureThatStopsWhenItIsFullIsWholeWhileItsProgramWrites) {
    const pid_t child = start("48000000", "stop", 1000);
    bool is_full = false;
    for (int i = 0; i < 100 && !is_full; ++i) {
        std::uint64_t ended[kill_test::kThreads];
        for (int worker = 0; worker < kill_test::kThreads; ++worker)
            ended[worker] = account_->threads[worker].ended.load();
        const marey::Trace trace = marey::Trace::load(capture());
        auto problems = problems_of(trace);
        is_full = trace.window().size_limit_reached;
        EXPECT_EQ(problems["running"], 1u);
        EXPECT_EQ(problems["size_limit_reached"], is_full ? 1u : 0u);
        for (const char* const code : {"crashed", "misplaced", "damaged_chunk", "truncated", "overwritten"})
            EXPECT_EQ(problems[code], 0u) << code;
        for (int worker = 0; worker < kill_test::kThreads; ++worker) {
            Worker found;
            read(trace, worker, found);
            EXPECT_LE(found.open.size(), 2u);
            if (!is_full) {
                EXPECT_GE(found.closed.size(), ended[worker]);
            }
            if (!found.closed.empty()) {
                EXPECT_EQ(found.closed.front(), 0) << "the first ranges are kept";
            }
        }
    }
    EXPECT_TRUE(is_full);
    end(child);
}

TEST_F(Kill, TheNewestPartHasNoHoleWhileItsProgramWritesOrAfterIt) {
    constexpr std::size_t kLogBytes = 100'000;
    const std::string snapshot = folder_ + "/snapshot.marey";
    const pid_t child = start("33554432", "ring", 200'000);
    for (int i = 0; i < 5; ++i) {
        std::filesystem::remove(snapshot);
        marey::write_snapshot(capture(), snapshot, {.log_bytes = kLogBytes});
        const marey::Trace running = marey::load_newest(capture(), {.log_bytes = kLogBytes});
        const marey::Trace saved = marey::Trace::load(snapshot);
        EXPECT_EQ(problems_of(running)["running"], 1u);
        EXPECT_EQ(problems_of(saved)["running"], 0u);
        for (const marey::Trace* trace : {&running, &saved}) {
            auto problems = problems_of(*trace);
            for (const char* const code : {"crashed", "misplaced", "damaged_chunk", "truncated"})
                EXPECT_EQ(problems[code], 0u) << code;
            for (int worker = 0; worker < kill_test::kThreads; ++worker) {
                Worker found;
                read(*trace, worker, found);
                EXPECT_LE(found.open.size(), 2u);
                EXPECT_FALSE(found.closed.empty());
                EXPECT_LE(found.closed.size(), kLogBytes / kill_test::kThreads / 16);
            }
        }
    }
    end(child);
    const marey::Trace all = marey::Trace::load(capture());
    const marey::Trace newest = marey::load_newest(capture(), {.log_bytes = kLogBytes});
    const marey::Trace last = marey::load_newest(capture(), {.log_bytes = 0, .last_ns = 1'000'000});
    EXPECT_LT(last.ranges().size(), all.ranges().size());
    for (int worker = 0; worker < kill_test::kThreads; ++worker) {
        Worker in_all, in_newest, in_last;
        read(all, worker, in_all);
        read(newest, worker, in_newest);
        read(last, worker, in_last);
        EXPECT_FALSE(in_newest.closed.empty());
        for (const Worker& part : {in_newest, in_last}) {
            EXPECT_EQ(part.open, in_all.open);
            ASSERT_LE(part.closed.size(), in_all.closed.size());
            EXPECT_TRUE(std::equal(part.closed.rbegin(), part.closed.rend(), in_all.closed.rbegin()));
        }
    }
}

TEST_F(Kill, TheNewestPartIsFoundWithTheMapAndWithoutIt) {
    for (int i = 0; i < 5; ++i) {
        const pid_t child = start(i % 2 == 0 ? "33554432" : "6000000", "ring", 200'000);
        kill(child, SIGSTOP);
        int status = 0;
        waitpid(child, &status, WUNTRACED);
        for (const std::size_t bytes : {std::size_t{1'000}, std::size_t{100'000}, std::size_t{3'000'000}}) {
            Worker in_map[kill_test::kThreads], in_file[kill_test::kThreads];
            const auto read_into = [&](Worker(&workers)[kill_test::kThreads]) {
                const marey::Trace trace = marey::load_newest(capture(), {.log_bytes = bytes});
                for (int worker = 0; worker < kill_test::kThreads; ++worker)
                    read(trace, worker, workers[worker]);
            };
            read_into(in_map);
            const std::uint32_t map_bytes = set_map_bytes(0);  // as in captures of older versions
            read_into(in_file);
            set_map_bytes(map_bytes);
            for (int worker = 0; worker < kill_test::kThreads; ++worker) {
                EXPECT_EQ(in_map[worker].open, in_file[worker].open);
                EXPECT_EQ(in_map[worker].closed, in_file[worker].closed);
            }
            EXPECT_FALSE(in_map[0].closed.empty());
        }
        end(child);
    }
}

TEST_F(Kill, LosesNothingWithoutARing) {
    for (int i = 0; i < 5; ++i) {
        run_and_kill("1073741824", "stop", 20'000);
        check();
    }
}

}  // namespace
