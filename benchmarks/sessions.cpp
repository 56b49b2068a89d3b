// sessions.cpp: starting and stopping a session in a program that has used many names.
#include <cstdint>
#include <string>
#include <vector>

#include <marey/marey.h>
#include <marey/session.h>

#include "figure.h"

namespace {

constexpr int kRounds = 9;
constexpr int kNames = 300'000;

/// Milliseconds to start and stop a session that uses one name.
double start_and_stop_ms() {
    return bench::thread_ns(1,
                            [] {
                                marey::Session session(marey::SessionOptions{});
                                { MAREY_RANGE("used"); }
                                session.stop();
                            }) /
           1e6;
}

std::vector<double> measure() {
    std::vector<double> values;
    start_and_stop_ms();
    for (int round = 0; round < kRounds; ++round) values.push_back(start_and_stop_ms());
    return values;
}

}  // namespace

int main() {
    const std::vector<double> before = measure();
    {
        marey::Session session(marey::SessionOptions{});
        for (int i = 0; i < kNames; ++i) {
            MAREY_RANGE_DYNAMIC("request " + std::to_string(i));
        }
        session.discard();
    }
    bench::print("session_after_300k_names", "ms", measure(), "without names", before, "<= 1.5");
}
