// read_test.cpp: Chrome traces of several programs: complete, truncated and damaged.
#include "formats/chrome/read.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/validate.h>

#include "base/golden_fixture.h"
#include "trace/trace_dump_fixture.h"

namespace marey {
namespace {

using testing::dump_trace;

Trace read(const std::string& text, std::size_t piece_bytes = 1 << 16) {
    return read_chrome_json("text", memory_source(text), piece_bytes);
}
/// Reads the events as a plain list.
Trace read_events(const std::string& events) {
    return read("[" + events + "]");
}

std::filesystem::path sample(const std::string& name) {
    return std::filesystem::path(MAREY_SOURCE_DIR) / "tests" / "data" / "corpus" / "chrome" / name;
}
std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::uint64_t problem(const Trace& trace, std::string_view code) {
    std::uint64_t count = 0;
    for (const ProblemInfo& info : trace.problems()) {
        if (info.code == code) count += info.count;
    }
    return count;
}
std::string names(const Trace& trace) {
    std::string text;
    for (Row row = 0; row < trace.ranges().size(); ++row)
        text += (row == 0 ? "" : " ") + std::string(trace.range_name(row));
    return text;
}

TEST(ChromeJson, AnObjectAPlainListAndAnUnclosedListAreTheSame) {
    const std::string events =
        R"({"ph":"X","name":"a","pid":1,"tid":2,"ts":1.5,"dur":2.25},{"ph":"X","name":"b","pid":1,"tid":2,"ts":2,"dur":1})";
    const std::string wanted = dump_trace(read(R"({"displayTimeUnit":"ms","traceEvents":[)" + events + "]}"));
    EXPECT_NE(wanted.find("0 +2250 a"), wanted.npos) << wanted;
    EXPECT_NE(wanted.find("500 +1000 b"), wanted.npos) << wanted;
    for (const std::string& text :
         {"[" + events + "]", "[" + events, "[" + events + ",\n", "\xEF\xBB\xBF [" + events + ",]",
          R"({"traceEvents":[)" + events + R"(],"displayTimeUnit":"ns"})"})
        EXPECT_EQ(dump_trace(read(text)), wanted) << text;
}

TEST(ChromeJson, TimesAreExactToTheNanosecond) {
    const Trace trace = read_events(
        R"({"ph":"X","name":"a","ts":1790857026123456.789,"dur":0.001},)"
        R"({"ph":"X","name":"b","ts":"1790857026123457","dur":1e3},)"
        R"({"ph":"X","name":"c","ts":1.7908570261234581e15,"dur":0.0015},)"
        R"({"ph":"X","name":"d","ts":1790857026123459.0004,"dur":0.00049999999999999999999999999})");
    const RangeColumns ranges = trace.ranges();
    ASSERT_EQ(ranges.size(), 4u);
    EXPECT_EQ(ranges.start_ns[0], 1790857026123456789);
    EXPECT_EQ(ranges.duration_ns[0], 1);
    EXPECT_EQ(ranges.start_ns[1], 1790857026123457000);
    EXPECT_EQ(ranges.duration_ns[1], 1'000'000);
    EXPECT_EQ(ranges.start_ns[2], 1790857026123458100);
    EXPECT_EQ(ranges.duration_ns[2], 2);
    EXPECT_EQ(ranges.start_ns[3], 1790857026123459000);
    EXPECT_EQ(ranges.duration_ns[3], 0);
}

TEST(ChromeJson, BeginsAndEndsArePairedPerThread) {
    const Trace trace = read_events(R"(
        {"ph":"B","name":"a","pid":1,"tid":1,"ts":0,"args":{"x":1}},
        {"ph":"B","name":"other","pid":1,"tid":2,"ts":1},
        {"ph":"B","name":"b","pid":1,"tid":1,"ts":2},
        {"ph":"E","pid":1,"tid":1,"ts":3},
        {"ph":"E","pid":1,"tid":2,"ts":4},
        {"ph":"E","name":"a","pid":1,"tid":1,"ts":5,"args":{"y":2}},
        {"ph":"E","pid":1,"tid":1,"ts":6},
        {"ph":"E","name":"stranger","pid":1,"tid":2,"ts":6},
        {"ph":"B","name":"open","pid":1,"tid":1,"ts":7},
        {"ph":"i","name":"last","pid":1,"tid":1,"ts":9})");
    const std::string text = dump_trace(trace);
    EXPECT_NE(text.find("0 +5000 a [user] (x=1, y=2)\n    2000 +1000 b"), text.npos) << text;
    EXPECT_NE(text.find("1000 +3000 other"), text.npos) << text;
    EXPECT_NE(text.find("7000 +2000 open [user] unfinished"), text.npos) << text;
    EXPECT_EQ(problem(trace, "unmatched_end"), 2u);
    EXPECT_EQ(problem(trace, "unmatched_begin"), 1u);
}

TEST(ChromeJson, AnEndThatNamesAnOuterRangeEndsThoseInsideIt) {
    const Trace trace = read_events(R"(
        {"ph":"B","name":"a","ts":0},{"ph":"B","name":"b","ts":1},{"ph":"E","name":"a","ts":5})");
    const std::string text = dump_trace(trace);
    EXPECT_NE(text.find("1000 +4000 b [user] end-inferred"), text.npos) << text;
    EXPECT_EQ(problem(trace, "mismatched_end"), 1u);
}

TEST(ChromeJson, AsyncEventsOfEveryFormAreAsyncRanges) {
    const Trace trace = read_events(R"(
        {"ph":"b","cat":"net","id":"0x1","name":"outer","pid":1,"tid":1,"ts":0,"args":{"url":"u"}},
        {"ph":"b","cat":"net","id":"0x1","name":"inner","pid":1,"tid":1,"ts":2},
        {"ph":"n","cat":"net","id":"0x1","name":"point","pid":1,"tid":1,"ts":3},
        {"ph":"e","cat":"net","id":"0x1","name":"inner","pid":1,"tid":2,"ts":4},
        {"ph":"e","cat":"net","id":"0x1","name":"outer","pid":1,"tid":1,"ts":6,"args":{"code":200}},
        {"ph":"b","cat":"net","id2":{"local":"1"},"name":"mine","pid":1,"tid":1,"ts":1},
        {"ph":"b","cat":"net","id2":{"local":"1"},"name":"theirs","pid":2,"tid":1,"ts":1},
        {"ph":"e","cat":"net","id2":{"local":"1"},"name":"theirs","pid":2,"tid":1,"ts":3},
        {"ph":"e","cat":"net","id2":{"local":"1"},"name":"mine","pid":1,"tid":1,"ts":9},
        {"ph":"F","cat":"old","id":7,"name":"late","pid":1,"tid":1,"ts":8},
        {"ph":"S","cat":"old","id":7,"name":"late","pid":1,"tid":1,"ts":5},
        {"ph":"T","cat":"old","id":7,"name":"late","pid":1,"tid":1,"ts":6},
        {"ph":"e","cat":"net","id":"none","name":"never","pid":1,"tid":1,"ts":8},
        {"ph":"b","cat":"net","name":"no id","pid":1,"tid":1,"ts":8})");
    const std::string text = dump_trace(trace);
    EXPECT_NE(text.find("0 +6000 outer [user net] (url='u', code=200)"), text.npos) << text;
    EXPECT_NE(text.find("2000 +2000 inner"), text.npos) << text;
    EXPECT_NE(text.find("1000 +8000 mine"), text.npos) << text;
    EXPECT_NE(text.find("1000 +2000 theirs"), text.npos) << text;
    EXPECT_NE(text.find("5000 +3000 late"), text.npos) << text;
    EXPECT_NE(text.find("instant 3000 point"), text.npos) << text;
    EXPECT_NE(text.find("instant 6000 late"), text.npos) << text;
    for (const TrackInfo& track : trace.tracks()) EXPECT_EQ(track.kind, TrackKind::Async);
    EXPECT_EQ(problem(trace, "unmatched_end"), 1u);
    EXPECT_EQ(problem(trace, "malformed_event"), 1u);
}

TEST(ChromeJson, CountersHaveASiteForEachSeries) {
    const Trace trace = read_events(R"(
        {"ph":"C","name":"memory","pid":1,"ts":1,"args":{"used":5,"free":2.5,"word":"x"}},
        {"ph":"C","name":"load","pid":1,"tid":3,"ts":2,"args":{"value":-1}},
        {"ph":"C","name":"queue","id":"7","pid":1,"ts":3,"args":{"n":4}})");
    const std::string text = dump_trace(trace);
    EXPECT_NE(text.find("memory used [user] = 5"), text.npos) << text;
    EXPECT_NE(text.find("memory free [user] = 2.5"), text.npos) << text;
    EXPECT_NE(text.find("load [user] = -1"), text.npos) << text;
    EXPECT_NE(text.find("queue[7] [user] = 4"), text.npos) << text;
    EXPECT_EQ(problem(trace, "unread_series"), 1u);
}

TEST(ChromeJson, FlowsAreBoundToEnclosingOrNextRanges) {
    const std::string ranges = R"(
        {"ph":"X","name":"outer","pid":1,"tid":1,"ts":0,"dur":10},
        {"ph":"X","name":"inner","pid":1,"tid":1,"ts":2,"dur":4},
        {"ph":"X","name":"first","pid":1,"tid":2,"ts":0,"dur":4},
        {"ph":"X","name":"second","pid":1,"tid":2,"ts":8,"dur":4},
        {"ph":"X","name":"third","pid":1,"tid":3,"ts":20,"dur":4},)";
    const auto links = [&](const std::string& flows) {
        std::string text;
        const Trace trace = read_events(ranges + flows);
        for (const LinkInfo& link : trace.links())
            text += (text.empty() ? "" : ", ") + std::string(trace.range_name(link.from)) + ">" +
                    std::string(trace.range_name(link.to));
        for (const ProblemInfo& info : trace.problems()) text += " " + info.code;
        return text;
    };
    const std::string start = R"({"ph":"s","cat":"c","name":"n","id":1,"pid":1,"tid":1,"ts":3},)";
    EXPECT_EQ(links(start + R"({"ph":"f","bp":"e","cat":"c","name":"n","id":1,"pid":1,"tid":2,"ts":3})"),
              "inner>first");
    EXPECT_EQ(links(start + R"({"ph":"f","cat":"c","name":"n","id":1,"pid":1,"tid":2,"ts":3})"),
              "inner>second");
    EXPECT_EQ(links(R"({"ph":"f","cat":"c","name":"n","id":1,"pid":1,"tid":2,"ts":3},)" + start +
                    R"({"ph":"t","cat":"c","name":"n","id":1,"pid":1,"tid":1,"ts":2.5})"),
              "inner>second loose_flow");
    EXPECT_EQ(links(start + R"({"ph":"t","cat":"c","name":"n","id":1,"pid":1,"tid":2,"ts":9},)" +
                    R"({"ph":"f","cat":"c","name":"n","id":1,"pid":1,"tid":3,"ts":19})"),
              "inner>second, second>third");
    EXPECT_EQ(links(start + R"({"ph":"f","bp":"e","cat":"c","name":"other","id":1,"pid":1,"tid":2,"ts":3})"),
              " loose_flow");
    EXPECT_EQ(links(start + R"({"ph":"f","bp":"e","cat":"c","name":"n","id":1,"pid":1,"tid":2,"ts":6})"),
              " loose_arrow");
    EXPECT_EQ(
        links(R"({"ph":"X","name":"out","pid":1,"tid":4,"ts":1,"dur":1,"bind_id":"0x9","flow_out":true},)"
              R"({"ph":"X","name":"in","pid":1,"tid":4,"ts":3,"dur":1,"bind_id":"0x9","flow_in":true})"),
        "out>in");
}

TEST(ChromeJson, AFlowRightAfterARangeBelongsToIt) {
    // Both start at the same time: the times do not show which one encloses the other.
    const Trace trace = read_events(R"(
        {"ph":"X","name":"op","pid":1,"tid":1,"ts":0,"dur":10},
        {"ph":"s","cat":"fwdbwd","name":"fwdbwd","id":1,"pid":1,"tid":1,"ts":0},
        {"ph":"X","name":"inside","pid":1,"tid":1,"ts":0,"dur":5},
        {"ph":"X","name":"back","pid":1,"tid":1,"ts":20,"dur":10},
        {"ph":"f","bp":"e","cat":"fwdbwd","name":"fwdbwd","id":1,"pid":1,"tid":1,"ts":20})");
    ASSERT_EQ(trace.links().size(), 1u);
    EXPECT_EQ(trace.range_name(trace.links()[0].from), "op");
    EXPECT_EQ(trace.links()[0].kind, LinkKind::ForwardBackward);
    EXPECT_EQ(trace.links()[0].name, 0u);
}

TEST(ChromeJson, LaunchesAreLinkedByCorrelationIfThereIsNoFlow) {
    const Trace trace = read_events(R"(
        {"ph":"X","cat":"kernel","name":"k1","pid":0,"tid":7,"ts":5,"dur":1,"args":{"correlation":11,"device":0,"stream":7}},
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":1,"dur":1,"args":{"correlation":11}},
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":2,"dur":1,"args":{"correlation":12}},
        {"ph":"s","cat":"ac2g","name":"ac2g","id":12,"pid":9,"tid":9,"ts":2},
        {"ph":"X","cat":"kernel","name":"k2","pid":0,"tid":7,"ts":7,"dur":1,"args":{"correlation":12,"device":0,"stream":7}},
        {"ph":"f","bp":"e","cat":"ac2g","name":"ac2g","id":12,"pid":0,"tid":7,"ts":7})");
    ASSERT_EQ(trace.links().size(), 2u);
    for (const LinkInfo& link : trace.links()) EXPECT_EQ(link.kind, LinkKind::Launch);
    EXPECT_EQ(trace.range_name(trace.links()[0].to), "k1");
    EXPECT_EQ(trace.range_name(trace.links()[1].to), "k2");
    ASSERT_EQ(trace.processes().size(), 1u);
    EXPECT_EQ(trace.processes()[0].pid, 9);
}

TEST(ChromeJson, AStreamWithoutANameIsNamedByItsNumber) {
    const Trace trace = read_events(R"(
        {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":5,"dur":1,"args":{"device":0,"stream":7}},
        {"ph":"X","cat":"cpu_op","name":"op","pid":9,"tid":8,"ts":5,"dur":1})");
    ASSERT_EQ(trace.tracks().size(), 2u);
    for (const TrackInfo& track : trace.tracks())
        EXPECT_EQ(trace.string(trace.threads()[track.thread].name),
                  track.kind == TrackKind::Device ? "stream 7" : "");
}

TEST(ChromeJson, ValuesOfEveryKindAreRead) {
    const std::string text = dump_trace(read_events(
        R"({"ph":"X","name":"a","ts":0,"dur":1,"args":{"i":-5,"r":2.5,"t":true,"n":null,"s":"x\u00e9\n",)"
        R"("list":[1,[2,"b"],{"k":1}],"o":{"a":1,"b":{"c":"d"},"e":{}},"big":18446744073709551615,)"
        R"("nan":NaN,"inf":-Infinity,"array":{"dims":[2,3],"type":"float"},"bytes":[]}})"));
    EXPECT_NE(text.find("(i=-5, r=2.5d, t=true, n=none, s='x\u00e9\n', list=[1 [2 'b'] '{\"k\":1}'], o.a=1, "
                        "o.b.c='d', o.e='{}', big='18446744073709551615', nan=nand, inf=-infd, "
                        "array=float32(2x3), bytes=[])"),
              text.npos)
        << text;
}

/// The values of a range that come from input and output lists.
std::string positional(const Trace& trace, Row row) {
    std::string text;
    for (const Argument& value : trace.range_arguments(row)) {
        text += value.role == ArgumentRole::Input    ? " in:"
                : value.role == ArgumentRole::Output ? " out:"
                                                     : " ";
        if (value.kind != ValueKind::Array) {
            text += std::to_string(static_cast<int>(value.kind)) + "=" + std::to_string(value.integer);
            continue;
        }
        const ArrayInfo& array = trace.arrays()[value.array];
        const std::size_t count = array.dimensions * (array.has_strides ? 2u : 1u);
        text += std::to_string(static_cast<int>(array.dtype));
        for (const std::int64_t extent : trace.array_extents().subspan(array.first_extent, count))
            text += "," + std::to_string(extent);
    }
    return text;
}

TEST(ChromeJson, InputsDoNotDependOnEarlierEvents) {
    std::string many = "[2";
    for (int i = 0; i < 1000; ++i) many += ",2";
    many += "]";
    const std::vector<std::string> args = {
        R"("Input Dims":[[2,3]],"Input type":["float"])",
        R"("Input Dims":[[2,3]],"Input type":["double"])",
        R"("Input Dims":[[2,3]],"Input type":["double"],"Input Strides":[[3,1]])",
        R"("Input Dims":[[2,3]],"Input type":["double"])",
        R"("Input Dims":[)" + many + R"(],"Input type":["double"])",
        R"("Input Dims":[[2,3]],"Input type":["double"])",
        R"("Output Dims":[[2,3]],"Output type":["double"])",
        R"("Input Dims":[[2,3]],"Input type":["double"],"Output Dims":[[4]],"Output type":["int"])",
        R"("other":1)",
        R"("Input Dims":[[2,3],[]],"Input type":["double","Scalar"],"Concrete Inputs":["","7"])",
        R"("Input Dims":[[2,3],[]],"Input type":["double","Scalar"],"Concrete Inputs":["","8"])",
        R"("Input Dims":[[2,3]],"Input type":["float"])",
    };
    std::string all;
    for (const int round : {0, 1}) {
        for (std::size_t i = 0; i < args.size(); ++i)
            all += (all.empty() ? "" : ",") +
                   std::string(R"({"ph":"X","name":"a","pid":1,"tid":1,"dur":1,"ts":)") +
                   std::to_string((round * args.size() + i) * 10) + R"(,"args":{)" + args[i] + "}}";
    }
    const Trace trace = read_events(all);
    ASSERT_EQ(trace.ranges().size(), 2 * args.size());
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        const std::string& text = args[row % args.size()];
        const Trace alone =
            read_events(R"({"ph":"X","name":"a","pid":1,"tid":1,"dur":1,"ts":0,"args":{)" + text + "}}");
        EXPECT_EQ(positional(trace, row), positional(alone, 0)) << text;
    }
}

TEST(ChromeJson, InvalidEventsAreCounted) {
    const Trace trace = read_events(R"(
        {"ph":"X","name":"good","pid":1,"tid":1,"ts":0,"dur":1},
        {"ph":"X","name":"no ts","pid":1,"tid":1,"dur":1},
        {"ph":"X","name":"far","ts":1e300,"dur":1}, {"ph":"X","name":"word","ts":NaN,"dur":1},
        {"ph":"X","name":"text","ts":"soon","dur":1}, {"ph":"X","name":"list","ts":[1],"dur":1},
        {"name":"no phase","ts":1}, {"ph":5,"ts":1}, {"ph":"XX","ts":1}, 17, "text", null, [1,2], {},
        {"ph":"X","name":"bad args","ts":1,"dur":1,"args":{"a":}},
        {"ph":"X","name":"no duration","pid":1,"tid":1,"ts":3},
        {"ph":"X","name":"negative","pid":1,"tid":1,"ts":4,"dur":-2},
        {"ph":"N","name":"o","id":1,"ts":1},{"ph":"O","name":"o","id":1,"ts":2,"args":{"snapshot":{}}},
        {"ph":"D","name":"o","id":1,"ts":3},{"ph":"v","name":"dump","ts":1},{"ph":"P","name":"sample","ts":1},
        {"ph":"?","ts":1},{"ph":"M","name":"num_cpus","pid":1,"args":{"number":8}},
        {"ph":"X","name":"last","pid":"1","tid":"1","ts":9,"dur":1})");
    EXPECT_EQ(names(trace), "good no duration negative last");
    EXPECT_EQ(problem(trace, "malformed_event"), 13u);
    EXPECT_EQ(problem(trace, "unread_phase"), 6u);
    EXPECT_EQ(problem(trace, "no_duration"), 1u);
    EXPECT_EQ(problem(trace, "unread_metadata"), 1u);
    ASSERT_EQ(trace.threads().size(), 1u);
    EXPECT_EQ(trace.threads()[0].clamped, 1u);
    EXPECT_EQ(problem(trace, "clamped"), 1u);
    for (const ProblemInfo& info : trace.problems()) EXPECT_FALSE(info.text.empty());
}

TEST(ChromeJson, AnUnclosedEventLosesOnlyItself) {
    const Trace trace =
        read_events(R"({"ph":"X","name":"a","ts":0,"dur":1},{"ph":"X","name":"b","ts":1,"dur":{,)"
                    R"({"ph":"X","name":"c","ts":2,"dur":1},{"ph":"X","name":"d","ts":3,"dur":1})");
    EXPECT_EQ(names(trace), "a c d");
    EXPECT_GE(problem(trace, "malformed_event"), 1u);
}

TEST(ChromeJson, NamesMayContainAnyBytes) {
    const Trace trace = read_events(
        "{\"ph\":\"X\",\"name\":\"tab\there \xFF \\ud83d\\ude00 \\ud83d \\q\","
        "\"ts\":0,\"dur\":1}");
    EXPECT_EQ(names(trace), "tab\there \xFF \xF0\x9F\x98\x80 \xEF\xBF\xBD \\q");
}

TEST(ChromeJson, SymbolsAreDemangledAndKept) {
    const Trace trace = read_events(
        R"({"ph":"X","cat":"kernel","name":"_Z3addii","pid":0,"tid":7,"ts":0,"dur":1,"args":{"stream":7}})");
    ASSERT_EQ(trace.ranges().size(), 1u);
    EXPECT_EQ(trace.range_name(0), "add(int, int)");
    EXPECT_EQ(trace.string(trace.sites()[trace.ranges().site[0]].raw_name), "_Z3addii");
}

TEST(ChromeJson, PidsAndTidsMayBeTextsOrMissing) {
    const Trace trace = read_events(R"(
        {"ph":"X","name":"a","pid":"CPU functions","tid":"node 1","ts":0,"dur":1},
        {"ph":"X","name":"b","ts":0,"dur":1},
        {"ph":"X","name":"c","pid":7,"tid":-3,"ts":0,"dur":1},
        {"ph":"X","name":"d","pid":7,"tid":18446744073709551615,"ts":0,"dur":1})");
    ASSERT_EQ(trace.threads().size(), 4u);
    EXPECT_EQ(trace.string(trace.processes()[0].name), "CPU functions");
    EXPECT_EQ(trace.string(trace.threads()[0].name), "node 1");
    EXPECT_EQ(trace.threads()[2].os_tid, -3);
    EXPECT_EQ(trace.string(trace.threads()[3].name), "18446744073709551615");
}

TEST(ChromeJson, AFileThatIsNotATraceIsAClearError) {
    for (const std::string& text :
         {std::string(), std::string("  "), std::string("{}"), std::string("{\"a\":1}"), std::string("hello"),
          std::string("{\"traceEvents\":5}"), std::string("{\"traceEvents")}) {
        try {
            read(text);
            ADD_FAILURE() << text;
        } catch (const Error& error) {
            EXPECT_TRUE(std::string(error.what()).starts_with("text: ")) << error.what();
        }
    }
}

TEST(ChromeJson, TopLevelMembersAreKeptUnchanged) {
    const Trace trace =
        read(R"({"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":3},"traceEvents":[)"
             R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}],"traceName":"x \"y\"","odd":[NaN],)"
             R"("baseTimeNanoseconds":1790857026000000000})");
    const std::string text = dump_trace(trace);
    EXPECT_NE(text.find("metadata distributedInfo = {\"backend\":\"nccl\",\"rank\":3}"), text.npos) << text;
    EXPECT_NE(text.find("metadata traceName = \"x \\\"y\\\"\""), text.npos) << text;
    EXPECT_NE(text.find("metadata odd = \"[NaN]\""), text.npos) << text;
    EXPECT_EQ(trace.processes()[0].realtime_offset_ns, 1790857026000000000);
    EXPECT_EQ(trace.processes()[0].node, 3);
}

