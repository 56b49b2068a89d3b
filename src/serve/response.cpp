// response.cpp: the bytes of a response, with the headers that keep the page and its data to itself.
#include "serve/response.h"

#include <utility>

#include "base/gzip.h"

namespace marey::serve {
namespace {

constexpr std::size_t kLeastToCompress = 1024;

/// The page loads only its own files, and no other page can show it or read its responses.
constexpr std::string_view kFixedHeaders =
    "Cache-Control: no-store\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "X-Frame-Options: DENY\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\n";

const char* reason(int status) noexcept {
    static constexpr std::pair<int, const char*> kReasons[] = {{200, "OK"},
                                                               {400, "Bad HttpRequest"},
                                                               {403, "Forbidden"},
                                                               {404, "Not Found"},
                                                               {405, "Method Not Allowed"},
                                                               {409, "Conflict"},
                                                               {431, "HttpRequest Header Fields Too Large"},
                                                               {503, "Service Unavailable"},
                                                               {505, "HTTP Version Not Supported"}};
    for (const auto& [known, text] : kReasons) {
        if (known == status) return text;
    }
    return "Internal Server Error";
}

bool is_compressible(const Response& response) noexcept {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // zlib counts in 32 bits
    return response.body.size() >= kLeastToCompress && response.body.size() <= kMost &&
           std::string_view(response.type) != "image/png";
}

}  // namespace

std::string response_bytes(const HttpRequest& request, Response response) {
    bool is_gzip = false;
    if (request.accepts_gzip && is_compressible(response)) {
        std::string smaller = gzipped(response.body, 1);
        is_gzip = !smaller.empty() && smaller.size() < response.body.size();
        if (is_gzip) response.body = std::move(smaller);
    }
    std::string bytes =
        "HTTP/1.1 " + std::to_string(response.status) + " " + reason(response.status) + "\r\n";
    bytes += "Content-Type: " + std::string(response.type) + "\r\n";
    bytes += "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
    if (is_gzip) bytes += "Content-Encoding: gzip\r\n";
    if (response.status == 405) bytes += "Allow: GET, HEAD\r\n";
    if (response.generation != 0)
        bytes += "Marey-Generation: " + std::to_string(response.generation) + "\r\n";
    bytes += request.keeps_alive ? "Connection: keep-alive\r\n" : "Connection: close\r\n";
    bytes += kFixedHeaders;
    bytes += "\r\n";
    if (!request.is_head) bytes += response.body;
    return bytes;
}

Response error_response(int status, std::string_view text) {
    Response response = json_response([&](JsonWriter& json) { json.member("error", text); });
    response.status = status;
    return response;
}

}  // namespace marey::serve
