// samples_api_test.cpp: the answers to the page about samples.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "analyze/trace_fixture.h"
#include "serve/api.h"

namespace marey::serve {
namespace {

TEST(SamplesApi, DrawsSamplesOnTracksOfTheirOwnWithTheTimesOfLines) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(::testing::TempDir()) / "marey_view_samples";
    fs::create_directories(folder);
    std::ofstream(folder / "x.py") << "f()\n";
    TraceFixture fixture;
    fixture.window(0, 100).thread("main", {{"request", 0, 90}});
    TraceData& data = fixture.data();
    data.frames.push_back({.name = fixture.string("x.py(1): f"),
                           .file = fixture.string((folder / "x.py").string()),
                           .line = 1});
    data.stacks.push_back({});
    add_sample(data, 0, {.time_ns = 50, .cpu_ns = 40, .stack = 0, .range = 0});
    add_sample(data, 0,
               {.time_ns = 50, .duration_ns = 30, .state = SampleState::Waiting, .stack = 0, .range = 0});
    const Trace trace = fixture.trace();
    const Api api({{"app.marey", [&] { return trace; }}}, {folder.string()}, "secret");
    const auto body = [&](const char* target) { return api.handle_own(target).body; };
    const std::string outline = body("/api/outline");
    EXPECT_NE(outline.find(R"("kind":"samples","name":"main: running and waiting")"), std::string::npos)
        << outline;
    EXPECT_NE(outline.find(R"("kind":"samples","name":"main: samples")"), std::string::npos);
    EXPECT_NE(outline.find(R"("range_count":1,)"), std::string::npos) << "recorded";
    EXPECT_NE(body("/api/table").find("x.py(1): f"), std::string::npos);
    EXPECT_NE(
        body("/api/source?site=3").find(R"("lines":[{"line":1,"self_ns":40,"total_ns":40,"waiting_ns":30}])"),
        std::string::npos)
        << body("/api/source?site=3");
}

}  // namespace
}  // namespace marey::serve
