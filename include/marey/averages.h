// averages.h: the ranges of a trace grouped by name and summed: how often, how long, how much memory, how
// many operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/scope.h>
#include <marey/trace.h>
#include <marey/value.h>

namespace marey {

/// What one row stands for.
enum class GroupBy : std::uint8_t {
    Name = 0,      ///< a name; of Python: file, first line and function
    Function = 1,  ///< a function of a file, whichever line it is defined in
    Line = 2,      ///< the line that a function is defined in, or a range is marked in
    File = 3,
    Module = 4,   ///< of Python; labelled where it is not the program's own
    Package = 5,  ///< the program, the standard library, each library; C extensions apart
};

struct AverageOptions {
    GroupBy group_by = GroupBy::Name;
    bool by_thread = false;
    bool by_input_shape = false;
    bool by_overload = false;
    std::uint32_t stack_entries = 0;  ///< how many entries of the stack, the innermost first, are in the key
    bool percentiles = false;         ///< fill p50, p90 and p99: 8 bytes of memory per range
    /// A range whose parent has the same name and no other child is not counted: it is the parent once more,
    /// as operators that dispatch again have it. Its self time, memory and kernels are the parent's. Calls of
    /// Python and C functions (scopes PythonFunction and CFunction) always count.
    bool merge_repeated = true;
    /// Memory as PyTorch has it: a report counts for the ranges of all threads that were open then, not only
    /// for those of its own.
    bool memory_of_any_thread = false;
    bool flops = false;    ///< fill the flops of those that have a formula (marey/flops.h)
    bool covered = false;  ///< fill covered_ns: one more pass
    bool nesting = false;  ///< fill covered_ns and the overheads: two more passes
};

/// The ranges of one key, or a single one. Durations are clipped to the trace's window. What is not a number
/// is as the first of them has it, in order of (start, longer first).
struct AverageRow {
    std::string name;        ///< "ProfilerStep#7" is "ProfilerStep*"
    std::int32_t node = -1;  ///< -1: none
    DeviceType device_type = DeviceType::Cpu;
    Scope scope = Scope::Function;
    bool is_user_annotation = false;  ///< marked by hand: scopes User and Step
    bool is_async = false;
    bool is_remote = false;
    bool is_top_level = true;        ///< has no range around it
    bool is_legacy = false;          ///< of events made by hand: a device's time is that of the call itself
    std::string overload;            ///< with by_overload
    std::string input_shapes;        ///< with by_input_shape: "[[8, 3], []]"
    std::vector<std::string> stack;  ///< with stack_entries: the innermost first
    Row thread = kNoRow;             ///< row of Trace::threads(); with by_thread it holds for all
    std::string thread_name;         ///< with by_thread
    Row first_range = kNoRow;  ///< kNoRow: allocation reports that happened in no range. Of group_rows():
                               ///< the first row of the list

    /// Ranges or reports. Of calls that were suspended (generators, coroutines) only the first part of each
    /// in the trace counts; a row that has further parts alone has 1. In a list of ranges each range counts.
    std::uint64_t count = 0;
    std::uint64_t range_count = 0;  ///< ranges, every part of a call being one; 0 where no trace is behind it
    std::uint64_t unfinished = 0;   ///< of them, still open at the window's end
    std::uint64_t async_count = 0;  ///< of them, async
    std::uint32_t threads = 0;      ///< threads that they ran on

    std::int64_t cpu_time_total_ns = 0;  ///< 0 for ranges of devices
    /// Not covered by any child. Async ranges have none: they only span what others do.
    std::int64_t self_cpu_time_total_ns = 0;
    /// Of ranges of a device their durations (async ones, which only wait, have none); of others, those of
    /// what they and the ranges inside them launched.
    std::int64_t device_time_total_ns = 0;
    std::int64_t self_device_time_total_ns = 0;  ///< without what ranges inside them launched
    std::int64_t covered_ns =
        0;  ///< with covered or nesting: as the total, a range inside another of its row adds nothing
    std::int64_t min_ns = 0;  ///< of single durations
    std::int64_t max_ns = 0;
    std::int64_t p50_ns = 0;  ///< nearest rank: the smallest duration that half of the ranges do not exceed
    std::int64_t p90_ns = 0;
    std::int64_t p99_ns = 0;

    std::int64_t cpu_memory_bytes = 0;  ///< taken less given back
    std::int64_t self_cpu_memory_bytes = 0;
    std::int64_t device_memory_bytes = 0;
    std::int64_t self_device_memory_bytes = 0;
    std::optional<double> flops;  ///< nothing: unknown
    double nested_flops = 0;      ///< of them, in ranges inside others whose flops hold them

    /// With nesting, where the trace has costs and for what the processor did: how much of their self times
    /// and of their totals recording took. A range's own cost is spent around it, in the self time of its
    /// parent.
    std::optional<double> self_overhead_ns;
    std::optional<double> overhead_ns;

    double cpu_time_ns() const noexcept { return per_call(cpu_time_total_ns); }
    double device_time_ns() const noexcept { return per_call(device_time_total_ns); }

  private:
    double per_call(std::int64_t total) const noexcept {
        return count == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(count);
    }
};

struct Averages {
    std::vector<AverageRow> rows;  ///< in order of their first ranges: (start, longer first)
    AverageOptions options;
    bool is_list = false;                  ///< one row per range
    DeviceType device = DeviceType::None;  ///< the device that worked, or whose memory was reported
    bool has_memory = false;               ///< the trace has allocation reports
    std::uint64_t range_count = 0;         ///< all ranges of the trace
    std::int64_t recorded_ns = 0;          ///< sum of all self times of the processor
    std::int64_t window_ns = 0;            ///< length of the window
};

/// Groups the ranges by name, node, device type and whether they are the user's annotations, and by what
/// `options` add. Allocation reports in no range are rows "[memory]", refused allocations rows
/// "[OutOfMemory]". Linear in the number of ranges.
MAREY_API Averages key_averages(const Trace& trace, const AverageOptions& options = {});
/// Every range as a row of its own, with its shapes, overload and whole stack. Of the options only
/// merge_repeated, memory_of_any_thread, flops and nesting matter.
MAREY_API Averages list_ranges(const Trace& trace, const AverageOptions& options = {});
/// The same for rows that are given, each with its own numbers: rows of equal keys (and of equal is_legacy)
/// are one, in order of their first. Of the options, by_thread, flops, nesting and merge_repeated do not
/// matter.
MAREY_API Averages group_rows(const Averages& list, const AverageOptions& options = {});
/// All rows added up, under the name "Total". Percentiles are left out.
MAREY_API AverageRow total_average(const Averages& averages);
/// Takes the estimated cost of profiling off the times of the processor, none of which falls below 0. Does
/// nothing for rows without overhead.
MAREY_API void subtract_overhead(Averages& averages);

}  // namespace marey
