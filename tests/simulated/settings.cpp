// settings.cpp: settings by name.
#include "simulated/settings.h"

namespace marey::simulated {
namespace {

struct Setting {
    std::string_view name;
    double Settings::*place;
    double least;
    double most;
};

constexpr double kMax = 1e15;
constexpr Setting kSettings[] = {
    {"devices", &Settings::devices, 1, 64},
    {"latency_ns", &Settings::latency_ns, 0, kMax},
    {"call_ns", &Settings::call_ns, 0, 1e9},
    {"buffer_records", &Settings::buffer_records, 1, 1e6},
    {"buffers", &Settings::buffers, 1, 1e6},
    {"hold_buffers", &Settings::hold_buffers, 0, 1},
    {"shuffle", &Settings::shuffle, 0, 1},
    {"skew_ns", &Settings::skew_ns, -kMax, kMax},
    {"drift_ppm", &Settings::drift_ppm, -1e4, 1e4},
    {"clock_noise_ns", &Settings::clock_noise_ns, 0, 1e6},
    {"memory_bytes", &Settings::memory_bytes, 0, kMax},
    {"concurrent_graphs", &Settings::concurrent_graphs, 0, 1},
    {"refuse", &Settings::refuse, 0, 1},
    {"absent", &Settings::absent, 0, 1},
};

}  // namespace

bool Settings::set(std::string_view key, double value) noexcept {
    for (const Setting& setting : kSettings) {
        if (setting.name != key) continue;
        if (!(value >= setting.least && value <= setting.most)) return false;
        this->*setting.place = value;
        return true;
    }
    return false;
}

}  // namespace marey::simulated
