// device_log.cpp: writes a device's work into its log.
#include <algorithm>
#include <cstring>
#include <limits>

#include <marey/device.h>

#include "base/enum_names.h"
#include "record/clocks/clock.h"
#include "record/owned_log.h"
#include "record/value_encoding.h"

namespace marey {

using detail::DevicePlace;
using detail::RecordKind;
using detail::ThreadState;

namespace {

ThreadEntry& entry_of(void* entry) noexcept {
    return *static_cast<ThreadEntry*>(entry);
}

const char* category_of(DeviceWorkKind kind) noexcept {
    static constexpr const char* kNames[] = {"kernel",    "kernel",   "gpu_memcpy",     "gpu_memset",
                                             "cuda_sync", "overhead", "unified_memory", "device_time"};
    return name_at(kNames, kind, "kernel");
}

std::uint32_t device_site(std::string_view name, const char* category, Scope scope,
                          std::uint32_t number = 0) noexcept {
    const SlowPath path(kNoRecord);
    if (!path) return 0;
    return Recorder::get().journal().intern_site(name, {}, number, scope, 0, category);
}

template <class Payload>
std::byte* put(std::byte* place, const Payload& payload) noexcept {
    std::memcpy(place, &payload, sizeof payload);
    return place + sizeof payload;
}

DevicePlace place_of(const DeviceWork& work) noexcept {
    const bool has_stream = work.stream >= 0 && work.stream < std::numeric_limits<std::uint32_t>::max();
    return {has_stream ? static_cast<std::uint32_t>(work.stream) : ~0u, work.context,
            static_cast<std::uint16_t>(std::max(work.device.index, 0)),
            static_cast<std::uint8_t>(work.device.type), 0};
}

std::byte* put_facts(std::byte* place, const DeviceWork& work) noexcept {
    if (work.kind != DeviceWorkKind::Kernel)
        return put(place, detail::DeviceOtherPayload{place_of(work), 0, work.bytes, work.range});
    detail::DeviceKernelPayload payload{};
    payload.place = place_of(work);
    std::copy_n(work.kernel.grid, 3, payload.grid);
    std::copy_n(work.kernel.block, 3, payload.block);
    payload.registers = work.kernel.registers;
    payload.static_shared = work.kernel.static_shared;
    payload.dynamic_shared = work.kernel.dynamic_shared;
    payload.graph_node = work.kernel.graph_node;
    return put(place, payload);
}

}  // namespace

std::uint64_t device_ticks() noexcept {
    return Clock::now();
}

std::uint64_t device_ticks_per_second() noexcept {
    return Clock::ticks_per_second();
}

DeviceLog::DeviceLog(std::string_view name) noexcept : entry_(Recorder::get().make_log(name)) {}

DeviceLog::~DeviceLog() {
    if (entry_ != nullptr) Recorder::get().end_log(&entry_of(entry_));
}

std::uint32_t DeviceLog::work_site(DeviceWorkKind kind, std::string_view name) noexcept {
    // A span of the device's time that its own work may lie in, like an annotation.
    const Scope scope = kind == DeviceWorkKind::Timed ? Scope::User : Scope::Device;
    return device_site(name, category_of(kind), scope);
}

std::uint32_t DeviceLog::call_site(std::string_view name, bool is_driver, std::uint32_t number) noexcept {
    return device_site(name, is_driver ? "cuda_driver" : "cuda_runtime", Scope::DeviceRuntime, number);
}

void DeviceLog::write(const DeviceWork& work) noexcept {
    if (entry_ == nullptr) return;
    if (work.site == 0) return count_lost(1);  // there was no space for its name
    alignas(8) std::byte payload[detail::kMaxPayloadBytes];
    std::byte* end = put_facts(payload, work);
    if (!work.values.empty()) {
        const SlowPath path(kNoRecord);
        ValueEncoder encoder(end, payload + sizeof payload);
        for (const KeyedValue& value : work.values) {
            if (path) encoder.add(Recorder::get().journal().intern(value.key), 0, value.value, {true, true});
        }
        end = encoder.end();
    }
    const LongWords words{
        RecordKind::DeviceWork, static_cast<std::uint8_t>(work.kind), work.site, work.start, work.end,
        work.correlation};
    with_owned_log(entry_of(entry_), [&](ThreadState& state) {
        return write_long(state, words, {payload, static_cast<std::size_t>(end - payload)});
    });
}

void DeviceLog::write(const DeviceCall& call) noexcept {
    if (entry_ == nullptr) return;
    if (call.site == 0) return count_lost(1);
    const std::uint64_t duration = call.end > call.start ? call.end - call.start : 0;
    const bool is_long = call.result != 0 || duration > std::numeric_limits<std::uint32_t>::max();
    const int type = static_cast<int>(call.device_type) & detail::kCallDeviceMask;
    LongWords words{RecordKind::DeviceCall, static_cast<std::uint8_t>(type), call.site, call.start, 0,
                    call.correlation};
    words.word2 = std::uint64_t{static_cast<std::uint32_t>(call.os_tid)} << 32;
    detail::DeviceCallPayload payload{call.end, call.result, 0};
    if (is_long) {
        words.flags |= detail::kRecordLongCall;
    } else {
        words.word2 |= duration;
    }
    with_owned_log(entry_of(entry_), [&](ThreadState& state) {
        const auto bytes = std::as_bytes(std::span(&payload, 1));
        return write_long(state, words, is_long ? bytes : bytes.first(0));
    });
}

void DeviceLog::write(const MemoryReport& report, std::uint64_t ticks) noexcept {
    if (entry_ == nullptr) return;
    const detail::MemoryPayload payload{report.bytes,
                                        report.total_allocated,
                                        report.total_reserved,
                                        report.device.index,
                                        static_cast<std::uint8_t>(report.device.type),
                                        static_cast<std::uint8_t>(report.is_out_of_memory ? 1 : 0),
                                        0};
    with_owned_log(entry_of(entry_), [&](ThreadState& state) {
        return write_long(
            state,
            {RecordKind::Memory, 0, 0, ticks, reinterpret_cast<std::uintptr_t>(report.address), state.depth},
            std::as_bytes(std::span(&payload, 1)));
    });
}

void DeviceLog::write(const DeviceClockReading& reading) noexcept {
    if (entry_ == nullptr) return;
    DeviceWork where;
    where.device = reading.device;
    const DevicePlace place = place_of(where);
    const LongWords words{RecordKind::DeviceClock,
                          0,
                          0,
                          reading.ticks,
                          static_cast<std::uint64_t>(reading.offset),
                          reading.error};
    with_owned_log(entry_of(entry_), [&](ThreadState& state) {
        return write_long(state, words, std::as_bytes(std::span(&place, 1)));
    });
}

void DeviceLog::write_fact(DeviceType type, std::string_view key, std::string_view json) noexcept {
    Recorder::get().sessions().add_device_fact(type, key, json);
}

void DeviceLog::count_lost(std::uint64_t records) noexcept {
    if (entry_ == nullptr) return;
    with_owned_log(entry_of(entry_), [&](ThreadState& state) {
        count_dropped(state, 0, records);
        return true;
    });
}

}  // namespace marey
