// full_trace_fixture.cpp: a trace with one of everything, for tests of formats.
#include "formats/full_trace_fixture.h"

#include <cmath>
#include <string>
#include <vector>

#include "trace/argument_fixture.h"
#include "trace/trace_assembler.h"

namespace marey {
namespace {

using testing::boolean;
using testing::integer;
using testing::real;

class FullTrace {
  public:
    Trace make() {
        add_processes();
        add_operators();
        add_device_work();
        add_python();
        add_overlaps_and_async();
        add_remote();
        add_points();
        add_facts();
        return assembler_.finish();
    }

  private:
    using Range = TraceAssembler::RangeId;

    std::uint32_t site(const std::string& name, Scope scope = Scope::User, const std::string& file = "",
                       std::uint32_t line = 0, const std::string& overload = "") {
        SiteInfo info;
        info.name = assembler_.string(name);
        info.file = assembler_.string(file);
        info.line = line;
        info.scope = scope;
        info.overload = assembler_.string(overload);
        return assembler_.site(info);
    }
    std::uint32_t imported_site(const std::string& name, Scope scope, const std::string& category,
                                const std::string& raw_name = "") {
        SiteInfo info;
        info.name = assembler_.string(name);
        info.scope = scope;
        info.category = assembler_.string(category);
        info.raw_name = assembler_.string(raw_name);
        return assembler_.site(info);
    }
    Row add_thread(Row process, std::uint32_t id, std::int64_t os_tid, const std::string& name) {
        ThreadInfo info;
        info.process = process;
        info.id = id;
        info.os_tid = os_tid;
        info.name = assembler_.string(name);
        return assembler_.add_thread(info);
    }
    std::uint32_t add_lane(Row thread, TrackKind kind, const std::string& name = "", Device device = {},
                           std::int64_t stream = -1) {
        return assembler_.add_lane({thread, kind, device, stream, assembler_.string(name)});
    }

    Argument keyed(Argument value, const std::string& key, ArgumentRole role) {
        value.key = assembler_.string(key);
        value.role = role;
        return value;
    }
    Argument text(const std::string& bytes) { return testing::string_value(assembler_.string(bytes)); }
    Argument list(const std::vector<Argument>& items) {
        Argument value;
        value.kind = ValueKind::List;
        value.list = assembler_.add_list(items);
        return value;
    }
    Argument array(DType dtype, const std::vector<std::int64_t>& sizes_and_strides, bool has_strides) {
        ArrayInfo info;
        info.dtype = dtype;
        info.has_strides = has_strides;
        info.dimensions = static_cast<std::uint32_t>(sizes_and_strides.size() / (has_strides ? 2 : 1));
        Argument value;
        value.kind = ValueKind::Array;
        value.array = assembler_.add_array(info, sizes_and_strides);
        return value;
    }
    void keyword(Range range, const std::string& key, const Argument& value) {
        const Argument one[] = {keyed(value, key, ArgumentRole::Keyword)};
        assembler_.add_values(range, one);
    }
    void positional(Range range, const std::vector<Argument>& values, ArgumentRole role) {
        for (const Argument& value : values) {
            const Argument one[] = {keyed(value, "", role)};
            assembler_.add_values(range, one);
        }
    }

    void add_processes() {
        ProcessInfo trainer;
        trainer.pid = 4711;
        trainer.name = assembler_.string("/opt/bin/trainer");
        trainer.host = assembler_.string("node-a");
        trainer.realtime_offset_ns = 1'700'000'000'000'000'000;
        assembler_.add_process(trainer);
        ProcessInfo server;
        server.pid = 815;
        server.node = 1;
        server.name = assembler_.string("/opt/bin/server");
        server.host = assembler_.string("node-b");
        assembler_.add_process(server);
        main_ = add_thread(0, 1, 4711, "main");
        engine_ = add_thread(0, 2, 4712, "");
        queue_ = add_thread(0, 3, 0, "stream 7");
        copies_ = add_thread(0, 4, 0, "stream 20");
        serving_ = add_thread(1, 1, 815, "serving \xE2\x9C\x93");
        main_lane_ = add_lane(main_, TrackKind::Thread);
        engine_lane_ = add_lane(engine_, TrackKind::Thread);
        queue_lane_ = add_lane(queue_, TrackKind::Device, "", {DeviceType::Cuda, 0}, 7);
        copies_lane_ = add_lane(copies_, TrackKind::Device, "", {DeviceType::Cuda, 0}, 20);
        async_lane_ = add_lane(main_, TrackKind::Async, "requests");
        serving_lane_ = add_lane(serving_, TrackKind::Thread);
        assembler_.set_window(1'000'000, 2'000'000);
        assembler_.window().session_name = "full";
        assembler_.clock().source = "injected";
    }

