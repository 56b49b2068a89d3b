// device_simulated.cpp: the tests for every device, on the simulated one; and features only it has: losing
// records, refusing, hanging, a wrong clock.
#include <cmath>

#include <marey/gpu_use.h>

#include "support/device_list.h"
#include "support/simulated_device.h"

#if defined(__SANITIZE_THREAD__)
// The child of a fork starts a thread here (the recorder's), which works.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

namespace {

using device_list::check_clock;
using device_list::Counts;
using device_list::options_of;
using device_list::Reading;
using marey::Row;
using marey::Session;
using marey::SessionOptions;
using marey::Trace;

struct Simulated {
    static const char* name() { return "simulated"; }
    static std::string why_not() { return marey::device_error(name()); }
    static int devices() { return 2; }
    static void launch(int device, int queue, std::uint64_t ns) {
        simulated::launch(device, static_cast<std::uint32_t>(queue), "kernel", ns);
    }
    static void graph(int device, int queue, int count) {
        const std::vector<const char*> names(static_cast<std::size_t>(count), "kernel");
        const std::vector<std::uint64_t> durations(static_cast<std::size_t>(count), 1000);
        simulated::graph(device, static_cast<std::uint32_t>(queue), names.data(), durations.data(),
                         static_cast<std::uint32_t>(count));
    }
    static void synchronize(int device) { simulated::synchronize(device); }
    static bool is_kernel(const std::string& shown) { return shown == "kernel"; }
    static bool is_launch(const std::string& shown) { return shown == "simLaunchKernel"; }
    static bool is_graph(const std::string& shown) { return shown == "simGraphLaunch"; }
    static bool is_synchronize(const std::string& shown) { return shown == "simDeviceSynchronize"; }
    static const char* clock_fact() { return "simulated_clock"; }
    static bool works_after_fork() { return true; }
};

}  // namespace

namespace device_list {
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, DeviceList, ::Simulated);
}  // namespace device_list

namespace {

class SimulatedDevice : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(marey::device_error("simulated"), ""); }
    void TearDown() override { simulated::reset(); }
    static void configure(const char* key, double value) {
        ASSERT_EQ(simulated::configure(key, value), 0) << key;
    }
    static Trace run(const SessionOptions& options, const std::function<void()>& body) {
        Session session(options);
        body();
        const Trace trace = session.stop();
        for (const marey::Violation& violation : marey::validate(trace))
            ADD_FAILURE() << violation.rule << ": " << violation.example;
        return trace;
    }
    static Counts names(const Trace& trace) {
        Counts found;
        for (Row row = 0; row < trace.ranges().size(); ++row) ++found[std::string(trace.range_name(row))];
        return found;
    }
    static std::string problem(const Trace& trace, std::string_view code) {
        for (const marey::ProblemInfo& each : trace.problems()) {
            if (each.code == code) return each.text;
        }
        return "";
    }
};

TEST_F(SimulatedDevice, UnknownSettingsAndValuesAreRefused) {
    EXPECT_EQ(simulated::configure("colour", 3), 1);
    EXPECT_EQ(simulated::configure("devices", 0), 1);
    EXPECT_EQ(simulated::configure("latency_ns", std::nan("")), 1);
    EXPECT_EQ(simulated::configure(nullptr, 1), 1);
}

TEST_F(SimulatedDevice, RecordsWithoutABufferAreLostAndCounted) {
    configure("buffer_records", 10);
    configure("buffers", 4);
    configure("hold_buffers", 1);
    SessionOptions options = options_of<Simulated>();
    options.device_activities = marey::kDeviceKernels;
    const Trace trace = run(options, [] {
        for (int i = 0; i < 100; ++i) simulated::launch(0, 0, "kernel", 100);
        simulated::synchronize(0);
    });
    const Reading reading = Reading::of<Simulated>(trace);
    EXPECT_GT(reading.kernels.size(), 0u);
    EXPECT_LE(reading.kernels.size(), 40u);
    EXPECT_EQ(reading.kernels.size() + reading.problem("dropped"), 100u);
    EXPECT_EQ(simulated::lost(), reading.problem("dropped"));
}

TEST_F(SimulatedDevice, RecordsMayComeInAnyOrder) {
    configure("shuffle", 1);
    configure("buffer_records", 64);
    const Trace trace = run(options_of<Simulated>(), [] {
        for (int i = 0; i < 50; ++i) {
            MAREY_RANGE("outer");
            MAREY_RANGE("inner");
            Simulated::launch(0, i % 4, 1000);
        }
    });
    EXPECT_EQ(Reading::of<Simulated>(trace).by_range(), (Counts{{"inner", 50}}));
}

