// write_test.cpp: the boxes and texts of pictures.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include <marey/export.h>

#include "analyze/trace_fixture.h"

namespace marey {
namespace {

struct DrawnBox {
    std::string tip;
    double x = 0, y = 0, width = 0;
};

std::vector<DrawnBox> boxes_in(const std::string& svg) {
    static const std::regex pattern(
        "<g><title>([^<]*)</title><rect class=\"c[0-9]\" x=\"([0-9.]+)\" y=\"([0-9.]+)\" "
        "width=\"([0-9.]+)\"");
    std::vector<DrawnBox> boxes;
    for (std::sregex_iterator found(svg.begin(), svg.end(), pattern), end; found != end; ++found)
        boxes.push_back(
            {(*found)[1], std::stod((*found)[2]), std::stod((*found)[3]), std::stod((*found)[4])});
    return boxes;
}

TEST(Svg, BoxesOfAFlameGraphAreAsWideAsTheirShares) {
    const Trace trace =
        TraceFixture()
            .thread("main", {{"load", 0, 300, {{"read", 0, 100}, {"parse", 100, 150}}}, {"save", 400, 100}})
            .trace();
    const std::vector<DrawnBox> boxes = boxes_in(flame_graph_svg(trace));
    ASSERT_EQ(boxes.size(), 4u);
    const double whole = boxes[0].width + boxes[3].width;
    EXPECT_EQ(boxes[0].tip, "load\ntotal 300 ns (75 %), self 50 ns, 1 call");
    EXPECT_NEAR(boxes[0].width / whole, 0.75, 0.001);
    EXPECT_EQ(boxes[1].tip.substr(0, 5), "parse") << "the heaviest first";
    EXPECT_NEAR(boxes[1].width / whole, 0.375, 0.001);
    EXPECT_NEAR(boxes[2].x, boxes[1].x + boxes[1].width, 0.02) << "read is beside parse";
    EXPECT_GT(boxes[1].y, boxes[0].y);
    EXPECT_NEAR(boxes[3].x, boxes[0].x + boxes[0].width, 0.02);
}

TEST(Svg, StepsAreOneBoxOfAFlameGraphAndHaveOneColour) {
    const Trace trace = TraceFixture()
                            .thread("main", {{"ProfilerStep#1", 0, 300, {{"load", 0, 100}}},
                                             {"ProfilerStep#22", 300, 300, {{"load", 300, 50}}}})
                            .trace();
    const std::vector<DrawnBox> boxes = boxes_in(flame_graph_svg(trace));
    ASSERT_EQ(boxes.size(), 2u);
    EXPECT_EQ(boxes[0].tip, "ProfilerStep*\ntotal 600 ns (100 %), self 450 ns, 2 calls");
    EXPECT_EQ(boxes[1].tip, "load\ntotal 150 ns (25 %), self 150 ns, 2 calls");
    // The viewer computes the same colours: web/src/theme.ts.
    const std::string timeline = timeline_svg(trace), flame = flame_graph_svg(trace);
    EXPECT_NE(timeline.find("from 0 ns</title><rect class=\"c4\""), timeline.npos) << timeline;
    EXPECT_NE(timeline.find("from 300 ns</title><rect class=\"c4\""), timeline.npos) << timeline;
    EXPECT_NE(flame.find("2 calls</title><rect class=\"c4\""), flame.npos) << flame;
}

TEST(Svg, BoxesOfATimelineAreWhereTheirRangesAre) {
    const Trace trace = TraceFixture()
                            .thread("main", {{"load", 0, 500, {{"read", 250, 100}}}})
                            .thread("worker", {{"send", 500, 500}})
                            .trace();
    const std::string svg = timeline_svg(trace);
    const std::vector<DrawnBox> boxes = boxes_in(svg);
    ASSERT_EQ(boxes.size(), 3u);
    EXPECT_EQ(boxes[0].tip, "load\n500 ns, from 0 ns");
    EXPECT_NEAR(boxes[1].x - boxes[0].x, boxes[0].width / 2, 0.02);
    EXPECT_NEAR(boxes[2].x, boxes[0].x + boxes[0].width, 0.02);
    EXPECT_GT(boxes[2].y, boxes[1].y);
    EXPECT_NE(svg.find(">worker</text>"), svg.npos);
}

TEST(Svg, NamesCannotBreakThePicture) {
    const std::string hostile = "</title><script>alert(1)</script>&\"\x01\xFF";
    const Trace trace = TraceFixture().thread(hostile, {{hostile, 0, 100}}).trace();
    for (const std::string& svg : {flame_graph_svg(trace), timeline_svg(trace)}) {
        EXPECT_EQ(svg.find("<script"), svg.npos);
        EXPECT_EQ(svg.find('\x01'), svg.npos);
        EXPECT_NE(svg.find("&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot; \xEF\xBF\xBD"), svg.npos);
    }
}

TEST(Svg, OfAnEmptyTraceHasATitleAndNoBoxes) {
    for (const std::string& svg : {flame_graph_svg(Trace()), timeline_svg(Trace())}) {
        EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        EXPECT_TRUE(boxes_in(svg).empty());
    }
}

TEST(Svg, PathsTooNarrowToSeeAreCounted) {
    std::vector<RangeSpec> ranges = {{"long", 0, 1'000'000}};
    for (int i = 0; i < 5; ++i) ranges.push_back({"short " + std::to_string(i), 1'000'000 + i * 2, 1});
    const std::string svg = flame_graph_svg(TraceFixture().thread("main", ranges).trace());
    EXPECT_EQ(boxes_in(svg).size(), 1u);
    EXPECT_NE(svg.find("5 paths narrower than a third of a pixel not shown"), svg.npos);
}

}  // namespace
}  // namespace marey
