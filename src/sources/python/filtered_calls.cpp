// filtered_calls.cpp: calls with lines, and calls that are too short.
#include "sources/python/filtered_calls.h"

#include <marey/detail/values.h>

#include "record/source_writer.h"

namespace marey::python {

using detail::load_relaxed;
using detail::Opened;
using detail::ThreadState;

std::uint32_t put_line(Scope scope, int line) noexcept {
    if (line <= 0 || !detail::values_wanted(scope)) return 0;
    static const std::uint32_t key = detail::intern_string("line");
    const detail::SideBuffer room = detail::open_side();
    if (room.place == nullptr) return 0;
    detail::ValueWriter writer(room);
    writer.add(key, line);
    return detail::close_side(room, writer.end());
}

Opened open_with_line(std::uint32_t site, Scope scope, int line) noexcept {
    const std::uint32_t side = put_line(scope, line);
    if (side == 0) return detail::open_range(site, scope);
    ThreadState* const thread = detail::current_thread;
    if (!detail::may_open(thread, site)) return detail::open_site_slow(site, scope, side);
    const Opened opened = detail::open_slot(thread, site | std::uint64_t{side} << 32);
    return {opened.start, detail::kOpenUnusual};
}

bool leave_out(Opened opened, std::uint32_t place) noexcept {
    if (opened.index == detail::kOpenObserved) return false;
    const std::uint64_t now = source_ticks();
    if (now - opened.start >= call_filter.min_ticks && now >= opened.start) return false;
    if (call_filter.recorded != 0 && !call_filter.is_spent()) --call_filter.recorded;
    ThreadState* const thread = detail::current_thread;
    const std::uint32_t index = opened.index;
    const bool is_plain = index < detail::kInlineDepth && thread->depth == index + 1 &&
                          load_relaxed(thread->busy) == 0 && log_place() == place &&
                          load_relaxed(thread->slots[index].start) == opened.start;
    if (!is_plain) {
        drop_range(opened);
        return true;
    }
    detail::store_release(thread->slots[index].start, std::uint64_t{0});
    detail::store_release(thread->depth, index);
    return true;
}

}  // namespace marey::python
