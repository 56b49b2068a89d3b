// presentation_benchmark.cpp: the cost of exporting, saving, loading and averaging 10 million ranges, in CPU
// time per range on one core. bench_presentation [FILE [MILLIONS]]; the file is removed.
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <marey/analyze.h>
#include <marey/export.h>

#include "base/output_file.h"
#include "formats/chrome/write.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// Ranges with 128 names on 4 threads, three levels deep, with durations that span three decades.
Trace make_trace(std::size_t count) {
    auto data = std::make_shared<TraceData>();
    constexpr std::uint32_t kNames = 128;
    constexpr std::uint32_t kThreads = 4;
    auto string = [&](std::string text) {
        data->strings.push_back(std::move(text));
        return static_cast<StringId>(data->strings.size() - 1);
    };
    const StringId file = string("src/render/scene.cpp");
    for (std::uint32_t i = 0; i < kNames; ++i)
        data->sites.push_back({string("render_layer_" + std::to_string(i)), file, 10 + i, Scope::User});
    data->processes.push_back({});
    data->processes[0].pid = 4711;
    std::uint64_t state = 1;
    auto random = [&] {
        state ^= state << 13;
        state ^= state >> 7;
        return state ^= state << 17;
    };
    constexpr std::int64_t kEpoch = 1'000'000'000'000;
    std::int64_t latest = kEpoch;
    for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        ThreadInfo info;
        info.id = thread + 1;
        info.os_tid = 4711 + thread;
        info.name = string("worker-" + std::to_string(thread));
        data->threads.push_back(info);
        TrackInfo track;
        track.thread = thread;
        track.first_range = static_cast<Row>(data->range_start_ns.size());
        std::int64_t now = kEpoch;
        auto add = [&](std::int64_t start, std::int64_t duration, std::int64_t self, Row parent,
                       std::uint32_t depth) {
            data->range_start_ns.push_back(start);
            data->range_duration_ns.push_back(duration);
            data->range_self_ns.push_back(self);
            // 4 names at the root, 28 below, 96 at the leaves: a tree of ten thousand paths.
            data->range_site.push_back(static_cast<std::uint32_t>(depth == 0   ? random() % 4
                                                                  : depth == 1 ? 4 + random() % 28
                                                                               : 32 + random() % 96));
            data->range_parent.push_back(parent);
            data->range_depth.push_back(depth);
            data->range_flags.push_back(0);
            return static_cast<Row>(data->range_start_ns.size() - 1);
        };
        while (data->range_start_ns.size() - track.first_range < count / kThreads) {
            const std::int64_t d3 = static_cast<std::int64_t>(random() % 2000), d2 = d3 + 500, d1 = d2 + 500;
            const Row a = add(now, d1, 500, kNoRow, 0);
            const Row b = add(now + 100, d2, 500, a, 1);
            add(now + 200, d3, d3, b, 2);
            now += d1 + 50;
        }
        track.range_count = static_cast<Row>(data->range_start_ns.size()) - track.first_range;
        data->tracks.push_back(track);
        latest = std::max(latest, now);
    }
    data->window.start_ns = kEpoch;
    data->window.end_ns = latest;
    return Trace(std::move(data));
}

