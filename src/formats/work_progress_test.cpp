// work_progress_test.cpp: exports count their work for progress bars.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <marey/export.h>
#include <marey/progress.h>

#include "formats/plain_ranges_fixture.h"

namespace marey {
namespace {

TEST(WorkProgress, ExportsCountTheirRanges) {
    const Trace trace = testing::plain_ranges(40'000);
    for (const char* const suffix :
         {".otlp.json", ".profile.json", ".speedscope.json", ".pb.gz", ".callgrind", ".prof", ".folded"}) {
        SCOPED_TRACE(suffix);
        const std::string path = ::testing::TempDir() + "/work_progress" + suffix;
        WorkProgress progress;
        {
            const WatchedWork watched(progress);
            export_trace(trace, path);
        }
        EXPECT_GE(progress.done, trace.ranges().size() * 3 / 4);
        EXPECT_EQ(progress.total, 0u);  // no longer known
        std::filesystem::remove(path);
    }
}

}  // namespace
}  // namespace marey
