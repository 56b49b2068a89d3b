// trace.cpp: costs outside recording: starting and stopping sessions, building a trace, and sizes.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <marey/all.h>

#include "figure.h"

namespace {

// Sixteen threads that have recorded a range and now wait.
class IdleThreads {
  public:
    IdleThreads() {
        for (int i = 0; i < 16; ++i) {
            threads_.emplace_back([this] {
                { MAREY_RANGE("alive"); }
                ready_.fetch_add(1);
                done_.wait(false);
            });
        }
        while (ready_.load() != 16) std::this_thread::yield();
    }
    ~IdleThreads() {
        done_.store(true);
        done_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

  private:
    std::vector<std::thread> threads_;
    std::atomic<int> ready_{0};
    std::atomic<bool> done_{false};
};

void start_stop() {
    marey::Session first(marey::SessionOptions{});
    const IdleThreads threads;
    first.discard();
    std::vector<double> values;
    for (int repetition = 0; repetition < 301; ++repetition) {
        const double begin = bench::seconds(CLOCK_MONOTONIC);
        marey::Session session(marey::SessionOptions{});
        session.stop();
        values.push_back((bench::seconds(CLOCK_MONOTONIC) - begin) * 1e6);
    }
    bench::print("session_start_stop", "us", bench::median(values), "<= 100 us");
}

// Ten million ranges, nested four deep, on one thread, so that one core builds the trace.
__attribute__((noinline)) void nested(std::int64_t count) {
    for (std::int64_t i = 0; i < count; i += 10) {
        MAREY_RANGE("step");
        for (int k = 0; k < 3; ++k) {
            MAREY_RANGE("phase");
            { MAREY_RANGE("load"); }
            { MAREY_RANGE("store"); }
        }
    }
}

void build() {
    constexpr std::int64_t kRanges = 10'000'000;
    std::vector<double> values;
    double bytes = 0;
    for (int repetition = 0; repetition < 7; ++repetition) {
        marey::Session session(marey::SessionOptions{});
        nested(kRanges);
        const double begin = bench::seconds(CLOCK_PROCESS_CPUTIME_ID);
        const marey::Trace trace = session.stop();
        values.push_back((bench::seconds(CLOCK_PROCESS_CPUTIME_ID) - begin) * 1e9 / kRanges);
        if (trace.ranges().size() != kRanges) std::abort();
        bytes = static_cast<double>(trace.window().log_bytes) / kRanges;
    }
    bench::print("build_trace", "ns", bench::median(values), "<= 60 ns");
    bench::print("range_bytes", "bytes", bytes, "<= 24 bytes");
}

// The example program, recorded and compacted; the whole file counts.
void capture_bytes(const std::string& folder) {
    const std::string capture = folder + "/bench_demo.marey";
    const std::string packed = folder + "/bench_demo.compact.marey";
    std::filesystem::remove(capture);
    const std::string command = "MAREY=out=" + capture + " '" + folder + "/examples/pipeline' > /dev/null";
    if (std::system(command.c_str()) != 0) return;
    marey::compact_capture(capture, packed);
    const double ranges = static_cast<double>(marey::Trace::load(packed).ranges().size());
    bench::print("capture_bytes", "bytes", static_cast<double>(std::filesystem::file_size(packed)) / ranges,
                 "<= 6 bytes");
    std::filesystem::remove(capture);
    std::filesystem::remove(packed);
}

}  // namespace

int main(int, char** argv) {
    start_stop();
    build();
    capture_bytes(std::filesystem::absolute(argv[0]).parent_path().string());
}
