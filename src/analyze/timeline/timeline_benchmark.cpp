// timeline_benchmark.cpp: the cost of the timeline's index and of its slowest picture, in CPU time on one
// core. bench_timeline [MILLIONS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <random>
#include <vector>

#include <marey/timeline.h>

#include "trace/trace_data.h"

namespace marey {
namespace {

/// One track of random nested ranges, up to 40 levels.
Trace make_trace(std::size_t count) {
    auto data = std::make_shared<TraceData>();
    data->sites.push_back({});
    data->processes.push_back({});
    data->threads.push_back({});
    std::mt19937_64 random(7);
    std::vector<Row> open;
    std::int64_t time = 0;
    const auto close = [&] {
        time += 20;
        data->range_duration_ns[open.back()] = time - data->range_start_ns[open.back()];
        open.pop_back();
    };
    for (std::size_t i = 0; i < count; ++i) {
        while (!open.empty() && (open.size() >= 40 || random() % 100 < 49)) close();
        time += 15 + static_cast<std::int64_t>(random() % 64);
        data->range_start_ns.push_back(time);
        data->range_duration_ns.push_back(0);
        data->range_parent.push_back(open.empty() ? kNoRow : open.back());
        data->range_depth.push_back(static_cast<std::uint32_t>(open.size()));
        open.push_back(static_cast<Row>(i));
    }
    while (!open.empty()) close();
    data->range_site.resize(count);
    data->range_self_ns.resize(count);
    data->range_flags.resize(count);
    data->window.end_ns = time;
    TrackInfo track;
    track.range_count = static_cast<Row>(count);
    data->tracks.push_back(track);
    return Trace(data);
}

double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class Work>
double cost_ns(Work work) {
    const double start = cpu_ns();
    work();
    return cpu_ns() - start;
}

/// Looks at each duration and depth once: no index can do less.
std::int64_t look_at_all(const RangeColumns& ranges) {
    std::int64_t sum = 0;
    for (const std::int64_t duration : ranges.duration_ns) sum = std::max(sum, duration);
    for (const std::uint32_t depth : ranges.depth) sum += depth;
    return sum;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace
}  // namespace marey

int main(int argc, char** argv) {
    using namespace marey;
    const auto count = static_cast<std::size_t>(argc > 1 ? std::max(std::atoi(argv[1]), 1) : 100) * 1'000'000;
    const Trace trace = make_trace(count);
    std::vector<double> index, floor;
    std::int64_t sum = 0;
    for (int i = 0; i < 7; ++i) {
        floor.push_back(cost_ns([&] { sum += look_at_all(trace.ranges()); }) / static_cast<double>(count));
        index.push_back(cost_ns([&] { Timeline made(trace); }) / static_cast<double>(count));
    }
    if (sum == 0) return 1;
    std::printf(
        "{\"name\": \"timeline_index\", \"value\": %.2f, \"unit\": \"ns\", \"against\": \"one pass\", "
        "\"against_value\": %.2f, \"ratio\": %.2f, \"target\": \"<= 4 ns\"}\n",
        median(index), median(floor), median(index) / median(floor));
    const Timeline timeline(trace);
    std::printf(
        "{\"name\": \"timeline_index_bytes\", \"value\": %.2f, \"unit\": \"bytes\", \"target\": \"<= "
        "0.6\"}\n",
        static_cast<double>(timeline.index_bytes()) / static_cast<double>(count));

    const std::int64_t whole = trace.window().end_ns;
    std::mt19937_64 random(3);
    double worst = 0;
    std::size_t most = 0;
    for (std::int64_t zoom = 1; zoom <= 1'000'000; zoom *= 10) {
        for (int i = 0; i < 143; ++i) {  // 1,000 in all
            const std::int64_t width = std::max<std::int64_t>(whole / zoom, 1);
            const auto begin =
                static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(whole - width + 1));
            std::size_t boxes = 0;
            worst = std::max(worst, cost_ns([&] {
                                 boxes = timeline.picture(0, {begin, begin + width, 1500, 40}).size();
                             }));
            most = std::max(most, boxes);
        }
    }
    std::printf(
        "{\"name\": \"timeline_picture_worst\", \"value\": %.2f, \"unit\": \"ms\", \"target\": \"<= 20\"}\n",
        worst / 1e6);
    std::fprintf(stderr, "at most %zu boxes\n", most);
}
