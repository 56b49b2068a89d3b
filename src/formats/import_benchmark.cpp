// import_benchmark.cpp: the cost of reading a Chrome trace like PyTorch's, in CPU time per event on one core,
// compared with Python's json.load of the same file. bench_import [FILE [THOUSANDS]]; the file is removed.
// bench_import FILE THOUSANDS keep: only creates the file.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <marey/import.h>

#include "base/output_file.h"

namespace marey {
namespace {

/// Writes events as PyTorch does: operators three levels deep with shapes, runtime calls, kernels and their
/// flows.
class TorchFile {
  public:
    explicit TorchFile(const std::string& path) : file_(path) {
        file_.write(
            "{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n  ],\n  \"record_shapes\": 1,\n"
            "  \"displayTimeUnit\": \"ms\",\n  \"baseTimeNanoseconds\": 1790857026000000000,\n"
            "  \"traceEvents\": [\n");
        write(
            "  {\n    \"name\": \"process_name\", \"ph\": \"M\", \"ts\": 3876547467250.273, \"pid\": 4711, "
            "\"tid\": 0,\n    \"args\": {\n      \"name\": \"python\"\n    }\n  },\n");
    }
    void make(std::uint64_t events) {
        while (count_ < events) step();
        write(
            "  {\n    \"ph\": \"i\", \"s\": \"g\", \"name\": \"Record Window End\", \"pid\": \"\", \"tid\": "
            "\"\", "
            "\"ts\": %s\n  }\n  ]\n}\n",
            micros(now_));
        file_.commit();
    }
    std::uint64_t count() const { return count_; }

