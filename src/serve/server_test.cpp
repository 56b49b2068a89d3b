// server_test.cpp: the server over real sockets: whole, slow, cut-off, oversized and pipelined requests.
#include "serve/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include <marey/error.h>

#if MAREY_HAVE_ZLIB
#include <zlib.h>
#endif

namespace marey::serve {
namespace {

/// A client's end of a connection.
class Client {
  public:
    explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    }
    ~Client() { ::close(socket_); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void send(std::string_view bytes) const {
        while (!bytes.empty()) {
            const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (sent <= 0) return;  // refused: the answer says why
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    void end_sending() const { ::shutdown(socket_, SHUT_WR); }
    /// Everything until the server closes the connection.
    std::string receive_all() const {
        std::string text;
        std::array<char, 4096> part{};
        for (ssize_t got = 0; (got = ::recv(socket_, part.data(), part.size(), 0)) > 0;)
            text.append(part.data(), static_cast<std::size_t>(got));
        return text;
    }

  private:
    int socket_;
};

/// A server that answers with the path.
std::unique_ptr<Server> echo_server() {
    auto server = std::make_unique<Server>(0);
    server->start([](const HttpRequest& request) -> Response {
        if (request.path == "/throws") throw Error("broken");
        if (request.path == "/long") return {200, "text/plain", std::string(100'000, 'x')};
        return {200, "text/plain", "<" + request.path + ">"};
    });
    return server;
}

std::string ask(const Server& server, const std::string& request) {
    const Client client(server.port());
    client.send(request);
    return client.receive_all();
}

std::string body_of(const std::string& response) {
    return response.substr(response.find("\r\n\r\n") + 4);
}

TEST(Server, AnswersWithTheHeadersThatProtectThePage) {
    const auto server = echo_server();
    const std::string response = ask(*server, "GET /x HTTP/1.1\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(response.starts_with("HTTP/1.1 200 OK\r\n")) << response;
    EXPECT_EQ(body_of(response), "</x>");
    for (const char* const header :
         {"Cache-Control: no-store\r\n", "X-Content-Type-Options: nosniff\r\n",
          "Referrer-Policy: no-referrer\r\n",
          "Content-Security-Policy: default-src 'none'; script-src 'self'", "Content-Length: 4\r\n"})
        EXPECT_NE(response.find(header), response.npos) << header;
    EXPECT_EQ(response.find("Access-Control"), response.npos);
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
    const auto server = echo_server();
    const std::string response =
        ask(*server,
            "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nHEAD /3 HTTP/1.1\r\nConnection: close\r\n\r\n");
    const std::size_t first = response.find("</1>");
    const std::size_t second = response.find("</2>");
    EXPECT_LT(first, second);
    EXPECT_NE(second, response.npos);
    EXPECT_TRUE(response.ends_with("\r\n\r\n")) << "HEAD has no body";
}

TEST(Server, WaitsForTheRestOfASlowRequest) {
    const auto server = echo_server();
    const Client client(server->port());
    for (const char c : std::string_view("GET /slow HTTP/1.0\r\n\r\n")) client.send(std::string_view(&c, 1));
    EXPECT_EQ(body_of(client.receive_all()), "</slow>");
}

TEST(Server, DropsARequestThatIsCutOff) {
    const auto server = echo_server();
    const Client client(server->port());
    client.send("GET /x HTTP/1.1\r\nHost: a");
    client.end_sending();
    EXPECT_EQ(client.receive_all(), "");
}

TEST(Server, RefusesAnOversizedRequest) {
    const auto server = echo_server();
    const std::string response = ask(*server, "GET /" + std::string(kMaxRequestBytes * 2, 'x'));
    EXPECT_TRUE(response.starts_with("HTTP/1.1 431 ")) << response;
    EXPECT_NE(response.find("Connection: close\r\n"), response.npos);
}

TEST(Server, ClosesTheConnectionAfterABrokenRequest) {
    const auto server = echo_server();
    const std::string response = ask(*server, "BREW / HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(response.starts_with("HTTP/1.1 405 ")) << response;
    EXPECT_NE(response.find("Allow: GET, HEAD\r\n"), response.npos);
    EXPECT_EQ(response.find("</next>"), response.npos);
}

TEST(Server, ReportsAFailureAsJson) {
    const auto server = echo_server();
    const std::string response = ask(*server, "GET /throws HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(response.starts_with("HTTP/1.1 500 ")) << response;
    EXPECT_EQ(body_of(response), R"({"error":"broken"})");
}

#if MAREY_HAVE_ZLIB
TEST(Server, CompressesForClientsThatAcceptIt) {
    const auto server = echo_server();
    EXPECT_EQ(body_of(ask(*server, "GET /long HTTP/1.0\r\n\r\n")).size(), 100'000u);
    const std::string response = ask(*server, "GET /long HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
    EXPECT_NE(response.find("Content-Encoding: gzip\r\n"), response.npos);
    std::string packed = body_of(response);
    EXPECT_LT(packed.size(), 1'000u);
    std::string text(100'001, '\0');
    z_stream stream{};
    ASSERT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
    stream.next_in = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(text.data());
    stream.avail_out = static_cast<uInt>(text.size());
    EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
    EXPECT_EQ(text.substr(0, stream.total_out), std::string(100'000, 'x'));
    inflateEnd(&stream);
}
#endif

TEST(Server, ServesTwoPagesAtOnce) {
    const auto server = echo_server();
    const Client first(server->port());
    const Client second(server->port());
    second.send("GET /2 HTTP/1.0\r\n\r\n");
    EXPECT_EQ(body_of(second.receive_all()), "</2>");
    first.send("GET /1 HTTP/1.0\r\n\r\n");
    EXPECT_EQ(body_of(first.receive_all()), "</1>");
}

TEST(Server, RefusesMoreConnectionsThanItHasThreadsFor) {
    const auto server = echo_server();
    std::vector<std::unique_ptr<Client>> idle;
    for (std::size_t i = 0; i < Server::kMaxConnections; ++i)
        idle.push_back(std::make_unique<Client>(server->port()));
    EXPECT_TRUE(Client(server->port()).receive_all().starts_with("HTTP/1.1 503 "));
}

TEST(Server, SaysThatItsPortIsInUse) {
    const Server first(0);
    try {
        const Server second(first.port());
        FAIL() << "two servers on one port";
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()),
                  "cannot listen on port " + std::to_string(first.port()) + ": it is in use");
    }
}

TEST(Server, StopsWhileConnectionsAreOpen) {
    auto server = echo_server();
    const Client client(server->port());
    client.send("GET /half");
    server.reset();
    EXPECT_EQ(client.receive_all(), "");
}

}  // namespace
}  // namespace marey::serve
