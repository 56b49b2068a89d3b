// compact_test.cpp: packed captures and saved traces give back their input.
#include "collect/compact.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include <marey/error.h>
#include <marey/merge.h>
#include <marey/progress.h>

#include "base/compress.h"
#include "collect/capture_reader.h"
#include "collect/device_fixture.h"
#include "collect/log_fixture.h"
#include "collect/packed_capture.h"
#include "collect/random_log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"
#include "trace/saved_trace.h"
#include "trace/trace_difference_fixture.h"

namespace marey {
namespace {

using namespace detail;
using testing::find_fault;
using testing::LogWriter;
using testing::outline;

class Compact : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!can_compress()) GTEST_SKIP() << "this build has no zstd";
        folder_ = std::filesystem::temp_directory_path() / ("marey-compact-" + std::to_string(getpid()));
        std::filesystem::create_directories(folder_);
    }
    void TearDown() override {
        if (!folder_.empty()) std::filesystem::remove_all(folder_);
    }
    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    void write(const std::string& to, const std::vector<std::byte>& bytes) {
        std::ofstream(to, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    std::filesystem::path folder_;
};

LogWriter rich_log() {
    LogWriter log;
    log.start(3, 5,
              {.name = "run",
               .option_bits = LogWriter::kAllOptions | testing::device_bits(kDeviceAll | kDeviceTimes),
               .policy = 2,
               .max_bytes = 1 << 20,
               .device_types = testing::kCudaBit})
        .born(1, "main", 1)
        .born(2, "worker", 7);
    log.cost(CostKind::Range, 13'400).note("layout", "Something.", 3).losses(2, 4, 5, 6, 7);
    auto values = log.values();
    values.integer("n", 7)
        .text("file", "x.txt")
        .list("sizes", 2)
        .integer("", 1)
        .real("", 2.5)
        .boolean("ok", true)
        .array("grid", {.sizes = {4, 0}, .strides = {1, 4}, .dtype = DType::Int8, .storage = 0x1000});
    auto forward = log.values();
    forward.input().array("", {.sizes = {2, 3}, .device = {DeviceType::Cuda, 1}, .storage_id = 9});
    forward.input().list("", 2).array("", {.sizes = {}}).array("", {.sizes = {}, .is_defined = false});
    forward.input().integer("", 1).output().array("", {.sizes = {2}}).none("", ValueKind::Double);
    forward.facts(17, 0, 99);
    log.module("/bin/program", "0123456789abcdef", 0x400000);
    forward.stack({log.site("x.py(3): f", Scope::PythonFunction, "x.py", 3) | 5ull << kFrameLineShift,
                   kFrameNative | 1ull << kFrameModuleShift | 0x1234});
    log.thread(1)
        .memory(11, 0xabc000, 512, 512, 4096)
        .long_range("forward", 12, 20, 1, 0, forward.bytes(), Scope::Function)
        .long_range("c", 22, 30, 1, 0, values.bytes())
        .instant("tick", 35)
        .range("a", 10, 50, 0)
        .long_range("inferred", 60, 70, 0, kRecordUnfinished)
        .next_chunk(60, {61, 61, 100, 3})
        .range("d", 75, 76, 1)
        .open("still", 72, 0, log.values().integer("left", 2).bytes());
    log.thread(2)
        .async_begin(9, "moved", 11, 0)
        .counter("load", 12, 0.25)
        .integer_counter("queue", 13, -4)
        .long_instant("flush", 14, log.values().text("why", "full").bytes())
        .async_begin(10, "crossing", 15, 0)
        .async_end(9, 40, 0)
        .async_end(10, 45, 0)
        .long_range("taken out", 41, 55, 3, kRecordAsync)
        .long_range("backward", 56, 58, 1, 0, log.values().facts(17, 1).bytes(), Scope::BackwardFunction)
        .long_range("autograd::engine::evaluate_function: Mul", 56, 58, 0, 0, {}, Scope::Function)
        .memory(57, 0xabc000, -512, 0, 4096, {DeviceType::Cuda, 0})
        .memory(59, 0, 1 << 30, 0, 4096, {DeviceType::Cuda, 0}, true)
        .dropped(4, 2)
        .put(static_cast<RecordKind>(0xf3), 1, 2, 46, 4, 5, std::vector<std::byte>(21, std::byte{9}))
        .compact(0x33, 1, 47, 48, 3)
        .mark(3, 49)
        .switch_to(1, 50);
    log.born(4, "cuda", 2, 0);
    testing::put_call(log, 4, {.start = 14, .end = 18, .os_tid = 100, .correlation = 6});
    testing::put_call(log, 4,
                      {.name = "cuLaunch",
                       .start = 15,
                       .end = 17,
                       .os_tid = 777,
                       .correlation = 6,
                       .is_driver = true,
                       .result = 2});
    testing::put_work(log, 4,
                      {.name = "_Z1kv",
                       .start = 20,
                       .end = 30,
                       .correlation = 6,
                       .values = log.values().integer("priority", 1).bytes()});
    testing::put_work(log, 4,
                      {.name = "copy", .start = 25, .end = 40, .kind = DeviceWorkKind::Copy, .bytes = 64});
    testing::put_work(
        log, 4,
        {.name = "op", .start = 41, .end = 45, .stream = ~0u, .kind = DeviceWorkKind::Timed, .range = 99});
    testing::put_work(log, 4, {.name = "wait", .start = 42, .end = 44, .kind = DeviceWorkKind::Wait});
    return log;
}

void expect_equal(const Trace& a, const Trace& b) {
    EXPECT_EQ(outline(a), outline(b));
    EXPECT_EQ(testing::find_difference(a.data(), b.data()), "");
}

TEST_F(Compact, PackingKeepsEveryByteOfALogWithRecordsOfAllKinds) {
    const LogWriter log = rich_log();
    EXPECT_TRUE(is_same_log(log.raw(), unpack_capture(pack_capture(log.raw()), "packed")));
}

TEST_F(Compact, PackingKeepsRecordsOfIrregularShape) {
    LogWriter log;
    auto& thread = log.thread(1);
    thread.range("a", 5, 6, 0);
    LongRecord odd{0x81,  0xff, 7,   1,
                   ~0ull, 3,    ~0u, 4};  // more units than it needs, and something in the padding
    std::vector<std::byte> bytes(7 * 16, std::byte{0xee});
    std::memcpy(bytes.data(), &odd, sizeof odd);
    RawLog raw = log.raw();
    std::vector<std::byte> records(raw.spans[0].data, raw.spans[0].data + raw.spans[0].bytes);
    records.insert(records.end(), bytes.begin(), bytes.end());
    raw.spans[0].data = records.data();
    raw.spans[0].bytes = records.size();
    raw.spans[0].base_ticks = ~0ull - 100;
    EXPECT_TRUE(is_same_log(raw, unpack_capture(pack_capture(raw), "packed")));
}

TEST_F(Compact, PackingRandomRecordsKeepsEveryByte) {
    std::mt19937_64 random(4);
    for (int round = 0; round < 300; ++round) {
        LogWriter log;
        for (int i = 0; i < 60; ++i) {
            auto& thread = log.thread(1 + random() % 3);
            const auto wild = [&] { return random() >> (random() % 64); };
            switch (random() % 4) {
                case 0:
                    thread.compact(random() % 5, wild() & 0xffffff, 0, wild() & ((1ull << 40) - 1),
                                   wild() & 0xff);
                    break;
                case 1:
                    thread.range("r" + std::to_string(random() % 9), 100 * i, 100 * i + random() % 200,
                                 random() % 5);
                    break;
                case 2:
                    thread.next_chunk(wild());
                    break;
                default:
                    thread.put(static_cast<RecordKind>(0x80 | random() % 16),
                               static_cast<int>(random() % 256), wild(), wild(), wild(), wild(),
                               std::vector<std::byte>(random() % 40, std::byte{7}));
            }
        }
        ASSERT_TRUE(is_same_log(log.raw(), unpack_capture(pack_capture(log.raw()), "packed"))) << round;
    }
}

TEST_F(Compact, ACompactedCaptureBuildsIntoTheSameTrace) {
    write(path("in.marey"), rich_log().file());
    compact_capture(path("in.marey"), path("out.marey"));
    const Trace before = Trace::load(path("in.marey"));
    const Trace after = Trace::load(path("out.marey"));
    EXPECT_EQ(find_fault(after), "");
    expect_equal(before, after);
    EXPECT_LT(std::filesystem::file_size(path("out.marey")),
              std::filesystem::file_size(path("in.marey")) / 10);
}

TEST_F(Compact, LongWorkCountsForItsWatcher) {
    write(path("in.marey"), testing::realistic_log(10'000, 50, 4, 1).file());
    WorkProgress progress;
    const WatchedWork watched(progress);
    const auto counted = [&](const char* what) {
        EXPECT_GT(progress.done, 0u) << what;
        EXPECT_EQ(progress.total, 0u) << what << " is over";
        progress.done = 0;
    };
    compact_capture(path("in.marey"), path("out.marey"));
    counted("compacting");
    const Trace trace = Trace::load(path("in.marey"));
    counted("reading a capture");
    trace.save(path("saved.marey"));
    counted("saving");
    Trace::load(path("saved.marey"));
    counted("reading a saved trace");
    load_merged({path("in.marey"), path("saved.marey")}, {.any_tree = true});
    counted("merging");
}

TEST_F(Compact, ACaptureMayBeCompactedInPlaceAndAgain) {
    write(path("x.marey"), rich_log().file());
    const Trace before = Trace::load(path("x.marey"));
    compact_capture(path("x.marey"), path("x.marey"));
    compact_capture(path("x.marey"), path("x.marey"));
    expect_equal(before, Trace::load(path("x.marey")));
}

TEST_F(Compact, AFailureLeavesTheTargetAsItWas) {
    write(path("bad.marey"), {});
    write(path("out.marey"), {std::byte{1}});
    EXPECT_THROW(compact_capture(path("bad.marey"), path("out.marey")), Error);
    EXPECT_THROW(compact_capture(path("none.marey"), path("out.marey")), Error);
    EXPECT_EQ(std::filesystem::file_size(path("out.marey")), 1u);
}

TEST_F(Compact, RealisticRangesTakeAtMostSixBytes) {
    const LogWriter log = testing::realistic_log(100'000, 50, 4, 1);
    const std::vector<std::byte> packed = pack_capture(log.raw());
    EXPECT_LE(static_cast<double>(packed.size()) / 100'000, 6.0);
    EXPECT_TRUE(is_same_log(log.raw(), unpack_capture(packed, "packed")));
}

TEST_F(Compact, ALogThatCompressesToAlmostNothingIsReadBack) {
    LogWriter log;
    for (std::uint64_t i = 0; i < 400'000; ++i) log.thread(1).range("same", 10 * i, 10 * i + 5, 0);
    const std::vector<std::byte> packed = pack_capture(log.raw());
    EXPECT_LT(packed.size(), 100'000u);
    EXPECT_TRUE(is_same_log(log.raw(), unpack_capture(packed, "packed")));
}

TEST_F(Compact, ADamagedPackedCaptureIsAnErrorThatNamesIt) {
    const std::vector<std::byte> packed = pack_capture(rich_log().raw());
    std::mt19937 random(7);
    int errors = 0;
    for (std::size_t at = 0; at < packed.size(); at += 1 + random() % 3) {
        std::vector<std::byte> bytes = packed;
        bytes[at] ^= std::byte{static_cast<unsigned char>(1u << random() % 8)};
        try {
            EXPECT_EQ(find_fault(build_trace(read_capture_bytes(bytes, nullptr, "x.marey"))), "");
        } catch (const Error& error) {
            ++errors;
            EXPECT_EQ(std::string(error.what()).rfind("x.marey: ", 0), 0u) << error.what();
        }
    }
    EXPECT_GT(errors, 10);
    for (std::size_t length = 0; length < packed.size(); ++length) {
        const std::vector<std::byte> bytes(packed.begin(),
                                           packed.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_THROW(read_capture_bytes(bytes, nullptr, "x.marey"), Error);
    }
}

TEST_F(Compact, ASavedTraceLoadsEqual) {
    LogWriter log = rich_log();
    for (const bool stopped : {false, true}) {
        if (stopped) log.stop(3, 74, true);
        const Trace trace = build_trace(log.raw());
        EXPECT_EQ(trace.links().size(), 3u);
        EXPECT_EQ(trace.range_details().size(), 3u);
        EXPECT_EQ(trace.memory().size(), 3u);
        EXPECT_EQ(trace.arrays().size(), 5u);
        trace.save(path("saved.marey"));
        expect_equal(trace, Trace::load(path("saved.marey")));
        expect_equal(trace, Trace::load(path("saved.marey"), 3));
    }
}

TEST_F(Compact, SavedRandomTracesLoadEqual) {
    std::size_t links = 0, arrays = 0, reports = 0;
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        const LogWriter log = testing::random_log(seed);
        const Trace trace = build_trace(log.raw());
        ASSERT_EQ(find_fault(trace), "") << seed;
        expect_equal(trace, Trace(unpack_trace(pack_trace(trace.data()), "packed")));
        if (HasFailure()) FAIL() << "seed " << seed;
        links += trace.links().size();
        arrays += trace.arrays().size();
        reports += trace.memory().size();
    }
    EXPECT_GT(links, 10u);
    EXPECT_GT(arrays, 100u);
    EXPECT_GT(reports, 100u);
}

TEST_F(Compact, ASavedTraceIsAcceptedInPlaceOfACapture) {
    LogWriter log = rich_log();
    const Trace trace = build_trace(log.stop(3, 74, true).raw());
    trace.save(path("saved.marey"));
    const std::vector<SessionInfo> sessions = list_sessions(path("saved.marey"));
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].id, 3u);
    EXPECT_EQ(sessions[0].name, "run");
    EXPECT_EQ(sessions[0].end_ns, trace.window().end_ns);
    EXPECT_TRUE(sessions[0].finished);
    EXPECT_THROW(Trace::load(path("saved.marey"), 4), Error);
    compact_capture(path("saved.marey"), path("again.marey"));
    expect_equal(trace, Trace::load(path("again.marey")));
}

TEST_F(Compact, SavedRealisticRangesTakeAtMostSixBytes) {
    const Trace trace = build_trace(testing::realistic_log(100'000, 50, 4, 1).raw());
    EXPECT_LE(static_cast<double>(pack_trace(trace.data()).size()) / 100'000, 6.0);
}

TEST_F(Compact, AnEmptyTraceCanBeSaved) {
    Trace().save(path("empty.marey"));
    EXPECT_EQ(Trace::load(path("empty.marey")).ranges().size(), 0u);
    EXPECT_THROW(Trace().save(path("no/such/folder.marey")), Error);
}

}  // namespace
}  // namespace marey
