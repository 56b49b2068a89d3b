// memory_result.cpp: the columns of what `marey memory` reports.
#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {
namespace {

struct RefusalRow : OfDevice<OutOfMemoryEvent> {
    Row thread() const { return it.thread; }
};

}  // namespace

Result memory_result(const Trace& trace, const MemoryUse& use) {
    using enum ResultUnit;
    using enum ResultShown;
    auto window = window_table("memory_window");
    window.add(trace);

    auto devices = device_rows<OfDevice<DeviceMemory>>("memory_devices", "Devices with allocation reports");
    devices.columns({
        {"has_totals", &DeviceMemory::has_totals, "the allocator reported how much was held"},
        {"allocations", &DeviceMemory::allocations, "number of allocations"},
        {"allocated_bytes", &DeviceMemory::allocated_bytes, "size of these"},
        {"frees", &DeviceMemory::frees, "number of frees"},
        {"freed_bytes", &DeviceMemory::freed_bytes, "size of these"},
        {"start_bytes", &DeviceMemory::start_bytes, "held before the first report"},
        {"end_bytes", &DeviceMemory::end_bytes, "held after the last report"},
        {"peak_bytes", &DeviceMemory::peak_bytes, "the most that was held"},
        {"peak_time_ns", &DeviceMemory::peak_time_ns, "when that was", "", No, Time},
        {"peak_reserved_bytes", &DeviceMemory::peak_reserved, "the most that was reserved"},
        {"peak_unknown_bytes", &DeviceMemory::peak_unknown_bytes,
         "part of the peak that no allocation in the window explains"},
        {"kept_allocations", &DeviceMemory::kept_allocations, "made in the window and not freed in it"},
        {"kept_bytes", &DeviceMemory::kept_bytes, "size of these"},
        {"earlier_frees", &DeviceMemory::earlier_frees,
         "frees of memory that was allocated before the window"},
        {"earlier_bytes", &DeviceMemory::earlier_bytes, "size of these"},
        {"unseen_frees", &DeviceMemory::unseen_frees,
         "addresses that were allocated twice without a free in between"},
    });

    auto holders =
        device_rows<OfDevice<MemoryHolder>>("memory_holders", "Memory by the ranges that allocated it");
    holders.columns({
        {"path", &MemoryHolder::path, "names of the ranges, outermost first", "path", Name, Auto,
         "(outside any range)"},
        {"name", [](auto& r) { return r->path.empty() ? std::nullopt : std::optional(r->path.back()); },
         "name of the innermost range"},
        {"peak_bytes", &MemoryHolder::peak_bytes, "held at the peak", "at peak"},
        {"peak_allocations", &MemoryHolder::peak_allocations, "number of these allocations", "peak count"},
        {"allocated_bytes", &MemoryHolder::allocated_bytes,
         "allocated in these ranges, without the ranges inside them", "taken"},
        {"allocations", &MemoryHolder::allocations, "number of these", "taken count"},
        {"total_allocated_bytes", &MemoryHolder::total_allocated_bytes,
         "allocated in these ranges and the ranges inside them", "total"},
        {"freed_bytes", &MemoryHolder::freed_bytes, "freed in these ranges, wherever it was allocated",
         "freed"},
        {"kept_bytes", &MemoryHolder::kept_bytes, "allocated here and not freed in the window", "kept"},
        {"kept_allocations", &MemoryHolder::kept_allocations, "number of these", "kept count"},
    });

    auto refusals = device_rows<RefusalRow>("memory_refusals", "Allocations that were refused");
    refusals.columns({{"time_ns", &OutOfMemoryEvent::time_ns, "when it was", "at", Yes, Time}});
    refusals.columns(thread_key<RefusalRow>());
    refusals.columns({
        {"asked_bytes", &OutOfMemoryEvent::asked_bytes, "size of the request", "requested"},
        {"allocated_bytes", &OutOfMemoryEvent::allocated, "held at that time", "held"},
        {"reserved_bytes", &OutOfMemoryEvent::reserved, "reserved at that time", "reserved"},
        {"path", &OutOfMemoryEvent::path, "names of the ranges, outermost first", "path", Name, Auto,
         "(outside any range)"},
    });
    for (const DeviceMemory& device : use.devices) {
        const auto of = [&]<class T>(const T& it) {
            return OfDevice<T>{trace, device.process, device.device, it};
        };
        devices.add(of(device));
        for (const MemoryHolder& holder : device.holders) holders.add(of(holder));
        for (const OutOfMemoryEvent& event : device.refusals) refusals.add({of(event)});
    }
    return made_result(trace, window, devices, holders, refusals);
}

}  // namespace marey
