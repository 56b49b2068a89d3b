// clock_exchange.cpp: compares the clocks of two hosts by requests and answers over a stream.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include <marey/clock_exchange.h>
#include <marey/error.h>

#include "record/journal_writer.h"
#include "record/recorder_parts.h"

namespace marey {
namespace {

inline constexpr std::uint32_t kClockMagic = 0x3158434d;  // "MCX1"

struct ClockRequest {
    std::uint32_t magic = kClockMagic;
    std::uint32_t left = 0;  ///< requests that follow this one
};
struct ClockAnswer {
    std::uint32_t magic = kClockMagic;
    std::uint32_t left = 0;  ///< as in the request
    std::int64_t arrived_ns = 0;
    std::int64_t answered_ns = 0;
    char host[104] = {};  ///< padded with NUL
};
static_assert(sizeof(ClockRequest) == 8 && sizeof(ClockAnswer) == 128);

/// The name in an answer.
inline std::string_view host_in(const ClockAnswer& answer) {
    return {answer.host, strnlen(answer.host, sizeof answer.host)};
}

/// A message from the bytes of a stream; empty if it is something else.
template <class Message>
std::optional<Message> read_message(std::span<const std::byte> bytes) {
    Message message;
    if (bytes.size() != sizeof message) return {};
    std::memcpy(&message, bytes.data(), sizeof message);
    if (message.magic != kClockMagic) return {};
    return message;
}

/// A stream that answers in time or fails.
class TimedStream {
  public:
    TimedStream(int stream, int timeout_ms) : stream_(stream), timeout_ms_(timeout_ms) {
        const int on = 1;  // fails on streams that are not TCP, which do not wait for more data
        setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }

    void send(const auto& message) {
        std::array<std::byte, sizeof message> bytes;
        std::memcpy(bytes.data(), &message, sizeof message);
        for (std::size_t done = 0; done < bytes.size();) {
            wait(POLLOUT);
            const ssize_t count =
                ::send(stream_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (count < 0) fail(std::strerror(errno));
            done += static_cast<std::size_t>(count);
        }
    }

    /// Empty: the stream ended, or nothing arrived in time, before its first byte and `may_end`.
    template <class Message>
    std::optional<Message> receive(std::int64_t (*clock)() noexcept, std::int64_t& arrived_ns, bool may_end) {
        std::array<std::byte, sizeof(Message)> bytes;
        for (std::size_t done = 0; done < bytes.size();) {
            if (!is_ready(POLLIN)) {
                if (done == 0 && may_end) return {};
                fail("timeout");
            }
            const ssize_t count = recv(stream_, bytes.data() + done, bytes.size() - done, MSG_DONTWAIT);
            if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (count < 0) fail(std::strerror(errno));
            if (count == 0) {
                if (done == 0 && may_end) return {};
                fail("the other side closed the stream");
            }
            done += static_cast<std::size_t>(count);
        }
        arrived_ns = clock();
        std::optional<Message> message = read_message<Message>(bytes);
        if (!message) fail("unexpected data");
        return message;
    }

    [[noreturn]] static void fail(const std::string& cause) {
        throw Error("cannot compare clocks with another host: " + cause);
    }

  private:
    bool is_ready(short events) {
        pollfd waited{stream_, events, 0};
        int ready = 0;
        do {
            ready = poll(&waited, 1, timeout_ms_);
        } while (ready < 0 && errno == EINTR);
        if (ready < 0) fail(std::strerror(errno));
        return ready > 0;
    }
    void wait(short events) {
        if (!is_ready(events)) fail("timeout");
    }

    int stream_;
    int timeout_ms_;
};

}  // namespace

std::int64_t trace_clock_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string host_name() {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    return name;
}

void record_clock_exchange(std::string_view peer, const ClockExchange& exchange) noexcept {
    detail::ClockExchangeRecord record{};
    record.sent_ns = exchange.sent_ns;
    record.arrived_ns = exchange.arrived_ns;
    record.answered_ns = exchange.answered_ns;
    record.received_ns = exchange.received_ns;
    recorder_journal().add_clock_exchange(peer.substr(0, sizeof(ClockAnswer::host)), record);
}

ClockBurst ask_clock(int stream, const ClockExchangeOptions& options) {
    const auto clock = options.clock != nullptr ? options.clock : trace_clock_ns;
    TimedStream connection(stream, options.timeout_ms);
    ClockBurst burst;
    const int count = std::clamp(options.exchanges, 1, 1000);
    for (int i = 0; i < count; ++i) {
        ClockRequest request;
        request.left = static_cast<std::uint32_t>(count - 1 - i);
        ClockExchange exchange;
        exchange.sent_ns = clock();
        connection.send(request);
        const std::optional<ClockAnswer> answer =
            connection.receive<ClockAnswer>(clock, exchange.received_ns, false);
        if (answer->left != request.left) TimedStream::fail("unexpected data");
        exchange.arrived_ns = answer->arrived_ns;
        exchange.answered_ns = answer->answered_ns;
        burst.peer = host_in(*answer);
        burst.exchanges.push_back(exchange);
    }
    for (const ClockExchange& exchange : burst.exchanges) record_clock_exchange(burst.peer, exchange);
    return burst;
}

bool answer_clock(int stream, const ClockExchangeOptions& options) {
    const auto clock = options.clock != nullptr ? options.clock : trace_clock_ns;
    TimedStream connection(stream, options.timeout_ms);
    const std::string own = host_name();
    std::uint32_t left = std::numeric_limits<std::uint32_t>::max();
    for (bool is_first = true; left != 0; is_first = false) {
        ClockAnswer answer;
        const std::optional<ClockRequest> request =
            connection.receive<ClockRequest>(clock, answer.arrived_ns, is_first);
        if (!request) return false;
        if (request->left >= (is_first ? 1000 : left)) TimedStream::fail("unexpected data");
        left = answer.left = request->left;
        std::copy_n(own.begin(), std::min(own.size(), sizeof answer.host), answer.host);
        answer.answered_ns = clock();
        connection.send(answer);
    }
    return true;
}

}  // namespace marey
