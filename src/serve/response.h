// response.h: the response to a request.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "json/json_writer.h"
#include "serve/http_request.h"

namespace marey::serve {

static_assert(std::endian::native == std::endian::little, "binary responses are little-endian columns");

struct Response {
    int status = 200;
    const char* type = "application/json";
    std::string body;
    std::uint64_t generation = 0;  ///< of the trace that was asked about; 0: none
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

/// A response that is one JSON object. write(json) writes its members.
template <class Write>
Response json_response(const Write& write) {
    Response response;
    JsonWriter json(response.body);
    json.begin_object();
    write(json);
    json.end_object();
    return response;
}

/// The response that reports an error.
Response error_response(int status, std::string_view text);

/// The bytes of a response: status line, headers and, unless the request was HEAD, the body, compressed if
/// that pays.
std::string response_bytes(const HttpRequest& request, Response response);

}  // namespace marey::serve
