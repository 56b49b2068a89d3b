// compact_test.cpp: packed captures and saved traces give back what went in.
#include "collect/compact.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include <kymo/error.h>

#include "base/compress.h"
#include "collect/capture_reader.h"
#include "collect/log_fixture.h"
#include "collect/packed_capture.h"
#include "collect/random_log.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline.h"
#include "trace/trace_data.h"

namespace kymo {
namespace {

using namespace detail;
using testing::find_fault;
using testing::LogWriter;
using testing::outline;

class Compact : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!can_compress()) GTEST_SKIP() << "this build has no zstd";
        folder_ = std::filesystem::temp_directory_path() / ("kymo-compact-" + std::to_string(getpid()));
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
    log.start(3, 5, {.name = "run", .option_bits = LogWriter::kAllOptions, .policy = 2, .max_bytes = 1 << 20})
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
    return log;
}

void expect_equal(const Trace& a, const Trace& b) {
    EXPECT_EQ(outline(a), outline(b));
    const TraceData& x = a.data();
    const TraceData& y = b.data();
    EXPECT_EQ(x.strings, y.strings);
    EXPECT_EQ(x.range_start_ns, y.range_start_ns);
    EXPECT_EQ(x.range_duration_ns, y.range_duration_ns);
    EXPECT_EQ(x.range_self_ns, y.range_self_ns);
    EXPECT_EQ(x.range_site, y.range_site);
    EXPECT_EQ(x.range_parent, y.range_parent);
    EXPECT_EQ(x.range_depth, y.range_depth);
    EXPECT_EQ(x.range_flags, y.range_flags);
    EXPECT_EQ(x.instant_time_ns, y.instant_time_ns);
    EXPECT_EQ(x.instant_site, y.instant_site);
    EXPECT_EQ(x.instant_thread, y.instant_thread);
    EXPECT_EQ(x.counter_time_ns, y.counter_time_ns);
    EXPECT_EQ(x.counter_site, y.counter_site);
    EXPECT_EQ(x.counter_thread, y.counter_thread);
    EXPECT_EQ(x.counter_value, y.counter_value);
    ASSERT_EQ(x.sites.size(), y.sites.size());
    for (std::size_t i = 0; i < x.sites.size(); ++i) {
        EXPECT_EQ(x.sites[i].name, y.sites[i].name);
        EXPECT_EQ(x.sites[i].file, y.sites[i].file);
        EXPECT_EQ(x.sites[i].line, y.sites[i].line);
        EXPECT_EQ(x.sites[i].scope, y.sites[i].scope);
    }
    ASSERT_EQ(x.threads.size(), y.threads.size());
    for (std::size_t i = 0; i < x.threads.size(); ++i) {
        EXPECT_EQ(x.threads[i].id, y.threads[i].id);
        EXPECT_EQ(x.threads[i].os_tid, y.threads[i].os_tid);
        EXPECT_EQ(x.threads[i].name, y.threads[i].name);
        EXPECT_EQ(x.threads[i].birth_ns, y.threads[i].birth_ns);
        EXPECT_EQ(x.threads[i].death_ns, y.threads[i].death_ns);
        EXPECT_EQ(x.threads[i].dropped, y.threads[i].dropped);
        EXPECT_EQ(x.threads[i].overwritten_chunks, y.threads[i].overwritten_chunks);
        EXPECT_EQ(x.threads[i].resyncs, y.threads[i].resyncs);
        EXPECT_EQ(x.threads[i].clamped, y.threads[i].clamped);
    }
    ASSERT_EQ(x.tracks.size(), y.tracks.size());
    for (std::size_t i = 0; i < x.tracks.size(); ++i) {
        EXPECT_EQ(x.tracks[i].kind, y.tracks[i].kind);
        EXPECT_EQ(x.tracks[i].thread, y.tracks[i].thread);
        EXPECT_EQ(x.tracks[i].name, y.tracks[i].name);
    }
    const auto same_arguments = [](const std::vector<Argument>& p, const std::vector<Argument>& q) {
        return std::equal(p.begin(), p.end(), q.begin(), q.end(), [](const Argument& s, const Argument& t) {
            return s.key == t.key && s.kind == t.kind && s.truncated == t.truncated && s.role == t.role &&
                   s.left_out == t.left_out &&
                   (s.kind == ValueKind::Bool ? s.boolean == t.boolean : s.integer == t.integer);
        });
    };
    EXPECT_TRUE(same_arguments(x.arguments, y.arguments));
    EXPECT_TRUE(same_arguments(x.list_items, y.list_items));
    const auto same_slices = [](const std::vector<ArgumentSlice>& p, const std::vector<ArgumentSlice>& q) {
        return std::equal(p.begin(), p.end(), q.begin(), q.end(),
                          [](const ArgumentSlice& s, const ArgumentSlice& t) {
                              return s.row == t.row && s.first == t.first && s.count == t.count;
                          });
    };
    EXPECT_TRUE(same_slices(x.range_arguments, y.range_arguments));
    EXPECT_TRUE(same_slices(x.instant_arguments, y.instant_arguments));
    EXPECT_EQ(x.array_extents, y.array_extents);
    ASSERT_EQ(x.arrays.size(), y.arrays.size());
    for (std::size_t i = 0; i < x.arrays.size(); ++i) {
        EXPECT_EQ(x.arrays[i].dtype, y.arrays[i].dtype);
        EXPECT_EQ(x.arrays[i].layout, y.arrays[i].layout);
        EXPECT_EQ(x.arrays[i].is_defined, y.arrays[i].is_defined);
        EXPECT_EQ(x.arrays[i].has_strides, y.arrays[i].has_strides);
        EXPECT_EQ(x.arrays[i].device, y.arrays[i].device);
        EXPECT_EQ(x.arrays[i].first_extent, y.arrays[i].first_extent);
        EXPECT_EQ(x.arrays[i].dimensions, y.arrays[i].dimensions);
        EXPECT_EQ(x.arrays[i].storage, y.arrays[i].storage);
        EXPECT_EQ(x.arrays[i].storage_id, y.arrays[i].storage_id);
    }
    ASSERT_EQ(x.range_details.size(), y.range_details.size());
    for (std::size_t i = 0; i < x.range_details.size(); ++i) {
        EXPECT_EQ(x.range_details[i].range, y.range_details[i].range);
        EXPECT_EQ(x.range_details[i].sequence, y.range_details[i].sequence);
        EXPECT_EQ(x.range_details[i].forward_thread, y.range_details[i].forward_thread);
        EXPECT_EQ(x.range_details[i].id, y.range_details[i].id);
    }
    ASSERT_EQ(x.links.size(), y.links.size());
    for (std::size_t i = 0; i < x.links.size(); ++i) {
        EXPECT_EQ(x.links[i].from, y.links[i].from);
        EXPECT_EQ(x.links[i].to, y.links[i].to);
        EXPECT_EQ(x.links[i].kind, y.links[i].kind);
    }
    EXPECT_EQ(x.memory_time_ns, y.memory_time_ns);
    EXPECT_EQ(x.memory_thread, y.memory_thread);
    EXPECT_EQ(x.memory_address, y.memory_address);
    EXPECT_EQ(x.memory_bytes, y.memory_bytes);
    EXPECT_EQ(x.memory_total_allocated, y.memory_total_allocated);
    EXPECT_EQ(x.memory_total_reserved, y.memory_total_reserved);
    EXPECT_EQ(x.memory_device, y.memory_device);
    EXPECT_EQ(x.memory_out_of_memory, y.memory_out_of_memory);
    ASSERT_EQ(x.problems.size(), y.problems.size());
    for (std::size_t i = 0; i < x.problems.size(); ++i) {
        EXPECT_EQ(x.problems[i].code, y.problems[i].code);
        EXPECT_EQ(x.problems[i].text, y.problems[i].text);
        EXPECT_EQ(x.problems[i].count, y.problems[i].count);
    }
    ASSERT_EQ(x.costs.size(), y.costs.size());
    for (std::size_t i = 0; i < x.costs.size(); ++i) {
        EXPECT_EQ(x.costs[i].kind, y.costs[i].kind);
        EXPECT_EQ(x.costs[i].ns, y.costs[i].ns);
    }
    EXPECT_EQ(x.clock.source, y.clock.source);
    EXPECT_EQ(x.clock.ticks_per_second, y.clock.ticks_per_second);
    EXPECT_EQ(x.clock.pairs, y.clock.pairs);
    EXPECT_EQ(x.clock.max_error_ns, y.clock.max_error_ns);
    EXPECT_EQ(x.clock.extrapolated, y.clock.extrapolated);
    EXPECT_EQ(x.window.session_name, y.window.session_name);
    EXPECT_EQ(x.window.session_id, y.window.session_id);
    EXPECT_EQ(x.window.start_ns, y.window.start_ns);
    EXPECT_EQ(x.window.end_ns, y.window.end_ns);
    EXPECT_EQ(x.window.finished, y.window.finished);
    EXPECT_EQ(x.window.max_bytes, y.window.max_bytes);
    EXPECT_EQ(x.window.policy, y.window.policy);
    EXPECT_EQ(x.window.ceiling_reached, y.window.ceiling_reached);
    EXPECT_EQ(x.window.log_bytes, y.window.log_bytes);
    ASSERT_EQ(x.processes.size(), y.processes.size());
    for (std::size_t i = 0; i < x.processes.size(); ++i) {
        EXPECT_EQ(x.processes[i].pid, y.processes[i].pid);
        EXPECT_EQ(x.processes[i].node, y.processes[i].node);
        EXPECT_EQ(x.processes[i].name, y.processes[i].name);
        EXPECT_EQ(x.processes[i].host, y.processes[i].host);
        EXPECT_EQ(x.processes[i].command_line, y.processes[i].command_line);
        EXPECT_EQ(x.processes[i].realtime_offset_ns, y.processes[i].realtime_offset_ns);
    }
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
    write(path("in.kymo"), rich_log().file());
    compact_capture(path("in.kymo"), path("out.kymo"));
    const Trace before = Trace::load(path("in.kymo"));
    const Trace after = Trace::load(path("out.kymo"));
    EXPECT_EQ(find_fault(after), "");
    expect_equal(before, after);
    EXPECT_LT(std::filesystem::file_size(path("out.kymo")), std::filesystem::file_size(path("in.kymo")) / 10);
}