    void add_operators() {
        step_ = assembler_.add_range(main_lane_, 1'001'000, 900'000, site("ProfilerStep#3", Scope::Step));
        linear_ = assembler_.add_range(main_lane_, 1'010'000, 80'000,
                                       site("aten::linear", Scope::Function, "", 0, "out"));
        positional(
            linear_,
            {array(DType::Float32, {32, 1024, 1024, 1}, true), array(DType::BFloat16, {8}, false),
             list({array(DType::Int64, {2, 3, 3, 1}, true), array(DType::Int64, {}, false)}),
             list({integer(1), integer(-2)}), integer(7), real(0.5), boolean(true), text("same \"x\"")},
            ArgumentRole::Input);
        positional(linear_, {array(DType::Float32, {32, 8, 8, 1}, true)}, ArgumentRole::Output);
        keyword(linear_, "alpha", real(2));
        keyword(linear_, "Input Dims", text("not ours"));
        assembler_.add_detail(linear_, 12, 0, 101);
        addmm_ = assembler_.add_range(main_lane_, 1'011'000, 70'000, site("aten::addmm", Scope::Function));
        assembler_.add_detail(addmm_, 12, 0, 102);
        launch_ = assembler_.add_range(main_lane_, 1'020'000, 5'000,
                                       site("cudaLaunchKernel", Scope::DeviceRuntime));
        copy_call_ = assembler_.add_range(main_lane_, 1'030'000, 4'000,
                                          site("cuMemcpyHtoDAsync_v2", Scope::DeviceRuntime));
        keyword(copy_call_, "correlation", integer(99));
        backward_ = assembler_.add_range(engine_lane_, 1'200'000, 50'000,
                                         site("AddmmBackward0", Scope::BackwardFunction));
        assembler_.add_detail(backward_, 12, 1, 103);
        assembler_.add_link(addmm_, backward_, LinkKind::ForwardBackward);
        assembler_.add_range(engine_lane_, 1'300'000, 800'000,
                             site("left open", Scope::User, "src/a.cpp", 12), kUnfinished);
        assembler_.add_range(engine_lane_, 900'000, 150'000, site("began early"), kBeganBefore);
        assembler_.add_range(engine_lane_, 1'060'000, 10'000, site("lost its end"), kEndInferred);
    }

    void add_device_work() {
        assembler_.add_range(queue_lane_, 1'039'000, 62'000, site("ProfilerStep#3", Scope::Step));
        const Range kernel = assembler_.add_range(
            queue_lane_, 1'040'000, 30'000,
            imported_site("void gemm<float>(Params)", Scope::Device, "kernel", "_Z4gemmIfEv6Params"));
        keyword(kernel, "grid", list({integer(128), integer(1), integer(1)}));
        keyword(kernel, "est. achieved occupancy %", integer(37));
        assembler_.add_link(launch_, kernel, LinkKind::Launch);
        assembler_.add_range(queue_lane_, 1'090'000, 10'000, site("Memset (Device)", Scope::Device));
        const Range copy = assembler_.add_range(copies_lane_, 1'035'000, 90'000,
                                                site("Memcpy HtoD (Pageable -> Device)", Scope::Device));
        keyword(copy, "bytes", integer(1 << 20));
        keyword(copy, "correlation", integer(99));
        assembler_.add_link(copy_call_, copy, LinkKind::Launch);
        // Overlaps the copy, so it gets a separate row.
        assembler_.add_range(copies_lane_, 1'100'000, 60'000, site("Stream Sync", Scope::Device));
    }

    void add_python() {
        const std::uint32_t frame = site("train.py(31): step", Scope::PythonFunction);
        assembler_.add_range(main_lane_, 1'400'000, 90'000, frame);
        assembler_.add_range(main_lane_, 1'410'000, 50'000, site("<built-in method sum>", Scope::CFunction));
        assembler_.add_range(main_lane_, 1'420'000, 10'000, site("Python GC", Scope::GarbageCollection));
    }

    void add_overlaps_and_async() {
        const std::uint32_t crossing = site("crossing");
        assembler_.add_range(main_lane_, 1'500'000, 40'000, crossing);
        assembler_.add_range(main_lane_, 1'520'000, 40'000, crossing);
        const Range first = assembler_.add_range(async_lane_, 1'600'000, 90'000, site("request"), kAsync);
        assembler_.add_range(async_lane_, 1'650'000, 90'000, site("request"), kAsync);
        assembler_.add_link(step_, first, LinkKind::Flow, assembler_.string("submit \xFF"));
    }

    void add_remote() {
        const Range served = assembler_.add_range(serving_lane_, 1'700'000, 50'000,
                                                  site("bytes \xFF\xFE and \x01 \xF0\x9F\x98\x80"), kRemote);
        const Range call = assembler_.add_range(main_lane_, 1'690'000, 70'000, site("call \"server\"\n"));
        assembler_.add_link(call, served, LinkKind::Remote);
        keyword(served, "nothing", Argument());
        keyword(served, "not a number", real(std::nan("")));
        keyword(served, "nested", list({list({text("a"), boolean(false)}), real(-1e300)}));
    }

    void add_points() {
        const Argument why[] = {keyed(text("because"), "why", ArgumentRole::Keyword)};
        assembler_.add_instant(main_, 1'100'000, site("mark", Scope::User, "src/b.cpp", 7), why);
        assembler_.add_instant(queue_, 1'101'000, site("device mark"));
        assembler_.add_counter(main_, 1'000'000, site("loss"), 2.5);
        assembler_.add_counter(main_, 1'500'000, site("loss"), -1e-3);
        assembler_.add_counter(main_, 2'000'000, site("loss"), 3);
        const Device gpu{DeviceType::Cuda, 0};
        assembler_.add_memory(main_, {1'015'000, 0x7F00'0000'1000, 4096, 4096, 8192, gpu, false});
        assembler_.add_memory(main_, {1'085'000, 0x7F00'0000'1000, -4096, 0, 8192, gpu, false});
        assembler_.add_memory(engine_, {1'210'000, 0, 1ll << 40, 0, 8192, {DeviceType::Cpu, -1}, true});
    }

    void add_facts() {
        assembler_.add_metadata("record_shapes", "1");
        assembler_.add_metadata("trace_id", "\"0F3A\"");
        assembler_.add_metadata("distributedInfo", R"({"backend":"nccl","rank":0,"world_size":2})");
        assembler_.add_metadata("broken", "{\"a\":");
        assembler_.add_metadata("traceEvents", "\"a key of ours\"");
        assembler_.add_problem("dropped", "2 events were lost", 2);
    }

    TraceAssembler assembler_;
    Row main_ = 0, engine_ = 0, queue_ = 0, copies_ = 0, serving_ = 0;
    std::uint32_t main_lane_ = 0, engine_lane_ = 0, queue_lane_ = 0, copies_lane_ = 0, async_lane_ = 0,
                  serving_lane_ = 0;
    Range step_ = 0, linear_ = 0, addmm_ = 0, launch_ = 0, copy_call_ = 0, backward_ = 0;
};

}  // namespace

Trace full_trace() {
    return FullTrace().make();
}

}  // namespace marey
