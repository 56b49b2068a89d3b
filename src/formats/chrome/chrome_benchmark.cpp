// chrome_benchmark.cpp: the cost of exporting a Chrome trace with all keys of PyTorch traces: shapes, ids,
// devices, flows. 10 million ranges; CPU time per range on one thread, then wall time on all cores.
// bench_chrome [FILE [MILLIONS [THREADS]]]; the file is removed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <ostream>
#include <streambuf>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "formats/chrome/write.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// A training loop on 2 threads and 2 streams. A step has an operator with three inputs, one inside it with
/// two, the call that launches a kernel, the kernel with its eight values, and the backward operator: five
/// ranges and two flows.
class TrainingTrace {
  public:
    explicit TrainingTrace(std::size_t steps) {
        make_sites();
        data_->processes.push_back({});
        data_->processes[0].pid = 4711;
        for (std::uint32_t thread = 0; thread < kThreads; ++thread) add_host_track(thread, steps / kThreads);
        for (std::uint32_t queue = 0; queue < kThreads; ++queue) add_device_track(queue);
        std::stable_sort(data_->links.begin(), data_->links.end(),
                         [](const LinkInfo& a, const LinkInfo& b) { return a.from < b.from; });
        data_->window.start_ns = kEpoch;
        data_->window.end_ns = latest_;
    }
    Trace trace() { return Trace(std::move(data_)); }

  private:
    static constexpr std::uint32_t kThreads = 2;
    static constexpr std::int64_t kEpoch = 1'000'000'000'000;
    static constexpr std::uint32_t kNames = 32;
    static constexpr std::int64_t kStepNs = 9000;

    StringId string(std::string text) {
        data_->strings.push_back(std::move(text));
        return static_cast<StringId>(data_->strings.size() - 1);
    }
    void make_sites() {
        for (std::uint32_t i = 0; i < kNames; ++i) {
            data_->sites.push_back({string("aten::linear_" + std::to_string(i)), 0, 0, Scope::Function});
            data_->sites.push_back({string("aten::addmm_" + std::to_string(i)), 0, 0, Scope::Function});
            data_->sites.push_back({string("cudaLaunchKernel"), 0, 0, Scope::DeviceRuntime});
            data_->sites.push_back(
                {string("AddmmBackward" + std::to_string(i)), 0, 0, Scope::BackwardFunction});
            data_->sites.push_back({string("void cutlass::Kernel<gemm_" + std::to_string(i) + ">(Params)"), 0,
                                    0, Scope::Device});
        }
        for (const char* key : {"queued", "context", "registers per thread", "shared memory", "blocks per SM",
                                "warps per SM", "grid", "block"})
            keys_.push_back(string(key));
    }
    Row add_range(std::int64_t start, std::int64_t duration, std::uint32_t site, Row parent,
                  std::uint32_t depth) {
        data_->range_start_ns.push_back(start);
        data_->range_duration_ns.push_back(duration);
        data_->range_self_ns.push_back(duration);
        data_->range_site.push_back(site);
        data_->range_parent.push_back(parent);
        data_->range_depth.push_back(depth);
        data_->range_flags.push_back(0);
        latest_ = std::max(latest_, start + duration);
        return static_cast<Row>(data_->range_start_ns.size() - 1);
    }
    Argument integer(std::int64_t number, ArgumentRole role, StringId key = 0) {
        Argument value;
        value.kind = ValueKind::Int;
        value.role = role;
        value.integer = number;
        value.key = key;
        return value;
    }
    Argument array(std::int64_t rows, std::int64_t columns) {
        ArrayInfo info;
        info.dtype = DType::Float32;
        info.has_strides = true;
        info.first_extent = static_cast<std::uint32_t>(data_->array_extents.size());
        info.dimensions = 2;
        data_->array_extents.insert(data_->array_extents.end(), {rows, columns, columns, 1});
        Argument value;
        value.kind = ValueKind::Array;
        value.role = ArgumentRole::Input;
        value.array = static_cast<Row>(data_->arrays.size());
        data_->arrays.push_back(info);
        return value;
    }
    void attach(Row row, std::initializer_list<Argument> values) {
        data_->range_arguments.push_back({row, static_cast<std::uint32_t>(data_->arguments.size()),
                                          static_cast<std::uint32_t>(values.size())});
        data_->arguments.insert(data_->arguments.end(), values);
    }
    std::uint32_t add_thread(std::int64_t os_tid) {
        ThreadInfo info;
        info.id = static_cast<std::uint32_t>(data_->threads.size() + 1);
        info.os_tid = os_tid;
        data_->threads.push_back(info);
        return static_cast<Row>(data_->threads.size() - 1);
    }

    void add_host_track(std::uint32_t thread, std::size_t steps) {
        TrackInfo track;
        track.thread = add_thread(4711 + thread);
        track.first_range = static_cast<Row>(data_->range_start_ns.size());
        std::int64_t now = kEpoch;
        for (std::size_t step = 0; step < steps; ++step, now += kStepNs) {
            const auto name = static_cast<std::uint32_t>(step % kNames) * 5;
            const auto batch = std::int64_t{16} << step % 5;
            const Row outer = add_range(now, 4000, name, kNoRow, 0);
            attach(outer, {array(batch, 1024), array(1024, 4096), integer(1, ArgumentRole::Input)});
            const auto sequence = static_cast<std::int64_t>(step);
            data_->range_details.push_back({outer, sequence, 0, 2 * step + 1});
            const Row inner = add_range(now + 300, 3500, name + 1, outer, 1);
            attach(inner, {array(batch, 1024), array(1024, 4096)});
            data_->range_details.push_back({inner, sequence, 0, 2 * step + 2});
            launches_.push_back(add_range(now + 1000, 1500, name + 2, inner, 2));
            const Row backward = add_range(now + 5000, 2000, name + 3, kNoRow, 0);
            data_->range_details.push_back({backward, sequence, track.thread + 1, 0});
            data_->links.push_back({outer, backward, LinkKind::ForwardBackward, 0});
        }
        track.range_count = static_cast<Row>(data_->range_start_ns.size()) - track.first_range;
        data_->tracks.push_back(track);
    }

