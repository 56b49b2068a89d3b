// observers.cpp: adding and removing observers.
#include "record/observers.h"

#include <linux/membarrier.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include <marey/error.h>

#include "record/observer_calls.h"
#include "record/recorder.h"
#include "record/recorder_parts.h"
#include "record/thread_log.h"

namespace marey {

using detail::load_relaxed;
using detail::ThreadState;

ObserverContext::~ObserverContext() = default;
std::atomic<std::uint64_t> Observers::version_{1};
std::atomic<std::uint64_t> Observers::next_range_id_{1};

namespace {

std::uint64_t entropy() noexcept {
    std::uint64_t value = 0;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value)
        value = static_cast<std::uint64_t>(getpid()) ^ reinterpret_cast<std::uintptr_t>(&value);
    return value;
}

bool has_membarrier() noexcept {
    static const bool registered =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    return registered;
}

void fence_of_drainer() noexcept {
    if constexpr (kFences) {
        if (caller_fences.load(std::memory_order_relaxed) ||
            syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) {
            std::atomic_thread_fence(std::memory_order_seq_cst);
        }
    }
}

}  // namespace

std::atomic<bool> caller_fences{false};
constinit thread_local std::uint32_t inside_without_part __attribute__((tls_model("initial-exec"))) = 0;

void report_exception(ObserverEntry& entry, const char* what) noexcept {
    if (entry.has_thrown.exchange(true)) return;  // reported once
    try {
        warn("an observer threw: " + std::string(what) +
             " (reported once for each observer; the program continues)");
    } catch (...) {
    }
}

// ---- the registry ----

std::uint64_t Observers::armed_for(const ObserverList& list) noexcept {
    std::uint64_t bits = 0;
    for (const auto& entry : list) {
        if (!entry->takes_part()) continue;
        const Observer& observer = entry->observer;
        if (observer.start != nullptr || observer.end != nullptr || observer.instant != nullptr)
            bits |= entry->scopes.bits() | detail::kArmedObservers;
        if (observer.memory != nullptr) bits |= detail::kArmedMemory | detail::kArmedMemoryObservers;
    }
    return bits;
}

// Needs the recorder's lock.
void Observers::change() noexcept {
    Recorder& recorder = Recorder::get();
    version_.fetch_add(1, std::memory_order_relaxed);
    armed_ = armed_for(global_);
    for (const auto& entry : recorder.threads().entries()) {
        const ScopedLock lock(entry->arming);
        const ThreadObservers* const part = part_of(*entry->state);
        entry->thread_observers_armed = part != nullptr && part->own ? armed_for(*part->own) : 0;
    }
    recorder.rearm();
    sweep();
}

void Observers::sweep() noexcept {
    std::erase_if(orphans_, [](const auto& snapshot) { return snapshot->is_done(); });
    std::erase_if(all_, [](const auto& entry) { return entry.expired(); });
}

ObserverHandle Observers::add(const Observer& observer, bool for_this_thread) {
    if (!(observer.sampling >= 0 && observer.sampling <= 1))
        throw Error("an observer's sampling must be between 0 and 1, not " +
                    std::to_string(observer.sampling));
    auto entry = std::make_shared<ObserverEntry>();
    entry->observer = observer;
    entry->scopes = observer.scopes.empty() ? ScopeSet::all() : observer.scopes;
    const ScopedEnable enabled;
    ThreadObservers* const part = for_this_thread ? part_of_this_thread() : nullptr;
    if (for_this_thread && part == nullptr) throw Error("this thread cannot have observers");
    if (!has_membarrier()) caller_fences.store(true);
    const ScopedLock lock(recorder_mutex);
    entry->handle = next_handle_++;
    all_.push_back(entry);
    if (for_this_thread) {
        ObserverList list = part->own ? *part->own : ObserverList();
        list.push_back(entry);
        set_thread_list(*part, std::make_shared<const ObserverList>(std::move(list)));
    } else {
        global_.push_back(entry);
    }
    change();
    return entry->handle;
}

