// contexts.cpp: which sessions follow which threads: sets of sessions, arming threads for them, marks in the
// logs.
#include "record/contexts.h"

#include <algorithm>

#include <marey/observe.h>

#include "record/clocks/clock.h"
#include "record/journal_writer.h"
#include "record/recorder.h"
#include "record/thread_log.h"

namespace marey {

using detail::load_relaxed;
using detail::ThreadState;

// ---- sets of sessions ----

std::uint64_t ContextSessions::armed() const noexcept {
    std::uint64_t bits = 0;
    for (const auto& member : members) {
        if (!member->is_closed.load(std::memory_order_relaxed)) bits |= member->armed;
    }
    return bits;
}

bool ContextSessions::holds(const TaskSession& session) const noexcept {
    return std::any_of(members.begin(), members.end(),
                       [&](const auto& member) { return member.get() == &session; });
}

const ContextSessions* settled(const ContextSessions* sessions) noexcept {
    // A set holds the living members of its outer set and one more, which is its last.
    while (sessions != nullptr && sessions->members.back()->is_closed.load(std::memory_order_relaxed)) {
        sessions = sessions->outer.get();
    }
    return sessions;
}

std::uint64_t armed_bits(const SessionOptions& options) noexcept {
    std::uint64_t bits = options.scopes.bits() | detail::kArmedRecorder;
    if (options.record_values) bits |= detail::kArmedValues;
    if (options.record_shapes) bits |= detail::kArmedShapes;
    if (options.concrete_inputs || options.with_flops) bits |= detail::kArmedShapes | detail::kArmedConcrete;
    if (options.profile_memory) bits |= detail::kArmedMemory | detail::kArmedMemoryRecorder;
    if (!Clock::is_inline()) bits |= detail::kArmedSlowClock;
    return bits;
}

// ---- the calling thread ----

const ContextSessions* current_sessions() noexcept {
    const ScopedEnable enabled;
    const auto* const entry = static_cast<const ThreadEntry*>(detail::current_thread->owner);
    return entry != nullptr ? settled(entry->sessions) : nullptr;
}

void enter_sessions(const ContextSessions* sessions) noexcept {
    const ScopedEnable enabled;
    if (sessions != nullptr && sessions->armed() == 0) sessions = nullptr;  // all have stopped
    const auto* const known = static_cast<const ThreadEntry*>(detail::current_thread->owner);
    if ((known != nullptr ? known->sessions : nullptr) == sessions) return;
    SlowPath path(kNoRecord);
    if (!path) return;
    // Early, so that nothing that begins under the new set appears to have begun before its mark.
    const std::uint64_t now = Clock::now();
    ThreadState* state = ready_thread();
    if (state == nullptr) return;
    auto& entry = *static_cast<ThreadEntry*>(state->owner);
    const std::uint64_t before = load_relaxed(state->armed);
    {
        const ScopedLock lock(entry.arming);
        entry.sessions = sessions;
        Recorder::get().arm(entry);
    }
    state->context = sessions != nullptr ? sessions->id : 0;
    const std::uint64_t after = load_relaxed(state->armed);
    if (((before | after) & detail::kArmedRecorder) == 0) return;
    if ((after & detail::kArmedAttention) != 0) state = ready_thread();  // it has been off for long
    if (state == nullptr || !ensure_room(*state, sizeof(detail::LongRecord), now)) return;
    write_context_mark(*state, now);
    entry.has_marks = true;
}

SessionOptions active_options() {
    return Recorder::get().sessions().active_options();
}

// ---- state added by observers ----

detail::ThreadExtras capture_extras() noexcept {
    const auto* const part = static_cast<const ThreadObservers*>(calling_thread()->observers);
    detail::ThreadExtras extras;
    if (part != nullptr) extras.observers = part->own;
    extras.enabled = detail::current_thread != &disabled_thread;
    return extras;
}

void apply_extras(const detail::ThreadExtras& extras) noexcept {
    const auto* const part = static_cast<const ThreadObservers*>(calling_thread()->observers);
    if (extras.observers.get() != (part != nullptr ? part->own.get() : nullptr)) {
        Recorder& recorder = Recorder::get();
        recorder.observers().adopt(std::static_pointer_cast<const ObserverList>(extras.observers));
    }
    if (extras.enabled != (detail::current_thread != &disabled_thread)) set_enabled(extras.enabled);
}

}  // namespace marey
