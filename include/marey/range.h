// range.h: instrumenting a program: scoped ranges, movable ranges, instants, counters, thread names.
#pragma once

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
    template <class Key, class Value, class... More,
              class = std::enable_if_t<std::is_convertible_v<const Key&, std::string_view>>>
    Range(std::string_view name, const Key& key, const Value& value, const More&... more) noexcept {
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
template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
inline void counter(std::string_view name, Number value) noexcept {
    if (!detail::should_record(Scope::User)) return;
    if constexpr (std::is_floating_point_v<Number>) {
        detail::record_counter(name, static_cast<double>(value));
    } else {
        detail::record_counter(name, static_cast<std::int64_t>(value));
    }
}

/// Sets the name of the calling thread in traces. Kept whether or not anything is recording.
MAREY_API void thread_name(std::string_view name) noexcept;
/// Returns the logical id of the calling thread: from 1, never reused in this process; 0 if it is unknown.
MAREY_API std::uint32_t current_thread_id() noexcept;

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

/// Records the rest of the block as a range: MAREY_RANGE("parse"), MAREY_RANGE("parse", "bytes", n, "file",
/// path). The name and the keys must be string literals.
#define MAREY_RANGE(...) MAREY_RANGE_SCOPE(::marey::Scope::User, __VA_ARGS__)
/// The same with another scope: MAREY_RANGE_SCOPE(marey::Scope::BackwardFunction, "matmul").
#define MAREY_RANGE_SCOPE(scope, ...) \
    MAREY_DETAIL_FORM(MAREY_DETAIL_STATIC_, __VA_ARGS__)(__COUNTER__, scope, Plain, __VA_ARGS__)
/// The same with a name made at run time (any text; each distinct name is stored once).
#define MAREY_RANGE_DYNAMIC(...) \
    MAREY_DETAIL_FORM(MAREY_DETAIL_DYNAMIC_, __VA_ARGS__)(__COUNTER__, ::marey::Scope::User, __VA_ARGS__)
/// Records the rest of the function as a range with the function's qualified name.
#define MAREY_FUNCTION(...) \
    MAREY_DETAIL_FORM(MAREY_DETAIL_FUNCTION_, __VA_ARGS__)(__COUNTER__, ::marey::Scope::Function, __VA_ARGS__)

// The forms of a macro: NAME for one argument (or an empty list), VALUES for more: keys and values, which are
// evaluated only if they are recorded. Up to 17 values are counted, so that push_values() can refuse more
// than 16. (C++20's __VA_OPT__ would do it without counting.)
#define MAREY_DETAIL_FORM(form, ...)                                                                         \
    MAREY_DETAIL_JOIN(                                                                                       \
        form, MAREY_DETAIL_PICK(__VA_ARGS__, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, \
                                VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES,      \
                                VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES,      \
                                VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, VALUES, NAME, NAME))
#define MAREY_DETAIL_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, \
                          a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34,  \
                          a35, form, ...)                                                                  \
    form

#define MAREY_DETAIL_STATIC_NAME(n, scope, kind, name) \
    MAREY_DETAIL_SITE(n, scope, kind, name);           \
    ::marey::detail::ScopedRange MAREY_DETAIL_JOIN(marey_range_, n)(MAREY_DETAIL_JOIN(marey_site_, n), scope)
#define MAREY_DETAIL_STATIC_VALUES(n, scope, kind, name, ...)                                \
    MAREY_DETAIL_SITE(n, scope, kind, name);                                                 \
    static MAREY_DETAIL_CONSTINIT ::marey::detail::KeyIds MAREY_DETAIL_JOIN(marey_keys_, n); \
    ::marey::detail::ScopedRange MAREY_DETAIL_JOIN(marey_range_, n)(                         \
        MAREY_DETAIL_JOIN(marey_site_, n), scope, MAREY_DETAIL_PUSH(n, scope, __VA_ARGS__))
#define MAREY_DETAIL_DYNAMIC_NAME(n, scope, name) \
    ::marey::detail::ScopedRange MAREY_DETAIL_JOIN(marey_range_, n)(name, scope)
#define MAREY_DETAIL_DYNAMIC_VALUES(n, scope, name, ...)                                     \
    static MAREY_DETAIL_CONSTINIT ::marey::detail::KeyIds MAREY_DETAIL_JOIN(marey_keys_, n); \
    ::marey::detail::ScopedRange MAREY_DETAIL_JOIN(marey_range_, n)(                         \
        name, scope, MAREY_DETAIL_PUSH(n, scope, __VA_ARGS__))
#define MAREY_DETAIL_FUNCTION_NAME(n, scope, ...)                                     \
    static_assert(sizeof(#__VA_ARGS__) == 1, "values come in pairs: \"key\", value"); \
    MAREY_DETAIL_STATIC_NAME(n, scope, Signature, __PRETTY_FUNCTION__)
#define MAREY_DETAIL_FUNCTION_VALUES(n, scope, ...) \
    MAREY_DETAIL_STATIC_VALUES(n, scope, Signature, __PRETTY_FUNCTION__, __VA_ARGS__)
#define MAREY_DETAIL_SITE(n, site_scope, kind, name)                                        \
    static MAREY_DETAIL_CONSTINIT ::marey::detail::Site MAREY_DETAIL_JOIN(marey_site_, n) { \
        name, __FILE__, __LINE__, site_scope, ::marey::detail::SiteName::kind               \
    }
#define MAREY_DETAIL_PUSH(n, scope, ...)                                               \
    ::marey::detail::values_wanted(scope)                                              \
        ? ::marey::detail::push_values(MAREY_DETAIL_JOIN(marey_keys_, n), __VA_ARGS__) \
        : 0u

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
