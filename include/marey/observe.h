// observe.h: callbacks for ranges as they begin and end, and for allocation reports.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <marey/detail/export.h>
#include <marey/memory.h>
#include <marey/range.h>
#include <marey/scope.h>
#include <marey/span.h>
#include <marey/value.h>

namespace marey {

/// Data that an observer keeps for one range, from its start callback to its end callback. The range owns it
/// and destroys it on the thread that ends the range.
struct MAREY_API ObserverContext {
    ObserverContext() = default;
    ObserverContext(const ObserverContext&) = delete;
    ObserverContext& operator=(const ObserverContext&) = delete;
    virtual ~ObserverContext();
};

/// The range passed to a callback. Valid during the callback.
class MAREY_API ObservedRange {
  public:
    std::string_view name() const noexcept;
    Scope scope() const noexcept { return scope_; }
    /// Unique in the process, from 1; 0 unless an observer of this range has needs_ids.
    std::uint64_t id() const noexcept { return id_; }
    /// The number in the forward sequence; -1: none.
    std::int64_t sequence() const noexcept { return sequence_; }
    /// Logical id of the thread of the forward half; 0: this is not a backward half.
    std::uint32_t forward_thread() const noexcept { return forward_thread_; }
    /// The process's node id (set_node_id); -1: none.
    std::int32_t node() const noexcept;
    /// Whether the range may end on another thread.
    bool is_async() const noexcept { return is_async_; }
    /// Logical id of the thread on which it began.
    std::uint32_t start_thread() const noexcept { return start_thread_; }
    /// The inputs, in the start callback, if an observer of this range has needs_inputs; otherwise empty.
    Span<const Value> inputs() const noexcept { return inputs_; }
    Span<const KeyedValue> keywords() const noexcept { return keywords_; }
    /// The outputs, in the end callback, if an observer of this range has needs_outputs; otherwise empty.
    Span<const Value> outputs() const noexcept { return outputs_; }

  private:
    friend class ObserverFrame;  // src/record/observers.h
    std::uint32_t site_ = 0;
    Scope scope_ = Scope::User;
    bool is_async_ = false;
    std::uint32_t forward_thread_ = 0;
    std::uint32_t start_thread_ = 0;
    std::uint64_t id_ = 0;
    std::int64_t sequence_ = -1;
    Span<const Value> inputs_;
    Span<const KeyedValue> keywords_;
    Span<const Value> outputs_;
};

/// Callbacks and their options. Callbacks run on the thread of the range and must be thread-safe; the start
/// and the end callback of a range may run on different threads. Exceptions are caught and printed on
/// standard error. Ranges that a callback opens itself are recorded but not observed.
struct Observer {
    /// Called when a range begins. Returns data to keep until the end, or null.
    std::unique_ptr<ObserverContext> (*start)(const ObservedRange& range, void* data) = nullptr;
    /// Called when a range ends. `context` is the result of start; null if start returned null, threw, or is
    /// not set.
    void (*end)(const ObservedRange& range, ObserverContext* context, void* data) = nullptr;
    void (*memory)(const MemoryReport& report, void* data) = nullptr;
    /// Called for an instant (marey::instant); `instant` has its name, scope and thread. Never sampled.
    void (*instant)(const ObservedRange& instant, void* data) = nullptr;
    void* data = nullptr;  ///< passed to every callback; must live until remove_and_drain() has returned
    bool needs_inputs = false;
    bool needs_outputs = false;
    bool needs_ids = false;
    double sampling = 1.0;  ///< share of ranges to observe, 0 to 1, chosen at random
    ScopeSet scopes{};      ///< scopes to observe; empty: all
};

/// Identifies an observer; 0 is none.
using ObserverHandle = std::uint64_t;

/// Adds an observer for all threads. Ranges that are already open are not observed. Throws marey::Error if
/// `sampling` is not within [0, 1].
MAREY_API ObserverHandle add_observer(const Observer& observer);
/// Adds an observer for the calling thread and for threads that adopt its context.
MAREY_API ObserverHandle add_thread_observer(const Observer& observer);
/// Removes an observer of the calling thread or, if there is none with this handle, a global one. Returns
/// false if the handle is unknown. Ranges whose start it has observed still call its end callback. Contexts
/// that contain it no longer call it. disable_observer() and enable_observer() find the observer the same
/// way.
MAREY_API bool remove_observer(ObserverHandle handle) noexcept;
/// Removes an observer of any thread, even if it was removed before, and waits until none of its callbacks is
/// running; none runs afterwards. Ranges that are still open discard its context without calling its end
/// callback. Throws marey::Error if called from a callback.
MAREY_API bool remove_and_drain(ObserverHandle handle);
MAREY_API bool disable_observer(ObserverHandle handle) noexcept;
MAREY_API bool enable_observer(ObserverHandle handle) noexcept;

/// Whether there are enabled observers.
MAREY_API bool has_observers() noexcept;
MAREY_API bool has_global_observers() noexcept;
MAREY_API bool has_thread_observers() noexcept;
MAREY_API void clear_observers() noexcept;  ///< removes the global ones and those of this thread
MAREY_API void clear_global_observers() noexcept;
MAREY_API void clear_thread_observers() noexcept;

/// Makes sampling reproducible: every thread uses a separate random sequence that depends on the seed and on
/// current_thread_id().
MAREY_API void seed_sampling_for_testing(std::uint64_t seed) noexcept;

/// Whether the calling thread's ranges are recorded and observed at all. True by default; cheap to change.
MAREY_API bool is_enabled() noexcept;
MAREY_API void set_enabled(bool enabled) noexcept;
/// Calls set_enabled() for its lifetime, then restores the previous state.
class EnableGuard {
  public:
    explicit EnableGuard(bool enabled = true) noexcept : before_(is_enabled()) { set_enabled(enabled); }
    ~EnableGuard() { set_enabled(before_); }
    EnableGuard(const EnableGuard&) = delete;
    EnableGuard& operator=(const EnableGuard&) = delete;

  private:
    bool before_;
};

/// Sets the node id of this process: its number among several processes, such as a rank. Captures contain it
/// and observers can read it. Throws marey::Error if it is negative.
MAREY_API void set_node_id(std::int32_t node);
/// Returns the node id; -1: none.
MAREY_API std::int32_t node_id() noexcept;

}  // namespace marey
