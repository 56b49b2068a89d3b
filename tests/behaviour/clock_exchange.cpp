// clock_exchange.cpp: two ends of a stream compare their clocks; the exchanges are in the capture.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <string>
#include <thread>

#include <marey/clock_exchange.h>
#include <marey/error.h>
#include <marey/host_clocks.h>
#include <marey/session.h>

namespace {

using marey::ClockExchangeOptions;

/// The clock of another host: 3 hours ahead and 20 ppm fast.
std::int64_t other_clock() noexcept {
    const std::int64_t now = marey::trace_clock_ns();
    return now + 10'800'000'000'000 + now / 50'000;
}

struct Streams {
    Streams() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
    ~Streams() {
        for (const int end : ends) {
            if (end >= 0) close(end);
        }
    }
    void close_end(int which) {
        close(ends[which]);
        ends[which] = -1;
    }
    int ends[2] = {-1, -1};
};

/// A connection over the loopback interface.
struct Connection : Streams {
    Connection() {
        const int server = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        auto* const generic = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(bind(server, generic, length), 0);
        EXPECT_EQ(listen(server, 1), 0);
        EXPECT_EQ(getsockname(server, generic, &length), 0);
        for (const int end : {0, 1}) close_end(end);
        ends[0] = socket(AF_INET, SOCK_STREAM, 0);
        EXPECT_EQ(connect(ends[0], generic, length), 0);
        ends[1] = accept(server, nullptr, nullptr);
        close(server);
    }
};

TEST(ClockExchange, BoundsTheClockOfAnInjectedHost) {
    Connection connection;
    std::vector<marey::ClockEvidence> evidence;
    for (int burst = 0; burst < 3; ++burst) {
        auto answered = std::async(std::launch::async, [&] {
            ClockExchangeOptions options;
            options.clock = other_clock;
            return marey::answer_clock(connection.ends[1], options);
        });
        const marey::ClockBurst result = marey::ask_clock(connection.ends[0]);
        EXPECT_TRUE(answered.get());
        EXPECT_EQ(result.peer, marey::host_name());
        ASSERT_EQ(result.exchanges.size(), 8u);
        for (const marey::ClockExchange& each : result.exchanges) {
            EXPECT_LE(each.sent_ns, each.received_ns);
            EXPECT_LE(each.arrived_ns, each.answered_ns);
            marey::add_clock_exchange(evidence, 0, 1, each.sent_ns, each.arrived_ns, each.answered_ns,
                                      each.received_ns);
        }
    }
    const auto fit = marey::fit_host_clocks(std::vector<marey::WallClock>(2), evidence);
    const marey::HostClock& clock = fit.hosts[1 - fit.reference];
    EXPECT_EQ(clock.method, "exchange");
    const std::int64_t now = marey::trace_clock_ns();
    const std::int64_t there = now + 10'800'000'000'000 + now / 50'000;
    const std::int64_t from = fit.reference == 0 ? there : now, truth = fit.reference == 0 ? now : there;
    EXPECT_LE(std::abs(clock.to_reference(from) - truth), clock.error_at(from) + 2);
}

TEST(ClockExchange, IsInTheCaptureAndInItsTrace) {
    const std::string path = ::testing::TempDir() + "clock_exchange.marey";
    marey::SessionOptions options;
    options.output = path;
    marey::Session session(options);
    Streams streams;
    auto answered = std::async(std::launch::async, [&] { return marey::answer_clock(streams.ends[1]); });
    const marey::ClockBurst burst = marey::ask_clock(streams.ends[0]);
    EXPECT_TRUE(answered.get());
    const marey::Trace trace = session.stop();
    for (const marey::Trace& each : {trace, marey::Trace::load(path)}) {
        ASSERT_EQ(each.clock_exchanges().size(), burst.exchanges.size());
        for (std::size_t i = 0; i < burst.exchanges.size(); ++i) {
            const marey::ClockExchangeInfo& row = each.clock_exchanges()[i];
            EXPECT_EQ(each.string(row.peer), marey::host_name());
            EXPECT_EQ(row.sent_ns, burst.exchanges[i].sent_ns);
            EXPECT_EQ(row.arrived_ns, burst.exchanges[i].arrived_ns);
            EXPECT_EQ(row.answered_ns, burst.exchanges[i].answered_ns);
            EXPECT_EQ(row.received_ns, burst.exchanges[i].received_ns);
        }
    }
    unlink(path.c_str());
}

TEST(ClockExchange, TheEndOfTheStreamIsNoticed) {
    Streams streams;
    streams.close_end(0);
    EXPECT_FALSE(marey::answer_clock(streams.ends[1]));
    EXPECT_THROW(marey::ask_clock(streams.ends[1]), marey::Error);
    Streams quiet;
    ClockExchangeOptions options;
    options.timeout_ms = 1;
    EXPECT_FALSE(marey::answer_clock(quiet.ends[0], options));
    EXPECT_THROW(marey::ask_clock(quiet.ends[0], options), marey::Error);
}

TEST(ClockExchange, OtherDataIsRefused) {
    std::string bytes(128, 'x');
    Streams streams;
    ASSERT_EQ(send(streams.ends[0], bytes.data(), 8, 0), 8);
    EXPECT_THROW(marey::answer_clock(streams.ends[1]), marey::Error);
    ASSERT_EQ(send(streams.ends[0], bytes.data(), bytes.size(), 0), 128);
    EXPECT_THROW(marey::ask_clock(streams.ends[1]), marey::Error);
    // The right start, but a count of requests that never ends.
    const std::uint32_t request[] = {0x3158434d, 0xffffffff};
    Streams endless;
    ASSERT_EQ(send(endless.ends[0], request, sizeof request, 0), 8);
    EXPECT_THROW(marey::answer_clock(endless.ends[1]), marey::Error);
    // Half a message.
    Streams cut;
    ASSERT_EQ(send(cut.ends[0], request, 5, 0), 5);
    cut.close_end(0);
    EXPECT_THROW(marey::answer_clock(cut.ends[1]), marey::Error);
}

}  // namespace
