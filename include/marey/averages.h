// averages.h: the ranges of a trace grouped by name and added up: counts, times, memory, FLOPs.
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

/// The property by which ranges are grouped into rows.
enum class GroupBy : std::uint8_t {
    Name = 0,      ///< the name; for Python calls: file, first line and function
    Function = 1,  ///< the function and its file, on any line
    Line = 2,      ///< the line where a function is defined or a range is marked
    File = 3,
    Module = 4,   ///< the Python module, with a label if it does not belong to the program
    Package = 5,  ///< the program, the standard library, or a library; C extensions are separate
    Process = 6,  ///< the process, in traces of several
};

/// Their names, by number.
inline constexpr std::string_view kGroupNames[] = {"name",   "function", "line",   "file",
                                                   "module", "package",  "process"};

/// The text for a site. Sites without a file, and sites of other languages for which `by` does not apply,
/// keep their names.
MAREY_API std::string site_group(const Trace& trace, const SiteInfo& site, GroupBy by);

/// Options of key_averages(), list_ranges() and group_rows().
struct AverageOptions {
    GroupBy group_by = GroupBy::Name;
    bool by_thread = false;
    bool by_input_shape = false;
    bool by_overload = false;
    std::uint32_t stack_entries = 0;  ///< number of stack entries in the key, innermost first
    bool percentiles = false;         ///< fill p50, p90 and p99; takes 8 bytes of memory per range
    /// Do not count a range whose parent has the same name and no other child; operators that dispatch again
    /// produce such ranges. Its self time, memory and kernels are added to the parent. Python and C function
    /// calls (scopes PythonFunction and CFunction) always count.
    bool merge_repeated = true;
    /// Attribute memory as PyTorch does: an allocation report counts for the open ranges of all threads, not
    /// only of its own thread.
    bool memory_of_any_thread = false;
    bool flops = false;    ///< fill the FLOPs of ranges that have a formula (marey/flops.h)
    bool covered = false;  ///< fill covered_ns; takes one more pass
    bool nesting = false;  ///< fill covered_ns and the overheads; takes two more passes
};

/// The sums of all ranges with one key, or one single range. Durations are clipped to the trace's window.
/// Members that are not sums come from the first range, in order of (start, longer first).
struct AverageRow {
    std::string name;        ///< "ProfilerStep#7" becomes "ProfilerStep*"
    std::int32_t node = -1;  ///< -1: none
    DeviceType device_type = DeviceType::Cpu;
    Scope scope = Scope::Function;
    bool is_user_annotation = false;  ///< marked by hand: scopes User and Step
    bool is_async = false;
    bool is_remote = false;
    bool is_top_level = true;        ///< no range around it
    bool is_legacy = false;          ///< an event created by hand: its device time is that of the call itself
    std::string overload;            ///< with by_overload
    std::string input_shapes;        ///< with by_input_shape: "[[8, 3], []]"
    std::vector<std::string> stack;  ///< with stack_entries: innermost entry first
    Row thread = kNoRow;             ///< row of Trace::threads(); with by_thread, the same for all ranges
    std::string thread_name;         ///< with by_thread
    /// kNoRow: allocation reports outside any range. From group_rows(): the first row of the list.
    Row first_range = kNoRow;

    /// The number of ranges or reports. For suspended calls (generators, coroutines), only the first part of
    /// each call in the trace counts; a row with only later parts has 1. In a list of ranges, each counts.
    std::uint64_t count = 0;
    std::uint64_t range_count = 0;  ///< ranges, including every part of a call; 0 if there is no trace
    std::uint64_t unfinished = 0;   ///< ranges still open at the window's end
    std::uint64_t async_count = 0;  ///< async ranges
    std::uint32_t threads = 0;      ///< number of threads that the ranges ran on

