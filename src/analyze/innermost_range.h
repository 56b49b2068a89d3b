// innermost_range.h: which range a thread was in at a time.
#pragma once

#include <cstdint>
#include <vector>

#include <kymo/trace.h>

namespace kymo {

/// Looks at tracks of threads only: async ranges and work of devices are nobody's inside.
class InnermostRange {
  public:
    explicit InnermostRange(const Trace& trace);

    /// The range of that thread which began last of those that hold `time_ns`; an end is outside. kNoRow:
    /// none.
    Row at(Row thread, std::int64_t time_ns) const;

  private:
    Row on_track(const TrackInfo& track, std::int64_t time_ns) const;

    const Trace trace_;
    std::vector<std::vector<Row>> tracks_;  ///< of each thread
};

}  // namespace kymo
