// assemble_test.cpp: traces assembled from described events.
#include <gtest/gtest.h>

#include <limits>

#include <marey/assemble.h>
#include <marey/error.h>

namespace marey {
namespace {

DescribedEvent event(const char* name, std::int64_t start, std::int64_t end, std::int64_t thread = 1) {
    DescribedEvent described;
    described.name = name;
    described.start_ns = start;
    described.duration_ns = end - start;
    described.thread = thread;
    return described;
}

TEST(Assemble, NestsByTimesAndReturnsTheRowsOfEvents) {
    const std::vector<DescribedEvent> events = {event("d", 0, 1, 7), event("a", 0, 2), event("b", 1, 2),
                                                event("c", 1, 3)};
    const AssembledTrace made = assemble_trace(events);
    ASSERT_EQ(made.row_of.size(), 4u);
    const RangeColumns ranges = made.trace.ranges();
    for (std::size_t i = 0; i < events.size(); ++i)
        EXPECT_EQ(made.trace.range_name(made.row_of[i]), events[i].name);
    EXPECT_EQ(ranges.parent[made.row_of[0]], kNoRow);
    EXPECT_EQ(ranges.parent[made.row_of[1]], kNoRow);
    EXPECT_EQ(ranges.parent[made.row_of[2]], made.row_of[3]);
    EXPECT_EQ(ranges.parent[made.row_of[3]], kNoRow);
}

TEST(Assemble, ThreadsWithTheSameNumberOnTwoNodesAreTwo) {
    std::vector<DescribedEvent> events = {event("outer", 0, 10), event("other", 2, 4), event("inner", 5, 6)};
    events[1].node = 3;
    const AssembledTrace made = assemble_trace(events);
    EXPECT_EQ(made.trace.ranges().parent[made.row_of[1]], kNoRow);
    EXPECT_EQ(made.trace.ranges().parent[made.row_of[2]], made.row_of[0]);
    EXPECT_EQ(made.trace.processes().size(), 2u);
}

TEST(Assemble, AKernelIsLinkedToItsEventOrBecomesOne) {
    std::vector<DescribedEvent> events = {event("launch", 0, 10), event("k", 4, 24)};
    events[1].device = {DeviceType::Cuda, 1};
    events[0].kernels = {{"k", 1, 20}, {"unseen", 0, 5}};
    const AssembledTrace made = assemble_trace(events);
    ASSERT_EQ(made.trace.ranges().size(), 3u);
    ASSERT_EQ(made.trace.links().size(), 2u);
    for (const LinkInfo& link : made.trace.links()) {
        EXPECT_EQ(link.kind, LinkKind::Launch);
        EXPECT_EQ(link.from, made.row_of[0]);
        if (link.to == made.row_of[1]) continue;
        EXPECT_EQ(made.trace.range_name(link.to), "unseen");
        EXPECT_EQ(made.trace.ranges().duration_ns[link.to], 5);
    }
}

TEST(Assemble, KeepsStacksShapesBytesAndSequences) {
    std::vector<DescribedEvent> events = {event("forward", 0, 10), event("backward", 20, 30, 2)};
    events[0].stack = {"inner; with semicolon", "outer"};
    events[0].input_shapes = {{2, 3}, {}};
    events[0].sequence = 5;
    events[0].cpu_bytes = 64;
    events[1].sequence = 5;
    events[1].forward_thread = 1;
    events[1].scope = Scope::BackwardFunction;
    const AssembledTrace made = assemble_trace(events);
    const Trace& trace = made.trace;
    EXPECT_EQ(trace.range_arguments(made.row_of[0]).size(), 3u);
    ASSERT_EQ(trace.memory().size(), 1u);
    EXPECT_EQ(trace.memory().bytes[0], 64);
    ASSERT_NE(trace.range_detail(made.row_of[1]), nullptr);
    EXPECT_EQ(trace.range_detail(made.row_of[1])->forward_thread,
              trace.threads()[trace.tracks()[trace.track_of(made.row_of[0])].thread].id);
}

TEST(Assemble, RejectsTimesThatAreOutOfRange) {
    DescribedEvent late = event("late", 0, 1);
    late.start_ns = late.duration_ns = std::numeric_limits<std::int64_t>::max();
    EXPECT_THROW(assemble_trace(std::span(&late, 1)), Error);
    DescribedEvent busy = event("busy", 0, 1);
    busy.kernels.push_back({"k", 0, std::numeric_limits<std::int64_t>::min()});
    EXPECT_THROW(assemble_trace(std::span(&busy, 1)), Error);
}

TEST(Assemble, NothingIsAnEmptyTrace) {
    EXPECT_EQ(assemble_trace({}).trace.ranges().size(), 0u);
}

}  // namespace
}  // namespace marey
