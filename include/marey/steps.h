// steps.h: the rounds of a loop: how long each took, and what was different in the slow ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/time_statistics.h>
#include <marey/trace.h>

namespace marey {

struct StepOptions {
    /// Which ranges are steps. Empty: those of scope Step, and those named ProfilerStep#n. Else those whose
    /// whole name it matches, where '*' stands for any text and '?' for one byte. Of nested ones the
    /// outermost.
    std::string name = {};
    std::size_t slowest = 3;  ///< how many slow steps to compare with the median one
};

/// Times are clipped to the window.
struct StepInfo {
    Row range = kNoRow;
    std::int64_t number = 0;  ///< behind the last '#' of its name, else how many came before on its thread
    std::string name;
    Row thread = kNoRow;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t gap_ns =
        -1;                   ///< since the step before on its thread ended, 0 if they overlap; -1: the first
    bool is_partial = false;  ///< cut off by the window; stands in no statistic
};

enum class StepPlace : std::uint8_t {
    Inside,        ///< the step's own thread
    OtherThreads,  ///< of its process, at that time
    Devices,       ///< at that time
};

/// What the ranges of one name did during a step: the part of them that lies in it, by time. Async ranges,
/// steps, and what is around the step do not count.
struct StepWork {
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;  ///< a range inside another of this name on the same track adds nothing
    std::int64_t self_ns = 0;
};

struct StepDifference {
    std::string name;
    bool is_rest = false;  ///< not a name, but the step's time in no range of its thread
    StepPlace place = StepPlace::Inside;
    StepWork slow;
    StepWork median;

    std::int64_t difference_ns() const noexcept { return slow.total_ns - median.total_ns; }
};

struct SlowStep {
    std::size_t step = 0;                     ///< index into StepReport::steps
    std::vector<StepDifference> differences;  ///< by place, then the largest difference first
};

struct StepReport {
    std::vector<StepInfo> steps;  ///< in order of time
    TimeStatistics durations;
    TimeStatistics gaps;
    std::size_t median_step = 0;    ///< one whose duration is the median; what slow ones are compared with
    std::vector<SlowStep> slowest;  ///< the slowest first; none when there are fewer than two whole steps
};

/// Linear in the number of ranges.
MAREY_API StepReport step_report(const Trace& trace, const StepOptions& options = {});

}  // namespace marey
