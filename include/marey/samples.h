// samples.h: what the samples of a trace say: which functions ran and waited, and where.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The kind of place that a row of a SampleReport stands for.
enum class SampleGroup : std::uint8_t { Function, Line, Thread, Range, Step };
inline constexpr const char* kSampleGroupNames[] = {"function", "line", "thread", "range", "step"};

/// Options of sample_report().
struct SampleOptions {
    SampleGroup by = SampleGroup::Function;
    std::string step_name = {};  ///< by step: as in StepOptions
};

/// Samples of one function, line, thread, range name or step. Times are estimates. A recursive function
/// counts once in total_ns and waiting_ns.
struct SampledRow {
    std::string name;
    std::string file = {};      ///< of functions and lines, if known
    std::uint32_t line = 0;     ///< by line
    std::int64_t self_ns = 0;   ///< CPU time
    std::int64_t total_ns = 0;  ///< CPU time, with that of the functions it called
    std::int64_t self_waiting_ns = 0;
    std::int64_t waiting_ns = 0;  ///< in it, and in the functions it called
    std::uint64_t samples = 0;    ///< that self_ns and self_waiting_ns were made of
};

/// The time in waits of one kind, on all threads.
struct SampledWait {
    std::string kind;  ///< "lock", "sleep", ...; "other": no known function was on the stack
    std::int64_t time_ns = 0;
    std::uint64_t waits = 0;
};

struct SampleReport {
    std::vector<SampledRow> rows;    ///< by self time, then by waiting, largest first; steps in order of time
    std::vector<SampledWait> waits;  ///< longest first
    std::int64_t running_ns = 0;     ///< CPU time of all samples
    std::int64_t waiting_ns = 0;
    std::int64_t preempted_ns = 0;  ///< other threads had the CPU
    std::uint64_t samples = 0;      ///< of running threads
};

/// Adds up the samples of a trace. Takes linear time in the number of samples and distinct stacks.
MAREY_API SampleReport sample_report(const Trace& trace, const SampleOptions& options = {});

/// The purpose of a wait by its stack: "gil", or the name of a WaitKind, or "other".
MAREY_API const char* sampled_wait_kind(const Trace& trace, Row stack);

// Samples as ranges (flag kSampled) on more tracks, after the others, for analyses and pictures of ranges.
// The results have no samples; a trace without samples stays the same.

/// For sums: a range for each path below a range of the trace, or outside all of them, as long as its samples
/// stand for; its times mean nothing. The ranges around lose that time of their self time. The functions that
/// all samples of a range have in common, except the innermost of them, were around the range, and are left
/// out. Waits outside ranges count only with `with_waits`.
MAREY_API Trace with_sampled_functions(const Trace& trace, bool with_waits = false);
/// For pictures: where and while each thread was seen, and a track that tells whether it ran.
MAREY_API Trace with_sample_tracks(const Trace& trace);

}  // namespace marey