  private:
    template <typename... Parts>
    void write(const char* format, Parts... parts) {
        if constexpr (sizeof...(Parts) == 0) {
            file_.write(std::string_view(format));
        } else {
            const int size = std::snprintf(line_, sizeof line_, format, parts...);
            file_.write({line_, static_cast<std::size_t>(size)});
        }
        ++count_;
    }
    const char* micros(std::int64_t ns) {
        char* const text = times_[next_time_++ % 4];
        std::snprintf(text, sizeof times_[0], "%lld.%03lld", static_cast<long long>(ns / 1000),
                      static_cast<long long>(ns % 1000));
        return text;
    }
    void op(const char* name, std::int64_t start, std::int64_t end, const char* more) {
        write(
            "  {\n    \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"%s\", \"pid\": 4711, \"tid\": 4711,\n"
            "    \"ts\": %s, \"dur\": %s,\n    \"args\": {\n      \"External id\": %llu,\"Record function "
            "id\": "
            "0, \"Sequence number\": %llu, \"Fwd thread id\": 0, %s, \"Ev Idx\": %llu\n    }\n  },\n",
            name, micros(start), micros(end - start), static_cast<unsigned long long>(count_),
            static_cast<unsigned long long>(count_ / 7), more, static_cast<unsigned long long>(count_));
    }
    /// linear { addmm { cudaLaunchKernel } } and its kernel: six events.
    void step() {
        static constexpr const char* kOps[] = {"aten::linear", "aten::matmul", "aten::conv2d", "aten::gelu",
                                               "aten::layer_norm"};
        static constexpr const char* kKernels[] = {
            "ampere_sgemm_128x64_tn",
            "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float>>(int)",
            "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1>(cudnn::...)"};
        char shapes[512];
        const unsigned batch = 1u << count_ % 5, width = 64 * (1 + static_cast<unsigned>(count_ / 6 % 12));
        std::snprintf(shapes, sizeof shapes,
                      "\"Concrete Inputs\": [\"\", \"\", \"\", \"1\", \"1\"], \"Input type\": [\"float\", "
                      "\"float\", \"float\", \"Scalar\", \"Scalar\"], \"Input Strides\": [[1], [%u, 1], [1, "
                      "%u], [], []], \"Input Dims\": [[%u], [%u, %u], [%u, %u], [], []]",
                      width, width, width, batch, width, width, width);
        const std::int64_t start = now_;
        op(kOps[count_ / 6 % 5], start, start + 40'123, shapes);
        op("aten::addmm", start + 2'017, start + 38'456, shapes);
        write(
            "  {\n    \"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": "
            "4711, "
            "\"tid\": 4711,\n    \"ts\": %s, \"dur\": %s,\n    \"args\": {\n      \"External id\": %llu, "
            "\"cbid\": 211, \"correlation\": %llu\n    }\n  },\n",
            micros(start + 20'001), micros(6'250), static_cast<unsigned long long>(count_ - 1),
            static_cast<unsigned long long>(count_));
        const unsigned long long correlation = count_ - 1;
        write(
            "  {\n    \"ph\": \"s\", \"id\": %llu, \"pid\": 4711, \"tid\": 4711, \"ts\": %s,\n    \"cat\": "
            "\"ac2g\", \"name\": \"ac2g\"\n  },\n",
            correlation, micros(start + 20'001));
        write(
            "  {\n    \"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"%s\", \"pid\": 0, \"tid\": 7,\n    "
            "\"ts\": %s, \"dur\": %s,\n    \"args\": {\n      \"External id\": %llu, \"queued\": 0, "
            "\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": %llu, \"registers per thread\": "
            "%u, \"shared memory\": 16896, \"blocks per SM\": 1.1851852, \"warps per SM\": 4.740741, "
            "\"grid\": [%u, 2, 1], \"block\": [128, 1, 1], \"est. achieved occupancy %%\": 7\n    }\n  },\n",
            kKernels[count_ / 6 % 3], micros(start + 30'007), micros(9'984), correlation - 2, correlation,
            32 + batch, batch);
        write(
            "  {\n    \"ph\": \"f\", \"id\": %llu, \"pid\": 0, \"tid\": 7, \"ts\": %s,\n    \"cat\": "
            "\"ac2g\", "
            "\"name\": \"ac2g\", \"bp\": \"e\"\n  },\n",
            correlation, micros(start + 30'007));
        now_ += 41'337;
    }

    OutputFile file_;
    std::uint64_t count_ = 0;
    std::int64_t now_ = 3'876'547'467'640'456;
    char line_[4096];
    char times_[4][32];
    unsigned next_time_ = 0;
};

double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// CPU time of json.load, as measured by Python; 0 if there is no Python.
double python_ns(const std::string& path) {
    const std::string command =
        "python3 -c 'import json, sys, time; begin = time.process_time_ns(); json.load(open(sys.argv[1])); "
        "print(time.process_time_ns() - begin)' '" +
        path + "'";
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    double ns = 0;
    if (pipe == nullptr || std::fscanf(pipe, "%lf", &ns) != 1) ns = 0;
    if (pipe != nullptr) ::pclose(pipe);
    return ns;
}

constexpr int kRepetitions = 7;

int run(int argc, char** argv) {
    const std::string path = argc > 1 ? argv[1] : MAREY_BENCH_DIR "/bench_import.json";
    const std::uint64_t thousands = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1000;
    TorchFile file(path);
    file.make(thousands * 1000);
    if (argc > 3 && std::strcmp(argv[3], "keep") == 0) return 0;
    struct stat info {};
    const double bytes = ::stat(path.c_str(), &info) == 0 ? static_cast<double>(info.st_size) : 0;
    const auto count = static_cast<double>(file.count());
    std::vector<double> ours, pythons;
    open_trace(path);  // not measured: the first run pays for first-touch page faults
    for (int i = 0; i < kRepetitions; ++i) {
        const double start = cpu_ns();
        open_trace(path);
        ours.push_back((cpu_ns() - start) / count);
        pythons.push_back(python_ns(path) / count);
    }
    std::remove(path.c_str());
    std::printf(
        "{\"name\": \"import_chrome\", \"value\": %.1f, \"unit\": \"ns\", \"target\": \"<= 400 ns\"}\n"
        "{\"name\": \"import_chrome_speed\", \"value\": %.2f, \"unit\": \"GB/s\", \"against\": \"Python's "
        "json.load, %.0f bytes per event\", \"against_value\": %.3f, \"ratio\": %.1f, \"target\": \">= "
        "10\"}\n",
        median(ours), bytes / count / median(ours), bytes / count, bytes / count / median(pythons),
        median(pythons) / median(ours));
    return 0;
}

}  // namespace
}  // namespace marey

int main(int argc, char** argv) {
    return marey::run(argc, argv);
}
