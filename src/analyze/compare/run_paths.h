// run_paths.h: the ranges of several runs, merged by their call paths into one tree with names in common.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include <marey/compare.h>

#include "analyze/tree/path_tree.h"

namespace marey {

/// The names of all runs. Device work has names of its own, even if a range of a thread has the same text.
class PathNames {
  public:
    struct Name {
        std::string_view text;
        std::uint32_t without_line = 0;  ///< number of "file: function", or of the name itself
        std::uint32_t group = 0;         ///< number of the text of CompareOptions::by; with Path, of the name
        Scope scope = Scope::User;
        bool is_device = false;
        CountKind kind = CountKind::Calls;
    };
    std::vector<Name> names;

    /// The number of a name. `group` is empty if it is the name.
    std::uint32_t find(std::string_view text, const std::string& group, Scope scope, bool is_device);
    std::uint32_t text(std::string_view text);
    std::string_view text(std::uint32_t number) const { return texts_[number]; }
    std::uint32_t text_count() const { return static_cast<std::uint32_t>(texts_.size()); }

  private:
    std::deque<std::string> texts_;
    std::unordered_map<std::string_view, std::uint32_t> number_of_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> name_of_[2];  ///< by text and group
};

struct Comparison::Paths {
    PathNames names;
    PathTree tree;                              ///< the slots are names; it has no counts and times
    std::vector<RowMatch> match{};              ///< by node, as in MatchedPaths
    std::vector<std::uint32_t> old_of, new_of;  ///< by node: its other path; kNoNode: none, or the same

    const PathNames::Name& name(std::uint32_t node) const { return names.names[tree.nodes[node].slot]; }
};

/// The values of a node in one run, without those of the nodes below it, except the total.
struct NodeValues {
    std::uint64_t calls = 0;
    std::int64_t self_ns = 0, total_ns = 0;  ///< the total: for CompareMetric::Total
};
/// Values that few nodes have.
struct NodeBytes {
    std::uint32_t node = 0;
    std::uint64_t allocations = 0;
    std::int64_t allocated = 0, peak = 0, copied = 0;
};
struct RunStep {
    std::int64_t number = 0;
    std::int64_t duration_ns = 0;
};
/// The parts of a run that are kept.
struct RunRecord {
    CompareSide side = CompareSide::Old;
    std::vector<NodeValues> values;  ///< by node; those beyond its end are 0
    std::vector<NodeBytes> bytes;
    std::vector<std::pair<Device, std::int64_t>> peaks;  ///< of each device in each process, bytes
    std::vector<RunStep> steps;                          ///< whole ones
    std::int64_t window_ns = 0;
    std::map<std::string, std::string> facts;  ///< by code of the warning if they differ
    bool is_lossy = false, is_unfinished = false;
    double overhead = 0;         ///< share of the window on the busiest thread
    std::uint64_t identity = 0;  ///< equal for equal recordings
    std::size_t names = 0;
};

/// Receives a range, its node, and the range at whose time it counts: of device work, the call that launched
/// it. When it comes, the node and its name are complete.
using RunVisitor = std::function<void(Row row, std::uint32_t node, Row at)>;

/// Adds the paths of a run to the tree. Linear time in its ranges.
RunRecord read_run(const Trace& trace, CompareSide side, const CompareOptions& options,
                   Comparison::Paths& paths, const RunVisitor& visit = {});

}  // namespace marey
