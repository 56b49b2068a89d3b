// clock_exchange.h: compares the clock of this host with that of another one, over a connected stream.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/cxx20.h>
#include <marey/detail/export.h>

namespace marey {

/// One request and its answer. Times are nanoseconds of CLOCK_MONOTONIC_RAW on the host that asked (sent,
/// received) and on the one that answered.
struct ClockExchange {
    std::int64_t sent_ns = 0;
    std::int64_t arrived_ns = 0;
    std::int64_t answered_ns = 0;
    std::int64_t received_ns = 0;
};

/// The exchanges of a burst, and the name of the host that answered.
struct ClockBurst {
    std::string peer;
    std::vector<ClockExchange> exchanges;
};

/// Options of a burst.
struct ClockExchangeOptions {
    /// The first exchanges of a burst wait for a sleeping peer; the best of 8 errs by less than 1 us.
    int exchanges = 8;
    int timeout_ms = 2000;                       ///< for each message
    std::int64_t (*clock)() noexcept = nullptr;  ///< for tests; null: CLOCK_MONOTONIC_RAW
};

/// The time now, on the clock of all traces of this host. Any thread.
MAREY_API std::int64_t trace_clock_ns() noexcept;

/// Sends a burst of requests over a connected stream, whose other end must call answer_clock(), and puts the
/// exchanges into the captures that are being written. Blocks for some round trips. Throws marey::Error if
/// the stream ends, times out, or sends something else.
MAREY_API ClockBurst ask_clock(int stream, const ClockExchangeOptions& options = {});
/// Answers one burst. Returns false if the stream ends, or nothing arrives in time, before the first request.
/// Throws marey::Error like ask_clock().
MAREY_API bool answer_clock(int stream, const ClockExchangeOptions& options = {});

/// Puts an exchange that was made in another way, such as by MPI messages, into the captures that are being
/// written. Does nothing if there are none. Any thread.
MAREY_API void record_clock_exchange(std::string_view peer, const ClockExchange& exchange) noexcept;
/// The name of this host, as in captures.
MAREY_API std::string host_name();

}  // namespace marey
