// golden_test.cpp: Chrome JSON for a trace with one of everything.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include <marey/export.h>
#include <marey/validate.h>

#include "analyze/trace_fixture.h"
#include "base/golden_fixture.h"
#include "formats/full_trace_fixture.h"
#include "json/strict_json_fixture.h"

namespace marey {
namespace {

using Value = StrictJson::Value;

std::string chrome_text(const Trace& trace) {
    std::ostringstream stream;
    write_chrome_json(trace, stream);
    return stream.str();
}

std::string without_version(std::string text) {
    constexpr std::string_view kKey = "\"marey_version\":\"";
    const std::size_t start = text.find(kKey) + kKey.size();
    return text.erase(start, text.find('"', start) - start);
}

Value parsed(const Trace& trace) {
    Value document;
    EXPECT_EQ(StrictJson::parse(chrome_text(trace), document), "");
    return document;
}

/// The first event with that phase and name.
Value event(const Value& document, const std::string& phase, const std::string& name,
            const std::string& category = "") {
    for (const Value& each : document["traceEvents"].items) {
        if (each["ph"].text == phase && each["name"].text == name &&
            (category.empty() || each["cat"].text == category))
            return each;
    }
    ADD_FAILURE() << "no " << phase << " " << name;
    return {};
}

TEST(ChromeGolden, ATraceWithOneOfEverything) {
    const Trace trace = full_trace();
    const auto intact = std::make_shared<TraceData>(trace.data());
    std::erase_if(intact->metadata, [](const MetadataInfo& fact) { return fact.key == "broken"; });
    for (const Violation& violation : validate(Trace(intact)))
        ADD_FAILURE() << violation.rule << ": " << violation.example;
    parsed(trace);
    expect_golden(without_version(chrome_text(trace)), "chrome/full.json");
}

TEST(ChromeGolden, CategoriesAreThoseOfPyTorch) {
    const Value document = parsed(full_trace());
    const std::pair<const char*, const char*> expected[] = {
        {"aten::addmm", "cpu_op"},
        {"AddmmBackward0", "cpu_op"},
        {"crossing", "user_annotation"},
        {"cudaLaunchKernel", "cuda_runtime"},
        {"cuMemcpyHtoDAsync_v2", "cuda_driver"},
        {"void gemm<float>(Params)", "kernel"},
        {"Memset (Device)", "gpu_memset"},
        {"Memcpy HtoD (Pageable -> Device)", "gpu_memcpy"},
        {"Stream Sync", "cuda_sync"},
        {"train.py(31): step", "python_function"},
        {"<built-in method sum>", "python_function"},
        {"Python GC", "python_function"},
    };
    for (const auto& [name, category] : expected)
        EXPECT_EQ(event(document, "X", name)["cat"].text, category) << name;
    event(document, "X", "ProfilerStep#3", "user_annotation");
    event(document, "X", "ProfilerStep#3", "gpu_user_annotation");
}

TEST(ChromeGolden, CallsAndDeviceWorkHaveNoIdsOfOperatorsOnRequest) {
    auto data = std::make_shared<TraceData>(full_trace().data());
    data->metadata.push_back({"disable_external_correlation", "1"});
    const Value document = parsed(Trace(data));
    EXPECT_EQ(event(document, "X", "void gemm<float>(Params)")["args"]["External id"].text, "");
    EXPECT_EQ(event(document, "X", "cudaLaunchKernel")["args"]["External id"].text, "");
    EXPECT_NE(event(document, "X", "aten::addmm")["args"]["External id"].text, "");
}

TEST(ChromeGolden, KernelsCallsAndOperatorsAreMatchedByTheirIds) {
    const Value document = parsed(full_trace());
    const Value op = event(document, "X", "aten::addmm"), call = event(document, "X", "cudaLaunchKernel"),
                kernel = event(document, "X", "void gemm<float>(Params)");
    EXPECT_EQ(kernel["args"]["External id"].text, op["args"]["External id"].text);
    EXPECT_EQ(call["args"]["External id"].text, op["args"]["External id"].text);
    EXPECT_EQ(kernel["args"]["correlation"].text, call["args"]["correlation"].text);
    EXPECT_GT(std::stoll(kernel["args"]["correlation"].text), 1 << 16);  // HTA keeps smaller ones in 16 bits
    EXPECT_EQ(kernel["args"]["device"].text, "0");
    EXPECT_EQ(kernel["args"]["stream"].text, "7");
    EXPECT_EQ(kernel["pid"].text, "0");
    EXPECT_EQ(kernel["tid"].text, "7");
    EXPECT_EQ(kernel["args"]["Mangled name"].text, "_Z4gemmIfEv6Params");
    EXPECT_EQ(event(document, "X", "cuMemcpyHtoDAsync_v2")["args"]["correlation"].text, "99");
    EXPECT_EQ(event(document, "X", "aten::linear.out")["args"]["Overload name"].text, "out");
    const Value frame = event(document, "X", "train.py(31): step"),
                inner = event(document, "X", "<built-in method sum>");
    EXPECT_EQ(inner["args"]["Python parent id"].text, frame["args"]["Python id"].text);
    EXPECT_NE(inner["args"]["Python id"].text, frame["args"]["Python id"].text);
    EXPECT_EQ(frame["args"]["Python parent id"].text, "");
}

TEST(ChromeGolden, EventsOfPyTorchProgramsHaveNumbersOfTheirOwn) {
    const Value document = parsed(full_trace());
    std::map<std::string, std::string> seen;  // number to name
    for (const Value& each : document["traceEvents"].items) {
        const std::string& category = each["cat"].text;
        const std::string& name = each["name"].text;
        const bool is_memory = category == "cpu_instant_event";
        if (category != "cpu_op" && category != "python_function" && !is_memory) continue;
        if (name == "Python GC") continue;  // not a call
        const std::string& number = each["args"]["Ev Idx"].text;
        EXPECT_NE(number, "") << name;
        EXPECT_TRUE(seen.emplace(number, name).second) << name << ", " << seen[number];
        EXPECT_EQ(each["args"]["finished"].kind == StrictJson::Kind::Bool, is_memory) << name;
    }
    EXPECT_GT(seen.size(), 6u);
}

TEST(ChromeGolden, UserMetadataIsAtTheTopLevelAndDoesNotReplaceOurs) {
    const Value document = parsed(full_trace());
    EXPECT_EQ(document["record_shapes"].text, "1");
    EXPECT_EQ(document["trace_id"].text, "0F3A");
    EXPECT_EQ(document["distributedInfo"]["world_size"].text, "2");
    EXPECT_EQ(document["broken"].text, "{\"a\":");
    EXPECT_EQ(document["otherData"]["metadata"]["traceEvents"].text, "a key of ours");
    EXPECT_EQ(document["deviceProperties"].kind, StrictJson::Kind::Array);
}

TEST(ChromeGolden, TheWindowIsASpanAndTwoInstantsAndTheEndIsLast) {
    const Value document = parsed(full_trace());
    const Value span = event(document, "X", "PyTorch Profiler (0)");
    EXPECT_EQ(span["pid"].text, "Spans");
    EXPECT_EQ(span["dur"].text, "1000.000");
    event(document, "i", "Iteration Start: PyTorch Profiler");
    const Value& end = document["traceEvents"].items.back();
    EXPECT_EQ(end["name"].text, "Record Window End");
    // As numbers: their sum is rounded up to 0.5 ns, or a nanosecond later in the quarter.
    const auto number = [](const Value& value) { return std::stod(value.text); };
    EXPECT_LE(number(span["ts"]) + number(span["dur"]), number(end["ts"]));
    TraceFixture plain;
    plain.thread("main", {{"a", 0, 1}});
    plain.data().window.session_name = "nightly";
    event(parsed(plain.trace()), "X", "nightly (0)");
}

TEST(ChromeGolden, DevicesOfTwoProcessesAndAProcessWithADevicesNumberHaveSeparateRows) {
    TraceFixture fixture;
    fixture.data().processes[0].pid = 0;
    fixture.data().processes.push_back({});
    fixture.data().processes[1].pid = 7;
    fixture.thread("host", {{"a", 0, 10}}, 7);
    for (const Row process : {0u, 1u}) {
        fixture.thread("", {{"k", 2, 5}}, 0);
        fixture.data().threads.back().process = process;
        TrackInfo& track = fixture.data().tracks.back();
        track.kind = TrackKind::Device;
        track.device = {DeviceType::Cuda, 0};
        track.stream = 7;
    }
    const Value document = parsed(fixture.trace());
    std::set<std::pair<std::string, std::string>> rows;
    for (const Value& each : document["traceEvents"].items) {
        if (each["ph"].text == "X") rows.emplace(each["pid"].text, each["tid"].text);
    }
    EXPECT_EQ(rows.size(), 4u);  // the span has a row too
    EXPECT_EQ(event(document, "M", "process_labels")["args"]["labels"].text, "CPU");
}

}  // namespace
}  // namespace marey
