// call_tree.h: ranges merged by the names around them: from the root down, or from a name to its callers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// What the tree is made of. At most one of `inside`, `inside_range`, `step` and `by_step` is given; with
/// one of them only those ranges and what is nested in them count, and they are the roots.
struct CallTreeOptions {
    bool by_thread = false;  ///< one tree per thread; roots are the threads
    /// Roots are all names, each with its self time; below a name stand its callers.
    bool bottom_up = false;
    /// Levels of callers that a bottom-up tree shows: without a limit it can be the square of the trace.
    std::uint32_t caller_levels = 64;
    std::string inside = {};                ///< ranges of that name
    Row inside_range = kNoRow;              ///< that range
    std::optional<std::int64_t> step = {};  ///< the steps with that number
    bool by_step = false;                   ///< all steps, each a root of its own, in order of time
    std::string step_name = {};             ///< which ranges are steps, as StepOptions::name tells
};

/// All ranges with the same names from the root down, merged. In a bottom-up tree: all ranges of the root's
/// name that were called by this node's name, called by its ... ; a range inside another of that name adds
/// nothing to total_ns.
struct CallTreeNode {
    std::string name;
    std::uint32_t parent = kNoRow;  ///< index of a node, smaller than this one's; kNoRow for roots
    std::uint32_t depth = 0;
    Row thread = kNoRow;     ///< with by_thread
    bool is_thread = false;  ///< with by_thread: stands for a thread, not for ranges
    bool is_async = false;   ///< from async tracks: overlaps what others do, so that no sum or share holds it
    bool is_device = false;  ///< ran on a device, beside what the threads did
    std::optional<std::int64_t> step = {};  ///< of roots, with step or by_step: the number (marey/steps.h)
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;  ///< clipped to the window
    std::int64_t self_ns = 0;   ///< 0 for the user's annotations on a device: the work there is the others'
    /// What total_ns (bottom-up: self_ns) is of CallTree::recorded_ns, on a device of CallTree::device_ns: 0
    /// to 1, any number for async ones and for a device's annotations, which span its pauses too.
    double share = 0;
};

struct CallTree {
    /// In pre-order, siblings by falling total (bottom-up: self), host before device before async: a parent
    /// stands before its children, a subtree is contiguous.
    std::vector<CallTreeNode> nodes;
    std::int64_t recorded_ns = 0;  ///< sum of the totals of root ranges on threads that are not async
    std::int64_t device_ns = 0;    ///< time that devices worked: self times of their nodes
    bool by_thread = false;
    bool bottom_up = false;
};

/// Linear in the number of ranges; a bottom-up tree takes in addition, for each distinct path, its length or
/// `caller_levels`. Ranges on tracks that overlap stand under their parents, wherever those are. Throws
/// marey::Error when the options contradict each other.
MAREY_API CallTree call_tree(const Trace& trace, const CallTreeOptions& options = {});

/// What is to be left of a tree. 0: no limit.
struct TreeLimits {
    std::uint64_t max_depth = 0;  ///< levels
    double min_share = 0;         ///< nodes with less go
    std::uint64_t max_nodes = 0;  ///< the first so many in pre-order
};
/// Takes nodes away, each with what is below it. Returns how many.
MAREY_API std::size_t limit_tree(CallTree& tree, const TreeLimits& limits);

/// The nodes from the heaviest root down, each the child with the largest total of the one before, until the
/// node's self time is no less than that child's total. Of async and device roots only when there are no
/// others. Of trees from the root down.
MAREY_API std::vector<std::uint32_t> hot_path(const CallTree& tree);
/// The `count` nodes with the largest self time, the largest first: where time is spent, each path once.
/// path_to() gives the way there. Async ones are left out.
MAREY_API std::vector<std::uint32_t> heaviest_nodes(const CallTree& tree, std::size_t count);
/// From the root to `node`, itself included.
MAREY_API std::vector<std::uint32_t> path_to(const CallTree& tree, std::uint32_t node);

}  // namespace marey
