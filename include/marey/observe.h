// observe.h: other code watches ranges as they open and close, and allocations as they are reported.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <marey/detail/export.h>
#include <marey/memory.h>
#include <marey/scope.h>
#include <marey/value.h>

namespace marey {

/// What an observer keeps for one range, from its start callback to its end callback. Owned by the range,
/// destroyed with it, on whichever thread ends it.
struct MAREY_API ObserverContext {
    ObserverContext() = default;
    ObserverContext(const ObserverContext&) = delete;
    ObserverContext& operator=(const ObserverContext&) = delete;
    virtual ~ObserverContext();
};

/// A range as callbacks see it. Valid during the callback.
class MAREY_API ObservedRange {
  public:
    std::string_view name() const noexcept;
    Scope scope() const noexcept { return scope_; }
    /// Unique in the process, from 1; 0 unless an observer of this range asked for ids.
    std::uint64_t id() const noexcept { return id_; }
    /// Of the forward sequence; -1: none.
    std::int64_t sequence() const noexcept { return sequence_; }
    /// Logical id of the thread of the forward half; 0: this is no backward half.
    std::uint32_t forward_thread() const noexcept { return forward_thread_; }
    /// The process's node id (set_node_id); -1: none.
    std::int32_t node() const noexcept;
    /// May end on another thread.
    bool is_async() const noexcept { return is_async_; }
    /// Logical id of the thread on which it began.
    std::uint32_t start_thread() const noexcept { return start_thread_; }
    /// In the start callback, if an observer of this range asked for inputs; else empty.
    std::span<const Value> inputs() const noexcept { return inputs_; }
    std::span<const KeyedValue> keywords() const noexcept { return keywords_; }
    /// In the end callback, if an observer of this range asked for outputs; else empty.
    std::span<const Value> outputs() const noexcept { return outputs_; }

  private:
    friend class ObserverFrame;  // src/record/observers.h
    std::uint32_t site_ = 0;
    Scope scope_ = Scope::User;
    bool is_async_ = false;
    std::uint32_t forward_thread_ = 0;
    std::uint32_t start_thread_ = 0;
    std::uint64_t id_ = 0;
    std::int64_t sequence_ = -1;
    std::span<const Value> inputs_;
    std::span<const KeyedValue> keywords_;
    std::span<const Value> outputs_;
};

/// Callbacks and what they need. They run on the thread of the range, must be thread-safe, and need not start
/// and end on the same thread. What they throw is caught and said on standard error. Ranges that a callback
/// opens itself are recorded, not observed.
struct Observer {
    /// Gives what to keep until the end, or null.
    std::unique_ptr<ObserverContext> (*start)(const ObservedRange& range, void* data) = nullptr;
    /// `context` is what start gave; null if it gave none, threw, or is null itself.
    void (*end)(const ObservedRange& range, ObserverContext* context, void* data) = nullptr;
    void (*memory)(const MemoryReport& report, void* data) = nullptr;
    /// A point in time (marey::instant); `instant` has its name, scope and thread. Never sampled.
    void (*instant)(const ObservedRange& instant, void* data) = nullptr;
    void* data = nullptr;  ///< handed to every callback; must live until remove_and_drain has returned
    bool needs_inputs = false;
    bool needs_outputs = false;
    bool needs_ids = false;
    double sampling = 1.0;  ///< the share of ranges that it sees, 0 to 1, chosen at random
    ScopeSet scopes{};      ///< empty: all
};

/// Names an observer that was added; 0 is none.
using ObserverHandle = std::uint64_t;

/// For every thread. Ranges that are open already are not seen. Throws marey::Error when `sampling` is not
/// within [0, 1].
MAREY_API ObserverHandle add_observer(const Observer& observer);
/// For the calling thread, and those that adopt its context.
MAREY_API ObserverHandle add_thread_observer(const Observer& observer);
/// Each looks among the calling thread's observers first, then among the global ones; false when there is no
/// such handle. Ranges that it has seen start still get their end from it. Contexts that carry it call it no
/// more either.
MAREY_API bool remove_observer(ObserverHandle handle) noexcept;
/// The same for an observer of any thread, removed already or not, and waits until no callback of it runs;
/// none runs afterwards. Ranges still open drop its context without an end when they end. Throws marey::Error
/// when called from a callback.
MAREY_API bool remove_and_drain(ObserverHandle handle);
MAREY_API bool disable_observer(ObserverHandle handle) noexcept;
MAREY_API bool enable_observer(ObserverHandle handle) noexcept;

/// Enabled ones count.
MAREY_API bool has_observers() noexcept;
MAREY_API bool has_global_observers() noexcept;
MAREY_API bool has_thread_observers() noexcept;
MAREY_API void clear_observers() noexcept;  ///< both kinds, of this thread
MAREY_API void clear_global_observers() noexcept;
MAREY_API void clear_thread_observers() noexcept;

/// Makes sampling reproducible: every thread draws from a sequence of its own that depends on the seed and on
/// current_thread_id().
MAREY_API void seed_sampling_for_testing(std::uint64_t seed) noexcept;

/// Whether the calling thread's ranges are recorded and observed at all. On by default, cheap to switch.
MAREY_API bool is_enabled() noexcept;
MAREY_API void set_enabled(bool enabled) noexcept;
/// Switches for a scope, and back to what was before.
class EnableGuard {
  public:
    explicit EnableGuard(bool enabled = true) noexcept : before_(is_enabled()) { set_enabled(enabled); }
    ~EnableGuard() { set_enabled(before_); }
    EnableGuard(const EnableGuard&) = delete;
    EnableGuard& operator=(const EnableGuard&) = delete;

  private:
    bool before_;
};

/// Which of several processes this is: a rank, a worker. Kept in captures and seen by observers; -1: none.
/// Throws marey::Error when it is negative.
MAREY_API void set_node_id(std::int32_t node);
MAREY_API std::int32_t node_id() noexcept;
/// The logical id of the calling thread: from 1, never reused in this process. 0 when it cannot be known.
MAREY_API std::uint32_t current_thread_id() noexcept;

}  // namespace marey