void Observers::set_thread_list(ThreadObservers& thread, std::shared_ptr<const ObserverList> list) noexcept {
    auto& entry = *static_cast<ThreadEntry*>(calling_thread()->owner);
    const ScopedLock lock(entry.arming);
    thread.own.swap(list);
}

void Observers::adopt(std::shared_ptr<const ObserverList> list) noexcept {
    const ScopedEnable enabled;
    ThreadObservers* const part = part_of_this_thread();
    if (part == nullptr) return;
    auto& entry = *static_cast<ThreadEntry*>(detail::current_thread->owner);
    part->version = 0;  // its list of calls is rebuilt
    const ScopedLock lock(entry.arming);
    part->own.swap(list);
    entry.thread_observers_armed = part->own ? armed_for(*part->own) : 0;
    Recorder::get().arm(entry);
}

Observers::HandleOwner Observers::find(ThreadObservers* thread, ObserverHandle handle) const noexcept {
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

bool Observers::remove(ObserverHandle handle, Removal how) {
    ThreadObservers* const thread = part_of(*calling_thread());
    if (how == Removal::Drained && ((thread != nullptr && thread->inside != 0) || inside_without_part != 0))
        throw Error("remove_and_drain() cannot be called from a callback: it would wait for itself");
    HandleOwner found;
    {
        const ScopedLock lock(recorder_mutex);
        found = find(thread, handle);
        if (!found.entry && how == Removal::Drained) {
            for (const auto& each : all_) {
                if (auto entry = each.lock(); entry && entry->handle == handle)
                    found.entry = std::move(entry);
            }
        }
        if (!found.entry) return false;
        found.entry->is_removed.store(true, std::memory_order_relaxed);
        const auto is_it = [&](const auto& entry) { return entry == found.entry; };
        if (found.is_thread_local) {
            ObserverList list = *thread->own;
            std::erase_if(list, is_it);
            set_thread_list(*thread,
                            list.empty() ? nullptr : std::make_shared<const ObserverList>(std::move(list)));
        } else {
            std::erase_if(global_, is_it);
        }
        if (how == Removal::Drained) found.entry->is_drained.store(true, std::memory_order_seq_cst);
        change();
    }
    if (how == Removal::Drained) wait_for_callbacks(*found.entry);
    return true;
}

void Observers::wait_for_callbacks(const ObserverEntry& entry) {
    fence_of_drainer();
    for (;;) {
        bool runs = entry.running_elsewhere.load(std::memory_order_seq_cst) != 0;
        {
            const ScopedLock lock(recorder_mutex);
            for (const ThreadObservers* thread : threads_) {
                runs = runs || thread->executing.load(kStoreOrder == std::memory_order_seq_cst
                                                          ? std::memory_order_seq_cst
                                                          : std::memory_order_acquire) == &entry;
            }
        }
        if (!runs) return;
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

bool Observers::switch_on(ObserverHandle handle, bool on) noexcept {
    const ScopedLock lock(recorder_mutex);
    const HandleOwner found = find(part_of(*calling_thread()), handle);
    if (!found.entry) return false;
    if (found.entry->is_enabled.exchange(on) != on) change();
    return true;
}

void Observers::clear(bool global, bool own) noexcept {
    const ScopedLock lock(recorder_mutex);
    const auto mark = [](const ObserverList& list) {
        for (const auto& entry : list) entry->is_removed.store(true, std::memory_order_relaxed);
    };
    if (global) {
        mark(global_);
        global_.clear();
    }
    if (ThreadObservers* const thread = part_of(*calling_thread()); own && thread != nullptr) {
        if (thread->own) mark(*thread->own);
        set_thread_list(*thread, nullptr);
    }
    change();
}

bool Observers::has_any(bool global, bool own) noexcept {
    const ScopedLock lock(recorder_mutex);
    const auto any = [](const ObserverList& list) {
        return std::any_of(list.begin(), list.end(), [](const auto& entry) {
            return entry->is_enabled && !entry->is_removed && !entry->is_drained;
        });
    };
    const ThreadObservers* const thread = part_of(*calling_thread());
    return (global && any(global_)) || (own && thread != nullptr && thread->own && any(*thread->own));
}

void Observers::seed(std::uint64_t seed) noexcept {
    const ScopedLock lock(recorder_mutex);
    seed_ = seed;
    ++seeded_;
    change();
}

// ---- a thread's part ----

ThreadObservers* Observers::part_of_this_thread() noexcept {
    ThreadState* state = calling_thread();
    if (state->owner == nullptr || (load_relaxed(state->armed) & detail::kArmedAttention) != 0) {
        const SlowPath path(kNoRecord);
        if (!path) return nullptr;
        state = ready_thread();
        if (state == nullptr) return nullptr;
    }
    if (state->observers != nullptr) return part_of(*state);
    try {
        auto part = std::make_unique<ThreadObservers>();
        part->thread = static_cast<ThreadEntry*>(state->owner)->id;
        const ScopedLock lock(recorder_mutex);
        threads_.push_back(part.get());
        state->observers = part.release();
        return part_of(*state);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

ThreadObservers* Observers::refresh() noexcept {
    if (inside_depth != 0) return nullptr;  // a signal handler has interrupted the recorder
    if (inside_without_part != 0) return nullptr;
    ThreadObservers* const part = part_of_this_thread();
    if (part == nullptr || part->inside != 0) return nullptr;
    if (part->version != version()) update(*part);
    return part->current ? part : nullptr;
}

// Takes the lock itself: rare.
void Observers::update(ThreadObservers& thread) noexcept {
    const CallbackScope inside(&thread);
    std::uint64_t made_for = 0;
    try {
        ObserverList observers;
        {
            const ScopedLock lock(recorder_mutex);
            made_for = version();
            observers = global_;
            if (thread.own) observers.insert(observers.end(), thread.own->begin(), thread.own->end());
            if (seeded_ == 0 ? thread.random == 0 : thread.seed != seeded_) {
                thread.random =
                    seeded_ == 0 ? entropy() : mixed_random(seed_ + thread.thread * 0x9e3779b97f4a7c15u);
                thread.seed = seeded_;
            }
        }
        thread.set_current(std::make_unique<ObserverSnapshot>(std::move(observers), thread));
    } catch (const std::bad_alloc&) {
        made_for = 0;  // no memory: the earlier list is called once more
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
    threads_.clear();  // their parts are lost with them: the threads may have been anywhere in them
    if (thread != nullptr) threads_.push_back(thread);
}

// ---- the public functions ----

std::string_view ObservedRange::name() const noexcept {
    return Recorder::get().names().site(site_).name;
}

std::int32_t ObservedRange::node() const noexcept {
    return node_id();
}

ObserverHandle add_observer(const Observer& observer) {
    return Recorder::get().observers().add(observer, false);
}
ObserverHandle add_thread_observer(const Observer& observer) {
    return Recorder::get().observers().add(observer, true);
}
bool remove_observer(ObserverHandle handle) noexcept {
    return Recorder::get().observers().remove(handle, Observers::Removal::Plain);
}
bool remove_and_drain(ObserverHandle handle) {
    return Recorder::get().observers().remove(handle, Observers::Removal::Drained);
}
bool disable_observer(ObserverHandle handle) noexcept {
    return Recorder::get().observers().switch_on(handle, false);
}
bool enable_observer(ObserverHandle handle) noexcept {
    return Recorder::get().observers().switch_on(handle, true);
}
bool has_observers() noexcept {
    return Recorder::get().observers().has_any(true, true);
}
bool has_global_observers() noexcept {
    return Recorder::get().observers().has_any(true, false);
}
bool has_thread_observers() noexcept {
    return Recorder::get().observers().has_any(false, true);
}
void clear_observers() noexcept {
    Recorder::get().observers().clear(true, true);
}
void clear_global_observers() noexcept {
    Recorder::get().observers().clear(true, false);
}
void clear_thread_observers() noexcept {
    Recorder::get().observers().clear(false, true);
}
void seed_sampling_for_testing(std::uint64_t seed) noexcept {
    Recorder::get().observers().seed(seed);
}

}  // namespace marey
