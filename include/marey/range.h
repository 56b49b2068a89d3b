// range.h: instrumenting a program: scoped ranges, movable ranges, instants, counters, thread names.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

#include <marey/detail/hot_path.h>
#include <marey/detail/values.h>
#include <marey/scope.h>

namespace marey {

/// A range that can be moved, and ended at any time and on any thread. Its destructor ends it at the latest.
/// If it ends on the thread where it began, properly nested, it is shown with the scoped ranges of that
/// thread; otherwise on an async track.
class Range {
  public:
    Range() noexcept = default;
    explicit Range(std::string_view name, Scope scope = Scope::User) noexcept {
        if (detail::should_record(scope)) begin(name, scope, 0);
    }
    /// Begins a range with values: Range r("load", "bytes", n, "file", path). Keys and values alternate.
    template <class Key, class Value, class... More>
    requires std::convertible_to<const Key&, std::string_view> Range(std::string_view name, const Key& key,
                                                                     const Value& value, const More&... more)
    noexcept {
        if (!detail::should_record(Scope::User)) return;
        detail::KeyIds keys;
        const bool wanted = detail::values_wanted(Scope::User);
        begin(name, Scope::User, wanted ? detail::push_values(keys, key, value, more...) : 0);
    }
    /// Begins a range that is always on an async track, such as the lifetime of a task whose work is marked
    /// by scoped ranges.
    static Range apart(std::string_view name, Scope scope = Scope::User) noexcept {
        Range range;
        if (detail::should_record(scope)) range.begin(name, scope, 0, true);
        return range;
    }
    ~Range() { end(); }
    Range(Range&& other) noexcept
        : id_(std::exchange(other.id_, 0)),
          start_(other.start_),
          site_(other.site_),
          frame_(std::exchange(other.frame_, nullptr)) {}
    Range& operator=(Range&& other) noexcept {
        if (this != &other) {
            end();
            id_ = std::exchange(other.id_, 0);
            start_ = other.start_;
            site_ = other.site_;
            frame_ = std::exchange(other.frame_, nullptr);
        }
        return *this;
    }
    /// Ends the range on the calling thread. Ending twice is harmless.
    void end() noexcept {
        if (is_open()) finish();
    }
    /// False after it has ended, if it was moved from, or if nothing recorded or observed it when it began.
    bool is_open() const noexcept { return id_ != 0 || frame_ != nullptr; }

  private:
    friend struct SiteRange;
    MAREY_API void begin(std::string_view name, Scope scope, std::uint32_t side,
                         bool is_apart = false) noexcept;
    void begin_site(std::uint32_t site, Scope scope, std::uint32_t side, bool is_apart) noexcept;
    MAREY_API void finish() noexcept;

    std::uint64_t id_ = 0;
    std::uint64_t start_ = 0;
    std::uint32_t site_ = 0;
    void* frame_ = nullptr;  ///< state of its observers
};

namespace detail {
MAREY_API void record_instant(std::string_view name, Scope scope, std::uint32_t side) noexcept;
MAREY_API void record_counter(std::string_view name, double value) noexcept;
MAREY_API void record_counter(std::string_view name, std::int64_t value) noexcept;
}  // namespace detail

/// Records a point in time, optionally with values: instant("flush", "pages", n).
inline void instant(std::string_view name) noexcept {
    if (detail::should_record(Scope::User)) detail::record_instant(name, Scope::User, 0);
}
template <class Key, class Value, class... More>
inline void instant(std::string_view name, const Key& key, const Value& value, const More&... more) noexcept {
    if (!detail::should_record(Scope::User)) return;
    detail::KeyIds keys;
    const bool wanted = detail::values_wanted(Scope::User);
    detail::record_instant(name, Scope::User, wanted ? detail::push_values(keys, key, value, more...) : 0);
}

/// Records the value of a quantity that changes over time, such as the length of a queue or bytes in use.
template <class Number>
requires std::is_arithmetic_v<Number>
inline void counter(std::string_view name, Number value) noexcept {
    if (!detail::should_record(Scope::User)) return;
    if constexpr (std::floating_point<Number>) {
        detail::record_counter(name, static_cast<double>(value));
    } else {
        detail::record_counter(name, static_cast<std::int64_t>(value));
    }
}

/// Sets the name of the calling thread in traces. Kept whether or not anything is recording.
MAREY_API void thread_name(std::string_view name) noexcept;

/// Returns true if a range of the calling thread would be recorded now.
inline bool is_recording() noexcept {
    return (detail::load_relaxed(detail::current_thread->armed) & detail::kArmedRecorder) != 0;
}

/// Returns true if a session that records the calling thread needs the inputs of ranges (record_shapes or
/// concrete_inputs).
inline bool needs_inputs() noexcept {
    constexpr std::uint64_t kInputs = detail::kArmedShapes | detail::kArmedConcrete;
    return (detail::load_relaxed(detail::current_thread->armed) & kInputs) != 0;
}

}  // namespace marey

