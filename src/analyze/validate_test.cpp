// validate_test.cpp: every rule finds violations, and finds nothing in valid traces.
#include <marey/validate.h>

#include <gtest/gtest.h>

#include <functional>

#include "analyze/trace_fixture.h"
#include "json/strict_json_fixture.h"

namespace marey {
namespace {

/// A forward and a backward range, a call and the kernel that it launched.
TraceFixture good() {
    TraceFixture fixture;
    fixture.site("cudaLaunchKernel", Scope::DeviceRuntime);
    fixture.site("kernel", Scope::Device);
    fixture.site("Stream Sync", Scope::Device);
    fixture.window(0, 1000);
    fixture.thread("main", {{"forward", 0, 100, {{"cudaLaunchKernel", 10, 20}}}, {"backward", 200, 50}});
    fixture.thread("stream", {{"kernel", 40, 60}, {"Stream Sync", 100, 50}}, 0);
    fixture.data().tracks.back().kind = TrackKind::Device;
    fixture.data().links = {{0, 2, LinkKind::ForwardBackward, 0}, {1, 3, LinkKind::Launch, 0}};
    fixture.data().range_details = {{0, 5, 0, 1}, {2, 5, 1, 2}};
    return fixture;
}

/// The rules that a modified trace violates: "nesting 1".
std::string violated_rules(const std::function<void(TraceData&)>& change) {
    TraceFixture fixture = good();
    change(fixture.data());
    std::string list;
    for (const Violation& violation : validate(fixture.trace())) {
        if (!list.empty()) list += ", ";
        list += violation.rule + " " + std::to_string(violation.count);
        EXPECT_NE(violation.example, "");
    }
    return list;
}

TEST(Validate, AValidTraceHasNoViolations) {
    EXPECT_EQ(violated_rules([](TraceData&) {}), "");
    EXPECT_TRUE(validate(Trace()).empty());
}

TEST(Validate, TruncationAndDamageAreViolationsAndRemarksAreNot) {
    const auto with = [](const std::vector<std::string>& codes) {
        return violated_rules([&](TraceData& data) {
            for (const std::string& code : codes) data.problems.push_back({code, "Text.", 2});
        });
    };
    EXPECT_EQ(with({"truncated"}), "unread 1");
    EXPECT_EQ(with({"cut_short", "dropped", "damaged_packets"}), "unread 2");
    EXPECT_EQ(with({"size_limit_reached", "dropped", "overwritten", "crashed", "unread_phase"}), "");
    TraceFixture fixture = good();
    fixture.data().problems.push_back({"damaged_chunk", "Parts are damaged.", 2});
    EXPECT_EQ(validate(fixture.trace()).at(0).example, "damaged_chunk: Parts are damaged. (2 times)");
}

TEST(Validate, RangesNestInTheirParentsWithoutOverlappingSiblings) {
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_duration_ns[1] = 91; }), "nesting 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_start_ns[2] = 99; }), "nesting 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_duration_ns[2] = -1; }), "columns 1");
}

TEST(Validate, ParentsComeBeforeTheirChildrenOnTheSameTrack) {
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_parent[1] = kNoRow; }), "columns 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_parent[3] = 0; }), "nesting 1");
    EXPECT_EQ(violated_rules([](TraceData& data) {
                  data.range_parent[3] = 0;
                  data.tracks[1].kind = TrackKind::Overlap;
              }),
              "");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_depth[1] = 3; }), "columns 1");
}

TEST(Validate, EventsOverlapTheWindow) {
    EXPECT_EQ(violated_rules([](TraceData& data) { data.window.end_ns = 199; }), "window 1");
    EXPECT_EQ(violated_rules([](TraceData& data) {
                  data.window.end_ns = 199;
                  data.range_flags[2] = kRemote;
              }),
              "");
    EXPECT_EQ(violated_rules([](TraceData& data) {
                  data.instant_site = {0};
                  data.instant_thread = {0};
                  data.instant_time_ns = {1001};
              }),
              "window 1");
}

