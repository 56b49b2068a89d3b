// timeline_test.cpp: pictures compared with a raster of every range.
#include <marey/timeline.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "analyze/trace_fixture.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

using Pixels = std::set<std::pair<std::uint32_t, std::uint32_t>>;  // level, column

/// Makes tracks of nested ranges.
class TrackMaker {
  public:
    explicit TrackMaker(unsigned seed) : random_(seed) {
        data_->sites.push_back({});
        data_->processes.push_back({});
        data_->threads.push_back({});
    }

    void begin_track() {
        TrackInfo track;
        track.first_range = size();
        data_->tracks.push_back(track);
    }
    void add(std::int64_t start, std::int64_t duration, Row parent, std::uint32_t depth) {
        data_->range_start_ns.push_back(start);
        data_->range_duration_ns.push_back(duration);
        data_->range_self_ns.push_back(0);
        data_->range_site.push_back(0);
        data_->range_parent.push_back(parent);
        data_->range_depth.push_back(depth);
        data_->range_flags.push_back(0);
        ++data_->tracks.back().range_count;
    }
    /// Fills [begin, end) with ranges inside ranges.
    void fill(std::int64_t begin, std::int64_t end, Row parent, std::uint32_t depth, std::uint32_t deepest) {
        std::int64_t time = begin;
        while (time <= end && size() < 4000) {
            const std::int64_t start = std::min(end, time + pick({0, 0, 1, 3, 200}));
            const std::int64_t duration = std::min(end - start, pick({0, 1, 5, 40, 300, 2000}));
            if (pick({0, 1, 1, 1}) == 0) break;
            const Row row = size();
            add(start, duration, parent, depth);
            if (depth < deepest) fill(start, start + duration, row, depth + 1, deepest);
            time = start + duration;
            if (duration == 0) ++time;
        }
    }
    Row size() const { return static_cast<Row>(data_->range_start_ns.size()); }
    std::int64_t pick(std::initializer_list<std::int64_t> from) {
        return *(from.begin() + std::uniform_int_distribution<std::size_t>(0, from.size() - 1)(random_));
    }
    Trace trace() const { return Trace(data_); }

  private:
    std::shared_ptr<TraceData> data_ = std::make_shared<TraceData>();
    std::mt19937 random_;
};

struct Raster {
    Pixels needed;   ///< where ranges begin, and all pixels of ranges that are at least one wide
    Pixels touched;  ///< all pixels of all ranges, to their ends
};

Raster raster(const Trace& trace, Row track, const TimelineView& view) {
    Raster pixels;
    const RangeColumns ranges = trace.ranges();
    const std::int64_t ns_per_pixel = (view.end_ns - view.begin_ns) / view.pixels;
    const auto column = [&](std::int64_t time) { return (time - view.begin_ns) / ns_per_pixel; };
    const TrackInfo& info = trace.tracks()[track];
    std::vector<bool> is_seen(ranges.size());
    for (Row row = info.first_range; row < info.first_range + info.range_count; ++row) {
        const std::int64_t start = ranges.start_ns[row], end = start + ranges.duration_ns[row];
        const Row parent = ranges.parent[row];
        is_seen[row] = start < view.end_ns && (end > view.begin_ns || start >= view.begin_ns) &&
                       (parent == kNoRow || is_seen[parent]);
        if (!is_seen[row] || ranges.depth[row] >= view.levels) continue;
        const auto last_in_view = [&](std::int64_t time) { return column(std::min(time, view.end_ns - 1)); };
        const std::int64_t first = column(std::max(start, view.begin_ns));
        const bool is_wide = end - start >= ns_per_pixel;
        for (std::int64_t at = first; at <= last_in_view(end); ++at) {
            const auto pixel = std::pair(ranges.depth[row], static_cast<std::uint32_t>(at));
            pixels.touched.insert(pixel);
            if (at == first || (is_wide && at <= last_in_view(end - 1))) pixels.needed.insert(pixel);
        }
    }
    return pixels;
}

Pixels painted(const std::vector<TimelineBox>& boxes) {
    Pixels pixels;
    for (const TimelineBox& box : boxes) {
        const auto first = static_cast<std::uint32_t>(box.begin);
        const auto end = std::max(first + 1, static_cast<std::uint32_t>(std::ceil(box.end)));
        for (std::uint32_t column = first; column < end; ++column) pixels.emplace(box.depth, column);
    }
    return pixels;
}

void expect_true_picture(const Trace& trace, const Timeline& timeline, const TimelineView& view) {
    for (Row track = 0; track < trace.tracks().size(); ++track) {
        const std::vector<TimelineBox> boxes = timeline.picture(track, view);
        const Pixels found = painted(boxes);
        const auto [needed, touched] = raster(trace, track, view);
        EXPECT_TRUE(std::includes(found.begin(), found.end(), needed.begin(), needed.end()));
        EXPECT_TRUE(std::includes(touched.begin(), touched.end(), found.begin(), found.end()));
        for (const TimelineBox& box : boxes) {
            EXPECT_EQ(trace.ranges().depth[box.row], box.depth);
            EXPECT_EQ(trace.track_of(box.row), track);
        }
    }
}

