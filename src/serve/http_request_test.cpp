// http_request_test.cpp: what a request may look like, and who may ask.
#include "serve/http_request.h"

#include <gtest/gtest.h>

namespace marey::serve {
namespace {

constexpr std::string_view kSecret = "0123456789abcdef0123456789abcdef";

/// A request as our page sends it, with some headers replaced or added.
std::string request_text(const std::string& target, const std::string& headers) {
    return "GET " + target + " HTTP/1.1\r\n" + headers + "\r\n";
}
std::string own_headers() {
    return "Host: 127.0.0.1:8000\r\nMarey-Token: " + std::string(kSecret) + "\r\n";
}

int status_of(const std::string& text) {
    try {
        check_sender(parse_request(text), kSecret);
    } catch (const RequestError& error) {
        return error.status();
    }
    return 200;
}

TEST(HttpRequest, HasADecodedPathAndParameters) {
    const HttpRequest request =
        parse_request(request_text("/a%20b?text=x%2By+z&flag=1&empty", own_headers()));
    EXPECT_EQ(request.path, "/a b");
    EXPECT_EQ(request.query.text("text"), "x+y z");
    EXPECT_TRUE(request.query.flag("flag"));
    EXPECT_EQ(request.query.find("empty"), "");
    EXPECT_FALSE(request.query.find("other").has_value());
}

TEST(HttpRequest, ReadsNumbersAndIdsWithinTheirLimits) {
    const Query query =
        *Query::parse("a=5&b=-3&ids=1,2,9-11&huge=99999999999999999999&ids2=5-2&ids3=0-99999999");
    EXPECT_EQ(query.integer("a", 0, 10), 5);
    EXPECT_EQ(query.integer("b", -5, 10), -3);
    EXPECT_EQ(query.integer("c", 0, 10, 7), 7);
    EXPECT_EQ(query.ids("ids", 100, 100), (std::vector<std::uint32_t>{1, 2, 9, 10, 11}));
    EXPECT_THROW(query.integer("a", 6, 10), RequestError);
    EXPECT_THROW(query.integer("c", 0, 10), RequestError);
    EXPECT_THROW(query.integer("huge", 0, 10), RequestError);
    EXPECT_THROW(query.ids("ids", 11, 100), RequestError);
    EXPECT_THROW(query.ids("ids", 100, 4), RequestError);
    EXPECT_THROW(query.ids("ids2", 100, 100), RequestError);
    EXPECT_THROW(query.ids("ids3", 1u << 31, 100), RequestError);
}

TEST(HttpRequest, IsRefusedIfItIsNotWhatABrowserSends) {
    EXPECT_EQ(status_of(request_text("/", own_headers())), 200);
    EXPECT_EQ(status_of("POST / HTTP/1.1\r\n\r\n"), 405);
    EXPECT_EQ(status_of("GET / HTTP/2.0\r\n\r\n"), 505);
    EXPECT_EQ(status_of("GET /\r\n\r\n"), 400);
    EXPECT_EQ(status_of("GET http://127.0.0.1/ HTTP/1.1\r\n\r\n"), 400);
    EXPECT_EQ(status_of("GET /%4 HTTP/1.1\r\n\r\n"), 400);
    EXPECT_EQ(status_of("GET /a b HTTP/1.1\r\n\r\n"), 400);
    EXPECT_EQ(status_of(request_text("/", own_headers() + "Content-Length: 5\r\n")), 400);
    EXPECT_EQ(status_of(request_text("/", own_headers() + "Transfer-Encoding: chunked\r\n")), 400);
    EXPECT_EQ(status_of(request_text("/", own_headers() + "Upgrade: websocket\r\n")), 400);
    EXPECT_EQ(status_of(request_text("/", own_headers() + " folded\r\n")), 400);
    EXPECT_EQ(status_of(request_text("/", own_headers() + "no colon\r\n")), 400);
    EXPECT_EQ(status_of(request_text("/", own_headers() + "A: x\ny\r\n")), 400);
    EXPECT_EQ(status_of(request_text("/", own_headers() + "Host: localhost\r\n")), 400);
}

TEST(HttpRequest, NeedsALoopbackNameAsHost) {
    for (const char* const host :
         {"127.0.0.1", "127.0.0.1:1", "localhost:65535", "LOCALHOST", "[::1]", "[::1]:80"})
        EXPECT_EQ(status_of(request_text("/", "Host: " + std::string(host) + "\r\n")), 200) << host;
    for (const char* const host :
         {"", "example.com", "127.0.0.1.example.com", "127.0.0.1:x", "127.0.0.1:", "localhost.", "::1",
          "[::1", "127.0.0.2", "127.0.0.1:123456", "a@127.0.0.1"})
        EXPECT_EQ(status_of(request_text("/", "Host: " + std::string(host) + "\r\n")), 403) << host;
    EXPECT_EQ(status_of(request_text("/", "")), 403);
}

TEST(HttpRequest, MayComeFromOurOwnPageOnly) {
    const std::string own = own_headers();
    EXPECT_EQ(status_of(request_text("/api/outline", own + "Origin: http://127.0.0.1:8000\r\n")), 200);
    EXPECT_EQ(status_of(request_text("/api/outline", own + "Origin: http://127.0.0.1:8001\r\n")), 403);
    EXPECT_EQ(status_of(request_text("/api/outline", own + "Origin: https://127.0.0.1:8000\r\n")), 403);
    EXPECT_EQ(status_of(request_text("/api/outline", own + "Origin: null\r\n")), 403);
    for (const char* const site : {"same-origin", "none"})
        EXPECT_EQ(status_of(request_text("/api/outline", own + "Sec-Fetch-Site: " + site + "\r\n")), 200)
            << site;
    for (const char* const site : {"cross-site", "same-site", "x"}) {
        const std::string header = "Sec-Fetch-Site: " + std::string(site) + "\r\n";
        EXPECT_EQ(status_of(request_text("/api/outline", own + header)), 403) << site;
        EXPECT_EQ(status_of(request_text("/app.js", own + header)), 403) << site;
        EXPECT_EQ(status_of(request_text("/", own + header + "Sec-Fetch-Mode: navigate\r\n")), 200) << site;
        EXPECT_EQ(status_of(request_text("/api/outline", own + header + "Sec-Fetch-Mode: navigate\r\n")), 403)
            << site;
    }
}

TEST(HttpRequest, NeedsTheTokenForDataButNotForThePage) {
    const std::string host = "Host: localhost\r\n";
    EXPECT_EQ(status_of(request_text("/app.js", host)), 200);
    EXPECT_EQ(status_of(request_text("/api/outline", host)), 403);
    EXPECT_EQ(status_of(request_text("/api/outline?token=" + std::string(kSecret), host)), 403);
    EXPECT_EQ(status_of(request_text("/api/outline", host + "Marey-Token: 0\r\n")), 403);
    std::string wrong(kSecret);
    wrong.back() = 'e';
    EXPECT_EQ(status_of(request_text("/api/outline", host + "Marey-Token: " + wrong + "\r\n")), 403);
    EXPECT_EQ(status_of(request_text("/%61pi/outline", host)), 403);
    EXPECT_EQ(status_of(request_text("/api/outline", own_headers())), 200);
    EXPECT_TRUE(equal_in_constant_time("", ""));
    EXPECT_FALSE(equal_in_constant_time("a", "ab"));
}

TEST(HttpRequest, AcceptsGzipUnlessItsWeightIsZero) {
    const auto accepts = [](const char* list) {
        return parse_request(request_text("/", "Accept-Encoding: " + std::string(list) + "\r\n"))
            .accepts_gzip;
    };
    EXPECT_TRUE(accepts("gzip, deflate, br"));
    EXPECT_TRUE(accepts("br;q=1.0, GZIP;q=0.5"));
    EXPECT_FALSE(accepts("gzip;q=0"));
    EXPECT_FALSE(accepts("gzipx, identity"));
}

TEST(HttpRequest, EndsTheConnectionIfAskedTo) {
    EXPECT_TRUE(parse_request("GET / HTTP/1.1\r\n\r\n").keeps_alive);
    EXPECT_FALSE(parse_request("GET / HTTP/1.0\r\n\r\n").keeps_alive);
    EXPECT_FALSE(parse_request("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").keeps_alive);
    EXPECT_TRUE(parse_request("HEAD / HTTP/1.1\r\n\r\n").is_head);
}

TEST(HttpRequest, IsCompleteAtItsEmptyLine) {
    EXPECT_EQ(request_bytes("GET / HTTP/1.1\r\n"), 0u);
    EXPECT_EQ(request_bytes("GET / HTTP/1.1\r\n\r\nGET"), 18u);
}

}  // namespace
}  // namespace marey::serve
