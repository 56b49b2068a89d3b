// range.h: marking a program: scopes, movable ranges, instants, counters, thread names.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

#include <kymo/detail/hot_path.h>
#include <kymo/detail/values.h>
#include <kymo/scope.h>

namespace kymo {

/// A range that can be moved, ended early, later, or on another thread; ended by its destructor at the
/// latest. One that ends where it began, properly nested, is shown among the scopes of its thread, else on an
/// async track.
class Range {
  public:
    Range() noexcept = default;
    explicit Range(std::string_view name, Scope scope = Scope::User) noexcept {
        if (detail::is_wanted(scope)) begin(name, scope, 0);
    }
    /// With values: Range r("load", "bytes", n, "file", path). Keys and values alternate.
    template <class Key, class Value, class... More>
    requires std::convertible_to<const Key&, std::string_view> Range(std::string_view name, const Key& key,
                                                                     const Value& value, const More&... more)
    noexcept {
        if (!detail::is_wanted(Scope::User)) return;
        detail::KeyIds keys;
        const bool wanted = detail::values_wanted(Scope::User);
        begin(name, Scope::User, wanted ? detail::push_values(keys, key, value, more...) : 0);
    }
    /// One that is on an async track wherever it ends: the life of a task whose stretches of work are scopes.
    static Range apart(std::string_view name, Scope scope = Scope::User) noexcept {
        Range range;
        if (detail::is_wanted(scope)) range.begin(name, scope, 0, true);
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
    /// Ends it now, on whichever thread this is. Ending twice is harmless.
    void end() noexcept {
        if (is_open()) finish();
    }
    /// False once ended, when moved from, or when nobody recorded or observed it as it began.
    bool is_open() const noexcept { return id_ != 0 || frame_ != nullptr; }

  private:
    friend struct RangeOfSite;
    KYMO_API void begin(std::string_view name, Scope scope, std::uint32_t side,
                        bool is_apart = false) noexcept;
    void begin_site(std::uint32_t site, Scope scope, std::uint32_t side, bool is_apart) noexcept;
    KYMO_API void finish() noexcept;

    std::uint64_t id_ = 0;
    std::uint64_t start_ = 0;
    std::uint32_t site_ = 0;
    void* frame_ = nullptr;  ///< of its observers
};

namespace detail {
KYMO_API void record_instant(std::string_view name, Scope scope, std::uint32_t side) noexcept;
KYMO_API void record_counter(std::string_view name, double value) noexcept;
KYMO_API void record_counter(std::string_view name, std::int64_t value) noexcept;
}  // namespace detail

/// A point in time, with values if any are given: instant("flush", "pages", n).
inline void instant(std::string_view name) noexcept {
    if (detail::is_wanted(Scope::User)) detail::record_instant(name, Scope::User, 0);
}
template <class Key, class Value, class... More>
inline void instant(std::string_view name, const Key& key, const Value& value, const More&... more) noexcept {
    if (!detail::is_wanted(Scope::User)) return;
    detail::KeyIds keys;
    const bool wanted = detail::values_wanted(Scope::User);
    detail::record_instant(name, Scope::User, wanted ? detail::push_values(keys, key, value, more...) : 0);
}

/// The value of something that changes over time: a queue's length, bytes in use.
template <class Number>
requires std::is_arithmetic_v<Number>
inline void counter(std::string_view name, Number value) noexcept {
    if (!detail::is_wanted(Scope::User)) return;
    if constexpr (std::floating_point<Number>) {
        detail::record_counter(name, static_cast<double>(value));
    } else {
        detail::record_counter(name, static_cast<std::int64_t>(value));
    }
}

/// Names the calling thread in traces. Remembered whether or not anything records.
KYMO_API void thread_name(std::string_view name) noexcept;

/// True when a range of the calling thread would be recorded now.
inline bool is_recording() noexcept {
    return (detail::load_relaxed(detail::current_thread->armed) & detail::kArmedRecorder) != 0;
}

/// True when a session that sees the calling thread wants the inputs of ranges (record_shapes or
/// concrete_inputs).
inline bool inputs_wanted() noexcept {
    constexpr std::uint64_t kInputs = detail::kArmedShapes | detail::kArmedConcrete;
    return (detail::load_relaxed(detail::current_thread->armed) & kInputs) != 0;
}

}  // namespace kymo

#define KYMO_DETAIL_JOIN2(a, b) a##b
#define KYMO_DETAIL_JOIN(a, b) KYMO_DETAIL_JOIN2(a, b)

#ifndef KYMO_DISABLE

// The trailing parts exist only when values are given; they are evaluated only when somebody keeps them.
#define KYMO_DETAIL_RANGE(n, scope, name, ...)                                                              \
    static constinit ::kymo::detail::Site KYMO_DETAIL_JOIN(kymo_site_, n){name, __FILE__, __LINE__, scope}; \
    __VA_OPT__(static constinit ::kymo::detail::KeyIds KYMO_DETAIL_JOIN(kymo_keys_, n);)                    \
    ::kymo::detail::ScopedRange KYMO_DETAIL_JOIN(kymo_range_, n)(                                           \
        KYMO_DETAIL_JOIN(kymo_site_, n),                                                                    \
        scope __VA_OPT__(, ::kymo::detail::values_wanted(scope)                                             \
                               ? ::kymo::detail::push_values(KYMO_DETAIL_JOIN(kymo_keys_, n), __VA_ARGS__)  \
                               : 0u))
#define KYMO_DETAIL_RANGE_DYNAMIC(n, scope, name, ...)                                                     \
    __VA_OPT__(static constinit ::kymo::detail::KeyIds KYMO_DETAIL_JOIN(kymo_keys_, n);)                   \
    ::kymo::detail::ScopedRange KYMO_DETAIL_JOIN(kymo_range_, n)(                                          \
        name,                                                                                              \
        scope __VA_OPT__(, ::kymo::detail::values_wanted(scope)                                            \
                               ? ::kymo::detail::push_values(KYMO_DETAIL_JOIN(kymo_keys_, n), __VA_ARGS__) \
                               : 0u))

/// Times the rest of the block: KYMO_RANGE("parse"), KYMO_RANGE("parse", "bytes", n, "file", path).
/// The name and the keys are string literals.
#define KYMO_RANGE(...) KYMO_DETAIL_RANGE_IN(__COUNTER__, ::kymo::Scope::User, __VA_ARGS__)
/// The same with another scope: KYMO_RANGE_SCOPE(kymo::Scope::BackwardFunction, "matmul").
#define KYMO_RANGE_SCOPE(scope, ...) KYMO_DETAIL_RANGE_IN(__COUNTER__, scope, __VA_ARGS__)
/// The same with a name made at run time (any text; interned once).
#define KYMO_RANGE_DYNAMIC(...) KYMO_DETAIL_RANGE_DYNAMIC_IN(__COUNTER__, ::kymo::Scope::User, __VA_ARGS__)
/// Times the rest of the function, under its name.
#define KYMO_FUNCTION(...) \
    KYMO_DETAIL_RANGE_IN(__COUNTER__, ::kymo::Scope::Function, __func__ __VA_OPT__(, ) __VA_ARGS__)
#define KYMO_DETAIL_RANGE_IN(n, scope, ...) KYMO_DETAIL_RANGE(n, scope, __VA_ARGS__)
#define KYMO_DETAIL_RANGE_DYNAMIC_IN(n, scope, ...) KYMO_DETAIL_RANGE_DYNAMIC(n, scope, __VA_ARGS__)

/// kymo::instant, kymo::counter and kymo::thread_name as macros, so that KYMO_DISABLE removes them too.
#define KYMO_INSTANT(...) ::kymo::instant(__VA_ARGS__)
#define KYMO_COUNTER(name, value) ::kymo::counter(name, value)
#define KYMO_THREAD_NAME(name) ::kymo::thread_name(name)

#else

#define KYMO_RANGE(...) static_assert(true)
#define KYMO_RANGE_SCOPE(...) static_assert(true)
#define KYMO_RANGE_DYNAMIC(...) static_assert(true)
#define KYMO_FUNCTION(...) static_assert(true)
#define KYMO_INSTANT(...) static_assert(true)
#define KYMO_COUNTER(name, value) static_assert(true)
#define KYMO_THREAD_NAME(name) static_assert(true)

#endif
