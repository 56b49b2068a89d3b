// samples_test.cpp: samples add up by function, line, thread, range and step, and go below ranges in trees.
#include <gtest/gtest.h>

#include <marey/call_tree.h>
#include <marey/results.h>
#include <marey/samples.h>
#include <marey/stacks.h>
#include <marey/symbolize.h>

#include "analyze/trace_fixture.h"
#include "base/hexadecimal.h"
#include "json/json_writer.h"
#include "native/loaded_modules.h"

namespace marey {
namespace {

/// A trace whose samples are made of names: of "main#2;libc.so!read", main was in line 2, and read is native.
class SampleFixture : public TraceFixture {
  public:
    SampleFixture& sample(const std::string& stack, std::int64_t time_ns, std::int64_t cpu_ns,
                          Row range = kNoRow, Row thread = 0) {
        return add(stack, thread, {.time_ns = time_ns, .cpu_ns = cpu_ns, .range = range});
    }
    SampleFixture& wait(const std::string& stack, std::int64_t time_ns, std::int64_t duration_ns,
                        Row range = kNoRow, Row thread = 0) {
        return add(
            stack, thread,
            {.time_ns = time_ns, .duration_ns = duration_ns, .state = SampleState::Waiting, .range = range});
    }
    SampleFixture& preempted(const std::string& stack, std::int64_t time_ns, std::int64_t cpu_ns) {
        return add(stack, 0, {.time_ns = time_ns, .cpu_ns = cpu_ns, .state = SampleState::Preempted});
    }

