// trace_join.h: merges traces whose clocks are known, and adds traces to another.
#pragma once

#include <functional>
#include <memory>

#include <marey/trace.h>

#include "trace/trace_data.h"

namespace marey {

/// How the times of one trace become those of the merged trace; empty functions leave them. They must not
/// change the order of times.
struct ClockMove {
    std::function<std::int64_t(std::int64_t)> own;
    /// Of the times in exchanges that are on the clock of another host, given by its name.
    std::function<std::int64_t(std::string_view, std::int64_t)> peer;
};

/// As merge_traces() in marey/merge.h, with clocks that the caller knows. `moves`: none, or one for each
/// trace.
Trace merge_on_clocks(std::vector<Trace> traces, std::vector<ClockMove> moves);

/// Merges traces of one clock, one by one in the order of their windows' starts.
class TraceMerger {
  public:
    TraceMerger();
    ~TraceMerger();

    /// Pass the only reference to the trace. Returns an empty trace with the memory of its range columns.
    /// `fraction` (over 0, up to 1): of all ranges, about, that are there then; memory is reserved for the
    /// others.
    TraceData add(Trace trace, double fraction);
    /// Once, after at least one trace.
    Trace finish();

  private:
    struct Join;
    std::unique_ptr<Join> join_;
};

/// A trace of another process. Its window, once moved, is that of the trace to which it is added.
struct AddedTrace {
    Trace trace;
    ClockMove move{};
    /// The range of the other trace that called this process: its outermost ranges are linked from it.
    Row caller = kNoRow;
};

/// Returns `trace` with the processes, events and problems of others. Metadata that both have is that of the
/// added one. A thread that is in several of them has one track if they are in the order of their times.
Trace add_traces(Trace trace, std::vector<AddedTrace> added);

}  // namespace marey
