// problem_list.h: what a reader of a trace should know, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/trace_data.h"

namespace marey {

/// What the builder found out while replaying a log.
struct Findings {
    bool crashed = false;
    std::uint64_t unknown_records = 0;
    std::uint64_t lost_begins = 0;  ///< ends of movable ranges without a begin
    std::uint64_t adjusted = 0;     ///< ranges set right by a few ticks
    std::uint64_t misplaced = 0;    ///< ranges whose times contradict the recorded nesting
    std::uint64_t damaged_arguments = 0;
    std::uint64_t damaged_memory = 0;  ///< allocation reports that are not whole
    std::uint64_t damaged_device = 0;  ///< records of devices that are not whole
    bool unknown_site = false;
};

/// Fills the problems of a trace. A problem that is there already is not repeated.
class ProblemList {
  public:
    explicit ProblemList(std::vector<ProblemInfo>& problems) : problems_(problems) {}

    void add(const std::string& code, const std::string& text, std::uint64_t count);
    /// Those that follow from the tables (losses of threads, the window) and from the replay.
    void add_findings(const TraceData& data, const Findings& findings);

  private:
    std::vector<ProblemInfo>& problems_;
};

}  // namespace marey
