// device_fixture.h: for tests: device records in handwritten logs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <marey/device.h>
#include <marey/trace.h>

#include "collect/log_fixture.h"

namespace marey::testing {

inline constexpr std::uint32_t kMain = 1;    ///< The main thread's log.
inline constexpr std::uint32_t kDevice = 9;  ///< The device's log.
inline constexpr std::uint32_t kCudaBit = 1u << static_cast<int>(DeviceType::Cuda);

/// Option bits of a session that requests these activities.
inline std::uint32_t device_bits(std::uint32_t activities) {
    return detail::kOptionValues | activities * detail::kOptionFirstDeviceActivity;
}

/// A session that requests everything of CUDA.
inline LogWriter::SessionParts device_session(std::uint32_t activities = kDeviceAll,
                                              std::uint32_t types = kCudaBit) {
    LogWriter::SessionParts parts;
    parts.option_bits = device_bits(activities);
    parts.device_types = types;
    return parts;
}

struct WorkSpec {
    std::string_view name = "kernel";
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint32_t correlation = 0;
    std::uint32_t stream = 7;
    DeviceWorkKind kind = DeviceWorkKind::Kernel;
    std::uint16_t device = 0;
    DeviceType type = DeviceType::Cuda;
    std::uint64_t range = 0;
    std::uint64_t bytes = 0;
    std::uint32_t context = 0;
    std::uint64_t graph_node = 0;
    std::vector<std::byte> values = {};
};

inline std::uint32_t work_site(LogWriter& log, DeviceWorkKind kind, std::string_view name) {
    return log.categorised_site(name, kind == DeviceWorkKind::Copy ? "gpu_memcpy" : "kernel", Scope::Device);
}

inline void put_work(LogWriter& log, std::uint32_t thread, const WorkSpec& work) {
    const detail::DevicePlace place{work.stream, work.context, work.device,
                                    static_cast<std::uint8_t>(work.type), 0};
    ByteList payload;
    if (work.kind == DeviceWorkKind::Kernel) {
        payload.add(
            detail::DeviceKernelPayload{place, {4, 2, 1}, {128, 1, 1}, 32, 16, 1024, work.graph_node});
    } else {
        payload.add(detail::DeviceOtherPayload{place, 0, work.bytes, work.range});
    }
    payload.add_bytes(work.values.data(), work.values.size());
    log.thread(thread).put(detail::RecordKind::DeviceWork, static_cast<int>(work.kind),
                           work_site(log, work.kind, work.name), work.start, work.end, work.correlation,
                           payload.bytes());
}

struct CallSpec {
    std::string_view name = "cudaLaunchKernel";
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint32_t os_tid = 100;
    std::uint32_t correlation = 0;
    bool is_driver = false;
    std::int32_t result = 0;
    DeviceType type = DeviceType::Cuda;
};

inline void put_call(LogWriter& log, std::uint32_t thread, const CallSpec& call) {
    const std::uint32_t site = log.categorised_site(
        call.name, call.is_driver ? "cuda_driver" : "cuda_runtime", Scope::DeviceRuntime);
    const std::uint64_t tid = std::uint64_t{call.os_tid} << 32;
    const int type = static_cast<int>(call.type);
    if (call.result == 0 && call.end - call.start < 1u << 31) {
        log.thread(thread).put(detail::RecordKind::DeviceCall, type, site, call.start,
                               tid | (call.end - call.start), call.correlation);
        return;
    }
    ByteList payload;
    payload.add(detail::DeviceCallPayload{call.end, call.result, 0});
    log.thread(thread).put(detail::RecordKind::DeviceCall, type | detail::kRecordLongCall, site, call.start,
                           tid, call.correlation, payload.bytes());
}

/// Arrows of launches as `from>to` by row, in order.
inline std::string launches(const Trace& trace) {
    std::string text;
    for (const LinkInfo& link : trace.links()) {
        if (link.kind != LinkKind::Launch) continue;
        if (!text.empty()) text += " ";
        text += std::string(trace.range_name(link.from)) + ">" + std::string(trace.range_name(link.to));
    }
    return text;
}

}  // namespace marey::testing
