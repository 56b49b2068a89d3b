// clock_exchange.cpp: how well exchanges over the loopback interface find a clock that runs 20 ppm fast.
// bench_clock_exchange [BURSTS [SECONDS BETWEEN THEM]]
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <marey/clock_exchange.h>
#include <marey/host_clocks.h>

namespace {

/// The clock of the other host at a time of this one.
std::int64_t other_time(std::int64_t ns) {
    return ns + 10'800'000'000'000 + ns / 50'000;
}
std::int64_t other_clock() noexcept {
    return other_time(marey::trace_clock_ns());
}

/// Two connected sockets on the loopback interface.
void connect_pair(int& asking, int& answering) {
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    asking = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(server, generic, length) != 0 || listen(server, 1) != 0 ||
        getsockname(server, generic, &length) != 0 || connect(asking, generic, length) != 0)
        std::exit(1);
    answering = accept(server, nullptr, nullptr);
    close(server);
}

double at_share(std::vector<double>& values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
    const int bursts = argc > 1 ? std::atoi(argv[1]) : 20;
    const double pause = argc > 2 ? std::atof(argv[2]) : 1;
    int asking = -1, answering = -1;
    connect_pair(asking, answering);
    std::thread peer([&] {
        marey::ClockExchangeOptions options;
        options.clock = other_clock;
        options.timeout_ms = 600'000;
        while (marey::answer_clock(answering, options)) {
        }
    });
    std::vector<marey::ClockEvidence> evidence;
    std::vector<double> best_trips;
    std::int64_t first = 0, last = 0;
    for (int i = 0; i < bursts; ++i) {
        if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause));
        std::int64_t best = 1'000'000'000;
        for (const marey::ClockExchange& each : marey::ask_clock(asking).exchanges) {
            marey::add_clock_exchange(evidence, 0, 1, each.sent_ns, each.arrived_ns, each.answered_ns,
                                      each.received_ns);
            best = std::min(best, each.received_ns - each.sent_ns - (each.answered_ns - each.arrived_ns));
            if (first == 0) first = each.sent_ns;
            last = each.received_ns;
        }
        best_trips.push_back(static_cast<double>(best) / 1000);
    }
    shutdown(asking, SHUT_RDWR);
    peer.join();
    const auto fit = marey::fit_host_clocks(std::vector<marey::WallClock>(2), evidence);
    const marey::HostClock& clock = fit.hosts[1 - fit.reference];
    std::vector<double> errors;
    for (int i = 0; i <= 1000; ++i) {
        const std::int64_t here = first + (last - first) / 1000 * i, there = other_time(here);
        const bool is_here = fit.reference == 0;
        errors.push_back(std::abs(static_cast<double>(clock.to_reference(is_here ? there : here) -
                                                      (is_here ? here : there))) /
                         1000);
    }
    const double trip = at_share(best_trips, 0.5);
    std::fprintf(stderr, "best round trip of a burst: median %.2f us, worst %.2f us; bound +-%.2f us\n", trip,
                 best_trips.back(), static_cast<double>(clock.error_ns) / 1000);
    std::printf(
        "{\"name\": \"clock_exchange_p95\", \"value\": %.2f, \"unit\": \"us\", \"target\": \"<= 2\"}\n",
        at_share(errors, 0.95));
    std::printf(
        "{\"name\": \"clock_exchange_bound\", \"value\": %.2f, \"unit\": \"us\", \"against\": \"half the "
        "round trip + 1 us\", \"against_value\": %.2f, \"ratio\": %.2f, \"target\": \"<= 1\"}\n",
        static_cast<double>(clock.error_ns) / 1000, trip / 2 + 1,
        static_cast<double>(clock.error_ns) / 1000 / (trip / 2 + 1));
}
