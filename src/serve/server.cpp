// server.cpp: sockets and threads of the loopback server.
#include "serve/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include <marey/error.h>

namespace marey::serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kIdleLimit = std::chrono::minutes(2);      ///< for an open connection without a request
constexpr auto kRequestLimit = std::chrono::seconds(10);  ///< from the first byte of a request to its last
constexpr int kSendSeconds = 30;                          ///< for a client that does not read

void close_socket(int& socket) noexcept {
    if (socket >= 0) ::close(socket);
    socket = -1;
}

[[noreturn]] void fail(std::uint16_t port, int error) {
    const std::string why =
        error == EADDRINUSE ? "it is in use" : std::error_code(error, std::generic_category()).message();
    throw Error("cannot listen on port " + std::to_string(port) + ": " + why);
}

int open_listener(const sockaddr* address, socklen_t bytes, int family) noexcept {
    int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) return -1;
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (family == AF_INET6) ::setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
    if (::bind(socket, address, bytes) != 0 || ::listen(socket, SOMAXCONN) != 0) {
        const int error = errno;
        close_socket(socket);
        errno = error;
    }
    return socket;
}

int listen_ipv4(std::uint16_t port) noexcept {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return open_listener(reinterpret_cast<const sockaddr*>(&address), sizeof address, AF_INET);
}
int listen_ipv6(std::uint16_t port) noexcept {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    address.sin6_addr = in6addr_loopback;
    return open_listener(reinterpret_cast<const sockaddr*>(&address), sizeof address, AF_INET6);
}

std::uint16_t port_of(int socket) noexcept {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) return 0;
    return ntohs(address.sin_port);
}

/// Waits until the socket can be read. False at the deadline or on an error.
bool wait_readable(int socket, Clock::time_point deadline) noexcept {
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) return false;
        pollfd wait{socket, POLLIN, 0};
        const int ready = ::poll(&wait, 1, static_cast<int>(left.count()));
        if (ready > 0) return true;
        if (ready == 0 || errno != EINTR) return false;
    }
}

