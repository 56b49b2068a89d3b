// http_request.h: one HTTP request: parsing, and the rules that decide who may ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace marey::serve {

/// Thrown for requests that cannot be answered; becomes {"error": text} with this status.
class RequestError : public std::runtime_error {
  public:
    RequestError(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
    int status() const noexcept { return status_; }

  private:
    int status_;
};

/// Longest head of a request, with its empty line.
inline constexpr std::size_t kMaxRequestBytes = std::size_t{16} << 10;

/// The parameters after the '?', decoded. The readers throw RequestError (400) with the name of the
/// parameter.
class Query {
  public:
    /// Empty if an escape is broken.
    static std::optional<Query> parse(std::string_view text);

    std::optional<std::string_view> find(std::string_view name) const noexcept;
    std::string text(std::string_view name) const { return std::string(find(name).value_or("")); }
    bool flag(std::string_view name) const { return find(name).value_or("0") == "1"; }
    /// An integer from `least` to `most`.
    std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most) const;
    std::int64_t integer(std::string_view name, std::int64_t least, std::int64_t most,
                         std::int64_t otherwise) const;
    /// Ids such as "1,2,9-40": at most `limit` of them, each below `end`.
    std::vector<std::uint32_t> ids(std::string_view name, std::size_t end, std::size_t limit) const;

  private:
    std::vector<std::pair<std::string, std::string>> parameters_;
};

struct HttpRequest {
    bool is_head = false;     ///< HEAD: the response has no body
    bool keeps_alive = true;  ///< the connection stays open
    bool accepts_gzip = false;
    std::string target;  ///< path and query as sent
    std::string path;    ///< decoded
    Query query;
    std::string host;
    std::string origin;
    std::string fetch_site;
    bool is_navigation = false;  ///< the user follows a link
    std::string token;
};

/// How many bytes the head of the first request takes, including its empty line; 0: it is incomplete.
std::size_t request_bytes(std::string_view received) noexcept;

/// Parses the head of a request. Throws RequestError. After an error the connection must be closed.
HttpRequest parse_request(std::string_view head);

/// Throws RequestError (403) unless the request comes from our own page or was typed by the user: Host is a
/// loopback name, Origin is that host, Sec-Fetch-Site is same-origin or none. `secret` protects paths under
/// /api/. The page itself, which contains nothing of the traces, can also be reached by a link, for example
/// from a notebook.
void check_sender(const HttpRequest& request, std::string_view secret);

/// Compares without revealing by its time where the texts differ.
bool equal_in_constant_time(std::string_view left, std::string_view right) noexcept;

}  // namespace marey::serve
