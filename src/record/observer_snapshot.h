// observer_snapshot.h: what one thread has to call: its observers for each scope, and its open observed
// ranges.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <marey/detail/hot_path.h>
#include <marey/observe.h>

namespace marey {

struct ThreadObservers;

/// A registered observer. Lives until the last range that it has seen start has ended.
struct ObserverEntry {
    Observer observer;
    std::atomic<bool> is_drained{false};  ///< none of its callbacks may start any more
    std::atomic<bool> is_removed{false};
    std::atomic<bool> is_enabled{true};
    ObserverHandle handle = 0;
    ScopeSet scopes;
    std::atomic<bool> has_thrown{false};
    std::atomic<std::uint32_t> running_elsewhere{
        0};  ///< callbacks on threads that are not registered, or within another callback

    bool is_sampled() const noexcept { return observer.sampling < 1; }
    bool takes_part() const noexcept {
        return is_enabled.load(std::memory_order_relaxed) && !is_removed.load(std::memory_order_relaxed) &&
               !is_drained.load(std::memory_order_relaxed) && observer.sampling > 0;
    }
};
/// A thread's own observers: shared with the threads that adopt its context, immutable.
using ObserverList = std::vector<std::shared_ptr<ObserverEntry>>;

/// The observers that a thread calls for the ranges of each scope. Rebuilt when an observer is added, removed
/// or switched; the old one stays while ranges that began under it are open. Only used by its thread, except
/// for `ended_elsewhere`.
struct ObserverSnapshot {
    struct Item {
        ObserverEntry* entry;
        std::uint64_t countdown;  ///< ranges to skip before the next one that it sees
    };
    struct Needs {
        bool inputs = false;
        bool outputs = false;
        bool ids = false;
        void add(const Observer& observer) noexcept {
            inputs |= observer.needs_inputs;
            outputs |= observer.needs_outputs;
            ids |= observer.needs_ids;
        }
    };
    struct PerScope {
        std::uint64_t skip = 0;                 ///< all_sampled: coming ranges that no observer will see
        ObserverEntry* const* first = nullptr;  ///< of `entries`
        std::uint32_t count = 0;                ///< of `entries`
        Needs needs;                            ///< of all of them together
        bool is_plain = false;                  ///< a few, none sampled, none needs ids: the short path
        std::vector<ObserverEntry*> entries;    ///< global ones first, each group in the order of adding
        std::vector<Item> items;  ///< the same as `entries`, when any of them is sampled; else empty
        bool all_sampled = false;
        std::uint64_t drawn = 0;  ///< the value that `skip` was set to
    };

    ObserverSnapshot() = default;
    /// Of these observers, without those that do not take part. `thread` draws for the sampled ones.
    ObserverSnapshot(ObserverList observers, ThreadObservers& thread);

    PerScope scopes[kScopeCount];
    std::vector<ObserverEntry*> memory;
    std::vector<ObserverEntry*> instants;  ///< of any scope
    ObserverList keep;
    std::uint64_t open = 0;  ///< ranges begun under it, minus those that ended on their own thread
    std::atomic<std::uint64_t> ended_elsewhere{0};

    bool is_done() const noexcept { return open == ended_elsewhere.load(std::memory_order_acquire); }
};

/// An open range that is being observed. Taken from its thread's pool, returned to the pool of the thread
/// that ends it. In a pool, everything except the fields that begin_frame() sets is as in a new one.
class ObserverFrame {
  public:
    ObservedRange range;
    detail::Opened opened{0, detail::kNotOpen};  ///< the recorder's part of it
    ObserverSnapshot* snapshot = nullptr;
    ObserverFrame* next = nullptr;  ///< in a pool
    ObserverEntry* const* entries =
        nullptr;  ///< the observers that see it: the snapshot's, or sampled_entries
    std::uint32_t count = 0;
    ObserverSnapshot::Needs needs;
    bool is_changed = false;  ///< more fields were set than begin_frame() sets

    static constexpr std::size_t kFew = 6;
    ObserverContext** contexts = few_contexts;  ///< one for each observer
    ObserverContext* few_contexts[kFew];
    std::vector<ObserverContext*> many_contexts;  ///< keeps its capacity in the pool
    std::vector<ObserverEntry*> sampled_entries;

