// remote_program.cpp: a server that profiles each request and sends the events with its answer, and a client
// of it that can be killed.
//
//   remote_program serve LISTENING_FD NODE    answers "work", "burst N" and "forward PORT", until "stop"
//   remote_program client PORT CAPTURE        calls, adds the events, prints "ready" and waits to be killed
#include <signal.h>
#include <sys/prctl.h>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include <marey/all.h>

#include "support/remote_wire.h"

namespace {

/// A text that cannot be compressed.
std::string noise(unsigned seed) {
    std::mt19937 random(seed);
    std::string text(96, ' ');
    for (char& letter : text) letter = static_cast<char>('!' + random() % 90);
    return text;
}

void work(const std::string& key = "k1") {
    MAREY_RANGE_SCOPE(marey::Scope::Function, "compute", "rows", 42, "table", "users");
    marey::instant("cache miss", "key", key);
    { MAREY_RANGE("lookup"); }
    { MAREY_RANGE("format"); }
}

// How a server handles a request that is profiled: with a session of this request's thread around it.
std::string handle(const std::string& request) {
    marey::Session session({.name = "request", .threads = marey::Threads::Tasks});
    {
        MAREY_RANGE("handle");
        if (request.rfind("forward ", 0) == 0) {
            MAREY_RANGE("rpc_sync#work(middle -> far)");
            const marey::RemoteCall call;
            const std::string answer = remote_wire::call(std::atoi(request.c_str() + 8), "work");
            session.add_events(answer, {.prefix = "rpc_sync#work(middle -> far)#remote_op: ", .call = &call});
        } else if (request.rfind("burst ", 0) == 0) {
            const int count = std::atoi(request.c_str() + 6);
            for (int i = 0; i < count; ++i) work(noise(static_cast<unsigned>(i)));
        } else {
            work();
        }
    }
    return marey::pack_events(session.stop());
}

int serve(int listening, int node) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a client that dies leaves no server behind
    marey::thread_name("server");
    marey::set_node_id(node);
    while (true) {
        const int fd = accept(listening, nullptr, nullptr);
        std::string request;
        if (fd < 0 || !remote_wire::receive_text(fd, request)) return 1;
        if (request == "stop") return 0;
        remote_wire::send_text(fd, handle(request));
        close(fd);
    }
}

int client(int port, const char* capture) {
    marey::Session session({.output = capture});
    MAREY_RANGE("still open");
    MAREY_RANGE("rpc_sync#work(client -> server)");
    marey::RemoteCall call;
    const std::string answer = remote_wire::call(port, "work");
    call.end();
    session.add_events(answer, {.prefix = "server: ", .node = 9, .call = &call});
    std::puts("ready");
    std::fflush(stdout);
    pause();
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "serve") == 0) return serve(std::atoi(argv[2]), std::atoi(argv[3]));
    if (argc == 4 && std::strcmp(argv[1], "client") == 0) return client(std::atoi(argv[2]), argv[3]);
    return 2;
}