#define MAREY_DETAIL_JOIN2(a, b) a##b
#define MAREY_DETAIL_JOIN(a, b) MAREY_DETAIL_JOIN2(a, b)

#ifndef MAREY_DISABLE

// The trailing parts exist only if values are given; values are evaluated only if they are recorded.
#define MAREY_DETAIL_RANGE(n, scope, name, ...)                                                             \
    static constinit ::marey::detail::Site MAREY_DETAIL_JOIN(marey_site_, n){name, __FILE__, __LINE__,      \
                                                                             scope};                        \
    __VA_OPT__(static constinit ::marey::detail::KeyIds MAREY_DETAIL_JOIN(marey_keys_, n);)                 \
    ::marey::detail::ScopedRange MAREY_DETAIL_JOIN(marey_range_, n)(                                        \
        MAREY_DETAIL_JOIN(marey_site_, n),                                                                  \
        scope __VA_OPT__(,                                                                                  \
                         ::marey::detail::values_wanted(scope)                                              \
                             ? ::marey::detail::push_values(MAREY_DETAIL_JOIN(marey_keys_, n), __VA_ARGS__) \
                             : 0u))
#define MAREY_DETAIL_RANGE_DYNAMIC(n, scope, name, ...)                                                \
    __VA_OPT__(static constinit ::marey::detail::KeyIds MAREY_DETAIL_JOIN(marey_keys_, n);)            \
    ::marey::detail::ScopedRange MAREY_DETAIL_JOIN(marey_range_, n)(                                   \
        name, scope __VA_OPT__(                                                                        \
                  , ::marey::detail::values_wanted(scope)                                              \
                        ? ::marey::detail::push_values(MAREY_DETAIL_JOIN(marey_keys_, n), __VA_ARGS__) \
                        : 0u))

/// Records the rest of the block as a range: MAREY_RANGE("parse"), MAREY_RANGE("parse", "bytes", n, "file",
/// path). The name and the keys must be string literals.
#define MAREY_RANGE(...) MAREY_DETAIL_RANGE_IN(__COUNTER__, ::marey::Scope::User, __VA_ARGS__)
/// The same with another scope: MAREY_RANGE_SCOPE(marey::Scope::BackwardFunction, "matmul").
#define MAREY_RANGE_SCOPE(scope, ...) MAREY_DETAIL_RANGE_IN(__COUNTER__, scope, __VA_ARGS__)
/// The same with a name made at run time (any text; each distinct name is stored once).
#define MAREY_RANGE_DYNAMIC(...) MAREY_DETAIL_RANGE_DYNAMIC_IN(__COUNTER__, ::marey::Scope::User, __VA_ARGS__)
/// Records the rest of the function as a range with the function's name.
#define MAREY_FUNCTION(...) \
    MAREY_DETAIL_RANGE_IN(__COUNTER__, ::marey::Scope::Function, __func__ __VA_OPT__(, ) __VA_ARGS__)
#define MAREY_DETAIL_RANGE_IN(n, scope, ...) MAREY_DETAIL_RANGE(n, scope, __VA_ARGS__)
#define MAREY_DETAIL_RANGE_DYNAMIC_IN(n, scope, ...) MAREY_DETAIL_RANGE_DYNAMIC(n, scope, __VA_ARGS__)

/// marey::instant, marey::counter and marey::thread_name as macros, so that MAREY_DISABLE removes them too.
#define MAREY_INSTANT(...) ::marey::instant(__VA_ARGS__)
#define MAREY_COUNTER(name, value) ::marey::counter(name, value)
#define MAREY_THREAD_NAME(name) ::marey::thread_name(name)

#else

#define MAREY_RANGE(...) static_assert(true)
#define MAREY_RANGE_SCOPE(...) static_assert(true)
#define MAREY_RANGE_DYNAMIC(...) static_assert(true)
#define MAREY_FUNCTION(...) static_assert(true)
#define MAREY_INSTANT(...) static_assert(true)
#define MAREY_COUNTER(name, value) static_assert(true)
#define MAREY_THREAD_NAME(name) static_assert(true)

#endif
