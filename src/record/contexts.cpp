// contexts.cpp: which sessions follow which threads: sets of sessions, arming threads for them, marks in the
// logs.
#include "record/contexts.h"

#include <algorithm>
#include <mutex>

#include <marey/observe.h>
#include <marey/session.h>

#include "record/clock.h"
#include "record/journal.h"
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
    SlowPath path;
    if (!path) return;
    // Early, so that nothing that begins under the new set appears to have begun before its mark.
    const std::uint64_t now = Clock::now();
    ThreadState* state = ready_thread();
    if (state == nullptr) return;
    auto& entry = *static_cast<ThreadEntry*>(state->owner);
    const std::uint64_t before = load_relaxed(state->armed);
    {
        std::lock_guard lock(entry.arming);
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

// ---- arming ----

void Recorder::arm(ThreadEntry& entry) noexcept {
    std::uint64_t bits = shared_armed_.load(std::memory_order_relaxed) | entry.thread_observers_armed;
    if (entry.sessions != nullptr) bits |= entry.sessions->armed();
    if (bits != 0 && entry.needs_attention) bits |= detail::kArmedAttention;
    set_armed(*entry.state, bits);
}

void Recorder::rearm() noexcept {
    std::uint64_t shared = observers_.armed();
    for (const auto& session : sessions_) {
        if (!session->is_closed && session->tasks == nullptr) shared |= armed_bits(session->options);
    }
    if (disabled_) shared = 0;
    const bool restart = restart_environment_;
    if (restart) shared = ~std::uint64_t{0} >> 32;
    shared_armed_.store(shared, std::memory_order_relaxed);
    has_open_session_.store(is_any_open(), std::memory_order_relaxed);
    // A thread that has never recorded comes to handle_attention() first.
    set_armed(unregistered_thread, shared != 0 ? shared | detail::kArmedAttention : 0);
    for (const auto& entry : threads_) {
        std::lock_guard lock(entry->arming);
        entry->needs_attention =
            restart || entry->spool != spool_ || entry->period != period_ || !entry->ended_elsewhere.empty();
        arm(*entry);
    }
    __atomic_fetch_add(&space_epoch_, 1, __ATOMIC_RELAXED);
}

// ---- sessions of one thread and its tasks ----

std::shared_ptr<const ContextSessions> Recorder::make_context(const ThreadEntry& entry,
                                                              const SessionEntry& session) {
    auto made = std::make_shared<ContextSessions>();
    made->id = next_context_++;
    if (const ContextSessions* const outer = settled(entry.sessions)) {
        made->outer = outer->shared_from_this();
        std::copy_if(outer->members.begin(), outer->members.end(), std::back_inserter(made->members),
                     [](const auto& member) { return !member->is_closed.load(std::memory_order_relaxed); });
    }
    made->members.push_back(session.tasks);
    std::vector<std::uint64_t> ids;
    for (const auto& member : made->members) ids.push_back(member->session);
    detail::ContextRecord record{};
    record.context = made->id;
    record.count = ids.size();
    journal(detail::JournalKind::Context, record, std::as_bytes(std::span(ids)));
    return made;
}

SessionOptions Recorder::active_options() noexcept {
    SessionOptions all;
    all.scopes = ScopeSet();
    all.max_bytes = 0;
    all.record_values = false;
    all.threads = Threads::Tasks;
    std::lock_guard lock(mutex_);
    const auto* const entry = static_cast<const ThreadEntry*>(calling_thread()->owner);
    const ContextSessions* const sessions = entry != nullptr ? entry->sessions : nullptr;
    for (const auto& session : sessions_) {
        if (session->is_closed) continue;
        if (session->tasks != nullptr && (sessions == nullptr || !sessions->holds(*session->tasks))) continue;
        const SessionOptions& options = session->options;
        if (session->tasks == nullptr) all.threads = Threads::All;
        all.scopes = ScopeSet::from_bits(all.scopes.bits() | options.scopes.bits());
        all.max_bytes = std::max(all.max_bytes, options.max_bytes);
        all.record_values |= options.record_values;
        all.record_shapes |= options.record_shapes;
        all.concrete_inputs |= options.concrete_inputs;
        all.profile_memory |= options.profile_memory;
        all.with_flops |= options.with_flops;
        all.with_stack |= options.with_stack;
        all.with_modules |= options.with_modules;
        all.with_nvtx |= options.with_nvtx;
    }
    return all;
}

SessionOptions active_options() {
    return Recorder::get().active_options();
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
        recorder.observers().adopt(recorder, std::static_pointer_cast<const ObserverList>(extras.observers));
    }
    if (extras.enabled != (detail::current_thread != &disabled_thread)) set_enabled(extras.enabled);
}

}  // namespace marey
