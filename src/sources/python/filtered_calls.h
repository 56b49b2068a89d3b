// filtered_calls.h: opens and closes the range of a call while a filter is on.
#pragma once

#include <cstdint>

#include <marey/detail/hot_path.h>

#include "sources/python/call_filter.h"
#include "sources/python/live_calls.h"

namespace marey::python {

/// The position in the calling thread's log: as long as it is unchanged, nothing was recorded. Its lowest
/// four bits are 0.
inline std::uint32_t log_place() noexcept {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(detail::current_thread->cursor)) &
           ~15u;
}

/// Stores a line as a value of the range that is opened next, and returns its number; 0: not stored.
std::uint32_t put_line(Scope scope, int line) noexcept;
/// Opens a range with the line of the caller, unless it is negative.
detail::Opened open_with_line(std::uint32_t site, Scope scope, int line) noexcept;

/// Schedules the removal of the hooks, because the budget has just been used up.
void end_budget() noexcept;

/// Opens a call that is to be recorded, unless the budget is spent.
inline detail::Opened open_filtered(std::uint32_t site, Scope scope, int line) noexcept {
    if (call_filter.is_spent()) return {0, detail::kNotOpen};
    const detail::Opened opened =
        call_filter.has_lines ? open_with_line(site, scope, line) : detail::open_range(site, scope);
    if (opened.index != detail::kNotOpen && ++call_filter.recorded == call_filter.limit) [[unlikely]]
        end_budget();
    return opened;
}

/// Ends a call that is too short to be recorded; returns false if it is not too short. `place`: the log
/// position when it began.
bool leave_out(detail::Opened opened, std::uint32_t place) noexcept;

/// Closes a range of open_filtered().
inline void close_filtered(detail::Opened opened, std::uint32_t place) noexcept {
    if (call_filter.min_ticks == 0 || !leave_out(opened, place)) detail::close_range(opened);
}

/// The same for a part of a call.
inline void close_filtered_part(const void* frame, detail::Opened opened, std::uint32_t place,
                                bool is_last) noexcept {
    if (call_filter.min_ticks == 0) return close_call_part(frame, opened, is_last);
    end_part(frame, opened.start, is_last);
    close_filtered(opened, place);
}

}  // namespace marey::python