    void set_range(std::uint32_t site, Scope scope, std::uint32_t thread) noexcept {
        range.site_ = site;
        range.scope_ = scope;
        range.start_thread_ = thread;
    }
    void set_opened(detail::Opened recorded) noexcept {
        is_changed = true;
        opened = recorded;
    }
    void set_async() noexcept {
        is_changed = true;
        range.is_async_ = true;
    }
    void set_facts(std::int64_t sequence, std::uint32_t forward_thread) noexcept {
        is_changed = true;
        range.sequence_ = sequence;
        range.forward_thread_ = forward_thread;
    }
    void set_id(std::uint64_t id) noexcept {
        is_changed = true;
        range.id_ = id;
    }
    void set_inputs(std::span<const Value> inputs, std::span<const KeyedValue> keywords) noexcept {
        range.inputs_ = inputs;
        range.keywords_ = keywords;
    }
    void set_outputs(std::span<const Value> outputs) noexcept {
        is_changed = true;
        range.outputs_ = outputs;
    }
    /// Resets it to a new one.
    void reset() noexcept {
        is_changed = false;
        contexts = few_contexts;
        range.is_async_ = false;
        range.id_ = 0;
        range.sequence_ = -1;
        range.forward_thread_ = 0;
        range.outputs_ = {};
        opened.index = detail::kNotOpen;
    }
};

/// One thread's part. Used by that thread alone, except for `executing`.
struct ThreadObservers {
    std::uint64_t version = 0;             ///< of the registry, when `current` was made; 0: rebuild it
    ObserverSnapshot* snapshot = nullptr;  ///< `current`
    ObserverFrame* pool = nullptr;
    std::uint32_t inside = 0;  ///< in a callback, or about to be
    std::uint32_t thread = 0;  ///< logical id
    std::atomic<const ObserverEntry*> executing{nullptr};
    std::unique_ptr<ObserverSnapshot> current;
    std::vector<std::unique_ptr<ObserverSnapshot>> old;  ///< with ranges open
    std::shared_ptr<const ObserverList>
        own;  ///< null: none. Written by its thread, under ThreadEntry::arming
    std::uint64_t random = 0;
    std::uint64_t seed = 0;
    struct Objectless {
        std::uint32_t index;
        ObserverFrame* frame;
    };
    std::vector<Objectless> objectless;  ///< of begins without an object, innermost last

    ~ThreadObservers();
    /// Its list of calls from now on; the one before is kept while ranges that began under it are open.
    void set_current(std::unique_ptr<ObserverSnapshot> fresh);
};

/// Opens a scope while observers are registered: calls its observers, then the recorder. `state` is the
/// calling thread's.
detail::Opened open_observed(const detail::ThreadState& state, std::uint32_t site, Scope scope,
                             std::uint32_t side) noexcept;
/// The frame of a range of `scope` that begins now, with the observers that will see it; null: none will.
ObserverFrame* begin_frame(std::uint32_t site, Scope scope) noexcept;
/// Calls the start callbacks; the frame's range has been filled in.
void run_starts(ObserverFrame& frame) noexcept;
/// The same, with the keyword values at a side-stack handle, if an observer needs them. They are not on the
/// side stack while callbacks run (these may leave ranges open); returns their handle afterwards. The range's
/// id, if it has one, is kept with them.
std::uint32_t run_starts_with(ObserverFrame& frame, std::uint32_t side) noexcept;
/// Calls the end callbacks and releases the frame. Any thread.
void end_frame(ObserverFrame* frame) noexcept;
/// Releases a frame whose range never began.
void drop_frame(ObserverFrame* frame) noexcept;
/// Calls the memory callbacks.
void observe_memory(const MemoryReport& report) noexcept;
/// Calls the callbacks for instants.
void observe_instant(std::uint32_t site, Scope scope) noexcept;
/// Puts the id of a range onto the side stack, before its other values; returns their handle. 0: there is
/// neither id nor values, or there is no space.
std::uint32_t push_range_id(std::uint64_t id, std::span<const std::byte> values) noexcept;

}  // namespace marey
