// span.h: std::span for headers that also compile as C++17.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <marey/detail/export.h>

namespace marey {

/// Consecutive objects in the caller's memory: a pointer and a number, with the members of std::span that
/// need no C++20. A Span converts to std::span, and a std::span or any other container with data() and size()
/// converts to a Span. The layout is the same in every language standard, so that files compiled as C++17 and
/// as C++20 can be linked into one program.
template <class T>
class Span {
  public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    constexpr Span() noexcept = default;
    constexpr Span(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <std::size_t N>
    constexpr Span(T (&array)[N]) noexcept : data_(array), size_(N) {}
    template <class Container,
              class = std::enable_if_t<std::is_convertible_v<
                  std::remove_pointer_t<decltype(std::declval<Container&>().data())> (*)[], T (*)[]>>,
              class = decltype(std::declval<Container&>().size())>
    constexpr Span(Container&& container) noexcept : data_(container.data()), size_(container.size()) {}

    constexpr T* data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T* begin() const noexcept { return data_; }
    constexpr T* end() const noexcept { return data_ + size_; }
    constexpr T& operator[](std::size_t i) const noexcept { return data_[i]; }
    constexpr T& front() const noexcept { return data_[0]; }
    constexpr T& back() const noexcept { return data_[size_ - 1]; }
    /// The first `count` objects; at most size().
    constexpr Span first(std::size_t count) const noexcept { return {data_, count}; }

  private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace marey
