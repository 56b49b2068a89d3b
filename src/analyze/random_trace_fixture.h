// random_trace_fixture.h: traces of every shape that the model has, for properties that hold for all of them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "trace/trace_assembler.h"

namespace kymo {

/// Two threads whose ranges nest and cross, an async lane and a device's queue, launched from the threads;
/// steps, recursion, equal times; a window that cuts some ranges off.
inline Trace random_trace(unsigned seed, int ranges_per_lane = 200) {
    std::mt19937 random(seed);
    const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
    TraceAssembler assembler;
    assembler.add_process({});
    std::vector<std::uint32_t> lanes;
    for (const TrackKind kind : {TrackKind::Thread, TrackKind::Thread, TrackKind::Async, TrackKind::Device}) {
        ThreadInfo thread;
        thread.id = static_cast<std::uint32_t>(lanes.size() + 1);
        thread.os_tid = kind == TrackKind::Device ? 0 : 1000 + thread.id;
        thread.name = assembler.string("lane " + std::to_string(thread.id));
        Lane lane;
        lane.thread = assembler.add_thread(thread);
        lane.kind = kind;
        if (kind == TrackKind::Device) {
            lane.device = {DeviceType::Cuda, 0};
            lane.stream = 7;
        }
        lanes.push_back(assembler.add_lane(lane));
    }
    const Scope scopes[] = {Scope::User, Scope::Function, Scope::PythonFunction, Scope::CFunction,
                            Scope::DeviceRuntime};
    std::vector<TraceAssembler::RangeId> calls;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        for (int i = 0; i < ranges_per_lane; ++i) {
            const int scope = below(5);
            const std::string name = "n" + std::to_string(scope) + std::to_string(below(4));
            const std::uint32_t site =
                assembler.site({assembler.string(lane == 3 ? "kernel " + name : name), 0, 0, scopes[scope]});
            const int duration = below(3) == 0 ? below(4000) : below(100);
            const auto id = assembler.add_range(lanes[lane], below(10'000), duration, site);
            if (lane < 2) calls.push_back(id);
            if (lane == 3 && below(4) != 0)
                assembler.add_link(calls[static_cast<std::size_t>(below(static_cast<int>(calls.size())))], id,
                                   LinkKind::Launch);
        }
    }
    for (int step = 0; step < 5; ++step) {
        const std::uint32_t site =
            assembler.site({assembler.string("ProfilerStep#" + std::to_string(step)), 0, 0, Scope::Step});
        assembler.add_range(lanes[0], step * 2000, 1500 + below(400), site);
    }
    assembler.set_window(500, 9'000 + below(4000));
    return assembler.finish();
}

}  // namespace kymo
