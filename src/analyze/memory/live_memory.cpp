// live_memory.cpp: allocation reports in time order, and the allocations that are live after them.
#include "analyze/memory/live_memory.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace marey {

std::vector<DeviceReports> reports_by_device(const Trace& trace) {
    const MemoryColumns reports = trace.memory();
    std::map<std::tuple<Row, DeviceType, std::int32_t>, DeviceReports> devices;
    for (std::uint32_t row = 0; row < reports.size(); ++row) {
        const Device device = reports.device[row];
        const Row process = trace.threads()[reports.thread[row]].process;
        DeviceReports& of = devices[{process, device.type, device.index}];
        of.process = process;
        of.device = device;
        if (reports.total_allocated[row] != 0) of.has_totals = true;
        of.rows.push_back(row);
    }
    std::vector<DeviceReports> all;
    for (auto& [key, device] : devices) {
        std::ranges::stable_sort(device.rows, {}, [&](std::uint32_t a) { return reports.time_ns[a]; });
        all.push_back(std::move(device));
    }
    return all;
}

LiveMemory::Change LiveMemory::follow(std::uint32_t report) {
    const std::int64_t bytes = reports_.bytes[report];
    const std::uint64_t address = reports_.address[report];
    if (bytes == 0 || reports_.out_of_memory[report] != 0) return {};
    if (bytes > 0) {
        if (address == 0) return {Effect::Taken};
        const auto [entry, fresh] = live_.try_emplace(address, report);
        entry->second = report;
        return {Effect::Taken, !fresh};
    }
    return {live_.erase(address) > 0 ? Effect::Returned : Effect::Earlier};
}

std::vector<MemoryPoint> memory_points(const MemoryColumns& reports, const DeviceReports& device) {
    std::int64_t level = 0;
    if (!device.has_totals) {
        LiveMemory memory(reports);
        for (const std::uint32_t row : device.rows) {
            if (memory.follow(row).effect == LiveMemory::Effect::Earlier)
                level = wrapping_difference(level, reports.bytes[row]);
        }
    }
    std::vector<MemoryPoint> points;
    points.reserve(device.rows.size());
    for (const std::uint32_t row : device.rows) {
        if (reports.out_of_memory[row] != 0) continue;
        level = device.has_totals ? reports.total_allocated[row] : wrapping_sum(level, reports.bytes[row]);
        points.push_back({reports.time_ns[row], level, reports.total_reserved[row]});
    }
    return points;
}

std::vector<MemorySeries> memory_series(const Trace& trace) {
    const MemoryColumns reports = trace.memory();
    std::vector<MemorySeries> all;
    for (const DeviceReports& device : reports_by_device(trace))
        all.push_back({device.process, device.device, device.has_totals, memory_points(reports, device)});
    return all;
}

}  // namespace marey
