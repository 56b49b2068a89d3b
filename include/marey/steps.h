// steps.h: the steps of a loop: how long each took, and how the slow ones differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/time_statistics.h>
#include <marey/trace.h>

namespace marey {

/// Options of step_report().
struct StepOptions {
    /// Selects the ranges that are steps. Empty: ranges of scope Step and ranges named ProfilerStep#n.
    /// Otherwise ranges whose whole name matches, where '*' matches any text and '?' one byte. Of nested
    /// matches, only the outermost counts.
    std::string name = {};
    std::size_t slowest = 3;  ///< number of slow steps to compare with the median step
};

/// One step. Times are clipped to the window.
struct StepInfo {
    Row range = kNoRow;
    std::int64_t number = 0;  ///< after the last '#' of its name, or its index among the steps of its thread
    std::string name;
    Row thread = kNoRow;
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    /// Time since the end of the previous step on its thread; 0 if they overlap; -1: it is the first step.
    std::int64_t gap_ns = -1;
    bool is_partial = false;  ///< cut off by the window; not included in statistics
};

/// Where work took place during a step.
enum class StepPlace : std::uint8_t {
    Inside,        ///< on the step's own thread
    OtherThreads,  ///< on other threads of its process, at that time
    Devices,       ///< on devices, at that time
};

/// The parts of the ranges of one name that lie in a step's time. Async ranges, steps, and ranges around the
/// step do not count.
struct StepWork {
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;  ///< a range inside another of this name on the same track adds nothing
    std::int64_t self_ns = 0;
};

/// The difference between a slow step and the median step, for one name and place.
struct StepDifference {
    std::string name;
    bool is_rest = false;  ///< not a name, but the step's time outside any range of its thread
    StepPlace place = StepPlace::Inside;
    StepWork slow;
    StepWork median;

    std::int64_t difference_ns() const noexcept { return slow.total_ns - median.total_ns; }
};

/// A slow step compared with the median step.
struct SlowStep {
    std::size_t step = 0;                     ///< index into StepReport::steps
    std::vector<StepDifference> differences;  ///< by place, then largest difference first
};

/// The result of step_report().
struct StepReport {
    std::vector<StepInfo> steps;  ///< in order of time
    TimeStatistics durations;
    TimeStatistics gaps;
    std::size_t median_step = 0;    ///< a step with the median duration; slow steps are compared with it
    std::vector<SlowStep> slowest;  ///< slowest first; empty if there are fewer than two whole steps
};

/// Finds the steps of a trace and compares the slow ones with the median. Takes linear time in the number of
/// ranges.
MAREY_API StepReport step_report(const Trace& trace, const StepOptions& options = {});

}  // namespace marey
