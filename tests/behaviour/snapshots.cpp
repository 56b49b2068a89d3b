// snapshots.cpp: snapshots of a ring at random moments have what the ring has.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

namespace {

constexpr int kThreads = 3;
constexpr std::uint64_t kNames = 251;  // a prime: a hole in the sequence cannot hide

class Snapshots : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/marey-snapshots-XXXXXX";
        folder_ = mkdtemp(name);
        for (std::uint64_t i = 0; i < kNames; ++i) names_[i] = "inner " + std::to_string(i);
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    /// The snapshot's path; the one before is removed.
    std::string path() const {
        const std::string path = folder_ + "/snapshot.marey";
        std::filesystem::remove(path);
        return path;
    }
    marey::SessionOptions ring() const {
        return {.output = folder_ + "/ring.marey", .max_bytes = 3 << 20, .policy = marey::Policy::Ring};
    }
    void record(std::uint64_t number) const { MAREY_RANGE_DYNAMIC(names_[number % kNames]); }

    std::string folder_;
    std::string names_[kNames];
};

/// The tests' own number of random moments; MAREY_SNAPSHOTS for longer runs.
int moments() {
    const char* const text = getenv("MAREY_SNAPSHOTS");
    return text != nullptr ? std::atoi(text) : 40;
}

/// Thread, name, flags and parent.
using Row = std::tuple<std::string, std::string, std::uint32_t, marey::Row>;

std::vector<Row> rows(const marey::Trace& trace) {
    std::vector<Row> rows;
    const marey::RangeColumns ranges = trace.ranges();
    for (const marey::TrackInfo& track : trace.tracks()) {
        const std::string thread(trace.string(trace.threads()[track.thread].name));
        for (marey::Row row = track.first_range; row < track.first_range + track.range_count; ++row)
            rows.emplace_back(thread, trace.range_name(row), ranges.flags[row], ranges.parent[row]);
    }
    return rows;
}

TEST_F(Snapshots, AreWhatTheSessionHasWhenItStops) {
    std::mt19937 random(20261);
    for (int moment = 0; moment < moments(); ++moment) {
        SCOPED_TRACE("moment " + std::to_string(moment));
        marey::Session session(ring());
        std::atomic<int> ready = 0;
        std::atomic<bool> is_over = false;
        std::vector<std::thread> threads;
        for (int i = 0; i < kThreads; ++i) {
            // From nothing to several rounds of the ring.
            const std::uint64_t count = random() % (random() % 2 == 0 ? 3'000 : 150'000);
            threads.emplace_back([&, i, count] {
                marey::thread_name("worker " + std::to_string(i));
                MAREY_RANGE("outer");
                for (std::uint64_t k = 0; k < count; ++k) record(k);
                MAREY_RANGE("inner");
                ready.fetch_add(1);
                while (!is_over.load()) std::this_thread::yield();
            });
        }
        while (ready.load() < kThreads) std::this_thread::yield();
        const std::string snapshot = path();
        session.snapshot_to(snapshot);
        const marey::Trace stopped = session.stop();
        is_over.store(true);
        for (std::thread& thread : threads) thread.join();
        const marey::Trace loaded = marey::Trace::load(snapshot);
        ASSERT_TRUE(rows(loaded) == rows(stopped));
        // The clock is fitted to readings until the end, which are others.
        const marey::RangeColumns a = loaded.ranges(), b = stopped.ranges();
        for (marey::Row row = 0; row < a.size(); ++row) {
            EXPECT_NEAR(static_cast<double>(a.start_ns[row]), static_cast<double>(b.start_ns[row]), 1e5);
            if ((a.flags[row] & marey::kUnfinished) != 0) continue;
            const auto duration = static_cast<double>(b.duration_ns[row]);
            EXPECT_NEAR(static_cast<double>(a.duration_ns[row]), duration, 2 + duration / 100);
        }
        std::filesystem::remove(folder_ + "/ring.marey");
        if (HasFailure()) return;
    }
}

TEST_F(Snapshots, HaveNoHoleAndNothingElseWhileThreadsRecord) {
    std::mt19937 random(20262);
    marey::Session session(ring());
    std::atomic<std::int64_t> ended[kThreads] = {};
    std::atomic<bool> is_over = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            marey::thread_name("worker " + std::to_string(i));
            for (std::int64_t number = 0; !is_over.load(); ended[i].store(++number)) {
                MAREY_RANGE("numbered", "number", number);
            }
        });
    }
    std::size_t ranges = 0;
    for (int moment = 0; moment < moments() && !HasFailure(); ++moment) {
        SCOPED_TRACE("moment " + std::to_string(moment));
        usleep(random() % 20'000);
        std::int64_t before[kThreads];
        for (int i = 0; i < kThreads; ++i) before[i] = ended[i].load();
        const std::string snapshot = path();
        session.snapshot_to(snapshot);
        const marey::Trace trace = marey::Trace::load(snapshot);
        for (const marey::TrackInfo& track : trace.tracks()) {
            const std::string thread(trace.string(trace.threads()[track.thread].name));
            EXPECT_TRUE(thread.starts_with("worker ")) << thread;
            std::int64_t newest = -1;
            for (marey::Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                EXPECT_EQ(trace.range_name(row), "numbered");
                const std::int64_t number = trace.range_arguments(row)[0].integer;
                EXPECT_TRUE(newest == -1 || number == newest + 1) << newest << " before " << number;
                newest = number;
                ++ranges;
            }
            const int worker = std::stoi(thread.substr(7));
            if (newest == -1) continue;  // it had to wait while others filled the ring
            EXPECT_GE(newest, before[worker] - 1);
            EXPECT_LE(newest, ended[worker].load());
        }
    }
    EXPECT_GT(ranges, 0u);
    is_over.store(true);
    for (std::thread& thread : threads) thread.join();
    session.discard();
}

}  // namespace
