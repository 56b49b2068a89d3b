// step_content.h: the work of every thread and device in an interval, by name.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <marey/steps.h>

#include "analyze/name_slots.h"

namespace marey {

class StepContents {
  public:
    /// By place and name. The step's time outside any range has the slot kNoSlot.
    using Content = std::map<std::pair<StepPlace, std::uint32_t>, StepWork>;
    static constexpr std::uint32_t kNoSlot = ~0u;

    /// `is_step`: per site. All arguments must outlive this.
    StepContents(const Trace& trace, const NameSlots& slots, const std::vector<bool>& is_step)
        : trace_(trace), slots_(slots), is_step_(is_step), open_(slots.names.size(), 0) {}

    /// The time it takes depends on the result, not on the size of the trace.
    Content of(const StepInfo& step);

  private:
    /// A range and the part of it that lies in the step.
    struct Part {
        Row row;
        std::int64_t ns;
    };
    struct TimeInterval {
        std::int64_t start_ns, end_ns;
        Row step;
        bool is_async;
    };
    std::vector<Part> parts_of(const TrackInfo& track, const TimeInterval& stretch) const;
    bool is_around(Row row, const TimeInterval& stretch) const;
    void add_track(Content& content, StepPlace place, std::span<const Part> parts,
                   const TimeInterval& stretch);

    const Trace& trace_;
    const NameSlots& slots_;
    const std::vector<bool>& is_step_;
    std::vector<std::uint32_t> open_;  ///< per name: enclosing ranges of the current one
};

}  // namespace marey
