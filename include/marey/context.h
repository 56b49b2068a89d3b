// context.h: state that follows a task from thread to thread: values in slots, sessions, observers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <marey/detail/context_node.h>
#include <marey/detail/export.h>
#include <marey/range.h>

namespace marey {

/// A slot for one value in every context. A library defines its own slots as static objects; the address of
/// the object is the key.
///
///     inline constexpr marey::ContextSlot<Request> kRequest{"request"};
///
/// Libraries that share a slot must share the object (one exported definition).
template <class T>
class ContextSlot {
  public:
    explicit constexpr ContextSlot(const char* name) noexcept : name_(name) {}
    ContextSlot(const ContextSlot&) = delete;
    ContextSlot& operator=(const ContextSlot&) = delete;
    constexpr const char* name() const noexcept { return name_; }

  private:
    const char* name_;
};

/// Returns the calling thread's value: that of the innermost guard, or of the adopted context. Null if there
/// is none. Valid while that guard or adoption is alive.
template <class T>
const T* context_value(const ContextSlot<T>& slot) noexcept {
    return static_cast<const T*>(detail::find_slot(detail::context_head, &slot));
}

/// Sets the value of a slot for its lifetime, on the thread that constructs it; the same thread must destroy
/// it. Guards normally end in reverse order; a guard that ends out of order removes only its own value.
template <class T>
class ContextGuard {
  public:
    /// Sets a shared value. Does nothing if it is null.
    ContextGuard(const ContextSlot<T>& slot, std::shared_ptr<const T> value) noexcept {
        if (value == nullptr) return;
        node_.value = value.get();
        node_.owner = std::move(value);
        push(slot);
    }
    /// Sets a value that the guard owns. Contexts get a copy, made when the first context is captured.
    template <class U = T, class = std::enable_if_t<std::is_copy_constructible_v<U>>>
    ContextGuard(const ContextSlot<T>& slot, T value) : own_(std::move(value)) {
        node_.value = &*own_;
        node_.copy = [](const void* from) -> std::shared_ptr<const void> {
            return std::make_shared<const T>(*static_cast<const T*>(from));
        };
        push(slot);
    }
    ~ContextGuard() {
        if (MAREY_DETAIL_LIKELY(detail::context_head == &node_)) {
            detail::context_head = node_.next;
        } else if (node_.key != nullptr) {
            detail::unlink_guard(node_);
        }
    }
    ContextGuard(const ContextGuard&) = delete;
    ContextGuard& operator=(const ContextGuard&) = delete;

  private:
    void push(const ContextSlot<T>& slot) noexcept {
        node_.key = &slot;
        node_.next = detail::context_head;
        detail::context_head = &node_;
    }

    std::optional<T> own_;
    detail::GuardNode node_;
};

/// The state of a thread that can be passed to other threads: its slots, the sessions that follow its tasks,
/// its observers, and whether it is enabled. An immutable value, cheap to copy and safe to use on any thread.
/// Contexts do not contain sessions that have stopped.
class Context {
  public:
    /// Creates an empty context. A thread that adopts it leaves its sessions, observers and values.
    Context() noexcept = default;
    /// Captures the context of the calling thread. Allocates; throws std::bad_alloc.
    MAREY_API static Context current();
    bool is_empty() const noexcept { return data_ == nullptr; }
    template <class T>
    const T* value(const ContextSlot<T>& slot) const noexcept {
        return static_cast<const T*>(find(&slot));
    }

  private:
    friend class ContextAdoption;
    friend MAREY_API void adopt(const Context& context);
    MAREY_API const void* find(const void* key) const noexcept;

    std::shared_ptr<const detail::ContextData> data_;
};

/// Puts the calling thread into a context for its lifetime, then back into the previous one. The context must
/// outlive it: there is no reference count, so threads that adopt the same context do not slow each other
/// down. The thread that constructs it must destroy it, normally in reverse order; an adoption destroyed out
/// of order removes only itself.
class ContextAdoption {
  public:
    MAREY_API explicit ContextAdoption(const Context& context) noexcept;
    explicit ContextAdoption(Context&&) = delete;
    MAREY_API ~ContextAdoption();
    ContextAdoption(const ContextAdoption&) = delete;
    ContextAdoption& operator=(const ContextAdoption&) = delete;

  private:
    detail::AdoptionNode node_;
};

/// Puts the calling thread into a context until the thread ends, or until the end of the adoption around the
/// call. Throws std::bad_alloc.
MAREY_API void adopt(const Context& context);

/// A callable that runs in the context in which it was created. Returned by propagate().
template <class Function>
class Propagated {
  public:
    Propagated(Context context, Function function)
        : context_(std::move(context)), function_(std::move(function)) {}

    template <class... Arguments, class = std::enable_if_t<std::is_invocable_v<Function&, Arguments...>>>
    decltype(auto) operator()(Arguments&&... arguments) & {
        const ContextAdoption adoption(context_);
        return std::invoke(function_, std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments,
              class = std::enable_if_t<std::is_invocable_v<const Function&, Arguments...>>>
    decltype(auto) operator()(Arguments&&... arguments) const& {
        const ContextAdoption adoption(context_);
        return std::invoke(function_, std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments, class = std::enable_if_t<std::is_invocable_v<Function, Arguments...>>>
    decltype(auto) operator()(Arguments&&... arguments) && {
        const ContextAdoption adoption(context_);
        return std::invoke(std::move(function_), std::forward<Arguments>(arguments)...);
    }

  private:
    Context context_;
    Function function_;
};

/// Wraps a task for another thread. Each call runs in the current context of the calling thread; arguments,
/// result and exceptions pass through. Movable or copyable if the callable is.
///
///     std::thread worker(marey::propagate([&] { parse(chunk); }));
///     auto size = std::async(std::launch::async, marey::propagate(measure), path);
///     pool.post(marey::propagate([=] { load(file); }));
template <class Function>
Propagated<std::decay_t<Function>> propagate(Function&& function) {
    return {Context::current(), std::forward<Function>(function)};
}

/// A continuation that ends a range. Returned by end_after(). Movable. Call it once; another call only calls
/// the continuation.
template <class Function>
class RangeEnding {
  public:
    RangeEnding(Context context, Range range, Function function)
        : context_(std::move(context)), range_(std::move(range)), function_(std::move(function)) {}

    template <class... Arguments, class = std::enable_if_t<std::is_invocable_v<Function&, Arguments...>>>
    decltype(auto) operator()(Arguments&&... arguments) {
        const ContextAdoption adoption(context_);
        // Destroyed after the result is computed and before the caller receives it.
        const struct End {
            Range& range;
            ~End() { range.end(); }
        } end{range_};
        return std::invoke(function_, std::forward<Arguments>(arguments)...);
    }

  private:
    Context context_;
    Range range_;
    Function function_;
};

/// Wraps the continuation of an operation that `range` measures. The range ends after the continuation has
/// run, before its value or exception passes through unchanged. The continuation runs in the current context
/// of the calling thread. If it is never called, the range ends with the wrapper.
template <class Function>
RangeEnding<std::decay_t<Function>> end_after(Range range, Function&& function) {
    return {Context::current(), std::move(range), std::forward<Function>(function)};
}

}  // namespace marey
