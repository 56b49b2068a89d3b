// stacks.h: folded stacks, the input of flame graphs: the time or count for each path of entries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The entries of a stack.
enum class StackFrames : std::uint8_t {
    /// All ranges around a range, and the range itself.
    Ranges,
    /// As in torch: the Python and C functions around a range, or its value "Call stack" (innermost entry
    /// first, separated by ';'); for a backward range, those of its forward range. Ranges with neither do not
    /// count. The time of the functions themselves counts only in a trace without operators: one that
    /// contains
    /// only functions, ranges marked by hand (User, Step) and device work.
    Python,
};

/// Options of fold_stacks().
struct StackOptions {
    /// One of stack_metrics().
    std::string metric = "self_cpu_time_total";
    StackFrames frames = StackFrames::Ranges;
    bool append_name = false;  ///< with StackFrames::Python: append the range's name as the last entry
    /// Of samples: also the waits outside ranges. Waits inside ranges are part of their time.
    bool with_waits = false;
    bool by_thread = false;     ///< make the thread the first entry
    bool microseconds = false;  ///< times in microseconds, rounded down, instead of nanoseconds
    /// Maximum number of entries; deeper ranges count for the last entry. Limits the size of the result,
    /// which grows with the square of the depth.
    std::uint32_t max_entries = 1024;
};

/// A stack and its value.
struct FoldedStack {
    std::string stack;  ///< entries, outermost first, joined by ';'; white space and ';' in names become '_'
    std::int64_t value = 0;  ///< greater than 0
};

/// Returns the names of the metrics. self_cpu_time_total: time of threads. self_device_time_total, or
/// self_cuda_time_total and so on for one kind of device: time of devices, attributed to the innermost range
/// around the launching call that is not itself a runtime call; with StackFrames::Ranges the device's range
/// is the last entry, work without a launching call is a separate stack, and user annotations on a device are
/// entries without self time. count: number of ranges. allocated_bytes: allocation reports, attributed to the
/// innermost range of their thread.
MAREY_API std::vector<std::string> stack_metrics();

/// Folds the ranges of a trace into stacks and merges equal stacks. In order of first appearance; values of 0
/// or less and async ranges are left out. Takes linear time in the number of ranges. Throws marey::Error,
/// which lists the known metrics, for an unknown metric.
MAREY_API std::vector<FoldedStack> fold_stacks(const Trace& trace, const StackOptions& options = {});

/// A path of entries, and the value of the ranges with exactly this path.
struct StackNode {
    std::string name;
    std::uint32_t parent = kNoRow;  ///< index of the node above, less than this node's
    std::int64_t value = 0;
};
/// Returns the same as a tree. Names are those of the ranges; the ranges named ProfilerStep#n are one node,
/// "ProfilerStep*".
MAREY_API std::vector<StackNode> stack_tree(const Trace& trace, const StackOptions& options = {});

}  // namespace marey
