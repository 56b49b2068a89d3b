// problem_list.h: the problems that a trace reports to its reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace_data.h"

namespace marey {

/// Findings of the builder while it replayed a log.
struct Findings {
    bool crashed = false;
    std::uint64_t interrupted = 0;  ///< dropped records that there was space for
    std::uint64_t unknown_records = 0;
    std::uint64_t lost_begins = 0;  ///< ends of movable ranges without a begin
    std::uint64_t adjusted = 0;     ///< ranges corrected by a few ticks
    std::uint64_t misplaced = 0;    ///< ranges whose times contradict the recorded nesting
    std::uint64_t damaged_arguments = 0;
    std::uint64_t damaged_memory = 0;  ///< incomplete allocation reports
    std::uint64_t damaged_device = 0;  ///< incomplete device records
    bool unknown_site = false;
};

/// Fills the problems of a trace. A problem that is already listed is not repeated.
class ProblemList {
  public:
    explicit ProblemList(std::vector<ProblemInfo>& problems) : problems_(problems) {}

    void add(const std::string& code, const std::string& text, std::uint64_t count) {
        if (count == 0) return;
        for (const ProblemInfo& problem : problems_) {
            if (problem.code == code && problem.text == text) return;
        }
        problems_.push_back({code, text, count});
    }
    /// Adds the problems that follow from the tables (losses of threads, the window) and from the replay.
    void add_findings(const TraceData& data, const Findings& findings) {
        std::uint64_t dropped = 0, overwritten = 0, resyncs = 0, clamped = 0;
        for (const ThreadInfo& thread : data.threads) {
            dropped += thread.dropped;
            overwritten += thread.overwritten_chunks;
            resyncs += thread.resyncs;
            clamped += thread.clamped;
        }
        add("crashed", "The program ended without closing this capture.", findings.crashed ? 1 : 0);
        // A full disk ends a session as its size limit does, and a note states it.
        const bool has_reason =
            std::any_of(problems_.begin(), problems_.end(), [](const ProblemInfo& problem) {
                return problem.code == "no_space" || problem.code == "descriptor_closed";
            });
        if (data.window.size_limit_reached && !has_reason) {
            add("size_limit_reached",
                data.window.policy == "ring"
                    ? "The session reached its size limit: the oldest records were overwritten."
                : data.window.policy == "drop"
                    ? "The session reached its size limit: newer records were dropped."
                    : "The session reached its size limit: recording stopped.",
                1);
        }
        add("dropped", "Records were dropped because there was no space for them.",
            dropped - std::min(findings.interrupted, dropped));
        add("dropped_in_handler",
            "Records were dropped: a signal handler or an allocation hook made them while it interrupted the "
            "recorder.",
            findings.interrupted);
        add("overwritten", "Chunks of the log were overwritten by newer records.", overwritten);
        add("resyncs", "Ranges were ended while they were not the innermost open range.", resyncs);
        add("clamped", "Ranges with a negative duration were set to 0.", clamped);
        add("unknown_records", "Records of kinds that this version does not support were skipped.",
            findings.unknown_records);
        add("async_without_begin", "Movable ranges ended without a begin in the log.", findings.lost_begins);
        add("adjusted", "Ranges exceeded their parents by a few ticks and were clipped to them.",
            findings.adjusted);
        add("misplaced", "Ranges whose times contradict their nesting were put on async tracks.",
            findings.misplaced);
        add("damaged_values", "Values attached to ranges could not be read.", findings.damaged_arguments);
        add("damaged_memory", "Allocation reports could not be read.", findings.damaged_memory);
        add("damaged_device", "Device records could not be read.", findings.damaged_device);
        add("unknown_site", "Some records name a call site that the capture does not describe.",
            findings.unknown_site ? 1 : 0);
    }

  private:
    std::vector<ProblemInfo>& problems_;
};

}  // namespace marey