double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double cpu_ns_of(const std::function<void()>& work) {
    const double start = cpu_ns();
    work();
    return cpu_ns() - start;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

constexpr int kRepetitions = 7;

/// Prints a result in the form that tools/bench.py reads.
void measure(const char* name, const char* target, std::size_t count, const std::function<void()>& work) {
    std::vector<double> runs;
    for (int i = 0; i < kRepetitions; ++i) runs.push_back(cpu_ns_of(work) / static_cast<double>(count));
    std::printf("{\"name\": \"%s\", \"value\": %.2f, \"unit\": \"ns\", \"target\": \"%s\"}\n", name,
                median(runs), target);
}

/// The cost in the kernel: writes as many bytes as the export, using only write(2) from a buffer of the same
/// size.
void write_bytes(const std::string& path, std::size_t bytes) {
    const std::vector<char> block(OutputFile::kBufferBytes, 'x');
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while (bytes > 0) {
        const ssize_t written = ::write(file, block.data(), std::min(bytes, block.size()));
        if (written <= 0) std::abort();  // a shorter write would not be a valid baseline
        bytes -= static_cast<std::size_t>(written);
    }
    ::close(file);
}

void measure_export(const Trace& trace, const std::string& path) {
    const auto count = static_cast<double>(trace.ranges().size());
    std::vector<double> exports, floors;
    double bytes = 0;
    auto export_once = [&] {
        exports.push_back(cpu_ns_of([&] { write_chrome_json(trace, path, {.threads = 1}); }) / count);
        struct stat info {};
        bytes = stat(path.c_str(), &info) == 0 ? static_cast<double>(info.st_size) : 0;
        std::remove(path.c_str());
    };
    auto floor_once = [&] {
        floors.push_back(cpu_ns_of([&] { write_bytes(path, static_cast<std::size_t>(bytes)); }) / count);
        std::remove(path.c_str());
    };
    // One warm-up run, because the first run pays for first-touch page faults; then both take turns at being
    // first.
    export_once();
    exports.clear();
    for (int i = 0; i < kRepetitions; ++i) {
        if (i % 2 == 0) export_once();
        floor_once();
        if (i % 2 != 0) export_once();
    }
    std::printf(
        "{\"name\": \"export_chrome\", \"value\": %.2f, \"unit\": \"ns\", \"against\": \"writing %.0f "
        "bytes\", "
        "\"against_value\": %.2f, \"ratio\": %.2f, \"target\": \"<= 100 ns\"}\n",
        median(exports), bytes / count, median(floors), median(exports) / median(floors));
}

/// Saving the tables and loading them again.
void measure_saving(const Trace& trace, const std::string& path) {
    const std::string saved = path + ".marey";
    trace.save(saved);  // not measured: the first run pays for first-touch page faults
    measure("save", "", trace.ranges().size(), [&] { trace.save(saved); });
    measure("load", "", trace.ranges().size(), [&] { Trace::load(saved); });
    std::remove(saved.c_str());
}

/// The trace with typical operator inputs: two arrays of two sizes and a number on two of three ranges, with
/// a thousand different shapes.
Trace make_operator_trace(std::size_t count) {
    const Trace plain = make_trace(count);
    auto data = std::make_shared<TraceData>(plain.data());
    std::uint64_t state = 7;
    for (Row row = 0; row < data->range_start_ns.size(); ++row) {
        if (row % 3 == 0) continue;
        state = state * 6364136223846793005u + 1442695040888963407u;
        const auto size = static_cast<std::int64_t>(16 + (state >> 33) % 8);
        data->range_arguments.push_back({row, static_cast<std::uint32_t>(data->arguments.size()), 3});
        Argument value;
        value.role = ArgumentRole::Input;
        for (int input = 0; input < 2; ++input) {
            ArrayInfo array;
            array.dtype = DType::Float32;
            array.dimensions = 2;
            array.first_extent = static_cast<std::uint32_t>(data->array_extents.size());
            data->array_extents.insert(data->array_extents.end(), {size, 64});
            value.kind = ValueKind::Array;
            value.array = static_cast<Row>(data->arrays.size());
            data->arrays.push_back(array);
            data->arguments.push_back(value);
        }
        value.kind = ValueKind::Int;
        value.integer = 1;
        data->arguments.push_back(value);
    }
    return Trace(std::move(data));
}

void measure_by_shape(std::size_t count) {
    const Trace trace = make_operator_trace(count);
    measure("averages_by_shape", "<= 80 ns", trace.ranges().size(),
            [&] { key_averages(trace, {.by_input_shape = true}); });
}

/// The time to format 1,000 groups, in milliseconds.
void measure_table() {
    Averages averages;
    for (int i = 0; i < 1000; ++i) {
        AverageRow& row = averages.rows.emplace_back();
        row.name = "aten::operator_number_" + std::to_string(i);
        row.count = 1000 + static_cast<std::uint64_t>(i);
        row.self_cpu_time_total_ns = 1'234'567 * (i % 77 + 1);
        row.cpu_time_total_ns = 2 * row.self_cpu_time_total_ns;
        row.self_device_time_total_ns = row.device_time_total_ns = 777'777 * (i % 13);
        row.cpu_memory_bytes = row.self_cpu_memory_bytes = 4321 * i;
        row.input_shapes = "[[" + std::to_string(i) + ", 128], [128, 64], []]";
        row.flops = 1e6 * i;
    }
    averages.has_memory = true;
    averages.device = DeviceType::Cuda;
    std::vector<double> runs;
    for (int i = 0; i < kRepetitions; ++i)
        runs.push_back(cpu_ns_of([&] {
                           averages_table(averages, {.sort_by = "self_cuda_time_total", .row_limit = -1});
                       }) /
                       1e6);
    std::printf("{\"name\": \"table\", \"value\": %.3f, \"unit\": \"ms\", \"target\": \"<= 5 ms\"}\n",
                median(runs));
}

/// Resident memory of this process: current ("VmRSS") or peak ("VmHWM").
double memory_in_use(const char* key) {
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line)) {
        if (line.starts_with(key)) return std::strtod(line.c_str() + std::strlen(key) + 1, nullptr) * 1024;
    }
    return 0;
}

/// The peak memory during averages and an export, beyond the memory of the trace itself. Runs in a separate
/// process, because the peak of a process never decreases.
void measure_peak_memory(const std::string& path, std::size_t count) {
    std::fflush(stdout);
    const pid_t child = ::fork();
    if (child == 0) {
        const double before = memory_in_use("VmRSS");
        Trace trace;
        {
            const Trace made = make_trace(count);
            trace = Trace(
                std::make_shared<TraceData>(made.data()));  // without the spare capacity of growing vectors
        }
        ::malloc_trim(0);
        std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak to the current use
        const double held = memory_in_use("VmRSS") - before;
        key_averages(trace);
        write_chrome_json(trace, path);
        const double peak = memory_in_use("VmHWM") - before;
        std::remove(path.c_str());
        std::printf(
            "{\"name\": \"peak_memory\", \"value\": %.3f, \"unit\": \"x\", \"against\": \"the trace in "
            "memory, "
            "%.1f bytes per range\", \"against_value\": 1, \"ratio\": %.3f, \"target\": \"<= 1.2\"}\n",
            peak / held, held / static_cast<double>(trace.ranges().size()), peak / held);
        std::fflush(stdout);
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
}

int run(int argc, char** argv) {
    const std::string path = argc > 1 ? argv[1] : MAREY_BENCH_DIR "/bench_presentation.json";
    const std::size_t millions = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10;
    measure_peak_memory(path, millions * 1'000'000);
    const Trace trace = make_trace(millions * 1'000'000);
    const std::size_t count = trace.ranges().size();
    measure_export(trace, path);
    measure_saving(trace, path);
    measure("averages", "<= 40 ns", count, [&] { key_averages(trace); });
    measure("averages_with_percentiles", "<= 80 ns", count,
            [&] { key_averages(trace, {.percentiles = true}); });
    measure_by_shape(millions * 1'000'000);
    measure_table();
    measure("call_tree", "<= 80 ns", count, [&] { call_tree(trace); });
    return 0;
}

}  // namespace
}  // namespace marey

int main(int argc, char** argv) {
    return marey::run(argc, argv);
}
