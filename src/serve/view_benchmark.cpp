// view_benchmark.cpp: the viewer's answers about a large trace: their time and size. bench_view [MILLIONS]
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "analyze/trace_fixture.h"
#include "serve/api.h"
#include "serve/server.h"

namespace marey::serve {
namespace {

constexpr std::size_t kTracks = 8;
constexpr std::uint32_t kSites = 300;

/// Random nested ranges, up to 40 levels, on 8 tracks.
Trace large_trace(std::size_t count) {
    TraceFixture fixture;
    for (std::uint32_t i = 0; i < kSites; ++i) fixture.site("function_" + std::to_string(i));
    TraceData& data = fixture.data();
    std::mt19937_64 random(7);
    std::int64_t latest = 0;
    for (std::size_t track = 0; track < kTracks; ++track) {
        fixture.thread("thread " + std::to_string(track), {});
        std::vector<Row> open;
        std::int64_t time = 0;
        const auto close = [&] {
            time += 20;
            data.range_duration_ns[open.back()] = time - data.range_start_ns[open.back()];
            open.pop_back();
        };
        data.tracks.back().first_range = static_cast<Row>(data.range_start_ns.size());
        data.tracks.back().range_count = static_cast<Row>(count / kTracks);
        for (std::size_t i = 0; i < count / kTracks; ++i) {
            while (!open.empty() && (open.size() >= 40 || random() % 100 < 49)) close();
            time += 15 + static_cast<std::int64_t>(random() % 64);
            data.range_parent.push_back(open.empty() ? kNoRow : open.back());
            data.range_depth.push_back(static_cast<std::uint32_t>(open.size()));
            open.push_back(static_cast<Row>(data.range_start_ns.size()));
            data.range_start_ns.push_back(time);
            data.range_duration_ns.push_back(0);
            data.range_self_ns.push_back(0);
            data.range_site.push_back(static_cast<std::uint32_t>(random() % kSites));
            data.range_flags.push_back(0);
        }
        while (!open.empty()) close();
        latest = std::max(latest, time);
    }
    return fixture.window(0, latest).trace();
}

/// The shortest of three times.
template <class Work>
double seconds(const Work& work) {
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        best =
            std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
}
double seconds(const Api& api, const std::string& target) {
    int round = 0;  // answers to the same request are kept
    return seconds([&] { api.handle_own(target + "&round=" + std::to_string(round++)); });
}

double peak_megabytes() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1e3;
}

/// Adds up the durations by site: no table can do less.
std::int64_t group_all(const RangeColumns& ranges) {
    std::vector<std::int64_t> totals(kSites);
    for (std::size_t row = 0; row < ranges.size(); ++row) totals[ranges.site[row]] += ranges.duration_ns[row];
    return *std::max_element(totals.begin(), totals.end());
}
/// Counts the ranges of one site: no search can do less.
std::int64_t count_all(const RangeColumns& ranges) {
    return std::count(ranges.site.begin(), ranges.site.end(), 77u);
}

void print(const char* name, double value, const char* unit, const char* target) {
    std::printf("{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\", \"target\": \"%s\"}\n", name, value,
                unit, target);
    std::fflush(stdout);
}
void print_against(const char* name, double value, const char* against, double floor, const char* target) {
    std::printf(
        "{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"s\", \"against\": \"%s\", \"against_value\": %.3f, "
        "\"ratio\": %.2f, \"target\": \"%s\"}\n",
        name, value, against, floor, value / floor, target);
    std::fflush(stdout);
}

/// The largest pictures of a track, as sent.
void measure_pictures(const Api& api, std::int64_t window_ns) {
    std::mt19937_64 random(3);
    std::size_t plain = 0, packed = 0;
    for (std::int64_t zoom = 1; zoom <= 1'000'000; zoom *= 10) {
        for (int i = 0; i < 20; ++i) {
            const std::int64_t width = std::max<std::int64_t>(window_ns / zoom, 1);
            const auto begin =
                static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(window_ns - width + 1));
            Response response =
                api.handle_own("/api/picture?track=0&pixels=1500&levels=40&begin=" + std::to_string(begin) +
                               "&end=" + std::to_string(begin + width));
            plain = std::max(plain, response.body.size());
            HttpRequest request;
            request.accepts_gzip = true;
            packed = std::max(packed, response_bytes(request, std::move(response)).size());
        }
    }
    print("view_picture_bytes", static_cast<double>(plain) / 1e6, "MB", "<= 1 MB");
    print("view_picture_packed", static_cast<double>(packed) / 1e6, "MB", "<= 0.4 MB");
}

}  // namespace
}  // namespace marey::serve

int main(int argc, char** argv) {
    using namespace marey;
    using namespace marey::serve;
    const auto count = static_cast<std::size_t>(argc > 1 ? std::max(std::atoi(argv[1]), 1) : 100) * 1'000'000;
    const Trace trace = large_trace(count);
    const std::int64_t window_ns = trace.window().end_ns;
    const RangeColumns ranges = trace.ranges();
    const Api api({{"large", [&trace] { return trace; }}}, {}, "");
    api.handle_own("/api/outline");
    measure_pictures(api, window_ns);
    std::int64_t sum = 0;
    const double grouped = seconds([&] { sum += group_all(ranges); });
    const double counted = seconds([&] { sum += count_all(ranges); });
    if (sum == 0) return 1;
    print_against("view_table_all", seconds(api, "/api/table?quick=1"), "grouped pass", grouped, "<= 0.5 s");
    print_against("view_table_columns", seconds(api, "/api/table?thread=0"), "grouped pass", grouped, "");
    print("view_search_first", seconds(api, "/api/search?text=function_77&quick=1") * 1e3, "ms", "<= 50 ms");
    // Random names: nearly every range has a path of its own. From the roots down, most ranges are below a
    // node that is too narrow to have children, and cost nothing further. From the callees up ("self"), each
    // range is a root, and counts for one of 300 * 300 paths at random: several misses of the cache for each
    // range.
    const double before = peak_megabytes();
    for (const char* const value : {"total", "self", "calls"}) {
        const std::string name = "view_flame_" + std::string(value);
        print_against(name.c_str(), seconds(api, "/api/flame?pixels=1500&value=" + std::string(value)),
                      "grouped pass", grouped, "");
    }
    print("view_flame_memory", peak_megabytes() - before, "MB", "");
    print_against("view_search_count", seconds(api, "/api/search?text=function_77&pixels=1500"),
                  "pass over sites", counted, "<= 0.3 s");
}
