// observers.cpp: adding and removing observers, and calling them.
#include "record/observers.h"

#include <linux/membarrier.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include <kymo/error.h>

#include "record/clock.h"
#include "record/recorder.h"
#include "record/thread_log.h"
#include "record/value_encoding.h"

namespace kymo {

using detail::load_relaxed;
using detail::ThreadState;

ObserverContext::~ObserverContext() = default;
std::atomic<std::uint64_t> Observers::version_{1};
std::atomic<std::uint64_t> Observers::next_range_id_{1};

namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

std::uint64_t mix(std::uint64_t value) noexcept {
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

std::uint64_t entropy() noexcept {
    std::uint64_t value = 0;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value)
        value = static_cast<std::uint64_t>(getpid()) ^ reinterpret_cast<std::uintptr_t>(&value);
    return value;
}

// How many ranges pass until the next hit, if each is one with this probability: one draw for all of them.
std::uint64_t draw_countdown(ThreadObservers& thread, double probability) noexcept {
    if (probability >= 1) return 0;
    if (probability <= 0) return kNever;
    thread.random += 0x9e3779b97f4a7c15u;
    const double uniform =
        (static_cast<double>(mix(thread.random) >> 11) + 1) / 9007199254740993.0;  // (0, 1)
    const double misses = std::floor(std::log(uniform) / std::log1p(-probability));
    return misses < 1e18 ? static_cast<std::uint64_t>(misses) : kNever / 2;
}

// ---- telling a drainer what runs ----
// A thread says which observer it is about to call, then looks whether that one is drained; the drainer says
// so, then looks at what the threads say. Each needs its store to be seen before its look. The drainer pays
// for both with a barrier on all processors (membarrier); where that does not exist, each call pays.

#if defined(__SANITIZE_THREAD__)
constexpr std::memory_order kSay = std::memory_order_seq_cst;
constexpr std::memory_order kLook = std::memory_order_seq_cst;
constexpr bool kFences = false;
#else
constexpr std::memory_order kSay = std::memory_order_relaxed;
constexpr std::memory_order kLook = std::memory_order_relaxed;
constexpr bool kFences = true;
#endif

bool has_membarrier() noexcept {
    static const bool registered =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    return registered;
}
std::atomic<bool> caller_fences{false};  // set before the first observer is added

void fence_of_caller() noexcept {
    if constexpr (kFences) {
        if (caller_fences.load(std::memory_order_relaxed)) {
            std::atomic_thread_fence(std::memory_order_seq_cst);
        } else {
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
    }
}

void fence_of_drainer() noexcept {
    if constexpr (kFences) {
        if (caller_fences.load(std::memory_order_relaxed) ||
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
            std::atomic_thread_fence(std::memory_order_seq_cst);
        }
    }
}

[[gnu::cold]] void complain(ObserverEntry& entry, const char* what) noexcept {
    if (entry.has_thrown.exchange(true)) return;  // once is enough
    try {
        say("an observer threw: " + std::string(what) + " (said once for it; the program goes on)");
    } catch (...) {
    }
}

template <class Call>
[[gnu::always_inline]] inline void call_guarded(ObserverEntry& entry, Call call) noexcept {
    try {
        call();
    } catch (const std::exception& error) {
        complain(entry, error.what());
    } catch (...) {
        complain(entry, "something that is no std::exception");
    }
}

// Calls unless it is drained, and lets a drainer see that it does. A thread says one at a time: calls made
// while one runs (a callback, or a signal handler, ends an observed range) are counted at their observer.
template <class Call>
[[gnu::always_inline]] inline void call_observer(ThreadObservers* thread, ObserverEntry& entry,
                                                 Call call) noexcept {
    if (thread == nullptr || thread->executing.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
        entry.running_elsewhere.fetch_add(1, std::memory_order_seq_cst);
        if (!entry.is_drained.load(std::memory_order_seq_cst)) call_guarded(entry, call);
        entry.running_elsewhere.fetch_sub(1, std::memory_order_seq_cst);
        return;
    }
    thread->executing.store(&entry, kSay);
    fence_of_caller();
    if (!entry.is_drained.load(kLook)) call_guarded(entry, call);
    thread->executing.store(nullptr, std::memory_order_release);
}

// ThreadObservers::inside of a thread that has no part yet, or no more, and ends another one's range.
constinit thread_local std::uint32_t inside_without_part __attribute__((tls_model("initial-exec"))) = 0;

// Marks the thread as calling, so that what a callback or a signal handler opens meanwhile is not observed.
class Inside {
  public:
    explicit Inside(ThreadObservers* thread) noexcept
        : inside_(thread != nullptr ? thread->inside : inside_without_part) {
        ++inside_;
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~Inside() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        --inside_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

  private:
    std::uint32_t& inside_;
};

ThreadObservers* part_of(const ThreadState& state) noexcept {
    return static_cast<ThreadObservers*>(state.observers);
}

}  // namespace

ThreadObservers::~ThreadObservers() {
    while (pool != nullptr) delete std::exchange(pool, pool->next);
}

// ---- the registry ----

std::uint64_t Observers::armed_for(const ObserverList& list) noexcept {
    std::uint64_t bits = 0;
    for (const auto& entry : list) {
        if (!entry->takes_part()) continue;
        const Observer& observer = entry->observer;
        if (observer.start != nullptr || observer.end != nullptr)
            bits |= entry->scopes.bits() | detail::kArmedObservers;
        if (observer.memory != nullptr) bits |= detail::kArmedMemory | detail::kArmedMemoryObservers;
    }
    return bits;
}

// Needs the recorder's lock.
void Observers::change(Recorder& recorder) noexcept {
    version_.fetch_add(1, std::memory_order_relaxed);
    armed_ = armed_for(global_);
    for (const auto& entry : recorder.threads_) {
        const std::lock_guard lock(entry->arming);
        const ThreadObservers* const part = part_of(*entry->state);
        entry->own_observers_armed = part != nullptr && part->own ? armed_for(*part->own) : 0;
    }
    recorder.rearm();
    sweep();
}

void Observers::sweep() noexcept {
    std::erase_if(orphans_, [](const auto& snapshot) { return snapshot->is_done(); });
}

ObserverHandle Observers::add(Recorder& recorder, const Observer& observer, bool for_this_thread) {
    if (!(observer.sampling >= 0 && observer.sampling <= 1))
        throw Error("an observer's sampling lies between 0 and 1, not " + std::to_string(observer.sampling));
    auto entry = std::make_shared<ObserverEntry>();
    entry->observer = observer;
    entry->scopes = observer.scopes.empty() ? ScopeSet::all() : observer.scopes;
    const AsEnabled enabled;
    ThreadObservers* const part = for_this_thread ? part_of_this_thread(recorder) : nullptr;
    if (for_this_thread && part == nullptr) throw Error("this thread cannot have observers");
    if (!has_membarrier()) caller_fences.store(true);
    std::lock_guard lock(recorder.mutex_);
    entry->handle = next_handle_++;
    if (for_this_thread) {
        ObserverList list = part->own ? *part->own : ObserverList();
        list.push_back(entry);
        set_own(*part, std::make_shared<const ObserverList>(std::move(list)));
    } else {
        global_.push_back(entry);
    }
    change(recorder);
    return entry->handle;
}

void Observers::set_own(ThreadObservers& thread, std::shared_ptr<const ObserverList> list) noexcept {
    auto& entry = *static_cast<ThreadEntry*>(own_thread()->owner);
    const std::lock_guard lock(entry.arming);
    thread.own.swap(list);
}

void Observers::adopt(Recorder& recorder, std::shared_ptr<const ObserverList> list) noexcept {
    const AsEnabled enabled;
    ThreadObservers* const part = part_of_this_thread(recorder);
    if (part == nullptr) return;
    auto& entry = *static_cast<ThreadEntry*>(detail::current_thread->owner);
    part->version = 0;  // what it calls is put together anew
    const std::lock_guard lock(entry.arming);
    part->own.swap(list);
    entry.own_observers_armed = part->own ? armed_for(*part->own) : 0;
    recorder.arm(entry);
}

Observers::Found Observers::find(ThreadObservers* thread, ObserverHandle handle) const noexcept {
    const auto among = [handle](const ObserverList& list) -> std::shared_ptr<ObserverEntry> {
        for (const auto& entry : list) {
            if (entry->handle == handle) return entry;
        }
        return nullptr;
    };
    if (thread != nullptr && thread->own) {
        if (auto entry = among(*thread->own)) return {std::move(entry), true};
    }
    return {among(global_), false};
}

bool Observers::remove(Recorder& recorder, ObserverHandle handle, Removal how) {
    ThreadObservers* const thread = part_of(*own_thread());
    if (how == Removal::Drained && ((thread != nullptr && thread->inside != 0) || inside_without_part != 0))
        throw Error("remove_and_drain() was called from a callback: it would wait for itself");
    Found found;
    {
        std::lock_guard lock(recorder.mutex_);
        found = find(thread, handle);
        if (!found.entry) return false;
        const auto is_it = [&](const auto& entry) { return entry == found.entry; };
        if (found.is_own) {
            ObserverList list = *thread->own;
            std::erase_if(list, is_it);
            set_own(*thread, list.empty() ? nullptr : std::make_shared<const ObserverList>(std::move(list)));
        } else {
            std::erase_if(global_, is_it);
        }
        if (how == Removal::Drained) found.entry->is_drained.store(true, std::memory_order_seq_cst);
        change(recorder);
    }
    if (how == Removal::Drained) wait_for_callbacks(recorder, *found.entry);
    return true;
}

void Observers::wait_for_callbacks(Recorder& recorder, const ObserverEntry& entry) {
    fence_of_drainer();
    for (;;) {
        bool runs = entry.running_elsewhere.load(std::memory_order_seq_cst) != 0;
        {
            std::lock_guard lock(recorder.mutex_);
            for (const ThreadObservers* thread : recorder.observers_.threads_) {
                runs = runs || thread->executing.load(kSay == std::memory_order_seq_cst
                                                          ? std::memory_order_seq_cst
                                                          : std::memory_order_acquire) == &entry;
            }
        }
        if (!runs) return;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

bool Observers::switch_on(Recorder& recorder, ObserverHandle handle, bool on) noexcept {
    std::lock_guard lock(recorder.mutex_);
    const Found found = find(part_of(*own_thread()), handle);
    if (!found.entry) return false;
    if (found.entry->is_enabled.exchange(on) != on) change(recorder);
    return true;
}

void Observers::clear(Recorder& recorder, bool global, bool own) noexcept {
    std::lock_guard lock(recorder.mutex_);
    if (global) global_.clear();
    if (ThreadObservers* const thread = part_of(*own_thread()); own && thread != nullptr)
        set_own(*thread, nullptr);
    change(recorder);
}

bool Observers::has_any(Recorder& recorder, bool global, bool own) noexcept {
    std::lock_guard lock(recorder.mutex_);
    const auto any = [](const ObserverList& list) {
        return std::any_of(list.begin(), list.end(),
                           [](const auto& entry) { return entry->is_enabled && !entry->is_drained; });
    };
    const ThreadObservers* const thread = part_of(*own_thread());
    return (global && any(global_)) || (own && thread != nullptr && thread->own && any(*thread->own));
}

void Observers::seed(Recorder& recorder, std::uint64_t seed) noexcept {
    std::lock_guard lock(recorder.mutex_);
    seed_ = seed;
    ++seeded_;
    change(recorder);
}

// ---- a thread's part ----

ThreadObservers* Observers::part_of_this_thread(Recorder& recorder) noexcept {
    ThreadState* state = own_thread();
    if (state->owner == nullptr || (load_relaxed(state->armed) & detail::kArmedAttention) != 0) {
        const SlowPath path;
        if (!path) return nullptr;
        state = ready_thread();
        if (state == nullptr) return nullptr;
    }
    if (state->observers != nullptr) return part_of(*state);
    try {
        auto part = std::make_unique<ThreadObservers>();
        part->thread = static_cast<ThreadEntry*>(state->owner)->id;
        std::lock_guard lock(recorder.mutex_);
        threads_.push_back(part.get());
        state->observers = part.release();
        return part_of(*state);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

ThreadObservers* Observers::refresh(Recorder& recorder) noexcept {
    if (inside_depth != 0) return nullptr;  // a signal handler that has interrupted the recorder
    if (inside_without_part != 0) return nullptr;
    ThreadObservers* const part = part_of_this_thread(recorder);
    if (part == nullptr || part->inside != 0) return nullptr;
    if (part->version != version()) rebuild(*part);
    return part->current ? part : nullptr;
}

// Takes the lock itself: rare.
void Observers::rebuild(ThreadObservers& thread) noexcept {
    const Inside inside(&thread);
    std::uint64_t made_for = 0;
    try {
        auto fresh = std::make_unique<ObserverSnapshot>();
        {
            std::lock_guard lock(Recorder::get().mutex_);
            made_for = version();
            fresh->keep = global_;
            if (thread.own) fresh->keep.insert(fresh->keep.end(), thread.own->begin(), thread.own->end());
            if (seed_ == 0 ? thread.random == 0 : thread.seed != seeded_) {
                thread.random = seed_ == 0 ? entropy() : mix(seed_ + thread.thread * 0x9e3779b97f4a7c15u);
                thread.seed = seeded_;
            }
        }
        std::erase_if(fresh->keep, [](const auto& entry) { return !entry->takes_part(); });
        for (const auto& entry : fresh->keep) {
            const Observer& observer = entry->observer;
            if (observer.memory != nullptr) fresh->memory.push_back(entry.get());
            if (observer.start == nullptr && observer.end == nullptr) continue;
            for (int scope = 0; scope < kScopeCount; ++scope) {
                if (!entry->scopes.contains(static_cast<Scope>(scope))) continue;
                fresh->scopes[scope].entries.push_back(entry.get());
                fresh->scopes[scope].needs.add(observer);
            }
        }
        for (ObserverSnapshot::PerScope& scope : fresh->scopes) {
            scope.first = scope.entries.data();
            scope.count = static_cast<std::uint32_t>(scope.entries.size());
            const auto is_sampled = [](const ObserverEntry* entry) { return entry->is_sampled(); };
            if (std::none_of(scope.entries.begin(), scope.entries.end(), is_sampled)) {
                scope.is_plain = scope.count != 0 && scope.count <= ObserverFrame::kFew && !scope.needs.ids;
                continue;
            }
            for (ObserverEntry* entry : scope.entries)
                scope.items.push_back({entry, draw_countdown(thread, entry->observer.sampling)});
            scope.all_sampled = std::all_of(scope.entries.begin(), scope.entries.end(), is_sampled);
            if (!scope.all_sampled) continue;
            scope.skip = kNever;
            for (const auto& item : scope.items) scope.skip = std::min(scope.skip, item.countdown);
            scope.drawn = scope.skip;
        }
        std::erase_if(thread.old, [](const auto& snapshot) { return snapshot->is_done(); });
        if (thread.current && !thread.current->is_done()) thread.old.push_back(std::move(thread.current));
        thread.current = std::move(fresh);
        thread.snapshot = thread.current.get();
        std::fill(std::begin(own_thread()->skip), std::end(own_thread()->skip), 0u);
    } catch (const std::bad_alloc&) {
        made_for = 0;  // no memory: those of before are called once more
    }
    thread.version = made_for;
}

void Observers::forget_thread(ThreadObservers* thread) noexcept {
    if (thread == nullptr) return;
    std::erase(threads_, thread);
    if (thread->current) thread->old.push_back(std::move(thread->current));
    for (auto& snapshot : thread->old) {
        if (!snapshot->is_done()) orphans_.push_back(std::move(snapshot));
    }
    delete thread;
    sweep();
}

void Observers::keep_only(ThreadObservers* thread) noexcept {
    threads_.clear();  // theirs is lost with them: they may have been anywhere in it
    if (thread != nullptr) threads_.push_back(thread);
}

// ---- ranges ----

namespace {

// The calling thread's part if callbacks may be called now; null: nobody is.
[[gnu::always_inline]] inline ThreadObservers* ready_part() noexcept {
    const ThreadState* const state = detail::current_thread;
    ThreadObservers* const part = part_of(*state);
    if (part == nullptr || part->version != Observers::version() ||
        (load_relaxed(state->armed) & detail::kArmedAttention) != 0) [[unlikely]] {
        return Recorder::get().observers().refresh(Recorder::get());
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

void give_frame(ThreadObservers* thread, ObserverFrame* frame) noexcept {
    if (thread == nullptr) {
        delete frame;
        return;
    }
    frame->next = thread->pool;
    thread->pool = frame;
}

// Which of the sampled see the range that begins now; each that does draws anew.
bool is_hit(ThreadObservers& thread, ObserverSnapshot::Item& item) noexcept {
    if (item.countdown != 0) {
        --item.countdown;
        return false;
    }
    if (item.entry->is_sampled()) item.countdown = draw_countdown(thread, item.entry->observer.sampling);
    return true;
}

// Some of the scope's observers are sampled: chooses among them. False: none sees this range.
bool choose(ThreadObservers& thread, ObserverSnapshot::PerScope& ranges, ObserverFrame& frame) {
    frame.own_entries.clear();
    frame.needs = {};
    if (ranges.all_sampled) {
        for (auto& item : ranges.items) item.countdown -= ranges.drawn;
    }
    for (auto& item : ranges.items) {
        if (!is_hit(thread, item)) continue;
        frame.own_entries.push_back(item.entry);
        frame.needs.add(item.entry->observer);
    }
    if (ranges.all_sampled) {
        ranges.skip = kNever;
        for (const auto& item : ranges.items) ranges.skip = std::min(ranges.skip, item.countdown);
        ranges.drawn = ranges.skip;
    }
    frame.entries = frame.own_entries.data();
    frame.count = static_cast<std::uint32_t>(frame.own_entries.size());
    return frame.count != 0;
}

void give_room(ObserverFrame& frame) {
    frame.is_changed = true;
    frame.many_contexts.resize(frame.count);
    frame.contexts = frame.many_contexts.data();
}

// True when none of the sampled sees this range. Those to come are left to the inlined path, where possible.
bool pass(ThreadState& state, ObserverSnapshot::PerScope& ranges, Scope scope) noexcept {
    std::uint32_t& left = state.skip[static_cast<std::size_t>(scope)];
    if (left == 0 && ranges.skip == 0) return false;
    if (left == 0) {
        left = static_cast<std::uint32_t>(std::min<std::uint64_t>(ranges.skip, 0xffffffff));
        ranges.skip -= left;
        auto& entry = *static_cast<ThreadEntry*>(state.owner);
        const std::lock_guard lock(entry.arming);
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
            give_frame(&thread, frame);
            return nullptr;
        }
        if (frame->count > ObserverFrame::kFew) [[unlikely]]
            give_room(*frame);
    } catch (const std::bad_alloc&) {
        give_frame(&thread, frame);
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

[[gnu::always_inline]] inline void give_back(ThreadObservers* thread, ObserverFrame* frame) noexcept {
    if (thread != nullptr && thread->thread == frame->range.start_thread()) [[likely]] {
        --frame->snapshot->open;
    } else {
        frame->snapshot->ended_elsewhere.fetch_add(1, std::memory_order_release);
    }
    if (frame->is_changed) frame->reset();
    give_frame(thread, frame);
}

}  // namespace

namespace {

// Observers come before the recorder, so that the range's time is not theirs.
[[gnu::noinline]] detail::Opened open_any(std::uint32_t site, Scope scope, std::uint32_t side) noexcept {
    ThreadObservers* const thread = ready_part();
    ObserverFrame* frame = nullptr;
    if (thread != nullptr && site != 0) {
        const Inside inside(thread);
        frame = begin(*thread, site, scope);
    }
    if (frame != nullptr) run_starts_with(*frame, side);
    detail::Opened opened{0, detail::kNotOpen};
    if ((load_relaxed(detail::current_thread->armed) & (detail::kArmedRecorder | detail::kArmedAttention)) !=
        0)
        opened = open_recorded(site, scope, side);
    if (side != 0 && opened.index == detail::kNotOpen) drop_side(*detail::current_thread, side);
    if (frame == nullptr) return opened;
    if (opened.index != detail::kNotOpen) frame->set_opened(opened);
    return {reinterpret_cast<std::uint64_t>(frame), detail::kOpenObserved};
}

// The short way: a few observers, none sampled, no values, nothing recorded.
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

}  // namespace

detail::Opened open_observed(const ThreadState& state, std::uint32_t site, Scope scope,
                             std::uint32_t side) noexcept {
    constexpr std::uint64_t kLooked = detail::kArmedRecorder | detail::kArmedAttention;
    ThreadObservers* const part = part_of(state);
    if (part != nullptr && side == 0 && part->inside == 0 && part->version == Observers::version() &&
        (load_relaxed(state.armed) & kLooked) == 0) [[likely]] {
        ObserverSnapshot::PerScope& ranges = part->snapshot->scopes[static_cast<std::size_t>(scope)];
        if (ranges.is_plain && site != 0) [[likely]]
            return open_plain(*part, ranges, site, scope);
    }
    return open_any(site, scope, side);
}

namespace {

[[gnu::noinline]] void close_any(ObserverFrame* frame) noexcept {
    const AsEnabled enabled;
    if (frame->opened.index != detail::kNotOpen)
        close_recorded(frame->opened.index, frame->opened.start, Clock::now());
    end_frame(frame);
}

}  // namespace

ObserverFrame* begin_frame(std::uint32_t site, Scope scope) noexcept {
    ThreadObservers* const thread = ready_part();
    if (thread == nullptr) return nullptr;
    const Inside inside(thread);
    return begin(*thread, site, scope);
}

void run_starts(ObserverFrame& frame) noexcept {
    ThreadObservers* const thread = part_of(*own_thread());
    const Inside inside(thread);
    start(thread, frame, frame.entries, frame.count, frame.contexts);
    frame.set_inputs({}, {});
}

void run_starts_with(ObserverFrame& frame, std::uint32_t side) noexcept {
    if (!frame.needs.inputs || side == 0) return run_starts(frame);
    try {
        const DecodedKeywords keywords(side_payload(*detail::current_thread, side), Recorder::get().names());
        frame.set_inputs({}, keywords.values());
        run_starts(frame);
    } catch (const std::bad_alloc&) {
        run_starts(frame);
    }
}

void end_frame(ObserverFrame* frame) noexcept {
    ThreadObservers* const thread = part_of(*own_thread());
    const Inside inside(thread);
    finish(thread, *frame, frame->contexts);
    give_back(thread, frame);
}

void drop_frame(ObserverFrame* frame) noexcept {
    ThreadObservers* const thread = part_of(*own_thread());
    const Inside inside(thread);
    give_back(thread, frame);
}

void observe_memory(const MemoryReport& report) noexcept {
    ThreadObservers* const thread = ready_part();
    if (thread == nullptr || thread->current->memory.empty()) return;
    const Inside inside(thread);
    // A callback may add or remove observers: what is called now is kept until it is done.
    ObserverSnapshot& snapshot = *thread->current;
    ++snapshot.open;
    for (ObserverEntry* entry : snapshot.memory) {
        call_observer(thread, *entry, [&] { entry->observer.memory(report, entry->observer.data); });
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

bool observers_want_inputs(Scope scope) noexcept {
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

// ---- the public functions ----

std::string_view ObservedRange::name() const noexcept {
    return Recorder::get().names().site(site_).name;
}

std::int32_t ObservedRange::node() const noexcept {
    return node_id();
}

ObserverHandle add_observer(const Observer& observer) {
    Recorder& recorder = Recorder::get();
    return recorder.observers().add(recorder, observer, false);
}
ObserverHandle add_thread_observer(const Observer& observer) {
    Recorder& recorder = Recorder::get();
    return recorder.observers().add(recorder, observer, true);
}
bool remove_observer(ObserverHandle handle) noexcept {
    Recorder& recorder = Recorder::get();
    return recorder.observers().remove(recorder, handle, Observers::Removal::Plain);
}
bool remove_and_drain(ObserverHandle handle) {
    Recorder& recorder = Recorder::get();
    return recorder.observers().remove(recorder, handle, Observers::Removal::Drained);
}
bool disable_observer(ObserverHandle handle) noexcept {
    Recorder& recorder = Recorder::get();
    return recorder.observers().switch_on(recorder, handle, false);
}
bool enable_observer(ObserverHandle handle) noexcept {
    Recorder& recorder = Recorder::get();
    return recorder.observers().switch_on(recorder, handle, true);
}
bool has_observers() noexcept {
    Recorder& recorder = Recorder::get();
    return recorder.observers().has_any(recorder, true, true);
}
bool has_global_observers() noexcept {
    Recorder& recorder = Recorder::get();
    return recorder.observers().has_any(recorder, true, false);
}
bool has_thread_observers() noexcept {
    Recorder& recorder = Recorder::get();
    return recorder.observers().has_any(recorder, false, true);
}
void clear_observers() noexcept {
    Recorder& recorder = Recorder::get();
    recorder.observers().clear(recorder, true, true);
}
void clear_global_observers() noexcept {
    Recorder& recorder = Recorder::get();
    recorder.observers().clear(recorder, true, false);
}
void clear_thread_observers() noexcept {
    Recorder& recorder = Recorder::get();
    recorder.observers().clear(recorder, false, true);
}
void seed_sampling_for_testing(std::uint64_t seed) noexcept {
    Recorder& recorder = Recorder::get();
    recorder.observers().seed(recorder, seed);
}

}  // namespace kymo
