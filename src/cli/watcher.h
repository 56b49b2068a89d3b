// watcher.h: compares what programs do with conditions, while they run.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <marey/now.h>
#include <marey/ranks.h>
#include <marey/trace.h>

#include "cli/watch_condition.h"

namespace marey::cli {

/// A condition came true.
struct WatchHit {
    std::size_t condition = 0;  ///< its index
    std::string label;          ///< "slow-handle": part of a file name
    std::string reason;         ///< "handle took 812 ms (limit 250ms)"
    std::int64_t begin_ns = 0;  ///< of what it is about, on the process's clock
    std::int64_t end_ns = 0;
    std::int64_t os_tid = 0;  ///< 0: no single thread
};

/// Watches one process. Not thread-safe.
class Watcher {
  public:
    /// `conditions` must outlive this object.
    explicit Watcher(const std::vector<WatchCondition>& conditions) : conditions_(conditions) {}

    /// Looks at the newest part of a capture (marey/live.h). Consecutive parts must overlap: the record of a
    /// range may be written a moment after its end. `memory_bytes`: of the process; 0: unknown.
    std::vector<WatchHit> check(const Trace& trace, std::uint64_t memory_bytes);
    /// Whether there has been any finished range that a condition is about.
    bool has_seen(std::size_t condition) const { return seen_.contains(condition); }

  private:
    /// The most recent times of the ranges of a condition, which tell what is usual.
    class RecentTimes {
      public:
        void add(std::int64_t ns);
        /// 0 if there are too few.
        double quantile(double share) const;

      private:
        std::vector<std::int64_t> times_;  // a ring
        std::size_t next_ = 0;
    };
    /// A range, independent of the trace that it was read from.
    struct SeenRange {
        std::string name;
        std::int64_t begin_ns, end_ns;
        std::uint32_t depth;
    };
    /// The ranges of a thread that a condition has seen. Threads write their records in order.
    struct Progress {
        std::int64_t end_ns = 0;
        std::vector<SeenRange> last;  ///< those that ended right then
    };

    void check_times(const Trace& trace, std::size_t condition);
    void check_stalls(const Trace& trace, const ProcessNow& process, std::size_t condition);
    void check_counter(const Trace& trace, std::size_t condition);
    void check_gaps(const Trace& trace, std::size_t condition);
    void check_exceptions(const Trace& trace, std::size_t condition);
    void check_end(const Trace& trace, const ProcessNow& process, std::size_t condition);
    void check_memory(const Trace& trace, std::size_t condition, std::uint64_t bytes);
    /// Whether it is above its limit and was not before.
    bool has_risen(std::size_t condition, const std::string& what, bool is_above);
    void add_hit(const Trace& trace, std::size_t condition, const std::string& label, std::string reason,
                 std::int64_t begin_ns, std::int64_t end_ns, Row thread);

    const std::vector<WatchCondition>& conditions_;
    std::vector<WatchHit> hits_;
    std::set<std::size_t> seen_;
    std::map<std::tuple<std::size_t, std::int64_t, TrackKind>, Progress> progress_;  // by condition, thread
    std::map<std::size_t, RecentTimes> usual_;                                       // by condition
    std::map<std::tuple<std::size_t, std::int64_t, std::uint32_t>, std::int64_t> stalls_;
    std::map<std::pair<std::size_t, std::string>, bool> is_above_;
    std::map<std::pair<std::size_t, std::string>, std::int64_t> told_until_;  // of instants, of devices
};

/// Finds ranks that others wait for. Give it one trace of each process of a job, again and again.
class MissingRanks {
  public:
    /// `conditions` must outlive this object.
    explicit MissingRanks(const std::vector<WatchCondition>& conditions) : conditions_(conditions) {}
    bool is_wanted() const;  ///< by one of the conditions
    std::vector<WatchHit> check(const std::vector<Trace>& traces);

  private:
    const std::vector<WatchCondition>& conditions_;
    std::map<std::int32_t, std::int64_t> since_ns_;        ///< by rank: when it was first missing
    std::set<std::pair<std::size_t, std::int64_t>> told_;  // by condition and that time
};

}  // namespace marey::cli
