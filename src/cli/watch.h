// watch.h: watches programs that are being recorded, and keeps what they did around the moments of interest.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <marey/live.h>

#include "cli/command_line.h"
#include "cli/watcher.h"

namespace marey::cli {

/// The conditions, and the limits of the snapshots: options that `marey watch` and `marey run` share.
struct WatchOptions {
    std::vector<std::string> conditions;
    std::string last = "30s", after = "1s", every = "60s";
    std::string disk, command, folder;
    std::optional<std::uint64_t> keep;
    bool once = false;

    void declare(Options& options);
    /// Those that `marey run` has.
    void declare_for_run(Options& options);
};

/// Which programs are watched, and for how long.
enum class WatchScope : std::uint8_t {
    Run,    ///< those of a run that begins now, until stop()
    Named,  ///< these, until none of them runs
    Open,   ///< those that start later, too, until stop()
};

/// Looks at captures several times a second, and writes a snapshot when a condition is met. The programs take
/// no part in it.
class Watch {
  public:
    /// `captures`: those to look at now. Throws marey::Error for an option that is not understood.
    Watch(const WatchOptions& options, std::function<std::vector<std::string>()> captures);

    void run(WatchScope scope);
    /// From any thread.
    void stop() noexcept { is_over_ = true; }

  private:
    struct Target {
        Watcher watcher;
        std::int64_t looked_ns = 0;  ///< 0: never
        int failures = 0;            ///< in a row
        bool has_ended = false;
    };
    struct Pending {
        std::string path;
        WatchHit hit;
        std::int64_t due_ns;
    };
    struct Snapshot {
        std::string path;
        std::uint64_t bytes;
    };

    /// False: no program that is watched runs.
    bool look();
    void look_at(const std::string& path, Target& target, std::vector<Trace>& job);
    void meet(const std::vector<std::string>& paths, const WatchHit& hit);
    void write_due(std::int64_t until_ns);
    void write(const Pending& pending);
    void delete_oldest();
    void execute(const std::string& path, const std::string& reason);
    /// Names what the limits held back, and conditions that were about nothing.
    void print_rest() const;

    std::vector<WatchCondition> conditions_;
    std::function<std::vector<std::string>()> captures_;
    std::int64_t last_ns_, after_ns_, every_ns_;
    std::string last_text_, folder_, command_;
    std::uint64_t keep_, disk_bytes_;
    bool once_;
    bool skips_ended_ = false;  ///< these are captures of earlier programs
    std::map<std::string, Target> targets_;
    MissingRanks missing_;
    std::vector<Pending> pending_;
    std::map<std::size_t, std::int64_t> met_ns_;      ///< by condition: when it was met last
    std::map<std::size_t, std::uint64_t> held_back_;  ///< by condition
    std::deque<Snapshot> kept_;                       ///< oldest first
    std::vector<pid_t> commands_;
    std::atomic<bool> is_over_{false};
};

}  // namespace marey::cli