TEST(Validate, RowsExistAndAreAllOnTracks) {
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_site[0] = 99; }), "columns 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_depth.pop_back(); }), "columns 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.tracks[1].range_count = 1; }), "columns 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.tracks[1].first_range = 2; }), "columns 1");
}

TEST(Validate, IdsAreUnique) {
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_details[1].id = 1; }), "ids 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.threads[1].id = 1; }), "ids 1");
}

TEST(Validate, LinksConnectRangesForwardAndOnce) {
    EXPECT_EQ(violated_rules([](TraceData& data) { data.links[1].to = 99; }), "columns 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.links[1] = data.links[0]; }), "links 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { std::swap(data.links[0], data.links[1]); }), "columns 1");
    EXPECT_EQ(violated_rules([](TraceData& data) { data.range_start_ns[3] = 9; }), "kernel_before_launch 1");
    EXPECT_EQ(violated_rules([](TraceData& data) {
                  data.links[0] = {2, 0, LinkKind::ForwardBackward, 0};
              }),
              "columns 1");
    EXPECT_EQ(violated_rules([](TraceData& data) {
                  data.links = {{2, 0, LinkKind::ForwardBackward, 0}};
              }),
              "backward_before_forward 1");
}

TEST(Validate, ASequenceNumberHasOneBackwardName) {
    const auto add = [](TraceData& data, Row row) { data.range_details.push_back({row, 5, 1, 0}); };
    EXPECT_EQ(violated_rules([&](TraceData& data) { add(data, 3); }), "sequence 1");
    EXPECT_EQ(violated_rules([&](TraceData& data) {
                  add(data, 3);
                  data.strings.emplace_back("autograd::engine::evaluate_function: backward");
                  data.sites[data.range_site[3]].name = static_cast<StringId>(data.strings.size() - 1);
              }),
              "");
}

TEST(Validate, NothingRunsInAStreamWhenAWaitForItEnds) {
    EXPECT_EQ(violated_rules([](TraceData& data) {
                  data.range_duration_ns[3] = 200;
                  data.range_parent[4] = 3;
                  data.range_depth[4] = 1;
              }),
              "sync 1");
}

TEST(Validate, AWaitForAnEventRefersToAnEarlierCall) {
    const auto with_wait = [](std::int64_t recorded) {
        return violated_rules([&](TraceData& data) {
            data.strings.insert(data.strings.end(), {"correlation", "wait_on_cuda_event_record_corr_id"});
            Argument call, wait;
            call.kind = wait.kind = ValueKind::Int;
            call.key = static_cast<StringId>(data.strings.size() - 2);
            wait.key = static_cast<StringId>(data.strings.size() - 1);
            call.integer = 44;
            wait.integer = recorded;
            data.arguments = {call, wait};
            data.range_arguments = {{1, 0, 1}, {4, 1, 1}};
        });
    };
    EXPECT_EQ(with_wait(44), "");
    EXPECT_EQ(with_wait(45), "event_wait 1");
}

TEST(Validate, ACollectiveHasItsArguments) {
    EXPECT_EQ(violated_rules([](TraceData& data) {
                  data.strings.emplace_back("record_param_comms");
                  data.sites[data.range_site[0]].name = static_cast<StringId>(data.strings.size() - 1);
              }),
              "collective 1");
}

TEST(Validate, ViolationsAreStrictJson) {
    const std::vector<Violation> violations = {{"nesting", 3, "a \"quoted\" \xFF"}};
    StrictJson::Value value;
    ASSERT_EQ(StrictJson::parse(violations_json(violations, "x.json"), value), "");
    EXPECT_FALSE(value["clean"].truth);
    EXPECT_EQ(value["violations"].items.at(0)["count"].text, "3");
}

}  // namespace
}  // namespace marey
