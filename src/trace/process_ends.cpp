// process_ends.cpp: how the processes of a trace ended that did not close their captures.
#include <marey/process_end.h>

#include <string.h>

#include <algorithm>
#include <map>
#include <utility>

#include <marey/merge.h>

namespace marey {
namespace {

constexpr std::size_t kPidsShown = 8;

/// "1, 2 and 3", "1, 2, 3, 4, 5, 6, 7, 8 and 12 more"
std::string list_pids(const std::vector<std::int64_t>& pids) {
    const std::size_t shown = std::min(pids.size(), kPidsShown);
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) {
        const bool is_last = i + 1 == pids.size();
        text += (i == 0 ? "" : is_last ? " and " : ", ") + std::to_string(pids[i]);
    }
    return shown == pids.size() ? text : text + " and " + std::to_string(pids.size() - shown) + " more";
}

/// The code of the problem, and the sentence without its subject.
std::pair<const char*, std::string> predicate_of(const EndedProcess& process) {
    const std::string place = process.open_range.empty() ? "" : " in " + process.open_range;
    if (process.exit_signal > 0) {
        // A pool ends its workers like this.
        const char* const hint = process.exit_signal == 15 ? " (sent to workers when their pool ends)" : "";
        return {"process_killed", " died of " + signal_name(process.exit_signal) + hint + place + "."};
    }
    if (process.exit_code >= 0)
        return {"process_exited", " exited with code " + std::to_string(process.exit_code) +
                                      " without closing the capture" + place + "."};
    return {"process_ended",
            " ended without closing the capture" + place +
                "; how is unknown (marey run records it on Linux 6.15 and later, and for the "
                "children of Python programs)."};
}

/// One sentence: the program, and the words after its subject.
using Said = std::pair<std::string, std::string>;
/// The code of the problem and the processes.
using Subjects = std::pair<const char*, std::vector<std::int64_t>>;

std::vector<ProblemInfo> sentences(std::map<Said, Subjects>&& groups) {
    std::vector<ProblemInfo> problems;
    for (auto& [said, subjects] : groups) {
        auto& [code, pids] = subjects;
        std::sort(pids.begin(), pids.end());
        problems.push_back({code,
                            (pids.size() == 1 ? "Process " : "Processes ") + list_pids(pids) + " (" +
                                said.first + ")" + said.second,
                            pids.size()});
    }
    return problems;
}

}  // namespace

std::string signal_name(int signal) {
    const char* const name = ::sigabbrev_np(signal);
    return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

Row innermost_open_range(const Trace& trace, Row process) {
    const RangeColumns ranges = trace.ranges();
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Thread || trace.threads()[track.thread].process != process) continue;
        // Each of them contains the next one.
        for (Row row = track.first_range + track.range_count; row-- != track.first_range;) {
            if ((ranges.flags[row] & kUnfinished) != 0) return row;
        }
    }
    return kNoRow;
}

EndedProcess ended_process(const Trace& trace, Row process) {
    const ProcessInfo& info = trace.processes()[process];
    const Row open = innermost_open_range(trace, process);
    return {info.pid, program_name(trace, info), info.exit_code, info.exit_signal,
            open == kNoRow ? "" : std::string(trace.range_name(open))};
}

std::vector<ProblemInfo> describe_ends(const std::vector<EndedProcess>& processes) {
    std::map<Said, Subjects> groups;
    for (const EndedProcess& process : processes) {
        if (process.exit_code == 0) continue;
        const auto [code, predicate] = predicate_of(process);
        auto& [its_code, pids] = groups[{process.program, predicate}];
        its_code = code;
        pids.push_back(process.pid);
    }
    return sentences(std::move(groups));
}

std::vector<ProblemInfo> describe_unrecorded(const std::vector<UnrecordedProcess>& processes) {
    std::map<Said, Subjects> groups;
    for (const UnrecordedProcess& process : processes) {
        auto& [code, pids] = groups[{program_name(process.executable, process.command_line),
                                     " could not be recorded: " + process.reason + "."}];
        code = "not_recorded";
        pids.push_back(process.pid);
    }
    return sentences(std::move(groups));
}

}  // namespace marey
