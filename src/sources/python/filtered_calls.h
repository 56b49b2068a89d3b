// filtered_calls.h: opening and closing the range of a call while a filter is on.
#pragma once

#include <cstdint>

#include <marey/detail/hot_path.h>

#include "sources/python/call_filter.h"

namespace marey::python {

/// Where the calling thread's log is: as long as it is the same, nothing was recorded. Its lowest four bits
/// are 0.
inline std::uint32_t log_place() noexcept {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(detail::current_thread->cursor)) &
           ~15u;
}

/// Puts a line aside as a value of the range that is opened next, and gives its number; 0: nothing is kept.
std::uint32_t put_line(Scope scope, int line) noexcept;
/// With the line that the caller is at, which a negative one is not.
detail::Opened open_with_line(std::uint32_t site, Scope scope, int line) noexcept;

/// The budget has just been used up: has the hooks taken out soon.
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

/// Ends a call that is too short to be recorded. False: it is not too short. `place`: where the log was when
/// it began.
bool leave_out(detail::Opened opened, std::uint32_t place) noexcept;

/// Closes what that has opened.
inline void close_filtered(detail::Opened opened, std::uint32_t place) noexcept {
    if (call_filter.min_ticks == 0 || !leave_out(opened, place)) detail::close_range(opened);
}

}  // namespace marey::python