    void add_device_track(std::uint32_t queue) {
        TrackInfo track;
        track.kind = TrackKind::Device;
        track.thread = add_thread(0);
        track.device = {DeviceType::Cuda, 0};
        track.stream = 7 + queue;
        track.first_range = static_cast<Row>(data_->range_start_ns.size());
        const std::size_t share = launches_.size() / kThreads;
        for (std::size_t i = queue * share; i < (queue + 1) * share; ++i) {
            const Row launch = launches_[i];
            const Row kernel = add_range(data_->range_start_ns[launch] + 2000, 3000,
                                         data_->range_site[launch] + 2, kNoRow, 0);
            data_->links.push_back({launch, kernel, LinkKind::Launch, 0});
            constexpr ArgumentRole kRole = ArgumentRole::Keyword;
            attach(kernel,
                   {integer(0, kRole, keys_[0]), integer(1, kRole, keys_[1]), integer(168, kRole, keys_[2]),
                    integer(49152, kRole, keys_[3]), integer(2, kRole, keys_[4]), integer(8, kRole, keys_[5]),
                    integer(264, kRole, keys_[6]), integer(128, kRole, keys_[7])});
        }
        track.range_count = static_cast<Row>(data_->range_start_ns.size()) - track.first_range;
        data_->tracks.push_back(track);
    }

    std::shared_ptr<TraceData> data_ = std::make_shared<TraceData>();
    std::vector<StringId> keys_;
    std::vector<Row> launches_;
    std::int64_t latest_ = kEpoch;
};

double read_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <typename Work>
double ns_of(clockid_t clock, const Work& work) {
    const double start = read_ns(clock);
    work();
    return read_ns(clock) - start;
}

/// The cost in the kernel: writes as many bytes as the export, using only write(2).
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

/// Discards all output.
class Nowhere : public std::streambuf {
    std::streamsize xsputn(const char*, std::streamsize size) override { return size; }
};

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

int run(int argc, char** argv) {
    constexpr int kRepetitions = 7;
    const std::string path = argc > 1 ? argv[1] : MAREY_BENCH_DIR "/bench_chrome.json";
    const double millions = argc > 2 ? std::strtod(argv[2], nullptr) : 10;
    const Trace trace = TrainingTrace(static_cast<std::size_t>(millions * 1e6) / 5).trace();
    const auto threads = static_cast<unsigned>(argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0);
    const auto count = static_cast<double>(trace.ranges().size());
    constexpr ChromeCut kOneThread{.threads = 1};
    double bytes = 0;
    std::vector<double> exports, floors, formats, walls, walls_of_one;
    for (int i = 0; i <= kRepetitions; ++i) {
        const auto exported = [&](clockid_t clock, ChromeCut cut) {
            const double time = ns_of(clock, [&] { write_chrome_json(trace, path, cut); });
            struct stat info {};
            bytes = stat(path.c_str(), &info) == 0 ? static_cast<double>(info.st_size) : 0;
            std::remove(path.c_str());
            return time / count;
        };
        exports.push_back(exported(CLOCK_PROCESS_CPUTIME_ID, kOneThread));
        floors.push_back(
            ns_of(CLOCK_PROCESS_CPUTIME_ID, [&] { write_bytes(path, static_cast<std::size_t>(bytes)); }) /
            count);
        std::remove(path.c_str());
        Nowhere nowhere;
        std::ostream stream(&nowhere);
        formats.push_back(
            ns_of(CLOCK_PROCESS_CPUTIME_ID, [&] { write_chrome_json(trace, stream, kOneThread); }) / count);
        walls.push_back(exported(CLOCK_MONOTONIC, {.threads = threads}));
        walls_of_one.push_back(exported(CLOCK_MONOTONIC, kOneThread));
        if (i > 0) continue;  // the first run pays for first-touch page faults
        for (std::vector<double>* times : {&exports, &floors, &formats, &walls, &walls_of_one})
            times->clear();
    }
    std::printf(
        "{\"name\": \"export_chrome_full\", \"value\": %.2f, \"unit\": \"ns\", \"against\": \"writing %.0f "
        "bytes\", \"against_value\": %.2f, \"ratio\": %.2f, \"target\": \"<= 200 ns\"}\n"
        "{\"name\": \"export_chrome_format\", \"value\": %.2f, \"unit\": \"ns\", \"note\": \"to a stream "
        "that keeps nothing\"}\n"
        "{\"name\": \"export_chrome_wall\", \"value\": %.2f, \"unit\": \"ns\", \"against\": \"one thread\", "
        "\"against_value\": %.2f, \"ratio\": %.2f}\n",
        median(exports), bytes / count, median(floors), median(exports) / median(floors), median(formats),
        median(walls), median(walls_of_one), median(walls) / median(walls_of_one));
    return 0;
}

}  // namespace
}  // namespace marey

int main(int argc, char** argv) {
    return marey::run(argc, argv);
}
