// gpu_clock.cpp: reads the accuracy of the device clocks from a trace.
#include <marey/gpu_use.h>

#include "json/json_document.h"

namespace marey {
namespace {

/// Parses an object with at least these numbers; nullopt if it is something else.
std::optional<GpuClock> read_clock(std::string_view text) {
    const JsonDocument document(text);
    const auto number = [&](std::string_view name) { return document.root()[name].scaled(0).value_or(-1); };
    const GpuClock clock{number("readings"), number("median_error_ns"), number("worst_error_ns")};
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