TEST(Timeline, PaintsWhereRangesBeginAndNowhereWithoutOne) {
    for (unsigned seed = 0; seed < 40; ++seed) {
        TrackMaker maker(seed);
        for (int track = 0; track < 3; ++track) {
            maker.begin_track();
            for (std::int64_t begin = 0; begin < 40'000; begin += 8'000)
                maker.fill(begin, begin + 7'999, kNoRow, 0, 1 + seed % 9);
        }
        const Trace trace = maker.trace();
        const Timeline timeline(trace);
        for (const std::int64_t ns_per_pixel : {1, 2, 16, 64, 512}) {
            for (const std::int64_t begin : {-100, 0, 1, 4'000, 7'990, 39'000}) {
                const std::uint32_t pixels = 120;
                expect_true_picture(trace, timeline, {begin, begin + pixels * ns_per_pixel, pixels, 6});
            }
        }
    }
}

TEST(Timeline, HasFewBoxesHoweverManyRangesThereAre) {
    TrackMaker maker(1);
    maker.begin_track();
    for (std::int64_t i = 0; i < 200'000; ++i) {
        const Row row = maker.size();
        maker.add(i * 10, 9, kNoRow, 0);
        maker.add(i * 10 + 1, 5, row, 1);
    }
    const Trace trace = maker.trace();
    const Timeline timeline(trace);
    const TimelineView view{0, 2'000'000, 100, 8};
    const std::vector<TimelineBox> boxes = timeline.picture(0, view);
    expect_true_picture(trace, timeline, view);
    EXPECT_LE(boxes.size(), 300u);
    EXPECT_EQ(boxes.front().merged, 4000u);
    EXPECT_LE(timeline.index_bytes(), 400'000 * 6 / 10 + 1000u);
}

TEST(Timeline, ABoxThatStandsForOneRangeNamesIt) {
    TrackMaker maker(1);
    maker.begin_track();
    maker.add(0, 500, kNoRow, 0);
    maker.add(100, 50, 0, 1);
    maker.add(800, 3, kNoRow, 0);
    const std::vector<TimelineBox> boxes = Timeline(maker.trace()).picture(0, {0, 1000, 100, 4});
    ASSERT_EQ(boxes.size(), 3u);
    EXPECT_EQ(boxes[0].row, 0u);
    EXPECT_FLOAT_EQ(boxes[0].end, 50);
    EXPECT_EQ(boxes[1].row, 1u);
    EXPECT_FLOAT_EQ(boxes[1].begin, 10);
    EXPECT_EQ(boxes[2].row, 2u);
    EXPECT_EQ(boxes[2].merged, 1u);
}

TEST(Timeline, OfManyLevelsIsCutOffAtTheLevelsAskedFor) {
    TrackMaker maker(1);
    maker.begin_track();
    const std::int64_t depth = 100'000;
    for (std::int64_t i = 0; i < depth; ++i)
        maker.add(i, 2 * (depth - i), i == 0 ? kNoRow : static_cast<Row>(i - 1),
                  static_cast<std::uint32_t>(i));
    const Trace trace = maker.trace();
    const Timeline timeline(trace);
    for (const std::int64_t ns_per_pixel : {1, 100, 100'000}) {
        for (const std::uint32_t levels : {1u, 40u})
            expect_true_picture(trace, timeline, {90'000, 90'000 + 50 * ns_per_pixel, 50, levels});
    }
}

TEST(Timeline, OfEqualStartsAndNoDurationsIsPainted) {
    TrackMaker maker(1);
    maker.begin_track();
    for (int i = 0; i < 1000; ++i) {
        const Row row = maker.size();
        maker.add(500, 0, kNoRow, 0);
        maker.add(500, 0, row, 1);
    }
    const Trace trace = maker.trace();
    const Timeline timeline(trace);
    expect_true_picture(trace, timeline, {0, 1000, 100, 4});
    expect_true_picture(trace, timeline, {500, 600, 100, 4});
    expect_true_picture(trace, timeline, {501, 601, 100, 4});
}

TEST(Timeline, OfAnEmptyViewOrAnUnknownTrackIsEmpty) {
    TrackMaker maker(1);
    maker.begin_track();
    maker.add(0, 10, kNoRow, 0);
    const Timeline timeline(maker.trace());
    EXPECT_TRUE(timeline.picture(1, {0, 10, 10, 1}).empty());
    EXPECT_TRUE(timeline.picture(0, {10, 10, 10, 1}).empty());
    EXPECT_TRUE(timeline.picture(0, {0, 10, 0, 1}).empty());
    EXPECT_TRUE(timeline.picture(0, {0, 10, 10, 0}).empty());
    EXPECT_TRUE(timeline.picture(0, {20, 30, 10, 1}).empty());
    EXPECT_TRUE(Timeline(Trace()).picture(0, {0, 1, 1, 1}).empty());
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(timeline.picture(0, {-most, most, 10, 1}).size(), 1u);
}

TEST(Timeline, OfATrackWithoutRangesIsEmpty) {
    for (const Row rows : {0u, 1u, 100u, 4096u}) {
        TraceFixture fixture;
        std::vector<RangeSpec> ranges;
        for (Row row = 0; row < rows; ++row) ranges.push_back({"a", row * 10, 5});
        const Trace trace = fixture.thread("before", {}).thread("main", ranges).thread("after", {}).trace();
        const Timeline timeline(trace);
        for (const Row track : {0u, 2u}) {
            EXPECT_TRUE(timeline.picture(track, {0, 100'000, 50, 5}).empty()) << rows << " " << track;
            EXPECT_EQ(timeline.extent(track).levels, 0u);
        }
    }
}

TEST(Timeline, HasTheLevelsAndTheTimesOfEachTrack) {
    const Trace trace = TraceFixture()
                            .thread("main", {{"a", 10, 20, {{"b", 12, 5}}}, {"c", 40, 5}})
                            .thread("idle", {})
                            .trace();
    const Timeline timeline(trace);
    EXPECT_EQ(timeline.extent(0).levels, 2u);
    EXPECT_EQ(timeline.extent(0).begin_ns, 10);
    EXPECT_EQ(timeline.extent(0).end_ns, 45);
    EXPECT_EQ(timeline.extent(1).levels, 0u);
    EXPECT_EQ(timeline.extent(2).levels, 0u) << "there is no such track";
}

}  // namespace
}  // namespace marey
