// timeline.h: the ranges of a track as boxes of a picture, however many ranges there are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// One box: a range, or ranges that are each narrower than a pixel and begin in the same pixel.
struct TimelineBox {
    /// The range; of merged ones, the longest, or on lower levels the one around the deepest.
    Row row = kNoRow;
    std::uint32_t depth = 0;
    std::uint32_t merged = 1;  ///< how many ranges it stands for, with those inside them; 1: exactly one
    float begin = 0, end = 0;  ///< in pixels, from 0 to the width of the picture
};

/// The part of a track to draw: the time from `begin_ns` to `end_ns`, `pixels` wide, and this many levels.
struct TimelineView {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t pixels = 0;
    std::uint32_t levels = 0;
};

/// How far the ranges of a track reach.
struct TimelineExtent {
    std::uint32_t levels = 0;  ///< greatest depth + 1; 0: no ranges
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
};

/// An index over the ranges of a trace, half a byte per range, that answers by pixels. Copies are cheap and
/// may be used from any thread.
class MAREY_API Timeline {
  public:
    explicit Timeline(Trace trace);

    /// Returns the boxes of a track, on each level in order of time: a few per pixel and level at most. They
    /// cover every pixel in which a range begins, every pixel of ranges that are at least one wide, and none
    /// that no range touches. Empty if the view is.
    std::vector<TimelineBox> picture(Row track, const TimelineView& view) const;

    TimelineExtent extent(Row track) const noexcept;

    std::size_t index_bytes() const noexcept;

  private:
    struct Index;
    Trace trace_;
    std::shared_ptr<const Index> index_;
};

}  // namespace marey
