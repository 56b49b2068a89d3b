// progress_test.cpp: the line that shows how far long work is.
#include "cli/progress.h"

#include <gtest/gtest.h>

#include "cli/text_format.h"

namespace marey::cli {
namespace {

TEST(ProgressLine, HasABarIfItIsKnownHowMuchIsDone) {
    EXPECT_EQ(progress_line("writing x.json", 3, 0.42, 79), "writing x.json [########............]  42% 3 s");
    EXPECT_EQ(progress_line("writing x.json", 3, 0, 79), "writing x.json [....................]   0% 3 s");
    EXPECT_EQ(progress_line("writing x.json", 12, 1, 79), "writing x.json [####################] 100% 12 s");
    EXPECT_EQ(progress_line("writing x.json", 3, -1, 79), "writing x.json ... 3 s");
}

TEST(ProgressLine, FitsIntoNarrowTerminals) {
    EXPECT_EQ(progress_line("writing x.json", 3, 0.42, 30), "writing x.json  42% 3 s");
    for (std::size_t width = 0; width < 100; ++width) {
        for (const double share : {-1.0, 0.0, 0.5, 1.0})
            EXPECT_LE(display_width(progress_line("reading some/long/name.marey", 1234, share, width)),
                      width);
    }
}

TEST(ProgressLine, ShowsNamesOfFilesSafely) {
    EXPECT_EQ(progress_line("reading a\x1b[2J", 1, -1, 79), "reading a\\x1b[2J ... 1 s");
}

}  // namespace
}  // namespace marey::cli
