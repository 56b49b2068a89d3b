// clock_messages_fuzzer.cpp: any bytes as what the other end of a clock exchange sends.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include <marey/clock_exchange.h>
#include <marey/error.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    for (const bool asks : {false, true}) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 0;
        const ssize_t sent = send(ends[0], data, std::min<std::size_t>(size, 4096), MSG_NOSIGNAL);
        shutdown(ends[0], SHUT_WR);
        if (sent >= 0) {
            try {
                asks ? static_cast<void>(marey::ask_clock(ends[1]))
                     : static_cast<void>(marey::answer_clock(ends[1]));
            } catch (const marey::Error&) {
            }
        }
        close(ends[0]);
        close(ends[1]);
    }
    return 0;
}
