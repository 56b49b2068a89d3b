// problem_list.h: the problems that a trace reports to its reader.
#pragma once

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

    void add(const std::string& code, const std::string& text, std::uint64_t count);
    /// Adds the problems that follow from the tables (losses of threads, the window) and from the replay.
    void add_findings(const TraceData& data, const Findings& findings);

  private:
    std::vector<ProblemInfo>& problems_;
};

}  // namespace marey
