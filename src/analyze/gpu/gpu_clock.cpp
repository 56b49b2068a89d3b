// gpu_clock.cpp: reads the accuracy of the device clocks from a trace.
#include <charconv>

#include <marey/gpu_use.h>

#include "json/json_scanner.h"

namespace marey {
namespace {

/// Parses an object with at least these numbers; nullopt if it is something else.
std::optional<GpuClock> read_clock(std::string_view text) {
    GpuClock clock{-1, -1, -1};
    const std::pair<std::string_view, std::int64_t*> numbers[] = {
        {"readings", &clock.readings},
        {"median_error_ns", &clock.median_error_ns},
        {"worst_error_ns", &clock.worst_error_ns},
    };
    JsonScanner json(text);
    if (json.next() != JsonToken::BeginObject) return std::nullopt;
    while (json.next() == JsonToken::Key) {
        const std::string key = json.text();
        const JsonToken token = json.next();
        for (const auto& [name, target] : numbers) {
            if (name == key && token == JsonToken::Number)
                std::from_chars(json.raw().data(), json.raw().data() + json.raw().size(), *target);
        }
        if (!json.skip(token)) return std::nullopt;
    }
    const bool is_whole = clock.readings > 0 && clock.median_error_ns >= 0 && clock.worst_error_ns >= 0;
    return is_whole ? std::optional(clock) : std::nullopt;
}

}  // namespace

std::optional<GpuClock> gpu_clock(const Trace& trace) {
    for (const MetadataInfo& fact : trace.metadata()) {
        if (fact.key != "gpu_clock" && fact.key != "simulated_clock") continue;
        if (const std::optional<GpuClock> clock = read_clock(fact.json)) return clock;
    }
    return std::nullopt;
}

}  // namespace marey
