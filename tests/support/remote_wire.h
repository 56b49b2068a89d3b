// remote_wire.h: a request and an answer over TCP on this machine. For remote.cpp and remote_program.cpp.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace remote_wire {

/// A socket that listens on a free port of 127.0.0.1.
inline int listen_somewhere() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 8) != 0) abort();
    return fd;
}
inline int port_of(int fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) abort();
    return ntohs(address.sin_port);
}
inline int connect_to(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) abort();
    return fd;
}

inline void send_all(int fd, const void* data, std::size_t size) {
    for (const char* at = static_cast<const char*>(data); size > 0;) {
        const ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0) abort();
        at += sent;
        size -= static_cast<std::size_t>(sent);
    }
}
/// False when the other side has hung up.
inline bool receive_all(int fd, void* data, std::size_t size) {
    for (char* at = static_cast<char*>(data); size > 0;) {
        const ssize_t got = recv(fd, at, size, 0);
        if (got <= 0) return false;
        at += got;
        size -= static_cast<std::size_t>(got);
    }
    return true;
}
inline void send_text(int fd, const std::string& text) {
    const std::uint64_t size = text.size();
    send_all(fd, &size, sizeof size);
    send_all(fd, text.data(), size);
}
inline bool receive_text(int fd, std::string& text) {
    std::uint64_t size = 0;
    if (!receive_all(fd, &size, sizeof size)) return false;
    text.resize(size);
    return receive_all(fd, text.data(), size);
}

/// One call: the answer to `request`.
inline std::string call(int port, const std::string& request) {
    const int fd = connect_to(port);
    send_text(fd, request);
    std::string answer;
    if (!receive_text(fd, answer)) abort();
    close(fd);
    return answer;
}

}  // namespace remote_wire
