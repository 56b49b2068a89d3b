// gpu_fixture.h: test traces of a thread that launches work on devices.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "trace/trace_assembler.h"

namespace marey::testing {

/// GpuFixture gpu; gpu.kernel(100, 50, "add", gpu.call(80, 5)): a kernel and the call that launched it. Times
/// are in nanoseconds, or in any unit that the caller chooses.
class GpuFixture {
  public:
    using Id = TraceAssembler::RangeId;
    static constexpr Id kNoCall = TraceAssembler::LinkEnd::kNoRange;

    GpuFixture() {
        ProcessInfo process;
        process.pid = 4711;
        assembler_.add_process(process);
        thread("main");
    }

    /// Selects the thread for the following calls; creates it if necessary.
    GpuFixture& thread(const std::string& name) {
        const auto [place, is_new] = threads_.try_emplace(name, 0);
        if (is_new)
            place->second = assembler_.add_lane({add_thread(name, 1000), TrackKind::Thread, {}, -1, 0});
        lane_ = place->second;
        return *this;
    }
    GpuFixture& device(std::int32_t index, std::int64_t stream = 7) {
        device_ = index;
        stream_ = stream;
        return *this;
    }
    GpuFixture& window(std::int64_t start, std::int64_t end) {
        assembler_.set_window(start, end);
        return *this;
    }

    Id range(std::int64_t start, std::int64_t duration, const std::string& name,
             Scope scope = Scope::Function) {
        return assembler_.add_range(lane_, start, duration, site(name, scope, ""));
    }
    Id python(std::int64_t start, std::int64_t duration, const std::string& name) {
        return range(start, duration, name, Scope::PythonFunction);
    }
    Id call(std::int64_t start, std::int64_t duration, const std::string& name = "cudaLaunchKernel") {
        return assembler_.add_range(lane_, start, duration, site(name, Scope::DeviceRuntime, "cuda_runtime"));
    }

    /// Adds work on the device and stream chosen with device().
    Id work(std::int64_t start, std::int64_t duration, const std::string& name, const std::string& category,
            Id launched_by = kNoCall, TrackKind kind = TrackKind::Device, Scope scope = Scope::Device) {
        const Id range = assembler_.add_range(queue(kind), start, duration, site(name, scope, category));
        if (launched_by != kNoCall) assembler_.add_link(launched_by, range, LinkKind::Launch);
        return range;
    }
    Id kernel(std::int64_t start, std::int64_t duration, const std::string& name, Id launched_by = kNoCall) {
        return work(start, duration, name, "kernel", launched_by);
    }
    Id copy(std::int64_t start, std::int64_t duration, std::int64_t bytes,
            const std::string& name = "Memcpy HtoD (Pinned -> Device)", Id launched_by = kNoCall) {
        const Id range = work(start, duration, name, "gpu_memcpy", launched_by);
        integer(range, "bytes", bytes);
        return range;
    }
    GpuFixture& shape(Id kernel, const std::vector<std::int64_t>& grid,
                      const std::vector<std::int64_t>& block, std::int64_t registers = 32,
                      std::int64_t shared_bytes = 0) {
        list(kernel, "grid", grid);
        list(kernel, "block", block);
        integer(kernel, "registers per thread", registers);
        integer(kernel, "shared memory", shared_bytes);
        return *this;
    }
    void integer(Id range, const std::string& key, std::int64_t number) {
        Argument value;
        value.key = assembler_.string(key);
        value.kind = ValueKind::Int;
        value.integer = number;
        assembler_.add_values(range, {&value, 1});
    }
    void text(Id range, const std::string& key, const std::string& words) {
        Argument value;
        value.key = assembler_.string(key);
        value.kind = ValueKind::String;
        value.string = assembler_.string(words);
        assembler_.add_values(range, {&value, 1});
    }
    /// An A100: 108 multiprocessors of 2048 threads.
    GpuFixture& properties() {
        assembler_.add_metadata(
            "deviceProperties",
            R"([{"id":0,"name":"A100","computeMajor":8,"computeMinor":0,"warpSize":32,"numSms":108,)"
            R"("maxThreadsPerMultiprocessor":2048,"regsPerMultiprocessor":65536,"extra":[{"a":1}],)"
            R"("sharedMemPerMultiprocessor":167936}])");
        return *this;
    }
    TraceAssembler& assembler() { return assembler_; }
    Trace trace() { return assembler_.finish(); }

  private:
    Row add_thread(const std::string& name, std::int64_t os_tid) {
        ThreadInfo info;
        info.id = ++last_thread_;
        info.os_tid = os_tid == 0 ? 0 : os_tid + info.id;
        info.name = assembler_.string(name);
        return assembler_.add_thread(info);
    }
    std::uint32_t site(const std::string& name, Scope scope, const std::string& category) {
        SiteInfo info;
        info.name = assembler_.string(name);
        info.scope = scope;
        info.category = category.empty() ? 0 : assembler_.string(category);
        return assembler_.site(info);
    }
    std::uint32_t queue(TrackKind kind) {
        const auto [place, is_new] = queues_.try_emplace({device_, stream_, kind}, 0);
        if (is_new) {
            const Row thread = add_thread("stream " + std::to_string(stream_), 0);
            place->second = assembler_.add_lane({thread, kind, {DeviceType::Cuda, device_}, stream_, 0});
        }
        return place->second;
    }
    void list(Id range, const std::string& key, const std::vector<std::int64_t>& numbers) {
        std::vector<Argument> items(numbers.size());
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            items[i].kind = ValueKind::Int;
            items[i].integer = numbers[i];
        }
        Argument value;
        value.key = assembler_.string(key);
        value.kind = ValueKind::List;
        value.list = assembler_.add_list(items);
        assembler_.add_values(range, {&value, 1});
    }

    TraceAssembler assembler_;
    std::map<std::string, std::uint32_t> threads_;  ///< lanes
    std::map<std::tuple<std::int32_t, std::int64_t, TrackKind>, std::uint32_t> queues_;
    std::uint32_t lane_ = 0;
    std::uint32_t last_thread_ = 0;
    std::int32_t device_ = 0;
    std::int64_t stream_ = 7;
};

}  // namespace marey::testing
