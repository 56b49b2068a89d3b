// capture_corpus_test.cpp: the seeds of capture_reader_fuzzer, as they are and as this version writes them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include <marey/error.h>

#include "base/compress.h"
#include "collect/capture_reader.h"
#include "collect/device_fixture.h"
#include "collect/log_fixture.h"
#include "collect/packed_capture.h"
#include "collect/random_log_fixture.h"
#include "collect/sparse_capture_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"
#include "record/stack_numbers.h"

namespace marey::testing {
namespace {

std::filesystem::path corpus_folder() {
    return std::filesystem::path(MAREY_SOURCE_DIR) / "tests/data/corpus/capture";
}

void expect_readable(const std::vector<std::byte>& bytes, const std::string& name) {
    EXPECT_EQ(find_fault(build_trace(read_capture_bytes(bytes, nullptr, name))), "") << name;
}

/// Writes the seed as well if MAREY_WRITE_GOLDENS is set.
void expect_seed_file(const std::string& file, const std::vector<std::byte>& bytes) {
    expect_readable(from_sparse(bytes), file);
    if (std::getenv("MAREY_WRITE_GOLDENS") == nullptr) return;
    std::ofstream(corpus_folder() / file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

void expect_seed(const std::string& name, const LogWriter& log) {
    expect_seed_file(name + ".sparse", to_sparse(log.file()));
    if (can_compress()) expect_seed_file(name + ".packed", pack_capture(log.raw()));
}

LogWriter everything() {
    LogWriter log;
    log.start(3, 5,
              {.name = "run",
               .option_bits = LogWriter::kAllOptions | device_bits(kDeviceAll | kDeviceTimes),
               .policy = 2,
               .device_types = kCudaBit})
        .born(1, "main", 1)
        .born(2, "worker", 7)
        .context(4, {3});
    log.cost(detail::CostKind::Range, 13'400)
        .note("code", "text")
        .losses(2, 4, 5, 6, 7)
        .pair(5, 5, 9, 1)
        .pair(90'000'000, 90'000'000, 9, 1);
    auto values = log.values();
    values.integer("n", 7)
        .text("file", "x")
        .list("sizes", 2)
        .integer("", 1)
        .real("", 2.5)
        .boolean("ok", true)
        .array("grid", {.sizes = {4, 2}, .strides = {2, 1}});
    auto forward = log.values();
    forward.input().array("", {.sizes = {2, 3}, .device = {DeviceType::Cuda, 1}, .storage_id = 9});
    forward.input().list("", 2).array("", {.sizes = {}}).array("", {.sizes = {}, .is_defined = false});
    forward.input().integer("", 1).output().none("", ValueKind::Double).facts(17, 0, 99);
    log.thread(1)
        .memory(11, 0xabc000, 512, 512, 4096)
        .long_range("forward", 11, 12, 1, 0, forward.bytes(), Scope::Function)
        .long_range("back", 12, 13, 1, 0, log.values().facts(17, 1).bytes(), Scope::BackwardFunction);
    log.thread(1).range("b", 13, 20, 1).long_range("c", 22, 30, 1, 0, values.bytes()).instant("tick", 35);
    log.thread(1).range("a", 10, 50, 0).next_chunk(60, {61, 61, 100, 3}).range("d", 75, 76, 1);
    log.thread(1).open("still", 72, 0, log.values().integer("left", 2).bytes());
    log.thread(2)
        .async_begin(9, "moved", 11, 0)
        .counter("load", 12, 0.25)
        .async_begin(10, "x", 15, 0)
        .mark(4, 16);
    log.thread(2).async_end(9, 40, 0).async_end(10, 45, 0).long_range("out", 41, 55, 3, detail::kRecordAsync);
    log.thread(2).dropped(4, 2).blob(3, std::vector<std::byte>(20)).switch_to(3, 50).range("e", 60, 70, 0);
    log.born(4, "cuda", 2, 0);
    put_call(log, 4, {.start = 14, .end = 18, .os_tid = 100, .correlation = 6});
    put_call(log, 4,
             {.name = "cuLaunch",
              .start = 15,
              .end = 17,
              .os_tid = 777,
              .correlation = 6,
              .is_driver = true,
              .result = 2});
    put_work(log, 4,
             {.name = "_Z1kv",
              .start = 20,
              .end = 30,
              .correlation = 6,
              .values = log.values().integer("priority", 1).bytes()});
    put_work(log, 4, {.name = "copy", .start = 25, .end = 40, .kind = DeviceWorkKind::Copy, .bytes = 64});
    put_work(
        log, 4,
        {.name = "op", .start = 41, .end = 45, .stream = ~0u, .kind = DeviceWorkKind::Timed, .range = 99});
    put_work(log, 4, {.name = "wait", .start = 42, .end = 44, .kind = DeviceWorkKind::Wait});
    return log;
}

TEST(CaptureCorpus, EverySeedIsSurvived) {
    const auto folder = corpus_folder();
    ASSERT_TRUE(std::filesystem::exists(folder)) << folder << " was not found";
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        try {
            const auto bytes = from_sparse(std::as_bytes(std::span(text)));
            expect_readable(bytes, entry.path().string());
        } catch (const Error&) {
        }
        ++count;
    }
    EXPECT_GE(count, 10);
}

TEST(CaptureCorpus, EverySeedThatThisVersionWritesIsRead) {
    LogWriter empty;
    expect_seed("empty", empty);
    LogWriter all = everything();
    expect_seed("everything", all);
    all.stop(3, 80, true)
        .open_at_stop(3, 1, "still", 72, 0)
        .start(4, 20, {.scopes = 1u << 7, .thread = 1})
        .stop(4, 60);
    all.finished = true;
    expect_seed("sessions", all);
    LogWriter stacks;
    stacks.module("/bin/program", "0123456789abcdef", 0x400000);
    const std::uint64_t site = stacks.site("x.py(3): f", Scope::PythonFunction, "x.py", 3);
    const std::vector<std::uint64_t> frames = {
        site | 5ull << detail::kFrameLineShift,
        detail::kFrameNative | 1ull << detail::kFrameModuleShift | 0x1234, 0};
    stacks.thread(1).long_range("a", 1, 9, 0, 0, stacks.values().integer("n", 1).stack(frames).bytes());
    expect_seed("stacks", stacks);
    const detail::ValueHeader number{2, detail::kValueStackNumber, 0, 0};
    stacks.thread(1).long_range("b", 10, 12, 0, 0,
                                stacks.values().raw(std::as_bytes(std::span(&number, 1))).bytes());
    RawLog numbered = stacks.raw();
    append_stack_nodes(numbered.names, 1,
                       std::vector<detail::StackNode>{{frames[0], 0, 1}, {frames[1], 1, 1}});
    if (can_compress()) expect_seed_file("numbered_stacks.packed", pack_capture(numbered));
    LogWriter deep;
    for (std::uint32_t depth = 0; depth < 40; ++depth)
        deep.thread(1).open(
            "deep", 10 + depth, depth,
            depth % 2 == 0 ? deep.values().integer("d", depth).bytes() : std::vector<std::byte>());
    expect_seed("deep", deep);
    for (std::uint32_t seed = 1; seed <= 3; ++seed)
        expect_seed("random" + std::to_string(seed), random_log(seed));
    LogWriter ticks;
    ticks.clock_source = detail::ClockSource::Cntvct;
    ticks.ticks_per_second = 25'000'000;
    ticks.pair(1'000'000, 40'000'000, 1, 10).pair(26'000'000, 1'040'000'000, 0, 20);
    ticks.thread(1).range("a", 2'000'000, 2'000'025, 0);
    expect_seed("ticks", ticks);
}

}  // namespace
}  // namespace marey::testing
