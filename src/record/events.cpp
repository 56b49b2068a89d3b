// events.cpp: instants, counters, movable ranges and thread names.
#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include <marey/range.h>

#include "record/clocks/clock.h"
#include "record/observer_snapshot.h"
#include "record/owned_log.h"
#include "record/recorder.h"
#include "record/source_writer.h"
#include "record/thread_log.h"

namespace marey {

using detail::RecordKind;
using detail::ThreadState;

namespace {

// Appends a long record. Returns its time, or 0 when there was no space (counted).
std::uint64_t write_event(ThreadState& state, RecordKind kind, std::uint8_t flags, std::uint32_t site,
                          std::uint64_t word2, std::span<const std::byte> payload) noexcept {
    const std::uint64_t now = std::max<std::uint64_t>(Clock::now(), 1);
    return write_long(state, {kind, flags, site, now, word2, state.depth}, payload) ? now : 0;
}

// The same with the values at `side`, which are consumed.
std::uint64_t write_valued_event(ThreadState& state, RecordKind kind, std::uint32_t site, std::uint64_t word2,
                                 std::uint32_t side, std::uint8_t flags = 0) noexcept {
    const std::uint64_t time = write_event(state, kind, flags, site, word2, side_payload(state, side));
    drop_side(state, side);
    return time;
}

// Discards values that were gathered only for observers, or not needed after all.
void drop_unrecorded(std::uint32_t side) noexcept {
    ThreadState* const state = detail::current_thread;
    if (state->owner != nullptr) drop_side(*state, side);
}

// The calling thread's state if it records now.
ThreadState* recording_thread() noexcept {
    ThreadState* const state = ready_thread();
    if (state == nullptr) return nullptr;
    return (detail::load_relaxed(state->armed) & detail::kArmedRecorder) != 0 ? state : nullptr;
}

void write_instant(std::uint32_t site, std::uint32_t side) noexcept {
    SlowPath path;
    if (!path) return;
    ThreadState* const state = recording_thread();
    if (state == nullptr || site == 0) return drop_unrecorded(side);
    write_valued_event(*state, RecordKind::LongInstant, site, 0, side);
}

// Calls the start callbacks of a range that may end anywhere; null: no observer sees it.
ObserverFrame* begin_async_frame(std::uint32_t site, Scope scope, std::uint32_t& side) noexcept {
    ObserverFrame* const frame = begin_frame(site, scope);
    if (frame == nullptr) return nullptr;
    frame->set_async();
    side = run_starts_with(*frame, side);
    return frame;
}

}  // namespace

namespace detail {

void record_instant(std::string_view name, Scope scope, std::uint32_t side) noexcept {
    record_site_instant(dynamic_site(name, scope), scope, side);
}

void record_counter(std::string_view name, double value) noexcept {
    const std::uint32_t site = dynamic_site(name, Scope::User);
    SlowPath path;
    if (!path) return;
    ThreadState* const state = recording_thread();
    if (state == nullptr || site == 0) return;
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    write_event(*state, RecordKind::Counter, 0, site, bits, {});
}

void record_counter(std::string_view name, std::int64_t value) noexcept {
    const std::uint32_t site = dynamic_site(name, Scope::User);
    SlowPath path;
    if (!path) return;
    ThreadState* const state = recording_thread();
    if (state == nullptr || site == 0) return;
    write_event(*state, RecordKind::Counter, kRecordInteger, site, static_cast<std::uint64_t>(value), {});
}

}  // namespace detail

void record_site_instant(std::uint32_t site, Scope scope, std::uint32_t side) noexcept {
    write_instant(site, side);
    if (site != 0 && (detail::load_relaxed(detail::current_thread->armed) & detail::kArmedObservers) != 0)
        observe_instant(site, scope);
}

Range SiteRange::apart(std::uint32_t site, Scope scope, std::uint32_t side) noexcept {
    Range range;
    range.begin_site(site, scope, side, true);
    return range;
}

Range SiteRange::step(std::string_view name) noexcept {
    Range range;
    // PyTorch's steps are annotations, which analyses know by their name.
    const Scope scope = name.starts_with("ProfilerStep#") ? Scope::User : Scope::Step;
    const std::uint32_t site = detail::dynamic_site(name, scope);
    if (site == 0) return range;
    std::uint32_t side = 0;
    if ((detail::load_relaxed(detail::current_thread->armed) & detail::kArmedObservers) != 0) {
        ObserverFrame* const frame = begin_frame(site, scope);
        if (frame != nullptr) side = run_starts_with(*frame, 0);
        range.frame_ = frame;
    }
    begin(range, site, side, detail::kRecordCrosses);
    return range;
}

void SiteRange::begin(Range& range, std::uint32_t site, std::uint32_t side, std::uint8_t flags) noexcept {
    SlowPath path;
    if (!path) return;
    ThreadState* const state = recording_thread();
    if (state == nullptr || site == 0) return drop_unrecorded(side);
    const std::uint64_t id = next_async_id(*state);
    range.start_ = write_valued_event(*state, RecordKind::AsyncBegin, site, id, side, flags);
    if (range.start_ == 0) return;
    range.id_ = id;
    range.site_ = site;
}

void Range::begin(std::string_view name, Scope scope, std::uint32_t side, bool is_apart) noexcept {
    begin_site(detail::dynamic_site(name, scope), scope, side, is_apart);
}

void Range::begin_site(std::uint32_t site, Scope scope, std::uint32_t side, bool is_apart) noexcept {
    if ((detail::load_relaxed(detail::current_thread->armed) & detail::kArmedObservers) != 0 && site != 0)
        frame_ = begin_async_frame(site, scope, side);
    SiteRange::begin(*this, site, side, is_apart ? detail::kRecordAsync : 0);
}

void Range::finish() noexcept {
    const ScopedEnable enabled;
    const std::uint64_t id = std::exchange(id_, 0);
    const bool may_write =
        detail::load_relaxed(detail::current_thread->armed) != 0 || Recorder::get().has_open_session();
    if (id != 0 && may_write) {
        const SlowPath path;
        ThreadState* const state = path ? ending_thread() : nullptr;
        if (state != nullptr && writes_ends(*state))
            write_event(*state, RecordKind::AsyncEnd, 0, site_, id, std::as_bytes(std::span(&start_, 1)));
    }
    if (auto* const frame = static_cast<ObserverFrame*>(std::exchange(frame_, nullptr))) {
        if (detail::current_thread->block.thread != frame->range.start_thread()) frame->set_async();
        end_frame(frame);
    }
}

void thread_name(std::string_view name) noexcept {
    const ScopedEnable enabled;
    SlowPath path(kNoRecord);
    if (path) Recorder::get().name_current_thread(name);
}

}  // namespace marey