    std::int64_t cpu_time_total_ns = 0;  ///< 0 for device ranges
    /// Time not covered by any child. 0 for async ranges: they only span the work of others.
    std::int64_t self_cpu_time_total_ns = 0;
    /// For device ranges, their durations (0 for async ranges, which only wait); for others, the durations of
    /// the work launched by them and by the ranges inside them.
    std::int64_t device_time_total_ns = 0;
    std::int64_t self_device_time_total_ns = 0;  ///< without work launched by the ranges inside them
    /// With covered or nesting: the total, where a range inside another range of the same row adds nothing.
    std::int64_t covered_ns = 0;
    std::int64_t min_ns = 0;  ///< the shortest single duration
    std::int64_t max_ns = 0;
    std::int64_t p50_ns = 0;  ///< nearest rank: the smallest duration that half of the ranges do not exceed
    std::int64_t p90_ns = 0;
    std::int64_t p99_ns = 0;

    std::int64_t cpu_memory_bytes = 0;  ///< allocated minus freed
    std::int64_t self_cpu_memory_bytes = 0;
    std::int64_t device_memory_bytes = 0;
    std::int64_t self_device_memory_bytes = 0;
    std::optional<double> flops;  ///< empty: unknown
    double nested_flops = 0;      ///< the part of `flops` in ranges inside others that already include it

    /// With nesting, for CPU ranges if the trace has costs: the part of the self time and of the total time
    /// that recording took. A range's own cost is spent around it, in the self time of its parent.
    std::optional<double> self_overhead_ns;
    std::optional<double> overhead_ns;

    double cpu_time_ns() const noexcept { return per_call(cpu_time_total_ns); }  ///< mean per call
    double device_time_ns() const noexcept { return per_call(device_time_total_ns); }

  private:
    double per_call(std::int64_t total) const noexcept {
        return count == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(count);
    }
};

/// The result of key_averages(), list_ranges() and group_rows().
struct Averages {
    std::vector<AverageRow> rows{};  ///< in order of their first ranges: (start, longer first)
    AverageOptions options{};
    bool is_list = false;                  ///< one row per range
    DeviceType device = DeviceType::None;  ///< used_device()
    bool has_memory = false;               ///< the trace has allocation reports
    std::uint64_t range_count = 0;         ///< number of all ranges of the trace
    std::int64_t recorded_ns = 0;          ///< sum of all CPU self times
    std::int64_t window_ns = 0;            ///< length of the window
};

/// Groups the ranges of a trace by name, node, device type and whether they are user annotations, and by the
/// keys that `options` adds. Allocation reports outside any range become rows "[memory]", refused allocations
/// rows "[OutOfMemory]". Takes linear time in the number of ranges.
MAREY_API Averages key_averages(const Trace& trace, const AverageOptions& options = {});
/// Returns one row per range, with its shapes, overload and whole stack. Uses only the options
/// merge_repeated, memory_of_any_thread, flops and nesting.
MAREY_API Averages list_ranges(const Trace& trace, const AverageOptions& options = {});
/// Groups given rows, each with its own numbers: rows with equal keys (and equal is_legacy) are merged, in
/// order of their first row. Ignores the options by_thread, flops, nesting and merge_repeated.
MAREY_API Averages group_rows(const Averages& list, const AverageOptions& options = {});
/// The device that did work or whose memory was reported; None if there is none.
MAREY_API DeviceType used_device(const Trace& trace);
/// Sums the device self times of all rows, each piece of work once: what shares of the device time refer to.
MAREY_API std::int64_t device_time_ns(const Averages& averages);
/// Adds the counts, sums and FLOPs of another row; the extremes are those of both. Percentiles stay.
MAREY_API void add_row(AverageRow& sum, const AverageRow& row);
/// Adds up all rows under the name "Total". Percentiles are not set.
MAREY_API AverageRow total_average(const Averages& averages);
/// Subtracts the estimated profiling cost from the CPU times; no time falls below 0. Does nothing for rows
/// without overhead.
MAREY_API void subtract_overhead(Averages& averages);

}  // namespace marey