TEST_F(SimulatedDevice, ARefusalIsReportedInTheTraceAndTheNextSessionWorks) {
    configure("refuse", 1);
    const auto body = [] {
        MAREY_RANGE("range");
        Simulated::launch(0, 0, 1000);
    };
    const Trace trace = run(options_of<Simulated>(), body);
    EXPECT_EQ(names(trace), (Counts{{"range", 1}}));
    EXPECT_EQ(problem(trace, "device_not_recorded"),
              "Another profiler is using the simulated device: stop it first.");
    configure("refuse", 0);
    EXPECT_EQ(Reading::of<Simulated>(run(options_of<Simulated>(), body)).by_range(), (Counts{{"range", 1}}));
}

// L18 K10
TEST_F(SimulatedDevice, WithoutADeviceASessionContinuesAndReportsWhy) {
    configure("absent", 1);
    EXPECT_NE(marey::device_error("simulated"), "");
    const Trace trace = run(options_of<Simulated>(), [] {
        MAREY_RANGE("range");
        EXPECT_EQ(simulated::launch(0, 0, "kernel", 1), 0u);
    });
    EXPECT_EQ(names(trace), (Counts{{"range", 1}}));
    EXPECT_EQ(problem(trace, "device_unavailable"), "No simulated device is present: set 'absent' to 0.");
}

// K15
TEST_F(SimulatedDevice, WorkThatNeverEndsDoesNotHoldUpTheStopForEver) {
    const Trace trace = run(options_of<Simulated>(), [] {
        Simulated::launch(0, 1, 1000);
        Simulated::launch(0, 0, MAREY_SIMULATED_FOREVER);
        Simulated::launch(0, 0, 1000);  // stuck behind it
        EXPECT_EQ(simulated::synchronize(0), 1);
    });
    EXPECT_EQ(Reading::of<Simulated>(trace).kernels.size(), 1u);
    EXPECT_NE(problem(trace, "device_work_missing"), "");
}

TEST_F(SimulatedDevice, AWrongClockIsCorrectedWithinTheStatedError) {
    struct Wrong {
        double skew_ns, drift_ppm, noise_ns;
    };
    for (const Wrong wrong : {Wrong{0, 0, 0}, {-5e14, 9000, 0}, {7e14, -9000, 0}, {1e9, 500, 800}}) {
        configure("skew_ns", wrong.skew_ns);
        configure("drift_ppm", wrong.drift_ppm);
        configure("clock_noise_ns", wrong.noise_ns);
        const long long stated = check_clock<Simulated>(500);
        EXPECT_GE(static_cast<double>(stated), wrong.noise_ns);
    }
}

TEST_F(SimulatedDevice, CopiesSetsWaitsOverheadAndDriverCallsAreRecorded) {
    SessionOptions options = options_of<Simulated>();
    options.device_activities = marey::kDeviceAll;
    const Trace trace = run(options, [] {
        simulated::copy(0, 1, "Memcpy HtoD", 4096, 2'000'000);
        simulated::wait(0, 2, 1);
        simulated::set(0, 2, 512, 1000);
        simulated::synchronize(0);
    });
    const Counts found = names(trace);
    for (const char* name : {"Memcpy HtoD", "Memset (Device)", "Stream Wait Event", "Device Synchronize",
                             "Buffer Flush", "simCopyAsync", "simSetAsync", "simStreamWait"})
        EXPECT_EQ(found.count(name), 1u) << name;
    EXPECT_EQ(found.at("simDriverCall"), 3);
    Row copy = 0;
    Row set = 0;
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) == "Memcpy HtoD") copy = row;
        if (trace.range_name(row) == "Memset (Device)") set = row;
    }
    const auto end = trace.ranges().start_ns[copy] + trace.ranges().duration_ns[copy];
    EXPECT_GE(trace.ranges().start_ns[set], end - 1000);  // it waited
}

TEST_F(SimulatedDevice, KernelsOfAGraphMayOverlap) {
    configure("concurrent_graphs", 1);
    const Trace trace = run(options_of<Simulated>(), [] { Simulated::graph(1, 0, 4); });
    int overlapping = 0;
    for (const marey::TrackInfo& track : trace.tracks())
        overlapping += track.kind == marey::TrackKind::Overlap ? 1 : 0;
    EXPECT_EQ(overlapping, 3);
    EXPECT_EQ(trace.links().size(), 4u);
}

// 64 blocks of 128 threads on 16 multiprocessors of 2048: 4 * 128 / 2048.
TEST_F(SimulatedDevice, TheOccupancyOfItsKernelsIsEstimated) {
    const Trace trace = run(options_of<Simulated>(), [] {
        Simulated::launch(0, 0, 1000);
        Simulated::launch(1, 0, 1000);
    });
    const marey::GpuUse use = marey::gpu_use(trace);
    ASSERT_EQ(use.devices.size(), 2u);
    for (const marey::GpuDevice& device : use.devices) {
        ASSERT_EQ(device.kernels.size(), 1u);
        EXPECT_DOUBLE_EQ(device.kernels[0].occupancy.occupancy.value_or(0), 0.25);
    }
}

