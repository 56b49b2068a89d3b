// call_counts_test.cpp: calls in averages: each level of a recursion counts, and each suspended call counts
// once.
#include <gtest/gtest.h>

#include <string>

#include <marey/analyze.h>
#include <marey/call_tree.h>
#include <marey/event_list.h>

#include "trace/trace_assembler.h"

namespace marey {
namespace {

/// Calls on one or more threads of one or more processes.
class CallProgram {
  public:
    CallProgram() { process(1).thread("one"); }

    CallProgram& process(std::int64_t pid) {
        process_ = assembler_.add_process({.pid = pid});
        return *this;
    }
    CallProgram& thread(const std::string& name) {
        ThreadInfo info;
        info.process = process_;
        info.id = ++threads_;
        info.os_tid = 10 + threads_;
        info.name = assembler_.string(name);
        lane_ = assembler_.add_lane({assembler_.add_thread(info), TrackKind::Thread, {}, -1, 0});
        return *this;
    }
    CallProgram& call(const std::string& name, std::int64_t start, std::int64_t end,
                      Scope scope = Scope::PythonFunction) {
        range(name, start, end, scope, 0);
        return *this;
    }
    CallProgram& part(const std::string& name, std::int64_t start, std::int64_t end, std::uint64_t number,
                      std::uint32_t flags, std::uint16_t range_flags = 0) {
        const auto added = range(name, start, end, Scope::PythonFunction, range_flags);
        assembler_.add_detail(added, -1, 0, 0, number, flags);
        return *this;
    }
    Trace finish() { return assembler_.finish(); }

  private:
    std::uint32_t range(const std::string& name, std::int64_t start, std::int64_t end, Scope scope,
                        std::uint16_t flags) {
        SiteInfo site;
        site.name = assembler_.string(name);
        site.file = assembler_.string("/home/me/app.py");
        site.scope = scope;
        return assembler_.add_range(lane_, start, end - start, assembler_.site(site), flags);
    }

