// run_summary.h: the summary that `marey run` prints at the end: where the time went, and what to run next.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <marey/process_end.h>
#include <marey/trace.h>

#include "cli/call_averages.h"
#include "cli/terminal.h"

namespace marey::cli {

struct RunSummary {
    std::string text;
    std::string best;    ///< the capture to use in the next commands; empty: all captures are empty
    std::string extent;  ///< "1,204 ranges in 41.2 s" of all captures; empty: some were not read
};

/// Whether a Python program got as far as its first line. Not if its file or module does not exist, or cannot
/// be compiled.
bool ran_program(const Trace& trace);

/// Identifies a process of this machine: its id, and the clock ticks from boot to its start.
using ProcessKey = std::pair<std::int64_t, std::uint64_t>;

/// Collects facts about the other processes of a run, capture by capture.
class MemberFacts {
  public:
    /// Reads a capture, unless there are too many. Unreadable ones are listed with the reason.
    void add(const std::string& capture);
    /// The capture stays, but has been added already.
    void keep(const std::string& capture) { kept_.insert(capture); }
    /// Remembers that a process of this run was seen, whether it records or not. `name`: of its program.
    void saw(const ProcessKey& process, std::string name) { seen_.emplace(process, std::move(name)); }
    /// The process was not recorded, and a problem gives the reason.
    void explain(const ProcessKey& process) { explained_.insert(process); }

  private:
    friend RunSummary summarize_run(const std::vector<std::string>&, MemberFacts, std::string_view,
                                    const Terminal&);
    struct Group {
        std::size_t processes = 0;
        std::int64_t time_ns = 0;
        std::uint64_t ranges = 0;
        std::int64_t hottest_ns = -1;
        std::string hottest;
    };
    void add_extent(const Trace& trace);
    void add_end(const Trace& trace);
    Averages add_calls(const Trace& trace);
    std::string text(const Terminal& terminal) const;
    std::string end_text(const Terminal& terminal) const;
    std::string unrecorded_line() const;

    std::map<std::string, Group> groups_;  ///< by program
    CallSum calls_, waiting_;              ///< of all processes
    std::size_t with_calls_ = 0;           ///< processes
    std::uint64_t call_count_ = 0;         ///< of all processes, before imports are folded
    std::int64_t imports_ns_ = 0;
    std::string unread_;  ///< a line for each capture that cannot be read
    std::size_t captures_ = 0;
    std::set<std::string> kept_;
    std::string first_;  ///< the first capture with events
    std::uint64_t ranges_ = 0;
    std::int64_t start_ns_ = std::numeric_limits<std::int64_t>::max(), end_ns_ = 0;
    bool is_complete_ = true;  ///< all captures were read
    std::set<ProcessKey> recorded_, explained_;
    /// The last program of each process, and how it ended if it did not close its capture.
    std::map<ProcessKey, std::pair<std::int64_t, std::optional<EndedProcess>>> ends_;
    std::map<ProcessKey, std::string> seen_;  ///< the names of their programs; "" if unknown
};

/// Summarizes the captures of one run, the program's own capture first. `members` has those that were packed
/// before. `why_empty` is printed for the first capture if it is empty. Unreadable captures are listed with
/// the reason; they do not throw.
RunSummary summarize_run(const std::vector<std::string>& captures, MemberFacts members,
                         std::string_view why_empty, const Terminal& terminal);

}  // namespace marey::cli