TEST_F(SimulatedDevice, AllocationsAreReported) {
    configure("memory_bytes", 2000);
    SessionOptions options = options_of<Simulated>();
    options.profile_memory = true;
    const Trace trace = run(options, [] {
        const std::uint64_t block = simulated::allocate(1, 1500);
        EXPECT_NE(block, 0u);
        EXPECT_EQ(simulated::allocate(1, 1000), 0u);
        EXPECT_EQ(simulated::release(1, block), 0);
        EXPECT_EQ(simulated::release(1, block), 1);
    });
    const marey::MemoryColumns memory = trace.memory();
    ASSERT_EQ(memory.size(), 3u);
    EXPECT_EQ(memory.bytes[0], 1500);
    EXPECT_EQ(memory.out_of_memory[1], 1);
    EXPECT_EQ(memory.bytes[2], -1500);
    EXPECT_EQ(memory.total_allocated[2], 0);
    EXPECT_EQ(memory.device[0], (marey::Device{marey::DeviceType::Other, 1}));
}

TEST_F(SimulatedDevice, ACallThatFailsHasItsError) {
    const Trace trace =
        run(options_of<Simulated>(), [] { EXPECT_EQ(simulated::launch(7, 0, "kernel", 1), 0u); });
    Row call = 0;
    while (trace.range_name(call) != "simLaunchKernel") ++call;
    bool has_error = false;
    for (const marey::Argument& argument : trace.range_arguments(call))
        has_error |= trace.string(argument.key) == "error" && argument.integer == 1;
    EXPECT_TRUE(has_error);
}

// ---- the interface beside activities ----

// L3 L18 L19
TEST_F(SimulatedDevice, EventsMeasureWhatLiesBetweenThem) {
    const auto device = marey::find_device("simulated");
    simulated::use(0, 3);
    const auto first = device->record();
    Simulated::launch(0, 3, 5'000'000);
    const auto last = device->record();
    EXPECT_GE(device->elapsed_us(*first, *last), 5000.0);
    EXPECT_EQ(first->device(), 0);
    simulated::use(1, 0);
    const auto elsewhere = device->record();
    try {
        device->elapsed_us(*first, *elsewhere);
        ADD_FAILURE() << "events of two devices were compared";
    } catch (const marey::Error& error) {
        EXPECT_STREQ(error.what(), "Events are not on the same device: 0 vs 1");
    }
    Simulated::launch(1, 0, MAREY_SIMULATED_FOREVER);
    const auto never = device->record();
    EXPECT_THROW(device->elapsed_us(*elsewhere, *never), marey::Error);
    EXPECT_EQ(simulated::use(9, 0), 1);
    simulated::use(0, 0);
}

TEST_F(SimulatedDevice, MarksAndRangesAreRecordedOnTheHost) {
    const auto device = marey::find_device("simulated");
    const Trace trace = run(options_of<Simulated>(), [&] {
        device->range_push("pushed");
        device->mark("marked");
        Simulated::launch(0, 0, 1000);
        device->range_pop();
    });
    EXPECT_EQ(Reading::of<Simulated>(trace).by_range(), (Counts{{"pushed", 1}}));
    ASSERT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.string(trace.sites()[trace.instants().site[0]].name), "marked");
}

TEST_F(SimulatedDevice, EveryDeviceIsVisitedAndTheCurrentOneKept) {
    const auto device = marey::find_device("simulated");
    simulated::use(1, 2);
    std::vector<std::int32_t> visited, current;
    device->on_each_device([&](std::int32_t each) {
        visited.push_back(each);
        current.push_back(device->record()->device());
    });
    EXPECT_EQ(visited, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(current, visited);
    EXPECT_EQ(device->record()->device(), 1);
    simulated::use(0, 0);
}

TEST_F(SimulatedDevice, SynchronizingWaits) {
    const auto device = marey::find_device("simulated");
    const Trace trace = run(options_of<Simulated>(), [&] {
        Simulated::launch(1, 0, 3'000'000);
        device->synchronize();
        MAREY_INSTANT("done");
    });
    const Reading reading = Reading::of<Simulated>(trace);
    ASSERT_EQ(reading.kernels.size(), 1u);
    EXPECT_GE(trace.instants().time_ns[0], reading.end(reading.kernels[0]) - 1000);
    Simulated::launch(1, 0, MAREY_SIMULATED_FOREVER);
    EXPECT_THROW(device->synchronize(), marey::Error);
}

}  // namespace
