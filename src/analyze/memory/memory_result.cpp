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

    ResultRows<OfDevice<DeviceMemory>> devices("memory_devices", "Devices with allocation reports");
    devices.columns(device_key<OfDevice<DeviceMemory>>());
    devices.columns({
        {"has_totals", [](auto& r) { return r->has_totals; }, "the allocator reported how much was held"},
        {"allocations", [](auto& r) { return r->allocations; }, "number of allocations"},
        {"allocated_bytes", [](auto& r) { return r->allocated_bytes; }, "size of these"},
        {"frees", [](auto& r) { return r->frees; }, "number of frees"},
        {"freed_bytes", [](auto& r) { return r->freed_bytes; }, "size of these"},
        {"start_bytes", [](auto& r) { return r->start_bytes; }, "held before the first report"},
        {"end_bytes", [](auto& r) { return r->end_bytes; }, "held after the last report"},
        {"peak_bytes", [](auto& r) { return r->peak_bytes; }, "the most that was held"},
        {"peak_time_ns", [](auto& r) { return r->peak_time_ns; }, "when that was", "", No, Time},
        {"peak_reserved_bytes", [](auto& r) { return r->peak_reserved; }, "the most that was reserved"},
        {"peak_unknown_bytes", [](auto& r) { return r->peak_unknown_bytes; },
         "part of the peak that no allocation in the window explains"},
        {"kept_allocations", [](auto& r) { return r->kept_allocations; },
         "made in the window and not freed in it"},
        {"kept_bytes", [](auto& r) { return r->kept_bytes; }, "size of these"},
        {"earlier_frees", [](auto& r) { return r->earlier_frees; },
         "frees of memory that was allocated before the window"},
        {"earlier_bytes", [](auto& r) { return r->earlier_bytes; }, "size of these"},
        {"unseen_frees", [](auto& r) { return r->unseen_frees; },
         "addresses that were allocated twice without a free in between"},
    });

    ResultRows<OfDevice<MemoryHolder>> holders("memory_holders", "Memory by the ranges that allocated it");
    holders.columns(device_key<OfDevice<MemoryHolder>>());
    holders.columns({
        {"path", [](auto& r) { return r->path; }, "names of the ranges, outermost first", "path", Name, Auto,
         "(outside any range)"},
        {"name", [](auto& r) { return r->path.empty() ? std::nullopt : std::optional(r->path.back()); },
         "name of the innermost range"},
        {"peak_bytes", [](auto& r) { return r->peak_bytes; }, "held at the peak", "at peak"},
        {"peak_allocations", [](auto& r) { return r->peak_allocations; }, "number of these allocations",
         "peak count"},
        {"allocated_bytes", [](auto& r) { return r->allocated_bytes; },
         "allocated in these ranges, without the ranges inside them", "taken"},
        {"allocations", [](auto& r) { return r->allocations; }, "number of these", "taken count"},
        {"total_allocated_bytes", [](auto& r) { return r->total_allocated_bytes; },
         "allocated in these ranges and the ranges inside them", "total"},
        {"freed_bytes", [](auto& r) { return r->freed_bytes; },
         "freed in these ranges, wherever it was allocated", "freed"},
        {"kept_bytes", [](auto& r) { return r->kept_bytes; }, "allocated here and not freed in the window",
         "kept"},
        {"kept_allocations", [](auto& r) { return r->kept_allocations; }, "number of these", "kept count"},
    });

    ResultRows<RefusalRow> refusals("memory_refusals", "Allocations that were refused");
    refusals.columns(device_key<RefusalRow>());
    refusals.columns({{"time_ns", [](auto& r) { return r->time_ns; }, "when it was", "at", Yes, Time}});
    refusals.columns(thread_key<RefusalRow>());
    refusals.columns({
        {"asked_bytes", [](auto& r) { return r->asked_bytes; }, "size of the request", "requested"},
        {"allocated_bytes", [](auto& r) { return r->allocated; }, "held at that time", "held"},
        {"reserved_bytes", [](auto& r) { return r->reserved; }, "reserved at that time", "reserved"},
        {"path", [](auto& r) { return r->path; }, "names of the ranges, outermost first", "path", Name, Auto,
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
