// compare.h: what changed between recordings: counts, call paths and times; with several runs on each side,
// also which differences of times are more than chance.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <marey/detail/export.h>
#include <marey/result_table.h>
#include <marey/time_statistics.h>
#include <marey/trace.h>

namespace marey {

/// The rows of a comparison.
enum class CompareBy : std::uint8_t { Path, Name, Function, File, Module, Step };
inline constexpr std::string_view kCompareByNames[] = {"path", "name", "function", "file", "module", "step"};

/// The values that the rows compare.
enum class CompareMetric : std::uint8_t {
    Self,   ///< time on threads outside the ranges inside; the only one whose rows add up to the whole time
    Total,  ///< time including the ranges inside; a range inside another of its row adds nothing
    Calls,
    Bytes,  ///< allocated
    Peak,   ///< bytes held when the most memory was held
    Gpu,    ///< time of device work, which has a path below the range that launched it
};
inline constexpr std::string_view kCompareMetricNames[] = {"self", "total", "calls", "bytes", "peak", "gpu"};

struct CompareOptions {
    CompareBy by = CompareBy::Path;
    CompareMetric metric = CompareMetric::Self;
    std::string step_name{};  ///< as in StepOptions; steps without an own name are "step 1" and so on
    /// Names of the old runs, or functions or files in them, and the new ones.
    std::vector<std::pair<std::string, std::string>> renames{};
    bool fold_numbers = false;  ///< names that differ in numbers only are one: "load 17" is "load #"
    /// Run i of both sides is a pair: they were recorded one after the other, old first in even pairs.
    bool in_turns = false;
    double effect = 0.05;         ///< the smallest change of interest: 0.05 is 5%
    double min_share = 0.01;      ///< of the total: smaller rows are not tested
    std::size_t max_tested = 20;  ///< rows that are tested
};

enum class CompareSide : std::uint8_t { Old, New };

/// The conclusion about a difference of times.
enum class Verdict : std::uint8_t {
    Untested,    ///< one run on each side, a row that is too small, or a value that is 0 in some runs
    Slower,      ///< or more: the interval excludes 1, and the ratio is beyond the effect of interest
    Faster,      ///< or less
    Same,        ///< the whole interval is within the effect of interest
    CannotTell,  ///< neither
};
inline constexpr std::string_view kVerdictNames[] = {"", "slower", "faster", "same", "cannot tell"};

/// The ratio of the new values to the old ones, with a 95% interval over runs.
struct RatioInterval {
    double ratio = 1, low = 1, high = 1;
    double p = 1;      ///< probability of such a ratio by chance
    double error = 0;  ///< standard error of its logarithm
    double runs = 0;   ///< on each side; of sides of different size, of two equal ones that tell as much
    bool in_turns = false;
};

/// A value of both sides: means over runs, per step if Comparison::per_step.
struct ComparedValue {
    double before = 0, after = 0;
    std::optional<RatioInterval> interval{};
    Verdict verdict = Verdict::Untested;
    /// If the verdict is CannotTell: so many more runs on each side would decide; empty: more than 1,000.
    std::optional<std::uint32_t> more_runs{};

    double difference() const noexcept { return after - before; }
};

/// How a row of the new runs was found in the old ones, best first.
enum class RowMatch : std::uint8_t {
    Path,      ///< the same path
    Function,  ///< the same file and function, on another line
    Moved,     ///< the same name on another path
    Guess,     ///< below the same parent, the same kind of range at the same position: perhaps another thing
    New,
    Gone,
};
inline constexpr std::string_view kRowMatchNames[] = {"same", "line", "moved", "guess", "new", "gone"};

inline constexpr std::uint32_t kNoNode = ~std::uint32_t{0};  ///< on that side, a row has no path

struct ComparedRow {
    std::uint32_t node = kNoNode, old_node = kNoNode;  ///< for Comparison::path()
    std::uint32_t inside = kNoNode;  ///< New and Gone paths: the outermost such path around it
    std::string name;
    std::string old_name{};  ///< if it differs
    RowMatch match = RowMatch::Path;
    bool is_device = false;
    ComparedValue value{};
    double old_calls = 0, new_calls = 0;  ///< means over runs
};

/// Counts that need no statistics.
enum class CountKind : std::uint8_t {
    Calls,
    Launches,  ///< kernels
    Copies,
    CopiedBytes,
    Sets,
    Collectives,
    Synchronisations,
    Allocations,
    AllocatedBytes,
    Steps,
};
inline constexpr std::string_view kCountKindNames[] = {
    "calls",       "launches",         "copies",      "copied bytes",    "sets",
    "collectives", "synchronisations", "allocations", "allocated bytes", "steps"};

/// A count over the runs of both sides, per step if Comparison::per_step.
struct ComparedCount {
    CountKind kind = CountKind::Calls;
    std::string name{};      ///< empty: all names
    std::string old_name{};  ///< if it differs
    RowMatch match = RowMatch::Path;
    double old_least = 0, old_most = 0, new_least = 0, new_most = 0;
    /// Of a name: paths on which the number per call of the caller changed. 0: it follows from a caller.
    std::size_t causes = 0;
    std::uint32_t node = kNoNode;    ///< the one of these paths where it changed most
    std::uint32_t inside = kNoNode;  ///< New and Gone: a path inside that of another such name