TEST(ChromeJson, TheHostNameAppliesToAllProcesses) {
    const std::string events = R"("traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}])";
    const Trace trace = read(R"({"host_name":"box",)" + events + "}");
    EXPECT_EQ(trace.string(trace.processes()[0].host), "box");
    EXPECT_TRUE(trace.metadata().empty());
    const Trace odd = read(R"({"host_name":7,)" + events + "}");
    EXPECT_EQ(odd.metadata().size(), 1u);
}

TEST(ChromeJson, AFileTruncatedAnywhereGivesTheCompleteEventsBefore) {
    const std::string whole = contents(sample("kineto.json"));
    ASSERT_GT(whole.size(), 1000u);
    std::size_t last = 0;
    for (std::size_t size = whole.find('['); size <= whole.rfind('}'); size += 7) {
        const std::string part = whole.substr(0, size);
        if (part.find("\"traceEvents\": [") == part.npos) continue;
        const Trace trace = read(part, 128);
        EXPECT_GE(trace.ranges().size(), last);
        EXPECT_EQ(problem(trace, "cut_short"), 1u) << size;
        last = trace.ranges().size();
    }
    EXPECT_EQ(last, read(whole).ranges().size());
}

TEST(ChromeJson, ThePieceSizeDoesNotMatter) {
    for (const char* const name : {"kineto.json", "chrome.json", "viztracer.json"}) {
        const std::string text = contents(sample(name));
        const std::string wanted = dump_trace(read(text, 1 << 20));
        for (const std::size_t piece : {16u, 100u, 1000u}) EXPECT_EQ(dump_trace(read(text, piece)), wanted);
    }
}

