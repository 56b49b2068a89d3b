// source_writer.cpp: recording for sources.
#include "record/source_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include <marey/detail/values.h>

#include <marey/detail/log_format.h>

#include "record/clocks/clock.h"
#include "record/journal_writer.h"
#include "record/recorder.h"
#include "record/thread_log.h"
#include "record/value_encoding.h"

namespace marey {

using detail::load_relaxed;
using detail::Opened;
using detail::ThreadState;

void add_source(std::shared_ptr<Source> source) {
    Recorder::get().add_source(std::move(source));
}

std::uint32_t traced_site(std::string_view name, std::string_view file, std::uint32_t line,
                          Scope scope) noexcept {
    const SlowPath path(kNoRecord);
    return path ? Recorder::get().journal().intern_site(name, file, line, scope, detail::kSiteTraced) : 0;
}

std::uint32_t traced_overload(std::string_view name, std::string_view overload, Scope scope) noexcept {
    const SlowPath path;
    constexpr std::uint32_t kFlags = detail::kSiteTraced | detail::kSiteOverload;
    return path ? Recorder::get().journal().intern_site(name, overload, 0, scope, kFlags) : 0;
}

namespace {

// A separate function, so that the usual path has no frame to set up.
[[gnu::noinline]] std::uint32_t intern_categorised(std::string_view name, Scope scope,
                                                   std::uint32_t category) noexcept {
    const SlowPath path(kNoRecord);
    return path ? Recorder::get().journal().intern_dynamic(name, scope, category) : 0;
}

// How many of the open ranges had begun by then.
std::uint32_t open_before(ThreadState& state, std::uint64_t time) noexcept {
    std::uint32_t count = state.depth;
    while (count != 0 && load_relaxed(Recorder::get().threads().slot(state, count - 1)->start) > time)
        --count;
    return count;
}

}  // namespace

std::uint32_t categorised_site(std::string_view name, Scope scope, std::uint32_t category) noexcept {
    const std::uint32_t known = Recorder::get().names().find_dynamic(name, scope, category);
    return known != 0 ? known : intern_categorised(name, scope, category);
}

void name_thread(std::int64_t os_tid, std::string_view name) noexcept {
    if (os_tid == gettid()) return thread_name(name);
    const ScopedEnable enabled;
    const SlowPath path(kNoRecord);
    if (path) Recorder::get().threads().name_thread(os_tid, name);
}

bool attach_thread() noexcept {
    if (load_relaxed(detail::current_thread->armed) == 0) return false;
    const SlowPath path(kNoRecord);
    return path && ready_thread() != nullptr;
}

Opened adopt_range(std::uint32_t site, std::uint64_t start, std::uint32_t side) noexcept {
    const SlowPath path;
    ThreadState* const state = path ? ready_thread() : nullptr;
    if (state == nullptr || (load_relaxed(state->armed) & detail::kArmedRecorder) == 0)
        return {0, detail::kNotOpen};
    return insert_open(*state, open_before(*state, start), site, start, side);
}

void begin_adoption(std::uint64_t start, std::uint32_t count) noexcept {
    const SlowPath path(kNoRecord);
    ThreadState* const state = path ? ready_thread() : nullptr;
    if (state == nullptr || (load_relaxed(state->armed) & detail::kArmedRecorder) == 0) return;
    const std::uint64_t now = Clock::now();
    if (!ensure_room(*state, sizeof(detail::LongRecord), now)) return;
    detail::LongRecord* const record = append_long(*state, detail::RecordKind::Adopted, 0);
    record->time = now;
    record->word2 = count;
    record->depth = open_before(*state, start);
    commit(*state);
}

void end_open_calls(std::uint64_t end) noexcept {
    const SlowPath path(kNoRecord);
    ThreadState* const state = path ? ready_thread() : nullptr;
    if (state == nullptr) return;
    for (std::uint32_t index = state->depth; index-- != 0;) {
        if (!is_call(*Recorder::get().threads().slot(*state, index))) continue;
        pop_open(*state, index, end, detail::kRecordUnfinished);
        ++static_cast<ThreadEntry*>(state->owner)->ended_early;
    }
}

void close_late(Opened opened) noexcept {
    const ScopedEnable enabled;
    const SlowPath path;
    ThreadState* const state = path && detail::current_thread->owner != nullptr ? ending_thread() : nullptr;
    if (state == nullptr) return;
    const std::uint32_t index = find_open(*state, opened.index, opened.start);
    if (index != detail::kNotOpen) pop_open(*state, index, Clock::now(), detail::kRecordUnfinished);
}

void drop_range(Opened opened) noexcept {
    const ScopedEnable enabled;
    if (opened.index == detail::kOpenObserved) return detail::close_observed(opened.start);
    const SlowPath path;
    ThreadState* const state = path && detail::current_thread->owner != nullptr ? ending_thread() : nullptr;
    if (state == nullptr) return;
    const std::uint32_t index = find_open(*state, opened.index, opened.start);
    if (index == detail::kNotOpen) return;
    // Like a range that only kept count: its end marks that the ranges before it have lost a parent.
    detail::OpenSlot& slot = *Recorder::get().threads().slot(*state, index);
    detail::store_relaxed(slot.what, load_relaxed(slot.what) & ~std::uint64_t{detail::kMaxSites - 1});
    pop_open(*state, index, Clock::now(), 0);
}

void set_absent_threads(std::vector<AbsentStack> stacks) noexcept {
    Recorder::get().count_lost(Recorder::get().threads().set_absent(std::move(stacks)));
}

void forget_absent_thread(std::int64_t os_tid) noexcept {
    Recorder::get().threads().forget_absent(os_tid);
}

void close_with_values(Opened opened, std::span<const KeyedValue> values, std::uint32_t site) noexcept {
    if (opened.index == detail::kOpenObserved) return detail::close_observed(opened.start);
    const ValueKeys keyed(values);
    const ScopedEnable enabled;
    const SlowPath path;
    ThreadState* const state = path && detail::current_thread->owner != nullptr ? ending_thread() : nullptr;
    if (state == nullptr) return;
    const std::uint32_t index = find_open(*state, opened.index, opened.start);
    if (index == detail::kNotOpen) return;
    detail::OpenSlot* const slot = Recorder::get().threads().slot(*state, index);
    if (site != 0) {
        Recorder::get().journal().use_site(site);
        const std::uint64_t rest = load_relaxed(slot->what) & ~std::uint64_t{detail::kMaxSites - 1};
        detail::store_relaxed(slot->what, rest | site);
    }
    const bool needs_values = (load_relaxed(state->armed) & detail::kArmedValues) != 0;
    if (needs_values && !keyed.empty()) {  // also below ranges that began later: their values stay in place
        const SideExtension room = extend_side(*state, *slot);
        if (room.place != nullptr) close_extension(*state, *slot, keyed.encode(room.place, room.limit));
    }
    pop_open(*state, index, Clock::now(), 0);
}

void write_ended_range(std::uint32_t site, std::uint64_t start, std::span<const KeyedValue> values) noexcept {
    std::uint32_t side = 0;
    if ((load_relaxed(detail::current_thread->armed) & detail::kArmedValues) != 0) {
        const ValueKeys keyed(values);
        const detail::SideBuffer room = detail::open_side();
        if (room.place != nullptr) side = detail::close_side(room, keyed.encode(room.place, room.limit));
    }
    const SlowPath path;
    ThreadState* const state = path ? ready_thread() : nullptr;
    if (state == nullptr) return;
    if (site != 0 && (load_relaxed(state->armed) & detail::kArmedRecorder) != 0) {
        Recorder::get().journal().use_site(site);
        write_range(*state, {start, std::max(Clock::now(), start), state->depth, site, detail::kRecordAsync,
                             side_payload(*state, side)});
    }
    drop_side(*state, side);
}

void write_part(std::uint64_t start, std::uint64_t call, std::uint8_t flags) noexcept {
    const ScopedEnable enabled;
    const SlowPath path(kNoRecord);
    ThreadState* const state = path && detail::current_thread->owner != nullptr ? ending_thread() : nullptr;
    if (state == nullptr || !writes_ends(*state) ||
        !ensure_room(*state, 4 * detail::kRecordUnit, Clock::now()))
        return;
    auto* const record = reinterpret_cast<detail::CompactRecord*>(state->cursor);
    record->word0 = static_cast<std::uint64_t>(detail::RecordKind::Part) | std::uint64_t{flags} << 8 |
                    start << detail::kPartStartShift;
    record->word1 = call;
    state->cursor += detail::kRecordUnit;
    commit(*state);
}

void write_task(std::uint64_t call, std::string_view name) noexcept {
    const ScopedEnable enabled;
    const SlowPath path(kNoRecord);
    ThreadState* const state = path && detail::current_thread->owner != nullptr ? ready_thread() : nullptr;
    if (state == nullptr || (load_relaxed(state->armed) & detail::kArmedRecorder) == 0) return;
    name = name.substr(0, detail::kMaxStringBytes);
    const std::size_t bytes = sizeof call + name.size();
    const std::uint64_t now = Clock::now();
    if (!ensure_room(*state, sizeof(detail::LongRecord) + (bytes + 15) / 16 * 16, now)) return;
    detail::LongRecord* const record = append_long(*state, detail::RecordKind::Blob, bytes);
    record->time = now;
    record->word2 = detail::kBlobTask;
    record->depth = state->depth;
    std::memcpy(record + 1, &call, sizeof call);
    std::memcpy(reinterpret_cast<std::byte*>(record + 1) + sizeof call, name.data(), name.size());
    if (bytes % 16 != 0) std::memset(reinterpret_cast<std::byte*>(record + 1) + bytes, 0, 16 - bytes % 16);
    commit(*state);
}

void note_open_part(std::uint32_t thread, std::uint64_t start, std::uint64_t call,
                    std::uint8_t flags) noexcept {
    Recorder::get().journal().note_open_part(thread, start, call, flags);
}

void add_site_values(std::uint32_t site, std::uint64_t ticks, std::span<const KeyedValue> values) noexcept {
    const SlowPath path(kNoRecord);
    if (path && site != 0) Recorder::get().journal().add_site_values(site, ticks, values);
}

std::uint64_t source_ticks() noexcept {
    return Clock::now();
}

std::uint64_t source_ticks_of(std::uint64_t ns) noexcept {
    const auto ticks =
        static_cast<long double>(ns) * static_cast<long double>(Clock::ticks_per_second()) / 1e9L;
    return ticks >= 9e18L ? std::uint64_t{1} << 63 : static_cast<std::uint64_t>(ticks);
}

void note_problem(std::string_view code, std::string_view text, bool print) noexcept {
    Recorder::get().journal().note(code, text, print);
}

void finish_recording() noexcept {
    Recorder::get().finish_all();
}

}  // namespace marey