    /// Whether no run of one side has a count that is between those of the other.
    bool differs() const noexcept { return new_least > old_most || new_most < old_least; }
    bool varies() const noexcept { return old_least != old_most || new_least != new_most; }
};

/// A reason for caution.
struct CompareWarning {
    /// "same_file", "empty", "host", "clock", "version", "options", "overhead", "lost", "unfinished",
    /// "format", "steps", "many_names"
    std::string code;
    std::string before, after;  ///< what differs, if it has a short text
};

/// The result of a comparison.
struct MAREY_API Comparison {
    CompareOptions options{};
    std::vector<std::string> files[2];    ///< by side
    bool per_step = false;                ///< runs have different numbers of steps
    ComparedValue total{};                ///< the sum of the metric; of times also the first row to be tested
    ComparedValue window{};               ///< length of the recordings, not tested
    TimeStatistics steps[2];              ///< of the steps of all runs of a side
    std::vector<ComparedRow> rows{};      ///< slower and faster ones first, then by difference
    std::vector<ComparedCount> totals{};  ///< of the kinds that occur
    std::vector<ComparedCount> counts{};  ///< of the names that differ: causes first, then by difference
    std::vector<CompareWarning> warnings{};

    /// The names from the root down to a node; empty for kNoNode.
    std::vector<std::string> path(std::uint32_t node) const;
    std::size_t run_count(CompareSide side) const noexcept { return files[static_cast<int>(side)].size(); }

    struct Paths;
    std::shared_ptr<const Paths> paths{};
};

/// Compares runs that are added one by one; of each trace only sums are kept.
class MAREY_API RunComparison {
  public:
    explicit RunComparison(CompareOptions options);
    ~RunComparison();

    /// Adds a run. `file` is its name in the result. Takes linear time in its ranges.
    void add(const Trace& trace, CompareSide side, const std::string& file);
    /// Throws marey::Error if a side has no run, or if the options contradict each other.
    Comparison compare();
    /// The same with another metric. Total is 0 unless the options have it.
    Comparison compare(CompareMetric metric);

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A path in one tree of both sides: a differential flame graph. Gone paths are below what became of their
/// parents.
struct ComparedPath {
    std::uint32_t parent = kNoNode;  ///< less than the path's own number; kNoNode: a root
    std::string_view name;           ///< of the comparison
    std::string_view old_name{};     ///< if it differs
    RowMatch match = RowMatch::Path;
    bool is_device = false;
    double before = 0, after = 0;          ///< with the paths inside
    double own_before = 0, own_after = 0;  ///< without them
    double old_calls = 0, new_calls = 0;
    /// The larger one of its own values, plus the widths of the paths inside: gone paths keep their width.
    double width = 0;
};

/// Returns the tree of a comparison by path; empty if it is not one. Its metric must add up: not Total.
MAREY_API std::vector<ComparedPath> compared_tree(const Comparison& comparison);

/// Writes one HTML file with the differential flame graphs of all runs and the timelines of one of each side.
/// It works without a server or a network. The options must be by path. Throws marey::Error.
MAREY_API void write_html_comparison(RunComparison& comparison, const Trace& before, const Trace& after,
                                     const std::string& path);

/// Returns the tables of a comparison; docs/reference/results.md describes them. `rows`: of the table
/// diff_rows, at most.
MAREY_API Result diff_result(const Comparison& comparison,
                             std::size_t rows = std::numeric_limits<std::size_t>::max());

}  // namespace marey
