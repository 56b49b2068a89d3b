// ranks.h: the ranks of a distributed program: who waits for whom, and why.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <marey/detail/cxx20.h>
#include <marey/detail/export.h>
#include <marey/host_clocks.h>
#include <marey/time_statistics.h>
#include <marey/trace.h>

namespace marey {

/// Options of RankReader.
struct RankOptions {
    std::string step_name = {};  ///< selects the steps, as StepOptions::name does
    /// Ranges that wait for input data: those whose name contains this text, in any case.
    std::string input_name = "dataloader";
};

/// How the recording of a rank ended.
enum class RankEnd : std::uint8_t {
    Closed,   ///< the recording was stopped, or the process exited
    Running,  ///< it goes on
    Died,     ///< the process ended without closing its capture, or was killed
};

/// One rank, over all of its complete steps. Times are totals.
struct RankInfo {
    std::int32_t rank = 0;
    std::string host;
    std::int64_t pid = 0;
    std::uint64_t steps = 0;
    TimeStatistics step_times;
    std::int64_t compute_ns = 0;        ///< kernels were running; without a device: operators
    std::int64_t communication_ns = 0;  ///< collectives were running
    std::int64_t overlap_ns = 0;        ///< both were
    std::int64_t input_ns = 0;          ///< its step's thread waited for input data
    std::uint64_t collectives = 0;      ///< those that other ranks took part in
    std::int64_t waiting_ns = 0;        ///< in collectives, before the last rank entered them
    std::uint64_t times_last = 0;       ///< collectives that it entered last
    std::int64_t delayed_ns = 0;        ///< time for which only this rank kept the others waiting
    std::int64_t critical_ns = 0;       ///< its part of the critical path
    std::int64_t clock_error_ns = 0;    ///< of its host's clock; kUnknownClockError: unknown

