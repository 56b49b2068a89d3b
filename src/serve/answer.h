// answer.h: the answer to a request.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace marey::serve {

static_assert(std::endian::native == std::endian::little, "binary answers are little-endian columns");

struct Answer {
    int status = 200;
    const char* type = "application/json";
    std::string body;
    std::uint64_t generation = 0;  ///< of the trace that was asked about; 0: none
};

/// Thrown for requests that cannot be answered; becomes {"error": text} with this status.
class RequestError : public std::runtime_error {
  public:
    RequestError(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
    int status() const noexcept { return status_; }

  private:
    int status_;
};

inline constexpr const char* kBinary = "application/octet-stream";

/// Appends a number, or a column of them, in little-endian order.
template <class T>
void append_column(std::string& out, std::span<const T> column) {
    static_assert(std::is_arithmetic_v<T>);
    const std::size_t at = out.size();
    out.resize(at + column.size_bytes());
    if (!column.empty()) std::memcpy(out.data() + at, column.data(), column.size_bytes());
}
template <class T>
void append_number(std::string& out, T number) {
    append_column(out, std::span<const T>(&number, 1));
}

}  // namespace marey::serve
