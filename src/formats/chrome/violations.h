// violations.h: the rules of `marey validate` that a Chrome trace breaks, found while it is read.
#pragma once

#include <limits>

#include "analyze/violation_list.h"
#include "trace/trace_assembler.h"

namespace marey {

/// Collects nothing unless it has a list.
class ChromeViolations {
  public:
    ChromeViolations(const TraceAssembler& assembler, ViolationList* list) noexcept
        : assembler_(assembler), list_(list) {}

    /// `what` follows the event's name and time.
    void add(std::string_view rule, StringId name, std::int64_t time_ns, std::string_view what);
    /// A range of a row of the file, as it was written.
    void add_range(std::uint32_t row, StringId name, std::int64_t start_ns, std::int64_t end_ns);
    void end_window(std::int64_t time_ns) noexcept { window_end_ns_ = time_ns; }
    /// Checks what needs the whole file. `first_ns` and `last_ns` are the outermost times of its events.
    void finish(std::int64_t first_ns, std::int64_t last_ns);

  private:
    struct Interval {
        std::int64_t start_ns, end_ns;
        StringId name;
    };

    const TraceAssembler& assembler_;
    ViolationList* const list_;
    std::vector<std::vector<Interval>> rows_;
    std::int64_t window_end_ns_ = std::numeric_limits<std::int64_t>::max();
};

/// Finds errors of strict JSON, and keys that an object has twice. Returns false if it is not strict JSON.
bool check_json(std::string_view text, ViolationList& violations);

}  // namespace marey
