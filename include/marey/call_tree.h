// call_tree.h: ranges merged by their call paths: from the root down, or from a name to its callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// Options of call_tree(). Set at most one of `inside`, `inside_range`, `step` and `by_step`; then only those
/// ranges and the ranges nested in them count, and they are the roots.
struct CallTreeOptions {
    bool by_thread = false;  ///< one tree per thread; the threads are the roots
    /// All names are roots, each with its self time, with their callers below them.
    bool bottom_up = false;
    /// Levels of callers in a bottom-up tree; without a limit, its size can be the square of the trace's.
    std::uint32_t caller_levels = 64;
    std::string inside = {};                ///< only ranges of this name
    Row inside_range = kNoRow;              ///< only this range
    std::optional<std::int64_t> step = {};  ///< only the steps with this number
    bool by_step = false;                   ///< all steps, each as a separate root, in order of time
    std::string step_name = {};             ///< which ranges are steps; see StepOptions::name
    std::string callers_of = {};            ///< with bottom_up: only this name is a root
    /// Merges the ranges named ProfilerStep#n as "ProfilerStep*", as tables do: one tree for all steps.
    bool merge_steps = false;
    /// If the trace has hundreds of thousands of paths: leaves out the nodes below those that have at most
    /// this part of the whole time and of all ranges, for a picture that is so many pixels wide. The other
    /// nodes are exact; CallTree::device_ns and shares on devices count these nodes only. 0: all nodes.
    /// Cannot be combined with by_thread, by_step, and of bottom_up with `inside`, `inside_range` and `step`.
    std::uint32_t parts = 0;
};

/// All ranges with the same path of names from the root down, merged. In a bottom-up tree: all ranges of the
/// root's name that were called along the path from this node to the root; a range inside another of that
/// name adds nothing to total_ns.
struct CallTreeNode {
    std::string name;
    std::uint32_t parent = kNoRow;  ///< index of the parent node, less than this node's; kNoRow for roots
    std::uint32_t depth = 0;
    Row thread = kNoRow;     ///< with by_thread
    bool is_thread = false;  ///< with by_thread: the node of a thread, not of ranges
    bool is_async = false;   ///< from async tracks: overlaps other work, so it is not part of sums and shares
    bool is_device = false;  ///< ran on a device, in parallel with the threads
    std::optional<std::int64_t> step = {};  ///< for roots, with step or by_step: the number (marey/steps.h)
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;   ///< clipped to the window
    std::uint64_t left_out = 0;  ///< with CallTreeOptions::parts: ranges inside it that have no node
    std::int64_t self_ns = 0;    ///< 0 for user annotations on a device: they do no work themselves
    /// total_ns (bottom-up: self_ns) divided by CallTree::recorded_ns, or by CallTree::device_ns on a device:
    /// 0 to 1, but unlimited for async nodes and for device annotations, which also span idle time.
    double share = 0;
};

/// The result of call_tree().
struct CallTree {
    /// In pre-order, siblings by descending total (bottom-up: self), host before device before async: a
    /// parent comes before its children, and a subtree is contiguous.
    std::vector<CallTreeNode> nodes{};
    std::int64_t recorded_ns = 0;  ///< sum of the totals of root ranges on threads that are not async
    std::int64_t device_ns = 0;    ///< time that devices were busy: the sum of their nodes' self times
    bool by_thread = false;
    bool bottom_up = false;
};

/// Builds the call tree of a trace. Takes linear time in the number of ranges; a bottom-up tree takes, in
/// addition, the length of each distinct path, up to `caller_levels`. Ranges on overlap tracks are placed
/// under their parents, on whichever track those are. Throws marey::Error if the options contradict each
/// other.
MAREY_API CallTree call_tree(const Trace& trace, const CallTreeOptions& options = {});

/// Limits for limit_tree(). 0 means no limit.
struct TreeLimits {
    std::uint64_t max_depth = 0;  ///< levels to keep
    double min_share = 0;         ///< remove nodes with a smaller share
    std::uint64_t max_nodes = 0;  ///< nodes to keep, in pre-order
};
/// Removes nodes beyond the limits, each with its subtree. Returns the number of removed nodes.
MAREY_API std::size_t limit_tree(CallTree& tree, const TreeLimits& limits);

/// Returns the path from the heaviest root down: each node is the child of the previous one with the largest
/// total, until a node's self time is at least the total of that child. Starts at an async or device root
/// only if there are no others. Not for bottom-up trees.
MAREY_API std::vector<std::uint32_t> hot_path(const CallTree& tree);
/// Returns the `count` nodes with the largest self times, largest first. path_to() returns the path to a
/// node. Async nodes are left out.
MAREY_API std::vector<std::uint32_t> heaviest_nodes(const CallTree& tree, std::size_t count);
/// Returns the nodes from the root to `node`, including `node`.
MAREY_API std::vector<std::uint32_t> path_to(const CallTree& tree, std::uint32_t node);

}  // namespace marey
