// server.h: a small HTTP server for the loopback interface.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include <marey/detail/thread_safety.h>

#include "serve/response.h"

namespace marey::serve {

/// Serves GET requests on 127.0.0.1 and, if possible, ::1. One thread per connection, at most
/// kMaxConnections.
class Server {
  public:
    using Handler = std::function<Response(const HttpRequest&)>;

    static constexpr std::size_t kMaxConnections = 32;

    /// Listens on `port`, or on a free one if it is 0. Throws marey::Error if the port is in use.
    explicit Server(std::uint16_t port);
    /// Closes all connections and waits for the handlers that are running.
    ~Server();

    /// Starts to response. `handler` is called on several threads at once; it may throw.
    void start(Handler handler);

    std::uint16_t port() const noexcept { return port_; }

  private:
    struct Connection {
        int socket = -1;
        bool is_done = false;
        std::thread thread;
    };

    void listen_on_loopback(std::uint16_t port);
    void accept_all();
    void accept_one(int listener);
    void serve(Connection& connection);
    void close_finished();

    Handler handler_;
    std::uint16_t port_ = 0;
    int listeners_[2] = {-1, -1};  ///< IPv4, IPv6
    int wake_[2] = {-1, -1};       ///< a pipe: written to stop the accepting thread
    std::atomic<bool> is_stopping_{false};
    Mutex mutex_;
    std::list<Connection> connections_ MAREY_GUARDED_BY(mutex_);  ///< `socket` and `is_done` too
    std::thread acceptor_;
};

}  // namespace marey::serve
