// live_program.cpp: handles requests, one each millisecond, until standard input ends.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include <marey/marey.h>

namespace {

bool is_over() {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    return ::poll(&input, 1, 0) != 0;
}

void handle() {
    MAREY_RANGE("handle");
    {
        MAREY_RANGE("parse");
        std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    MAREY_RANGE("reply");
    std::this_thread::sleep_for(std::chrono::microseconds(600));
}

}  // namespace

int main() {
    marey::thread_name("requests");
    std::puts("ready");
    std::fflush(stdout);
    while (!is_over()) handle();
}
