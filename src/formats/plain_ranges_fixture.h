// plain_ranges_fixture.h: for benchmarks: a large trace of plain ranges, and the CPU time.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "trace/trace_assembler.h"

namespace marey::testing {

/// Ranges of 128 sites on 4 threads, three levels deep, with durations of up to some microseconds.
inline Trace plain_ranges(std::size_t count) {
    constexpr std::uint32_t kThreads = 4;
    TraceAssembler assembler;
    const StringId file = assembler.string("src/render/scene.cpp");
    std::vector<std::uint32_t> sites;
    for (std::uint32_t i = 0; i < 128; ++i)
        sites.push_back(assembler.site(
            {assembler.string("render_layer_" + std::to_string(i)), file, 10 + i, Scope::User}));
    ProcessInfo process;
    process.pid = 4711;
    assembler.add_process(process);
    std::uint64_t state = 1;
    const auto random = [&](std::uint64_t limit) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state % limit;
    };
    for (std::uint32_t i = 0; i < kThreads; ++i) {
        ThreadInfo thread;
        thread.id = i + 1;
        thread.os_tid = 4711 + i;
        const std::uint32_t lane = assembler.add_lane({assembler.add_thread(thread)});
        std::int64_t now = 1'000'000'000'000;
        for (std::size_t made = 0; made < count / kThreads; made += 3) {
            const auto inner = static_cast<std::int64_t>(random(2000));
            assembler.add_range(lane, now, inner + 1000, sites[random(4)]);
            assembler.add_range(lane, now + 100, inner + 500, sites[4 + random(28)]);
            assembler.add_range(lane, now + 200, inner, sites[32 + random(96)]);
            now += inner + 1050;
        }
    }
    return assembler.finish();
}

/// CPU time of this process.
inline double cpu_ns() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace marey::testing
