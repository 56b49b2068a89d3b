// observed_ranges.cpp: ranges that have observers: their frames, and calling the observers.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include <marey/detail/values.h>

#include "record/clocks/clock.h"
#include "record/observer_calls.h"
#include "record/observers.h"
#include "record/recorder.h"
#include "record/thread_log.h"
#include "record/value_encoding.h"

namespace marey {

using detail::load_relaxed;
using detail::ThreadState;

namespace {

// The calling thread's part if callbacks may be called now; null: they may not.
[[gnu::always_inline]] inline ThreadObservers* ready_part() noexcept {
    const ThreadState* const state = detail::current_thread;
    ThreadObservers* const part = part_of(*state);
    if (part == nullptr || part->version != Observers::version() ||
        (load_relaxed(state->armed) & detail::kArmedAttention) != 0) [[unlikely]] {
        return Recorder::get().observers().refresh();
    }
    return part->inside == 0 ? part : nullptr;
}

ObserverFrame* make_frame() noexcept {
    return new (std::nothrow) ObserverFrame;
}

[[gnu::always_inline]] inline ObserverFrame* take_frame(ThreadObservers& thread) noexcept {
    ObserverFrame* const frame = thread.pool;
    if (frame == nullptr) [[unlikely]]
        return make_frame();
    thread.pool = frame->next;
    return frame;
}

void release_frame(ThreadObservers* thread, ObserverFrame* frame) noexcept {
    if (thread == nullptr) {
        delete frame;
        return;
    }
    frame->next = thread->pool;
    thread->pool = frame;
}

// Which sampled observers see the range that begins now; each of those draws again.
bool is_hit(ThreadObservers& thread, ObserverSnapshot::Item& item) noexcept {
    if (item.countdown != 0) {
        --item.countdown;
        return false;
    }
    if (item.entry->is_sampled()) item.countdown = draw_countdown(thread, item.entry->observer.sampling);
    return true;
}

// Some of the scope's observers are sampled: selects among them. False: none sees this range.
bool choose(ThreadObservers& thread, ObserverSnapshot::PerScope& ranges, ObserverFrame& frame) {
    frame.sampled_entries.clear();
    frame.needs = {};
    if (ranges.all_sampled) {
        for (auto& item : ranges.items) item.countdown -= ranges.drawn;
    }
    for (auto& item : ranges.items) {
        if (!is_hit(thread, item)) continue;
        frame.sampled_entries.push_back(item.entry);
        frame.needs.add(item.entry->observer);
    }
    if (ranges.all_sampled) {
        ranges.skip = kNever;
        for (const auto& item : ranges.items) ranges.skip = std::min(ranges.skip, item.countdown);
        ranges.drawn = ranges.skip;
    }
    frame.entries = frame.sampled_entries.data();
    frame.count = static_cast<std::uint32_t>(frame.sampled_entries.size());
    return frame.count != 0;
}

void grow_contexts(ObserverFrame& frame) {
    frame.is_changed = true;
    frame.many_contexts.resize(frame.count);
    frame.contexts = frame.many_contexts.data();
}

// True when no sampled observer sees this range. The next ones are left to the inlined path, where possible.
bool pass(ThreadState& state, ObserverSnapshot::PerScope& ranges, Scope scope) noexcept {
    std::uint32_t& left = state.skip[static_cast<std::size_t>(scope)];
    if (left == 0 && ranges.skip == 0) return false;
    if (left == 0) {
        left = static_cast<std::uint32_t>(std::min<std::uint64_t>(ranges.skip, 0xffffffff));
        ranges.skip -= left;
        auto& entry = *static_cast<ThreadEntry*>(state.owner);
        const ScopedLock lock(entry.arming);
        const std::uint64_t armed = load_relaxed(state.armed);
        if ((armed & (detail::kArmedRecorder | detail::kArmedAttention)) == 0)
            set_armed(state, armed | detail::kArmedSkip);
    }
    --left;
    return true;
}

[[gnu::always_inline]] inline ObserverFrame* begin(ThreadObservers& thread, std::uint32_t site,
                                                   Scope scope) noexcept {
    ObserverSnapshot* const snapshot = thread.current.get();
    ObserverSnapshot::PerScope& ranges = snapshot->scopes[static_cast<std::size_t>(scope)];
    if (ranges.entries.empty() || pass(*detail::current_thread, ranges, scope)) return nullptr;
    ObserverFrame* const frame = take_frame(thread);
    if (frame == nullptr) return nullptr;
    try {
        if (ranges.items.empty()) [[likely]] {
            frame->entries = ranges.entries.data();
            frame->count = static_cast<std::uint32_t>(ranges.entries.size());
            frame->needs = ranges.needs;
        } else if (!choose(thread, ranges, *frame)) {
            release_frame(&thread, frame);
            return nullptr;
        }
        if (frame->count > ObserverFrame::kFew) [[unlikely]]
            grow_contexts(*frame);
    } catch (const std::bad_alloc&) {
        release_frame(&thread, frame);
        return nullptr;
    }
    frame->snapshot = snapshot;
    ++snapshot->open;
    frame->set_range(site, scope, thread.thread);
    if (frame->needs.ids) [[unlikely]]
        frame->set_id(Observers::next_range_id());
    return frame;
}

[[gnu::always_inline]] inline void start(ThreadObservers* thread, ObserverFrame& frame,
                                         ObserverEntry* const* entries, std::uint32_t count,
                                         ObserverContext** contexts) noexcept {
    for (ObserverEntry* const* const end = entries + count; entries != end; ++entries, ++contexts) {
        ObserverEntry& entry = **entries;
        const Observer& observer = entry.observer;
        *contexts = nullptr;
        if (observer.start == nullptr) continue;
        call_observer(thread, entry,
                      [&] { *contexts = observer.start(frame.range, observer.data).release(); });
    }
}

[[gnu::always_inline]] inline void finish(ThreadObservers* thread, ObserverFrame& frame,
                                          ObserverContext** contexts) noexcept {
    ObserverEntry* const* entries = frame.entries;
    for (ObserverEntry* const* const end = entries + frame.count; entries != end; ++entries, ++contexts) {
        ObserverEntry& entry = **entries;
        const Observer& observer = entry.observer;
        ObserverContext* const context = *contexts;
        if (observer.end != nullptr)
            call_observer(thread, entry, [&] { observer.end(frame.range, context, observer.data); });
        if (context != nullptr) call_guarded(entry, [&] { delete context; });
    }
}

[[gnu::always_inline]] inline void release_inline(ThreadObservers* thread, ObserverFrame* frame) noexcept {
    if (thread != nullptr && thread->thread == frame->range.start_thread()) [[likely]] {
        --frame->snapshot->open;
    } else {
        frame->snapshot->ended_elsewhere.fetch_add(1, std::memory_order_release);
    }
    if (frame->is_changed) frame->reset();
    release_frame(thread, frame);
}

// Observers are called before the recorder, so that their time is not part of the range.
[[gnu::noinline]] detail::Opened open_any(std::uint32_t site, Scope scope, std::uint32_t side) noexcept {
    ThreadObservers* const thread = ready_part();
    ObserverFrame* frame = nullptr;
    if (thread != nullptr && site != 0) {
        const CallbackScope inside(thread);
        frame = begin(*thread, site, scope);
    }
    if (frame != nullptr) side = run_starts_with(*frame, side);
    detail::Opened opened{0, detail::kNotOpen};
    if ((load_relaxed(detail::current_thread->armed) & (detail::kArmedRecorder | detail::kArmedAttention)) !=
        0)
        opened = open_recorded(site, scope, side);
    if (side != 0 && opened.index == detail::kNotOpen) drop_side(*detail::current_thread, side);
    if (frame == nullptr) return opened;
    if (opened.index != detail::kNotOpen) frame->set_opened(opened);
    return {reinterpret_cast<std::uint64_t>(frame), detail::kOpenObserved};
}

// The short path: a few observers, none sampled, no values, nothing recorded.
[[gnu::noinline]] detail::Opened open_plain(ThreadObservers& thread, ObserverSnapshot::PerScope& ranges,
                                            std::uint32_t site, Scope scope) noexcept {
    ObserverFrame* const frame = thread.pool;
    if (frame == nullptr) [[unlikely]]
        return open_any(site, scope, 0);
    thread.inside = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread.pool = frame->next;
    ObserverSnapshot* const snapshot = thread.snapshot;
    frame->set_range(site, scope, thread.thread);
    frame->snapshot = snapshot;
    ++snapshot->open;
    frame->entries = ranges.first;
    frame->count = ranges.count;
    frame->needs = ranges.needs;
    start(&thread, *frame, ranges.first, ranges.count, frame->few_contexts);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread.inside = 0;
    return {reinterpret_cast<std::uint64_t>(frame), detail::kOpenObserved};
}

[[gnu::noinline]] void close_any(ObserverFrame* frame) noexcept {
    const ScopedEnable enabled;
    const std::uint32_t thread = frame->range.start_thread();
    if (detail::current_thread->block.thread != thread) frame->set_async();
    if (frame->opened.index != detail::kNotOpen) detail::close_elsewhere(frame->opened, thread);
    end_frame(frame);
}

}  // namespace

detail::Opened open_observed(const ThreadState& state, std::uint32_t site, Scope scope,
                             std::uint32_t side) noexcept {
    constexpr std::uint64_t kMemoryBits = detail::kArmedRecorder | detail::kArmedAttention;
    ThreadObservers* const part = part_of(state);
    if (part != nullptr && side == 0 && part->inside == 0 && part->version == Observers::version() &&
        (load_relaxed(state.armed) & kMemoryBits) == 0) [[likely]] {
        ObserverSnapshot::PerScope& ranges = part->snapshot->scopes[static_cast<std::size_t>(scope)];
        if (ranges.is_plain && site != 0) [[likely]]
            return open_plain(*part, ranges, site, scope);
    }
    return open_any(site, scope, side);
}

ObserverFrame* begin_frame(std::uint32_t site, Scope scope) noexcept {
    ThreadObservers* const thread = ready_part();
    if (thread == nullptr) return nullptr;
    const CallbackScope inside(thread);
    return begin(*thread, site, scope);
}

void run_starts(ObserverFrame& frame) noexcept {
    ThreadObservers* const thread = part_of(*calling_thread());
    const CallbackScope inside(thread);
    start(thread, frame, frame.entries, frame.count, frame.contexts);
    frame.set_inputs({}, {});
}

std::uint32_t run_starts_with(ObserverFrame& frame, std::uint32_t side) noexcept {
    if (side == 0) {
        run_starts(frame);
        return push_range_id(frame.range.id(), {});
    }
    std::vector<std::byte> values;
    const std::span<const std::byte> payload = side_payload(*detail::current_thread, side);
    try {
        values.assign(payload.begin(), payload.end());
    } catch (const std::bad_alloc&) {
        // They are lost then: callbacks must not see them.
    }
    drop_side(*detail::current_thread, side);
    try {
        const DecodedKeywords keywords(
            frame.needs.inputs ? std::span<const std::byte>(values) : std::span<const std::byte>(),
            Recorder::get().names());
        frame.set_inputs({}, keywords.values());
        run_starts(frame);
    } catch (const std::bad_alloc&) {
        run_starts(frame);
    }
    return push_range_id(frame.range.id(), values);
}

std::uint32_t push_range_id(std::uint64_t id, std::span<const std::byte> values) noexcept {
    constexpr std::uint64_t kWriting = detail::kArmedRecorder | detail::kArmedAttention;
    if (id == 0 || (load_relaxed(detail::current_thread->armed) & kWriting) == 0)
        return values.empty() ? 0 : push_payload(values);
    const detail::SideBuffer room = detail::open_side();
    if (room.place == nullptr) return 0;
    ValueEncoder encoder(room.place, room.limit);
    encoder.add_facts({-1, 0, id});
    // Values that do not fit after it are dropped as a whole: part of one could not be read.
    const auto left = static_cast<std::size_t>(room.limit - encoder.end());
    if (!values.empty() && values.size() <= left) std::memcpy(encoder.end(), values.data(), values.size());
    return detail::close_side(room, encoder.end() + (values.size() <= left ? values.size() : 0));
}

void end_frame(ObserverFrame* frame) noexcept {
    ThreadObservers* const thread = part_of(*calling_thread());
    const CallbackScope inside(thread);
    finish(thread, *frame, frame->contexts);
    release_inline(thread, frame);
}

void drop_frame(ObserverFrame* frame) noexcept {
    ThreadObservers* const thread = part_of(*calling_thread());
    const CallbackScope inside(thread);
    release_inline(thread, frame);
}

void observe_memory(const MemoryReport& report) noexcept {
    ThreadObservers* const thread = ready_part();
    if (thread == nullptr || thread->current->memory.empty()) return;
    const CallbackScope inside(thread);
    // A callback may add or remove observers: the current list is kept until the call is done.
    ObserverSnapshot& snapshot = *thread->current;
    ++snapshot.open;
    for (ObserverEntry* entry : snapshot.memory) {
        call_observer(thread, *entry, [&] { entry->observer.memory(report, entry->observer.data); });
    }
    --snapshot.open;
}

void observe_instant(std::uint32_t site, Scope scope) noexcept {
    ThreadObservers* const thread = ready_part();
    if (thread == nullptr || thread->current->instants.empty()) return;
    const CallbackScope inside(thread);
    ObserverFrame frame;  // only for its range
    frame.set_range(site, scope, thread->thread);
    ObserverSnapshot& snapshot = *thread->current;  // kept, as above
    ++snapshot.open;
    for (ObserverEntry* entry : snapshot.instants) {
        if (!entry->scopes.contains(scope)) continue;
        call_observer(thread, *entry, [&] { entry->observer.instant(frame.range, entry->observer.data); });
    }
    --snapshot.open;
}

namespace detail {
inline namespace layout1 {

void close_observed(std::uint64_t handle) noexcept {
    auto* const frame = reinterpret_cast<ObserverFrame*>(handle);
    ThreadObservers* const thread = part_of(*current_thread);
    if (frame->is_changed || thread == nullptr || thread->thread != frame->range.start_thread() ||
        thread->inside != 0) [[unlikely]] {
        return close_any(frame);
    }
    thread->inside = 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    finish(thread, *frame, frame->few_contexts);
    --frame->snapshot->open;
    frame->next = thread->pool;
    thread->pool = frame;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread->inside = 0;
}

bool observers_need_inputs(Scope scope) noexcept {
    const ThreadObservers* const thread = ready_part();
    if (thread == nullptr) return false;
    const ObserverSnapshot::PerScope& ranges = thread->current->scopes[static_cast<std::size_t>(scope)];
    if (!ranges.needs.inputs || ranges.skip != 0 ||
        current_thread->skip[static_cast<std::size_t>(scope)] != 0) {
        return false;
    }
    if (ranges.items.empty()) return true;
    const std::uint64_t now = ranges.all_sampled ? ranges.drawn : 0;
    return std::any_of(ranges.items.begin(), ranges.items.end(), [now](const auto& item) {
        return item.countdown == now && item.entry->observer.needs_inputs;
    });
}

}  // namespace layout1
}  // namespace detail

}  // namespace marey
