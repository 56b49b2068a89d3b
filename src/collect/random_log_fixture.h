// random_log_fixture.h: for tests: random programs, as logs and as the plain list of their ranges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "collect/device_fixture.h"
#include "collect/log_fixture.h"

namespace marey::testing {

/// The ranges of a random program with their true parents, in order of their starts.
struct ExpectedRange {
    std::string name;
    std::uint64_t start = 0;
    std::uint64_t end = 0;  ///< ~0: never ended
    int parent = -1;        ///< index, -1: none
    std::uint32_t depth = 0;
    std::uint32_t thread = 0;
    std::uint64_t call = 0;      ///< the call that it is part of; 0: none
    int part = 0;                ///< PartRecordFlags
    std::int64_t sequence = -1;  ///< of its record, without values; -1: none
    std::uint32_t forward_thread = 0;
};

/// Values of all sorts, roles and facts; mostly a few.
inline std::vector<std::byte> random_values(LogWriter& log, std::mt19937& random) {
    Values values = log.values();
    const auto array = [&] {
        ArraySpec spec;
        for (std::uint32_t i = random() % 4; i-- != 0;) spec.sizes.push_back(random() % 9);
        if (random() % 2 == 0) spec.strides.assign(spec.sizes.size(), 1 + random() % 3);
        spec.dtype = static_cast<DType>(random() % 30);
        spec.device = {static_cast<DeviceType>(random() % 3), static_cast<std::int32_t>(random() % 3) - 1};
        spec.is_defined = random() % 6 != 0;
        spec.storage = random();
        spec.storage_id = random() % 5;
        spec.flags = (random() % 8) * detail::kArrayObject;
        return spec;
    };
    const auto add = [&](const auto& self, std::string_view key, int nesting) -> void {
        switch (random() % (nesting < 2 ? 7 : 6)) {
            case 0:
                values.integer(key, static_cast<std::int64_t>(random()) - 1000);
                break;
            case 1:
                values.real(key, static_cast<double>(random() % 100) / 8);
                break;
            case 2:
                values.boolean(key, random() % 2 == 0);
                break;
            case 3:
                values.text(key, "text" + std::to_string(random() % 20), random() % 3 == 0);
                break;
            case 4:
                values.none(key, static_cast<ValueKind>(random() % 7));
                break;
            case 5:
                values.array(key, array());
                break;
            default: {
                const std::uint32_t count = random() % 4;
                values.list(key, count, random() % 3 == 0);
                for (std::uint32_t i = 0; i < count; ++i) self(self, "", nesting + 1);
                break;
            }
        }
    };
    for (std::uint32_t i = random() % 4; i-- != 0;) {
        const std::uint32_t role = random() % 3;
        if (role == 1) values.input();
        if (role == 2) values.output();
        add(add, role == 0 ? "key" + std::to_string(random() % 5) : std::string(), 0);
    }
    if (random() % 2 == 0) {
        values.facts(static_cast<std::int64_t>(random() % 12) - 1, random() % 2 == 0 ? 0 : random() % 5,
                     random() % 3);
    }
    if (random() % 4 == 0) {
        if (random() % 3 == 0)
            log.module("/lib/" + std::to_string(random() % 4) + ".so", "ab" + std::to_string(random() % 3));
        std::vector<std::uint64_t> frames;
        for (std::uint32_t i = random() % 12; i-- != 0;) {
            const std::uint64_t low = random() % 40;
            const std::uint64_t high = random() % 5;
            frames.push_back(random() % 2 == 0
                                 ? low | high << detail::kFrameLineShift
                                 : detail::kFrameNative | high << detail::kFrameModuleShift | low << 8);
        }
        if (random() % 8 == 0) frames.push_back(std::uint64_t{random()} << 32 | random());
        values.stack(frames, random() % 3 == 0);
    }
    return values.bytes();
}

/// Runs a random program with well-nested scopes on one thread and writes its log, in chunks of random size.
/// Ranges open at the end are left open. Ticks may stand still.
inline std::vector<ExpectedRange> run_program(LogWriter& log, std::uint32_t thread, std::mt19937& random,
                                              int steps) {
    std::vector<ExpectedRange> ranges;
    std::vector<int> open;
    std::uint64_t now = 1'000'000 + random() % 100;
    auto& writer = log.thread(thread);
    writer.next_chunk(random() % 1000);
    struct KnownCall {
        std::string name;
        std::uint64_t call;
        std::size_t place;
    };
    std::vector<KnownCall> known;  // in this chunk
    for (int step = 0; step < steps; ++step) {
        now += random() % 3 == 0 ? 0 : random() % 50'000;
        if (random() % 9 == 0) {
            writer.next_chunk(now - random() % 100);
            known.clear();
        }
        if (open.empty() || (random() % 2 == 0 && open.size() < 300)) {
            ExpectedRange range;
            range.name = "site" + std::to_string(random() % 12);
            range.start = now;
            range.end = ~std::uint64_t{0};
            range.parent = open.empty() ? -1 : open.back();
            range.depth = static_cast<std::uint32_t>(open.size());
            range.thread = thread;
            open.push_back(static_cast<int>(ranges.size()));
            ranges.push_back(range);
        } else {
            ExpectedRange& range = ranges[static_cast<std::size_t>(open.back())];
            open.pop_back();
            range.end = now;
            // Neither parts nor values change the program.
            std::mt19937 parts(static_cast<std::uint32_t>(now) + thread + 1);
            if (parts() % 4 == 0) {
                range.call = 1 + parts() % 50;
                range.part = static_cast<int>(parts() % 4);
                writer.part(range.start, range.call, range.part);
            } else if (parts() % 16 == 0) {
                writer.part(range.start + 1, 7, 0);  // of a range that does not exist
            }
            if (random() % 5 == 0) {
                std::mt19937 other(static_cast<std::uint32_t>(now) + thread);
                writer.long_range(range.name, range.start, now, range.depth, 0,
                                  random() % 2 == 0 ? random_values(log, other) : std::vector<std::byte>());
            } else if (parts() % 3 == 0 && range.depth < 256 && (now - range.start) >> 32 == 0) {
                range.sequence = parts() % 100;
                range.forward_thread = parts() % 4 == 0 ? 1 : 0;
                writer.sequenced_range(range.name, range.start, now, range.depth,
                                       static_cast<std::uint32_t>(range.sequence), range.forward_thread);
            } else {
                const auto same = std::find_if(known.begin(), known.end(), [&](const KnownCall& each) {
                    return each.name == range.name && range.call == 0 && range.depth < 256;
                });
                if (same != known.end()) {
                    const bool is_last = parts() % 2 == 0;
                    range.call = same->call;
                    range.part = is_last ? detail::kPartLast : 0;
                    writer.resumed(range.start, now, range.depth, same->place, is_last);
                } else {
                    if (range.call != 0 && range.depth < 256)
                        known.push_back({range.name, range.call, writer.place() - 1});
                    writer.range(range.name, range.start, now, range.depth);
                }
            }
        }
    }
    for (const int index : open) {
        const ExpectedRange& range = ranges[static_cast<std::size_t>(index)];
        writer.open(range.name, range.start, range.depth);
    }
    return ranges;
}

/// Calls into a device's library and device work, with any times and in any order.
inline void add_random_device_records(LogWriter& log, std::uint32_t thread, std::mt19937& random, int count) {
    const auto time = [&] {
        return random() % 8 == 0 ? (std::uint64_t{random()} << 32 | random()) >> (random() % 64)
                                 : 1'000'000 + random() % 4'000'000;
    };
    for (int i = 0; i < count; ++i) {
        const std::uint64_t start = time();
        const std::uint64_t end = random() % 3 == 0 ? time() : start + random() % 90'000;
        const auto correlation = static_cast<std::uint32_t>(random() % 9);
        if (random() % 2 == 0) {
            put_call(log, thread,
                     {.start = start,
                      .end = end,
                      .os_tid = static_cast<std::uint32_t>(99 + random() % 4),
                      .correlation = correlation,
                      .is_driver = random() % 2 == 0,
                      .result = static_cast<std::int32_t>(random() % 2),
                      .type = static_cast<DeviceType>(random() % 3)});
        } else {
            put_work(log, thread,
                     {.start = start,
                      .end = end,
                      .correlation = correlation,
                      .stream = static_cast<std::uint32_t>(random() % 3) - 1,
                      .kind = static_cast<DeviceWorkKind>(random() % 9),
                      .device = static_cast<std::uint16_t>(random() % 2),
                      .range = random() % 3,
                      .values = random_values(log, random)});
        }
    }
}

/// A log with a bit of everything, well-formed or nearly so.
inline LogWriter random_log(std::uint32_t seed) {
    LogWriter log;
    log.are_run_time_names = seed % 4 == 1;
    std::mt19937 random(seed);
    if (seed % 3 != 0) {
        log.start(5, 1'000'000 + random() % 500'000,
                  {.name = "session",
                   .option_bits = random() % 2 == 0 ? LogWriter::kAllOptions
                                                    : static_cast<std::uint32_t>(random() % 32768),
                   .device_types = static_cast<std::uint32_t>(random() % 8)});
    }
    for (std::uint32_t thread = 1; thread <= 1 + seed % 4; ++thread) {
        if (random() % 2 == 0) log.born(thread, "thread number " + std::to_string(thread), 900'000);
        run_program(log, thread, random, 200);
        auto& writer = log.thread(thread);
        for (int i = 0; i < 30; ++i) {
            const std::uint64_t time = (1000 + random() % 4000) * 1000;
            switch (random() % 9) {
                case 6:
                    writer.memory(time, random(), static_cast<std::int64_t>(random()) - (1 << 30), random(),
                                  random(), {DeviceType::Cuda, 1}, random() % 8 == 0);
                    break;
                case 7:
                    writer.long_instant("instant", time, random_values(log, random));
                    break;
                case 8:
                    writer.async_begin(random() % 20, "async", time, random() % 3,
                                       random_values(log, random));
                    break;
                case 0:
                    writer.instant("instant", time);
                    break;
                case 1:
                    writer.counter("counter", time, static_cast<double>(random() % 100) / 7);
                    break;
                case 2:
                    writer.async_begin(random() % 20, "async", time, random() % 3);
                    break;
                case 3:
                    writer.async_end(random() % 20, time, random() % 3);
                    break;
                case 4:
                    writer.long_range("removed", time, time + random() % 500'000, random() % 4,
                                      random() % 2 == 0 ? detail::kRecordAsync
                                                        : detail::kRecordAsync | detail::kRecordCrosses);
                    break;
                default:
                    writer.range("odd", time, time + random() % 9'000'000, random() % 4);
                    break;
            }
        }
    }
    add_random_device_records(log, 9, random, static_cast<int>(seed % 30));
    if (seed % 3 == 1) log.stop(5, 3'000'000 + random() % 1'000'000);
    return log;
}

/// About `count` ranges of `sites` call sites on `threads` threads: nested, leaves of 1 to 100 us, ticks of 1
/// ns.
inline LogWriter realistic_log(int count, std::uint32_t sites, std::uint32_t threads, std::uint32_t seed) {
    LogWriter log;
    std::mt19937 random(seed);
    log.start(1, 1, {.name = "realistic"});
    for (std::uint32_t thread = 1; thread <= threads; ++thread) {
        auto& writer = log.thread(thread);
        std::uint64_t now = 1'000'000'000;
        int left = count / static_cast<int>(threads);
        int in_chunk = 0;
        const auto nest = [&](const auto& self, std::uint32_t site, std::uint32_t depth) -> void {
            --left;
            const std::uint64_t start = now;
            now += 30 + random() % 200;
            const std::uint32_t children = depth < 5 ? (site * 7 + depth) % 4 : 0;
            if (children == 0) {
                const std::uint64_t typical = 1000 + (site * 2654435761u) % 60'000;
                now += typical / 2 + random() % typical;
            }
            for (std::uint32_t i = 0; i < children && left > 0; ++i) {
                self(self, (site * 3 + i + (random() % 8 == 0 ? random() : 0)) % sites, depth + 1);
                now += 20 + random() % 100;
            }
            writer.range("site " + std::to_string(site), start, now, depth);
            if (++in_chunk % 16'000 == 0) writer.next_chunk(now);
        };
        while (left > 0) {
            nest(nest, random() % sites, 0);
            now += random() % 20'000;
        }
    }
    return log;
}

}  // namespace marey::testing