    TraceAssembler assembler_;
    Row process_ = 0;
    std::uint32_t threads_ = 0;
    std::uint32_t lane_ = 0;
};

const AverageRow& call_row(const Averages& averages, const std::string& name,
                           const std::string& thread = "") {
    for (const AverageRow& candidate : averages.rows) {
        if (candidate.name == name && candidate.thread_name == thread) return candidate;
    }
    static const AverageRow none;
    ADD_FAILURE() << "no row " << name;
    return none;
}

CallProgram& recursion(CallProgram& program, Scope scope) {
    for (int level = 0; level < 100; ++level) program.call("down", level, 300 - level, scope);
    return program;
}

TEST(CallCounts, EachStepOfARecursionIsACallAndAnEvent) {
    for (const Scope scope : {Scope::PythonFunction, Scope::CFunction}) {
        CallProgram program;
        const Trace trace = recursion(program, scope).finish();
        EXPECT_EQ(call_row(key_averages(trace), "down").count, 100u);
        EXPECT_EQ(call_row(key_averages(trace), "down").self_cpu_time_total_ns, 300);
        EXPECT_EQ(list_ranges(trace).rows.size(), 100u);
        const EventList events(trace);
        ASSERT_EQ(events.size(), 100u);
        EXPECT_EQ(events.parent(99), 98u);
        EXPECT_EQ(events.self_ns(0), 2);
    }
}

TEST(CallCounts, OperatorsThatRepeatTheirParentsStayOne) {
    for (const Scope scope : {Scope::Function, Scope::BackwardFunction, Scope::User}) {
        CallProgram program;
        const Trace trace = recursion(program, scope).finish();
        EXPECT_EQ(call_row(key_averages(trace), "down").count, 1u);
        EXPECT_EQ(EventList(trace).size(), 1u);
    }
}

TEST(CallCounts, AnOperatorIsNotARepetitionOfTheCallAroundIt) {
    const Trace trace =
        CallProgram().call("add", 0, 100, Scope::CFunction).call("add", 10, 90, Scope::Function).finish();
    EXPECT_EQ(EventList(trace).size(), 2u);
    const Trace other =
        CallProgram().call("add", 0, 100, Scope::Function).call("add", 10, 90, Scope::CFunction).finish();
    EXPECT_EQ(EventList(other).size(), 2u);
}

TEST(CallCounts, ASuspendedCallCountsOnceAndAllItsPartsAddTheirTimes) {
    CallProgram program;
    program.part("gen", 0, 10, 1, kFirstPart);
    for (int i = 1; i < 1000; ++i) program.part("gen", i * 20, i * 20 + 10, 1, 0);
    program.part("gen", 20'000, 20'040, 1, kLastPart);
    program.part("gen", 30'000, 30'010, 2, kFirstPart).part("gen", 30'020, 30'030, 2, kLastPart);
    program.call("plain", 40'000, 40'010).call("plain", 40'020, 40'030);
    const Trace trace = program.finish();
    const Averages averages = key_averages(trace, {.percentiles = true});
    EXPECT_EQ(call_row(averages, "gen").count, 2u);
    EXPECT_EQ(call_row(averages, "gen").range_count, 1003u);
    EXPECT_EQ(call_row(averages, "gen").cpu_time_total_ns, 10'060);
    EXPECT_EQ(call_row(averages, "gen").self_cpu_time_total_ns, 10'060);
    EXPECT_EQ(call_row(averages, "gen").cpu_time_ns(), 5030);
    EXPECT_EQ(call_row(averages, "gen").p50_ns, 10);
    EXPECT_EQ(call_row(averages, "gen").max_ns, 40);
    EXPECT_EQ(call_row(averages, "plain").count, 2u);
    EXPECT_EQ(call_row(averages, "plain").range_count, 2u);
    EXPECT_EQ(call_row(averages, "plain").p99_ns, 10);
    EXPECT_EQ(total_average(averages).count, 4u);
    EXPECT_EQ(call_row(key_averages(trace, {.group_by = GroupBy::File}), "/home/me/app.py").count, 4u);
}

TEST(CallCounts, InATreeASuspendedCallCountsWhereItBegan) {
    CallProgram program;
    program.call("begins", 0, 100).part("gen", 10, 20, 1, kFirstPart).part("gen", 30, 40, 1, 0);
    program.part("gen", 50, 60, 2, kFirstPart).part("gen", 70, 80, 2, kLastPart);
    program.call("goes on", 200, 300).part("gen", 210, 220, 1, 0).part("gen", 230, 240, 1, kLastPart);
    const Trace trace = program.finish();
    const auto count_of = [](const CallTree& tree, std::string_view name, std::string_view parent) {
        for (const CallTreeNode& node : tree.nodes) {
            const std::string_view above =
                node.parent == kNoRow ? std::string_view() : tree.nodes[node.parent].name;
            if (node.name == name && above == parent) return node.count;
        }
        return std::uint64_t{0};
    };
    const CallTree tree = call_tree(trace);
    EXPECT_EQ(count_of(tree, "gen", "begins"), 2u);
    EXPECT_EQ(count_of(tree, "gen", "goes on"), 1u) << "further parts alone: never 0";
    const CallTree bottom_up = call_tree(trace, {.bottom_up = true});
    EXPECT_EQ(count_of(bottom_up, "gen", ""), 2u);
    EXPECT_EQ(count_of(bottom_up, "begins", "gen"), 2u);
}

TEST(CallCounts, InAListEachPartIsAnEvent) {
    const Trace trace =
        CallProgram().part("gen", 0, 10, 1, kFirstPart).part("gen", 20, 30, 1, kLastPart).finish();
    const Averages list = list_ranges(trace);
    ASSERT_EQ(list.rows.size(), 2u);
    EXPECT_EQ(list.rows[0].count, 1u);
    EXPECT_EQ(list.rows[1].count, 1u);
    EXPECT_EQ(EventList(trace).size(), 2u);
}

TEST(CallCounts, ACallThatBeganBeforeCountsAtItsEarliestPart) {
    const Trace trace = CallProgram()
                            .part("gen", 20, 30, 1, 0)
                            .part("gen", 40, 50, 1, 0)
                            .thread("two")
                            .part("gen", 0, 10, 1, 0)
                            .part("gen", 60, 70, 1, kLastPart)
                            .part("gen", 80, 90, 2, 0)
                            .finish();
    EXPECT_EQ(call_row(key_averages(trace), "gen").count, 2u);
    const Averages averages = key_averages(trace, {.by_thread = true});
    EXPECT_EQ(call_row(averages, "gen", "one").count, 1u) << "further parts alone: never 0";
    EXPECT_EQ(call_row(averages, "gen", "two").count, 2u);
}

TEST(CallCounts, TheFirstPartCountsOnWhicheverThreadItRan) {
    const Trace trace = CallProgram()
                            .part("gen", 50, 60, 1, 0)
                            .part("gen", 70, 80, 1, kLastPart)
                            .part("gen", 100, 110, 2, kFirstPart | kLastPart)
                            .thread("two")
                            .part("gen", 0, 10, 1, kFirstPart)
                            .finish();
    const Averages averages = key_averages(trace, {.by_thread = true});
    EXPECT_EQ(call_row(averages, "gen", "one").count, 1u);
    EXPECT_EQ(call_row(averages, "gen", "one").range_count, 3u);
    EXPECT_EQ(call_row(averages, "gen", "two").count, 1u);
    EXPECT_EQ(call_row(key_averages(trace), "gen").count, 2u);
}

TEST(CallCounts, CallNumbersAreUniqueOnlyWithinAProcess) {
    const Trace trace = CallProgram()
                            .part("gen", 0, 10, 1, kFirstPart)
                            .part("gen", 20, 30, 1, kLastPart)
                            .process(2)
                            .thread("two")
                            .part("gen", 0, 10, 1, kFirstPart)
                            .part("gen", 20, 30, 1, kLastPart)
                            .finish();
    EXPECT_EQ(call_row(key_averages(trace), "gen").count, 2u);
}

TEST(CallCounts, RecursiveGeneratorsCountEachCall) {
    // each level resumes the one below it
    const Trace trace = CallProgram()
                            .part("walk", 0, 100, 1, kFirstPart)
                            .part("walk", 10, 90, 2, kFirstPart)
                            .part("walk", 20, 80, 3, kFirstPart)
                            .part("walk", 200, 300, 1, kLastPart)
                            .part("walk", 210, 290, 2, kLastPart)
                            .part("walk", 220, 280, 3, kLastPart)
                            .finish();
    const Averages averages = key_averages(trace);
    EXPECT_EQ(call_row(averages, "walk").count, 3u);
    EXPECT_EQ(call_row(averages, "walk").range_count, 6u);
    EXPECT_EQ(call_row(averages, "walk").self_cpu_time_total_ns, 200);
}

}  // namespace
}  // namespace marey
