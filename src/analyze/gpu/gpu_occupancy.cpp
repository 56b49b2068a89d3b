// gpu_occupancy.cpp: the properties and clocks of devices, and the blocks that fit on a multiprocessor at
// once, limited by registers, shared memory, warps and blocks.
#include "analyze/gpu/gpu_occupancy.h"

#include <algorithm>
#include <cmath>

#include "json/json_document.h"

namespace marey {
namespace {

// Resource allocation on NVIDIA devices since Maxwell.
constexpr double kRegistersAtOnce = 256;  // register allocation unit of a warp
constexpr double kParts = 4;              // partitions of a multiprocessor, each with its own registers
constexpr double kDefaultWarpSize = 32;

double round_up(double value, double to) {
    return std::ceil(value / to) * to;
}

double shared_bytes_at_once(const GpuProperties& device) {
    return device.compute_major >= 8 ? 128 : 256;
}
double reserved_shared_bytes(const GpuProperties& device) {
    return device.compute_major >= 8 ? 1024 : 0;
}

double most_blocks(const GpuProperties& device) {
    switch (device.compute_major * 10 + device.compute_minor) {
        case 75:
        case 86:
        case 87:
            return 16;
        case 89:
            return 24;
        default:
            return device.compute_major >= 11 ? 24 : 32;
    }
}

double product(const std::int64_t (&triple)[3]) {
    double result = 1;
    for (const std::int64_t size : triple) {
        if (size <= 0) return 0;
        result *= static_cast<double>(size);
    }
    return result;
}

/// For blocks of `warps` warps.
double most_blocks_at_once(const GpuShape& shape, const GpuProperties& device, double warps, double warp) {
    double blocks =
        std::min(most_blocks(device), std::floor(static_cast<double>(device.threads_per_sm) / warp / warps));
    if (shape.registers > 0 && device.registers_per_sm > 0) {
        const double of_warp = round_up(static_cast<double>(shape.registers) * warp, kRegistersAtOnce);
        const double of_part = std::floor(static_cast<double>(device.registers_per_sm) / kParts);
        blocks = std::min(blocks, std::floor(std::floor(of_part / of_warp) * kParts / warps));
    }
    if (shape.shared_bytes >= 0 && device.shared_bytes_per_sm > 0) {
        const double asked = static_cast<double>(shape.shared_bytes) + reserved_shared_bytes(device);
        const double of_block = round_up(asked, shared_bytes_at_once(device));
        if (of_block > 0)
            blocks = std::min(blocks, std::floor(static_cast<double>(device.shared_bytes_per_sm) / of_block));
    }
    return blocks;
}

GpuProperties read_device(const JsonDocument::Value& json) {
    const auto number = [&](std::string_view name) {
        return std::max(json[name].scaled(0).value_or(0), std::int64_t{0});
    };
    return GpuProperties{.name = json["name"].text(),
                         .sm_count = number("numSms"),
                         .warp_size = number("warpSize"),
                         .threads_per_sm = number("maxThreadsPerMultiprocessor"),
                         .registers_per_sm = number("regsPerMultiprocessor"),
                         .shared_bytes_per_sm = number("sharedMemPerMultiprocessor"),
                         .compute_major = number("computeMajor"),
                         .compute_minor = number("computeMinor")};
}

/// Parses an object with at least these numbers; nullopt if it is something else.
std::optional<GpuClock> read_clock(std::string_view text) {
    const JsonDocument document(text);
    const auto number = [&](std::string_view name) { return document.root()[name].scaled(0).value_or(-1); };
    const GpuClock clock{number("readings"), number("median_error_ns"), number("worst_error_ns")};
    const bool is_whole = clock.readings > 0 && clock.median_error_ns >= 0 && clock.worst_error_ns >= 0;
    return is_whole ? std::optional(clock) : std::nullopt;
}

}  // namespace

std::map<std::int64_t, GpuProperties> gpu_properties(const Trace& trace) {
    std::map<std::int64_t, GpuProperties> devices;
    for (const MetadataInfo& fact : trace.metadata()) {
        if (fact.key != "deviceProperties") continue;
        const JsonDocument document(fact.json);
        document.root().each_item([&](const JsonDocument::Value& device) {
            const std::int64_t id = device["id"].scaled(0).value_or(-1);
            if (id >= 0) devices.emplace(id, read_device(device));
        });
    }
    return devices;
}

GpuOccupancy estimate_occupancy(const GpuShape& shape, const GpuProperties& device) {
    GpuOccupancy result;
    const double blocks = product(shape.grid), threads = product(shape.block);
    if (device.sm_count == 0 || blocks == 0 || threads == 0) return result;
    const double warp = device.warp_size > 0 ? static_cast<double>(device.warp_size) : kDefaultWarpSize;
    const double blocks_per_sm = blocks / static_cast<double>(device.sm_count);
    result.blocks_per_sm = blocks_per_sm;
    result.warps_per_sm = blocks_per_sm * threads / warp;
    if (device.threads_per_sm == 0) return result;
    const double at_once =
        std::min(blocks_per_sm, most_blocks_at_once(shape, device, std::ceil(threads / warp), warp));
    result.occupancy = std::min(at_once * threads / static_cast<double>(device.threads_per_sm), 1.0);
    return result;
}

std::optional<GpuClock> gpu_clock(const Trace& trace) {
    for (const MetadataInfo& fact : trace.metadata()) {
        if (fact.key != "gpu_clock" && fact.key != "simulated_clock") continue;
        if (const std::optional<GpuClock> clock = read_clock(fact.json)) return clock;
    }
    return std::nullopt;
}

}  // namespace marey