    std::int64_t exposed_ns() const noexcept { return communication_ns - overlap_ns; }
};

/// A step that at least two ranks have completed.
struct RankStepInfo {
    std::int64_t number = 0;
    std::uint64_t ranks = 0;
    std::int64_t duration_ns = 0;   ///< on the slowest rank
    std::int32_t slowest = 0;       ///< the rank with the most own work
    std::int64_t most_work_ns = 0;  ///< its step without waiting for others
    std::int64_t median_work_ns = 0;
    double imbalance = 0;  ///< most work / mean work - 1
};

/// A part of the critical path: the work of the rank that entered a collective last, and the collective.
struct CriticalPart {
    std::int32_t rank = 0;
    std::string name;  ///< the range with most self time in these parts, or the name of the collectives
    bool is_collective = false;
    std::uint64_t count = 0;
    std::int64_t time_ns = 0;
};

/// Something wrong with a job, "restarted", "hang", "died", "disagreement", "absent" or "unequal_steps", or a
/// performance problem, "straggler", "late_input", "slow_kernels", "slow_link" or "imbalance".
struct RankFinding {
    std::string rule{};
    std::int32_t rank = -1;  ///< -1: no single rank
    std::string host{};
    double share = 0;    ///< of the time of all steps; 0: something is wrong
    std::string text{};  ///< one sentence
};

/// A collective that a rank has entered and not left.
struct OpenCollective {
    std::string operation;      ///< "all_reduce"
    std::string place;          ///< where in its group: "world #3"
    std::int64_t sequence = 0;  ///< orders the collectives of a group; equal on all ranks
    std::int64_t open_ns = 0;
    bool is_launch = false;  ///< it was launched on a device; it may have ended unnoticed
};
/// The state of a rank in a group of ranks.
struct RankGroupState {
    std::string group;
    std::int64_t entered = 0;          ///< the last collective that it entered
    std::vector<OpenCollective> open;  ///< by number
};
/// The activity of a rank at the end of its recording, or now.
struct RankState {
    std::int32_t rank = 0;
    std::int32_t world_size = 0;  ///< number of ranks that the program was started with; 0: unknown
    std::string host;
    RankEnd end = RankEnd::Closed;
    std::int32_t exit_code = -1, exit_signal = -1;  ///< as in ProcessInfo
    std::int64_t end_ns = 0;                        ///< of its recording, on a clock that all ranks share
    std::string open_name;                          ///< the innermost open range of its thread; empty: none
    std::int64_t open_ns = 0;
    std::int64_t usual_ns = 0;  ///< median time from one collective to the next; 0: unknown
    std::vector<RankGroupState> groups{};
};
/// Finds ranks that are absent, that died, and that others wait for in a collective. Needs only the last
/// collective of each rank in each group and its open ranges, so it works on a job that still runs.
MAREY_API std::vector<RankFinding> job_findings(std::span<const RankState> ranks);

/// The clock of a host in a job.
struct RankHost {
    std::string name;
    HostClock clock;
};

/// The result of RankReader::report().
struct RankReport {
    std::vector<RankInfo> ranks;              ///< by rank
    std::vector<RankStepInfo> steps;          ///< by number
    std::vector<CriticalPart> critical_path;  ///< largest first
    std::vector<RankFinding> findings;        ///< what is wrong first, then the largest share
    std::vector<RankHost> hosts;
    std::uint32_t reference_host = 0;
    std::int32_t world_size = 0;       ///< number of ranks that the program was started with; 0: unknown
    std::uint64_t collectives = 0;     ///< with at least two ranks
    std::uint64_t unmatched = 0;       ///< recorded by one rank only
    std::uint64_t unfinished = 0;      ///< not left by all ranks that entered them; in no sum
    std::uint64_t mismatched = 0;      ///< from the first one on in which ranks disagree; in no sum
    std::uint64_t unsynchronised = 0;  ///< a rank left before another one entered; in no sum
    /// Collectives in which the rank that came last by the clocks stayed shortest too, and those in which it
    /// did not although the error of the clocks cannot be the reason.
    std::uint64_t agreeing = 0, disagreeing = 0;
    double mean_step_ns = 0;           ///< mean over the steps of the slowest rank's time
    std::int32_t worst_rank = -1;      ///< delayed the others most; -1: no rank did
    double step_without_worst_ns = 0;  ///< the mean step if that rank were as fast as the median
    std::vector<ProblemInfo> problems;
};

/// The number of ranks that the program was started with; 0: unknown.
MAREY_API std::int32_t world_size(const Trace& trace);

/// Reads the traces of a job one after another and keeps only steps and collectives: 40 bytes each.
class MAREY_API RankReader {
  public:
    explicit RankReader(RankOptions options = {});
    ~RankReader();
    RankReader(RankReader&&) noexcept;
    RankReader& operator=(RankReader&&) noexcept;

    /// Adds the ranks of a trace. Throws marey::Error if no process of it has a rank, or if one of its ranks
    /// was added before and was not started again since.
    void add(const Trace& trace);
    /// Throws marey::Error if there are fewer than two ranks.
    RankReport report() const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A file that read_ranks() left out.
struct RankFileError {
    std::string path;
    std::string text;
    bool has_no_rank = false;  ///< it can be read, but no process in it has a rank
};
/// The ranks of several files.
struct RankFiles {
    RankReport report;
    std::vector<RankFileError> left_out;  ///< unreadable, without a rank, or of a rank that another file has
};
/// Reads captures and traces one by one, so that only one of them is in memory. A folder stands for the
/// captures (*.marey) in it or, if there are none, for the files in any format that can be read. Throws
/// marey::Error if fewer than two ranks are left.
MAREY_API RankFiles read_ranks(std::span<const std::string> paths, const RankOptions& options = {},
                               const std::string& format = {});

/// The report of traces that are in memory.
MAREY_API RankReport rank_report(std::span<const Trace> traces, const RankOptions& options = {});

}  // namespace marey
