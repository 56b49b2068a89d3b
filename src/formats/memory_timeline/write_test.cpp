// write_test.cpp: memory over time in each of its formats.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include <marey/error.h>
#include <marey/export.h>

#include "trace/trace_assembler.h"

namespace marey {
namespace {

Trace memory_sample() {
    TraceAssembler assembler;
    ProcessInfo process;
    process.realtime_offset_ns = 1'000'000;
    ThreadInfo thread;
    thread.process = assembler.add_process(process);
    thread.id = 1;
    const Row row = assembler.add_thread(thread);
    const auto add = [&](std::int64_t time, std::uint64_t address, std::int64_t bytes, Device device = {}) {
        AllocationReport report;
        report.time_ns = time;
        report.address = address;
        report.bytes = bytes;
        report.device = device;
        assembler.add_memory(row, report);
    };
    add(1000, 1, 100);
    add(2000, 2, -50);  // allocated before the window
    add(3000, 1, -100);
    add(4000, 3, 7, {DeviceType::Cuda, 0});
    assembler.set_window(0, 10'000);
    return assembler.finish();
}

std::string written(const std::string& name, const Device& device = {}) {
    const std::string path = ::testing::TempDir() + name;
    write_memory_timeline(memory_sample(), path, device);
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

TEST(MemoryTimeline, PointsAreTimesAndBytesByCategory) {
    EXPECT_EQ(written("timeline.json"),
              "[[1001,1001,1002,1003],[[0,0,0,0,0,0,0,0,50],[0,0,0,0,0,0,0,0,150],[0,0,0,0,0,0,0,0,100],"
              "[0,0,0,0,0,0,0,0,0]]]");
    EXPECT_EQ(written("timeline.json", {DeviceType::Cuda, 0}), "[[1004],[[0,0,0,0,0,0,0,0,7]]]");
    EXPECT_EQ(written("timeline.json", {DeviceType::Cuda, 1}), "[[],[]]");
}

TEST(MemoryTimeline, RawIsEveryReport) {
    EXPECT_EQ(written("timeline_raw.json"),
              "[[-1,1,50,7],[1001000,2,100,7],[1002000,4,-50,7],[1003000,4,-100,7]]");
}

TEST(MemoryTimeline, ThePageIsSelfContained) {
    const std::string page = written("timeline.html");
    EXPECT_NE(page.find("<svg"), std::string::npos);
    EXPECT_NE(page.find("Peak allocated: <b>150 B</b>"), std::string::npos);
    EXPECT_EQ(page.find("http"), std::string::npos);
    EXPECT_NE(written("empty.html", {DeviceType::Hip, 0}).find("No allocation"), std::string::npos);
}

TEST(ParseDevice, TakesNamesWithAndWithoutANumber) {
    EXPECT_EQ(parse_device("cpu"), (Device{DeviceType::Cpu, -1}));
    EXPECT_EQ(parse_device("cuda:3"), (Device{DeviceType::Cuda, 3}));
    for (const char* const bad : {"", "gpu", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "none"})
        EXPECT_THROW(parse_device(bad), Error) << bad;
}

}  // namespace
}  // namespace marey