TEST(ChromeJson, ATruncatedCompressedFileGivesItsBeginning) {
    const std::string whole = contents(sample("torch.json.gz"));
    const Trace all = read(whole);
    const Trace part = read(whole.substr(0, whole.size() * 2 / 3));
    EXPECT_EQ(problem(all, "cut_short"), 0u);
    EXPECT_EQ(problem(part, "cut_short"), 1u);
    EXPECT_GT(part.ranges().size(), 0u);
    EXPECT_LT(part.ranges().size(), all.ranges().size());
}

// The samples. tests/data/samples has the programs that created them. Each golden file was reviewed.
class ChromeSample : public ::testing::TestWithParam<const char*> {};
TEST_P(ChromeSample, MatchesTheGoldenModel) {
    const std::string name = GetParam();
    const Trace trace = open_trace(sample(name).string());
    expect_golden(dump_trace(trace), "import/" + name + ".txt");
    for (const Violation& violation : validate(trace))
        ADD_FAILURE() << violation.rule << ": " << violation.example;
}
INSTANTIATE_TEST_SUITE_P(Files, ChromeSample,
                         ::testing::Values("kineto.json", "chrome.json", "viztracer.json", "torch.json.gz",
                                           "jax.json.gz"),
                         [](const auto& sample_info) {
                             std::string name = sample_info.param;
                             name.resize(name.find('.'));
                             return name;
                         });

TEST(ChromeJson, TheVizTracerSampleHasTheCallsThatWereMade) {
    const Trace trace = open_trace(sample("viztracer.json").string());
    std::map<std::string, int> calls;
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        const std::string_view name = trace.range_name(row);
        ++calls[std::string(name.substr(0, name.find(' ')))];
        EXPECT_EQ(trace.sites()[trace.ranges().site[row]].scope, Scope::PythonFunction);
    }
    EXPECT_EQ(calls["leaf"], 5);
    EXPECT_EQ(calls["work"], 2);
    EXPECT_EQ(trace.threads().size(), 2u);
    EXPECT_EQ(trace.counters().size(), 1u);
    EXPECT_EQ(trace.instants().size(), 1u);
}

}  // namespace
}  // namespace marey
