// work_progress_test.cpp: exports count their work for progress bars.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <marey/export.h>
#include <marey/progress.h>

#include "formats/plain_ranges_fixture.h"

namespace marey {
namespace {

TEST(WorkProgress, EveryExportCountsItsWork) {
    const Trace trace = testing::plain_ranges(40'000);
    for (const FileFormat& format : file_formats()) {
        if (format.write == nullptr) continue;
        SCOPED_TRACE(format.name);
        const std::string path =
            ::testing::TempDir() + "/work_progress" + std::string(format.suffixes.front());
        WorkProgress progress;
        {
            const WatchedWork watched(progress);
            format.write(trace, path);
        }
        EXPECT_GT(progress.done, 0u);
        EXPECT_EQ(progress.total, 0u);  // no longer known
        std::filesystem::remove(path);
    }
}

}  // namespace
}  // namespace marey