  private:
    SampleFixture& add(const std::string& stack, Row thread, SampleInfo sample) {
        for (std::size_t at = 0; at < stack.size();) {
            const std::size_t end = std::min(stack.find(';', at), stack.size());
            sample.stack = stack_of(frame_of(stack.substr(at, end - at)), sample.stack);
            at = end + 1;
        }
        add_sample(data(), thread, sample);
        return *this;
    }
    Row frame_of(const std::string& text) {
        const std::size_t mark = text.find('!'), line = text.find('#');
        const std::size_t begin = mark == text.npos ? 0 : mark + 1;
        FrameInfo frame;
        if (mark != text.npos) frame.module = string("/lib/" + text.substr(0, mark));
        frame.name = string(text.substr(begin, line - begin));
        if (line != text.npos) {
            frame.line = static_cast<std::uint32_t>(std::stoul(text.substr(line + 1)));
            frame.file = string("/app/x.py");
        } else if (const std::size_t end = text.find('('); end != text.npos && mark == text.npos) {
            frame.file = string("/usr/lib/python3.11/" + text.substr(0, end));
        }
        for (Row i = 0; i < data().frames.size(); ++i) {
            const FrameInfo& known = data().frames[i];
            if (known.name == frame.name && known.line == frame.line && known.module == frame.module)
                return i;
        }
        data().frames.push_back(frame);
        return static_cast<Row>(data().frames.size() - 1);
    }
    Row stack_of(Row frame, Row outer) {
        for (Row i = 0; i < data().stacks.size(); ++i) {
            if (data().stacks[i].frame == frame && data().stacks[i].outer == outer) return i;
        }
        data().stacks.push_back({frame, outer});
        return static_cast<Row>(data().stacks.size() - 1);
    }
};

std::string text(const SampleReport& report) {
    std::string text;
    for (const SampledRow& row : report.rows) {
        text += row.name + (row.line != 0 ? ":" + std::to_string(row.line) : "") + " " +
                std::to_string(row.self_ns) + "/" + std::to_string(row.total_ns) + " waits " +
                std::to_string(row.self_waiting_ns) + "/" + std::to_string(row.waiting_ns) + " x" +
                std::to_string(row.samples) + "\n";
    }
    return text;
}

std::string text(const CallTree& tree) {
    std::string text;
    for (const CallTreeNode& node : tree.nodes)
        text += std::string(node.depth, ' ') + node.name + " " + std::to_string(node.total_ns) + " " +
                std::to_string(node.self_ns) + "\n";
    return text;
}

SampleFixture functions() {
    SampleFixture fixture;
    fixture.window(0, 1000).thread("main", {});
    fixture.sample("main#1;f#3", 10, 10).sample("main#1;f#4", 20, 10).sample("main#2", 30, 5);
    fixture.sample("main#1;f#3;main#9", 40, 7);  // recursion
    fixture.wait("main#2;read", 50, 100);
    fixture.sample("", 160, 3);
    return fixture;
}

TEST(Samples, AddUpByFunction) {
    SampleFixture fixture = functions();
    const SampleReport report = sample_report(fixture.trace());
    EXPECT_EQ(text(report),
              "f 20/27 waits 0/0 x2\n"
              "main 12/32 waits 0/100 x2\n"
              "(unknown) 3/3 waits 0/0 x1\n"
              "read 0/0 waits 100/100 x1\n");
    EXPECT_EQ(report.running_ns, 35);
    EXPECT_EQ(report.waiting_ns, 100);
    EXPECT_EQ(report.samples, 5u);
}

TEST(Samples, AddUpByLine) {
    SampleFixture fixture = functions();
    EXPECT_EQ(text(sample_report(fixture.trace(), {.by = SampleGroup::Line})),
              "f:3 10/17 waits 0/0 x1\n"
              "f:4 10/10 waits 0/0 x1\n"
              "main:9 7/7 waits 0/0 x1\n"
              "main:2 5/5 waits 0/100 x1\n"
              "(unknown) 3/3 waits 0/0 x1\n"
              "read 0/0 waits 100/100 x1\n"
              "main:1 0/27 waits 0/0 x0\n");
}

TEST(Samples, AddUpByThreadRangeAndStep) {
    SampleFixture fixture;
    fixture.window(0, 1000).thread(
        "main",
        {{"ProfilerStep#1", 0, 100, {{"load", 10, 50, {{"load", 20, 10}}}}}, {"ProfilerStep#2", 100, 100}});
    fixture.thread("other", {});
    fixture.sample("f", 15, 4, 1).sample("f", 25, 3, 2).sample("f", 150, 9, 3).wait("f", 300, 20);
    fixture.sample("g", 20, 11, kNoRow, 1);
    const Trace trace = fixture.trace();
    EXPECT_EQ(text(sample_report(trace, {.by = SampleGroup::Thread})),
              "main 16/16 waits 20/20 x4\n"
              "other 11/11 waits 0/0 x1\n");
    EXPECT_EQ(text(sample_report(trace, {.by = SampleGroup::Range})),
              "(no range) 11/11 waits 20/20 x2\n"
              "ProfilerStep#2 9/9 waits 0/0 x1\n"
              "load 7/7 waits 0/0 x2\n"
              "ProfilerStep#1 0/7 waits 0/0 x0\n");
    EXPECT_EQ(text(sample_report(trace, {.by = SampleGroup::Step})),
              "ProfilerStep#1 7/7 waits 0/0 x2\n"
              "ProfilerStep#2 9/9 waits 0/0 x1\n");
}

TEST(Samples, WaitsAreNamedByTheInnermostKnownFunction) {
    SampleFixture fixture;
    fixture.window(0, 10'000).thread("main", {});
    fixture.data().sites.push_back({});
    const auto kind = [&](const std::string& stack) {
        fixture.wait(stack, 0, 1);
        const Trace trace(std::make_shared<TraceData>(fixture.data()));
        return std::string(sampled_wait_kind(trace, trace.samples().stack[trace.samples().size() - 1]));
    };
    EXPECT_EQ(kind("main;libc.so.6!clock_nanosleep@@GLIBC_2.17"), "sleep");
    EXPECT_EQ(kind("main;python3!take_gil;libc.so.6!pthread_cond_timedwait@@GLIBC_2.3.2"), "gil");
    EXPECT_EQ(kind("main;libc.so.6!__GI___clock_nanosleep"), "sleep");
    EXPECT_EQ(kind("app!handle(int);libc.so.6!__libc_read"), "I/O");
    EXPECT_EQ(kind("app!handle(int);libc.so.6!__new_sem_wait_slow64.constprop.0"), "lock");
    EXPECT_EQ(kind("app!handle(int);libc.so.6!__lll_lock_wait"), "lock");
    EXPECT_EQ(kind("app!ready;app!already"), "other");
    EXPECT_EQ(kind("threading.py(3): Event.wait;libc.so.6!__futex_abstimed_wait_common"), "work");
    // A worker runs functions of the program, which wait themselves.
    EXPECT_EQ(kind("threading.py(3): Event.wait;main;libc.so.6!poll"), "events");
    EXPECT_EQ(std::string(sampled_wait_kind(fixture.trace(), kNoRow)), "other");
}

TEST(Samples, PreemptedTimeIsWhatTheThreadNeitherRanNorWaited) {
    SampleFixture fixture;
    fixture.window(0, 1000).thread("main", {});
    fixture.sample("f", 100, 100).preempted("f", 300, 50).sample("f", 500, 100);
    const SampleReport report = sample_report(fixture.trace());
    EXPECT_EQ(report.preempted_ns, 150);
    EXPECT_EQ(report.running_ns, 250);
}

TEST(Samples, FramesOfTheInterpreterCountForPythonFunctions) {
    SampleFixture fixture;
    fixture.window(0, 1000).thread("main", {});
    fixture.sample("libc.so.6!_start;python3!main;python3!eval;main#1;python3!eval;f#2;x.so!sort", 10, 10);
    fixture.sample("libc.so.6!_start;python3!main;python3!eval;main#1;python3!eval;f#2;python3!add", 15, 3);
    fixture.sample(
        "libc.so.6!_start;python3!main;python3!eval;main#1;python3!eval;f#2;x.so!sort;libc.so.6!free", 18, 1);
    fixture.sample("libc.so.6!_start;python3!main;python3!eval", 20, 4);
    fixture.sample("libc.so.6!_start;app!begin", 30, 2);
    EXPECT_EQ(text(sample_report(fixture.trace())),
              "sort 11/11 waits 0/0 x2\n"
              "(unknown) 4/4 waits 0/0 x1\n"
              "f 3/14 waits 0/0 x1\n"
              "begin 2/2 waits 0/0 x1\n"
              "main 0/14 waits 0/0 x0\n");
}

TEST(SampleTrees, HaveTheFunctionsBelowTheInnermostRange) {
    SampleFixture fixture;
    fixture.window(0, 1000).thread("main", {{"request", 0, 100, {{"query", 50, 40}}}, {"request", 200, 100}});
    fixture.sample("start;run;handle;parse", 20, 20, 0);
    fixture.sample("start;run;handle;render", 40, 15, 0);
    fixture.sample("start;run;handle;parse", 220, 25, 2);
    fixture.wait("start;run;handle;ask;read", 55, 30, 1);
    fixture.wait("start;run;idle", 110, 80);
    fixture.sample("start;run;idle", 195, 1);
    const Trace trace = fixture.trace();
    EXPECT_EQ(text(call_tree(trace)),
              "request 200 100\n"
              " handle 60 0\n"
              "  parse 45 45\n"
              "  render 15 15\n"
              " query 40 10\n"
              "  read 30 30\n"
              "start 1 0\n"
              " run 1 0\n"
              "  idle 1 1\n");
    const CallTree inside = call_tree(trace, {.inside = "query"});
    EXPECT_EQ(text(inside), "query 40 10\n read 30 30\n");
}

TEST(SampleTrees, HaveOnlyWhatIsBelowARecordedCall) {
    SampleFixture fixture;
    fixture.window(0, 1000).thread("main", {{"main", 0, 100, {{"f", 10, 80}}}});
    fixture.sample("main#3;f#7;x.so!sort", 50, 30, 1).sample("main#3;f#8", 60, 10, 1);
    EXPECT_EQ(text(call_tree(fixture.trace())),
              "main 100 20\n"
              " f 80 50\n"
              "  sort 30 30\n");
}

TEST(SampleTrees, CountATimeOnlyOnceInFlameGraphs) {
    SampleFixture fixture;
    fixture.window(0, 1000).thread("main", {{"request", 0, 100}});
    fixture.sample("run;handle;parse", 50, 60, 0).sample("run;handle;render", 90, 30, 0);
    fixture.wait("idle", 200, 100);
    const Trace trace = fixture.trace();
    const auto folded = [&](const StackOptions& options) {
        std::string text;
        for (const FoldedStack& stack : fold_stacks(trace, options))
            text += stack.stack + " " + std::to_string(stack.value) + "\n";
        return text;
    };
    EXPECT_EQ(folded({}), "request 10\nrequest;handle;parse 60\nrequest;handle;render 30\n");
    EXPECT_EQ(folded({.with_waits = true}),
              "request 10\nrequest;handle;parse 60\nrequest;handle;render 30\nidle 100\n");
}

TEST(SampleTracks, ShowWhereAThreadWasSeen) {
    SampleFixture fixture;
    fixture.window(0, 1000).thread("main", {{"request", 0, 400}});
    fixture.sample("run;f", 100, 100, 0).sample("run;g", 201, 100, 0).wait("run;g;read", 300, 50, 0);
    const Trace drawn = with_sample_tracks(fixture.trace());
    EXPECT_EQ(drawn.samples().size(), 0u);
    ASSERT_EQ(drawn.tracks().size(), 3u);
    const auto boxes = [&](Row track) {
        std::string text;
        const TrackInfo& info = drawn.tracks()[track];
        for (Row row = info.first_range; row < info.first_range + info.range_count; ++row) {
            const std::int64_t start = drawn.ranges().start_ns[row];
            text += std::string(drawn.ranges().depth[row], ' ') + std::string(drawn.range_name(row)) + " " +
                    std::to_string(start) + "-" + std::to_string(start + drawn.ranges().duration_ns[row]) +
                    "\n";
        }
        return text;
    };
    EXPECT_EQ(boxes(1), "running 0-201\nwaiting: other 300-350\n");
    EXPECT_EQ(boxes(2), "run 0-201\n f 0-100\n g 100-201\nrun 300-350\n g 300-350\n  read 300-350\n");
}

__attribute__((noinline)) void function_with_a_name() {
    asm volatile("");
}

TEST(Samples, NativeFunctionsGetTheirNames) {
    const auto modules = loaded_modules();
    const auto address = reinterpret_cast<std::uintptr_t>(&function_with_a_name) + 1;
    const LoadedModule* const module = modules->find(address);
    ASSERT_NE(module, nullptr);
    const std::uint64_t offset = address - module->bias;
    SampleFixture fixture;
    fixture.window(0, 1000).thread("main", {});
    fixture.sample("main", 10, 5);
    TraceData& data = fixture.data();
    data.frames.push_back({.name = fixture.string(module->path + "+" + hexadecimal(offset)),
                           .module = fixture.string(module->path),
                           .offset = offset});
    data.stacks.push_back({static_cast<Row>(data.frames.size() - 1), data.sample_stack[0]});
    add_sample(data, 0, {.time_ns = 20, .cpu_ns = 7, .stack = static_cast<Row>(data.stacks.size() - 1)});
    std::string json;
    JsonWriter writer(json);
    writer.begin_array().begin_object().member("name", module->path).member("path", module->path);
    writer.member("build_id", module->build_id).end_object().end_array();
    put_fact(data.metadata, "native_modules", json);
    const SampleReport report = sample_report(symbolize_trace(fixture.trace(), {}).trace);
    ASSERT_EQ(report.rows.size(), 2u);
    EXPECT_NE(report.rows[0].name.find("function_with_a_name"), std::string::npos) << report.rows[0].name;
    EXPECT_EQ(report.rows[0].self_ns, 7);
    EXPECT_EQ(report.rows[1].name, "main");
    EXPECT_EQ(report.rows[1].total_ns, 12);
}

TEST(SampleResults, AreTables) {
    SampleFixture fixture = functions();
    fixture.data().sampling.push_back({.clock = fixture.string("perf_event"), .rate_asked = 1000});
    const Result result = make_result(fixture.trace(), "sampled");
    EXPECT_EQ(result.table("sampled").rows, 4u);
    EXPECT_EQ(result.table("sampled_waits").rows, 1u);
    EXPECT_EQ(result.table("sampled_processes").rows, 1u);
    EXPECT_EQ(make_result(Trace(), "sampled").table("sampled_totals").rows, 0u);
}

}  // namespace
}  // namespace marey
