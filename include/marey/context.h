// context.h: what follows a task from thread to thread: values in slots, sessions, observers.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <marey/detail/context_node.h>
#include <marey/detail/export.h>
#include <marey/range.h>

namespace marey {

/// A place for one value in every context. Any library makes its own, as a static object: its address is the
/// key.
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

/// The calling thread's value: the innermost guard's, or the adopted context's. Null when there is none.
/// Valid while that guard or adoption is.
template <class T>
const T* context_value(const ContextSlot<T>& slot) noexcept {
    return static_cast<const T*>(detail::find_slot(detail::context_head, &slot));
}

/// Gives a slot a value as long as it lives, on the thread that makes it and that must also destroy it.
/// Guards normally end in reverse order; one that does not takes out its own value and no other.
template <class T>
class ContextGuard {
  public:
    /// Null: does nothing.
    ContextGuard(const ContextSlot<T>& slot, std::shared_ptr<const T> value) noexcept {
        if (value == nullptr) return;
        node_.value = value.get();
        node_.owner = std::move(value);
        push(slot);
    }
    /// A value of its own. Contexts get a copy, made when the first one is captured.
    ContextGuard(const ContextSlot<T>& slot, T value) requires std::copy_constructible<T>
        : own_(std::move(value)) {
        node_.value = &*own_;
        node_.copy = [](const void* from) -> std::shared_ptr<const void> {
            return std::make_shared<const T>(*static_cast<const T*>(from));
        };
        push(slot);
    }
    ~ContextGuard() {
        if (detail::context_head == &node_) [[likely]] {
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

/// What a thread stands in: its slots, the sessions that follow its tasks, its own observers, its switch. An
/// immutable value, cheap to copy, for any thread. A session that has stopped is out of every context.
class Context {
  public:
    /// Empty: to adopt it is to leave everything behind.
    Context() noexcept = default;
    /// The calling thread's. Allocates; throws std::bad_alloc.
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

/// Puts the calling thread into a context as long as it lives, then back into the one before. The context
/// must live that long: no reference is counted, so threads that adopt the same one do not disturb each
/// other. Destroyed by the thread that made it, normally in reverse order; one that is not takes itself out
/// from under those inside it.
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

/// Puts the calling thread into a context for good: until its end, or until the end of the adoption around
/// the call. Throws std::bad_alloc.
MAREY_API void adopt(const Context& context);

/// A callable that runs under the context in which it was made. Made by propagate().
template <class Function>
class Propagated {
  public:
    Propagated(Context context, Function function)
        : context_(std::move(context)), function_(std::move(function)) {}

    template <class... Arguments>
    requires std::is_invocable_v<Function&, Arguments...>
    decltype(auto) operator()(Arguments&&... arguments) & {
        const ContextAdoption adoption(context_);
        return std::invoke(function_, std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments>
    requires std::is_invocable_v<const Function&, Arguments...>
    decltype(auto) operator()(Arguments&&... arguments) const& {
        const ContextAdoption adoption(context_);
        return std::invoke(function_, std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments>
    requires std::is_invocable_v<Function, Arguments...>
    decltype(auto) operator()(Arguments&&... arguments) && {
        const ContextAdoption adoption(context_);
        return std::invoke(std::move(function_), std::forward<Arguments>(arguments)...);
    }

  private:
    Context context_;
    Function function_;
};

/// Wraps a task for another thread: each call runs in the context of this moment, and arguments, result and
/// exceptions pass through. Movable or copyable as the callable is.
///
///     std::thread worker(marey::propagate([&] { parse(chunk); }));
///     auto size = std::async(std::launch::async, marey::propagate(measure), path);
///     pool.post(marey::propagate([=] { load(file); }));
template <class Function>
Propagated<std::decay_t<Function>> propagate(Function&& function) {
    return {Context::current(), std::forward<Function>(function)};
}

/// A continuation that ends a range. Made by end_after(). Movable; to be called once (calling it again only
/// calls the continuation).
template <class Function>
class RangeEnding {
  public:
    RangeEnding(Context context, Range range, Function function)
        : context_(std::move(context)), range_(std::move(range)), function_(std::move(function)) {}

    template <class... Arguments>
    requires std::is_invocable_v<Function&, Arguments...>
    decltype(auto) operator()(Arguments&&... arguments) {
        const ContextAdoption adoption(context_);
        // Destroyed when the result is there, and before anybody else sees it.
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

/// Wraps the continuation of something that `range` measures: the range ends when the continuation has run,
/// before its value or exception passes through unchanged. It runs in the context of this moment. Never
/// called, the range ends with the wrapper.
template <class Function>
RangeEnding<std::decay_t<Function>> end_after(Range range, Function&& function) {
    return {Context::current(), std::move(range), std::forward<Function>(function)};
}

}  // namespace marey