bool send_all(int socket, std::string_view bytes) noexcept {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

/// Whether the client has given up waiting: pages drop requests that they no longer need.
bool is_abandoned(int socket) noexcept {
    char byte = 0;
    const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/// Closes in a way that lets the client read the response: with unread input a close would discard it.
void close_politely(int socket) noexcept {
    ::shutdown(socket, SHUT_WR);
    std::array<char, 4096> rest{};
    const auto deadline = Clock::now() + std::chrono::seconds(1);
    for (std::size_t total = 0; total < kMaxRequestBytes * 4 && wait_readable(socket, deadline);) {
        const ssize_t got = ::recv(socket, rest.data(), rest.size(), 0);
        if (got <= 0) return;
        total += static_cast<std::size_t>(got);
    }
}

/// Reads the requests of one connection, also several in one packet.
class RequestReader {
  public:
    explicit RequestReader(int socket) : socket_(socket) {}

    /// The head of the next request; empty when the client is done or too slow. Throws RequestError for one
    /// that is too long.
    std::string next() {
        auto deadline = Clock::now() + kIdleLimit;
        if (!received_.empty()) deadline = Clock::now() + kRequestLimit;
        for (;;) {
            if (const std::size_t bytes = request_bytes(received_); bytes > 0 && bytes <= kMaxRequestBytes) {
                std::string head = received_.substr(0, bytes);
                received_.erase(0, bytes);
                return head;
            }
            if (received_.size() >= kMaxRequestBytes) throw RequestError(431, "the request is too long");
            if (!wait_readable(socket_, deadline)) return {};
            std::array<char, 4096> part{};
            const ssize_t got = ::recv(socket_, part.data(), part.size(), 0);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return {};
            if (received_.empty()) deadline = Clock::now() + kRequestLimit;
            received_.append(part.data(), static_cast<std::size_t>(got));
        }
    }

  private:
    int socket_;
    std::string received_;
};

/// Answers one request. Returns whether the connection stays open.
bool respond_to(int socket, const std::string& head, const Server::Handler& handler) {
    HttpRequest request;
    Response response;
    try {
        request.keeps_alive = false;  // for requests that cannot be parsed
        request = parse_request(head);
        if (is_abandoned(socket)) return false;
        response = handler(request);
    } catch (const RequestError& error) {
        response = error_response(error.status(), error.what());
    } catch (const std::exception& error) {
        response = error_response(500, error.what());
    }
    const bool keeps_alive = request.keeps_alive;
    return send_all(socket, response_bytes(request, std::move(response))) && keeps_alive;
}

}  // namespace

Server::Server(std::uint16_t port) {
    listen_on_loopback(port);
    if (::pipe2(wake_, O_CLOEXEC) != 0) {
        const int error = errno;
        for (int& listener : listeners_) close_socket(listener);
        fail(port, error);
    }
}

void Server::start(Handler handler) {
    handler_ = std::move(handler);
    acceptor_ = std::thread([this] { accept_all(); });
}

Server::~Server() {
    is_stopping_ = true;
    close_socket(wake_[1]);  // the other end becomes readable
    if (acceptor_.joinable()) acceptor_.join();
    {
        const ScopedLock lock(mutex_);
        for (Connection& connection : connections_) {
            if (!connection.is_done) ::shutdown(connection.socket, SHUT_RDWR);
        }
    }
    for (Connection& connection : connections_) connection.thread.join();
    for (int& listener : listeners_) close_socket(listener);
    close_socket(wake_[0]);
}

void Server::listen_on_loopback(std::uint16_t port) {
    listeners_[0] = listen_ipv4(port);
    if (listeners_[0] < 0) fail(port, errno);
    port_ = port_of(listeners_[0]);
    listeners_[1] = listen_ipv6(port_);  // -1: the machine has no IPv6, or somebody else has the port
}

void Server::accept_all() {
    while (!is_stopping_) {
        std::array<pollfd, 3> wait{
            {{wake_[0], POLLIN, 0}, {listeners_[0], POLLIN, 0}, {listeners_[1], POLLIN, 0}}};
        if (::poll(wait.data(), wait.size(), -1) < 0) continue;
        if (wait[0].revents != 0) return;
        close_finished();
        for (const pollfd& listener : {wait[1], wait[2]}) {
            if (listener.fd >= 0 && (listener.revents & POLLIN) != 0) accept_one(listener.fd);
        }
    }
}

void Server::accept_one(int listener) {
    int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const timeval limit{kSendSeconds, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int yes = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const ScopedLock lock(mutex_);
    if (connections_.size() >= kMaxConnections) {
        HttpRequest refused;
        refused.keeps_alive = false;
        send_all(socket, response_bytes(refused, error_response(503, "too many connections")));
        close_socket(socket);
        return;
    }
    Connection& connection = connections_.emplace_back();
    connection.socket = socket;
    try {
        connection.thread = std::thread([this, &connection] { serve(connection); });
    } catch (const std::system_error&) {
        close_socket(socket);
        connections_.pop_back();
    }
}

void Server::serve(Connection& connection) {
    const int socket = connection.socket;
    RequestReader reader(socket);
    try {
        while (!is_stopping_) {
            const std::string head = reader.next();
            if (head.empty() || !respond_to(socket, head, handler_)) break;
        }
    } catch (const RequestError& error) {
        HttpRequest request;
        request.keeps_alive = false;
        send_all(socket, response_bytes(request, error_response(error.status(), error.what())));
    }
    if (!is_stopping_) close_politely(socket);
    const ScopedLock lock(mutex_);
    close_socket(connection.socket);
    connection.is_done = true;
}

void Server::close_finished() {
    std::list<Connection> finished;
    {
        const ScopedLock lock(mutex_);
        for (auto at = connections_.begin(); at != connections_.end();) {
            const auto next = std::next(at);
            if (at->is_done) finished.splice(finished.end(), connections_, at);
            at = next;
        }
    }
    for (Connection& connection : finished) connection.thread.join();
}

}  // namespace marey::serve