TEST_F(Compact, ACaptureMayBeCompactedInPlaceAndAgain) {
    write(path("x.kymo"), rich_log().file());
    const Trace before = Trace::load(path("x.kymo"));
    compact_capture(path("x.kymo"), path("x.kymo"));
    compact_capture(path("x.kymo"), path("x.kymo"));
    expect_equal(before, Trace::load(path("x.kymo")));
}

TEST_F(Compact, AFailureLeavesTheTargetAsItWas) {
    write(path("bad.kymo"), {});
    write(path("out.kymo"), {std::byte{1}});
    EXPECT_THROW(compact_capture(path("bad.kymo"), path("out.kymo")), Error);
    EXPECT_THROW(compact_capture(path("none.kymo"), path("out.kymo")), Error);
    EXPECT_EQ(std::filesystem::file_size(path("out.kymo")), 1u);
}

TEST_F(Compact, RealisticRangesTakeAtMostSixBytes) {
    const LogWriter log = testing::realistic_log(100'000, 50, 4, 1);
    const std::vector<std::byte> packed = pack_capture(log.raw());
    EXPECT_LE(static_cast<double>(packed.size()) / 100'000, 6.0);
    EXPECT_TRUE(is_same_log(log.raw(), unpack_capture(packed, "packed")));
}

TEST_F(Compact, ALogThatPacksAlmostToNothingIsReadBack) {
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
            EXPECT_EQ(find_fault(build_trace(read_capture_bytes(bytes, nullptr, "x.kymo"))), "");
        } catch (const Error& error) {
            ++errors;
            EXPECT_EQ(std::string(error.what()).rfind("x.kymo: ", 0), 0u) << error.what();
        }
    }
    EXPECT_GT(errors, 10);
    for (std::size_t length = 0; length < packed.size(); ++length) {
        const std::vector<std::byte> bytes(packed.begin(),
                                           packed.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_THROW(read_capture_bytes(bytes, nullptr, "x.kymo"), Error);
    }
}

TEST_F(Compact, ASavedTraceLoadsEqual) {
    LogWriter log = rich_log();
    for (const bool stopped : {false, true}) {
        if (stopped) log.stop(3, 74, true);
        const Trace trace = build_trace(log.raw());
        EXPECT_EQ(trace.links().size(), 1u);
        EXPECT_EQ(trace.range_details().size(), 3u);
        EXPECT_EQ(trace.memory().size(), 3u);
        EXPECT_EQ(trace.arrays().size(), 5u);
        trace.save(path("saved.kymo"));
        expect_equal(trace, Trace::load(path("saved.kymo")));
        expect_equal(trace, Trace::load(path("saved.kymo"), 3));
    }
}

TEST_F(Compact, SavedRandomTracesLoadEqual) {
    std::size_t links = 0, arrays = 0, reports = 0;
    for (std::uint32_t seed = 1; seed <= 40; ++seed) {
        const LogWriter log = testing::random_log(seed);
        const Trace trace = build_trace(log.raw());
        ASSERT_EQ(find_fault(trace), "") << seed;
        expect_equal(trace, build_trace(log_of_trace(trace)));
        if (HasFailure()) FAIL() << "seed " << seed;
        links += trace.links().size();
        arrays += trace.arrays().size();
        reports += trace.memory().size();
    }
    EXPECT_GT(links, 10u);
    EXPECT_GT(arrays, 100u);
    EXPECT_GT(reports, 100u);
}

TEST_F(Compact, AnEmptyTraceCanBeSaved) {
    Trace().save(path("empty.kymo"));
    EXPECT_EQ(Trace::load(path("empty.kymo")).ranges().size(), 0u);
    EXPECT_THROW(Trace().save(path("no/such/folder.kymo")), Error);
}

}  // namespace
}  // namespace kymo
