// gpu_result.cpp: the columns of what `marey gpu` reports.
#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {
namespace gpu_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

template <class T>
std::vector<RowColumn<OfDevice<T>>> times_columns() {
    return {
        {"busy_ns", [](auto& r) { return r->times.busy_ns; }, "time with any work running", "busy"},
        {"idle_ns", [](auto& r) { return r->times.idle_ns; }, "the rest of the window"},
        {"utilisation", [](auto& r) { return r->times.utilisation(); }, "busy time as a share of the window",
         "used", Yes, Share},
        {"kernels", [](auto& r) { return r->times.kernels.count; }, "number of kernels", "kernels"},
        {"kernels_ns", [](auto& r) { return r->times.kernels.total_ns; }, "time of all kernels", "time"},
        {"copies", [](auto& r) { return r->times.copies.count; }, "number of copies", "copies"},
        {"copies_ns", [](auto& r) { return r->times.copies.total_ns; }, "time of all copies", "time"},
        {"sets", [](auto& r) { return r->times.sets.count; }, "number of memory sets", "sets"},
        {"sets_ns", [](auto& r) { return r->times.sets.total_ns; }, "time of all memory sets"},
        {"others", [](auto& r) { return r->times.others.count; },
         "number of other work, such as whole graphs"},
        {"others_ns", [](auto& r) { return r->times.others.total_ns; }, "time of all other work"},
        {"gaps", [](auto& r) { return r->times.gaps.count; }, "periods without work", "gaps"},
        {"mean_gap_ns", [](auto& r) { return r->times.gaps.mean_ns; }, "mean length of these periods"},
        {"median_gap_ns", [](auto& r) { return r->times.gaps.median_ns; }, "median length of these periods"},
        {"longest_gap_ns", [](auto& r) { return r->times.gaps.max_ns; }, "the longest of these periods",
         "longest"},
    };
}

struct LaunchTimes {
    const char* kind;
    const char* title;
    const TimeStatistics& times;
};

const char* place_of(const GpuGap& gap) {
    return gap.place == GpuGapPlace::Between       ? "between"
           : gap.place == GpuGapPlace::BeforeFirst ? "before_first"
                                                   : "after_last";
}
struct GapRow : OfDevice<GpuGap> {
    std::int64_t gap;
    Row thread() const { return it.thread; }
    const GpuHostWork* host() const { return it.host.empty() ? nullptr : &it.host.front(); }
};

struct HostRow : OfDevice<GpuHostWork> {
    std::optional<std::int64_t> gap;
    std::int64_t whole_ns;
};
std::vector<RowColumn<HostRow>> host_columns() {
    return {
        {"time_ns", &GpuHostWork::time_ns, "time of the activity", "time"},
        {"share", [](auto& r) { return share_of(r->time_ns, r.whole_ns); }, "time as a share of all activity",
         "share"},
        {"name", [](auto& r) { return text_or_null(r->name); }, "the innermost range", "", No, Auto,
         "(in no range)"},
        {"function", [](auto& r) { return text_or_null(r->function); }, "the Python function around it"},
        {"activity",
         [](auto& r) {
             return text_or_null(r->name.empty() || r->function.empty() ? r->name
                                                                        : r->name + " in " + r->function);
         },
         "range and function in words", "range", Name, Auto, "(in no range)"},
    };
}

std::optional<std::vector<std::int64_t>> triple(const std::int64_t (&of)[3]) {
    return when(of[0] >= 0, std::vector<std::int64_t>(of, of + 3));
}

struct LauncherRow : OfDevice<GpuLauncher> {
    std::int64_t whole_ns;
};
ResultRows<LauncherRow> launchers_table(const char* name, const char* heading, const char* description) {
    auto table = device_rows<LauncherRow>(name, description);
    table.columns({
        {"time_ns", &GpuLauncher::time_ns, "time of that work", "time"},
        {"share", [](auto& r) { return share_of(r->time_ns, r.whole_ns); },
         "share of the time of all work of the device", "share"},
        {"count", &GpuLauncher::count, "pieces of work launched", "launched"},
        {"short_kernels", &GpuLauncher::short_kernels, "kernels under 10 us among that work"},
        {"name", [](auto& r) { return text_or_null(r->name); }, "the range or function", heading, Call, Auto,
         "(in no range)"},
    });
    return table;
}

struct WaitRow {
    const Trace& trace;
    const GpuWaits& waits;
    const GpuLauncher* caller;
    Row thread() const { return waits.thread; }
};

struct FindingRow : OfDevice<GpuFinding> {
    std::int64_t finding;
    const GpuEvidence* evidence;
    Row thread() const { return it.thread; }
};

struct WholeRow {
    const Trace& trace;
    std::optional<GpuClock> clock;
};

}  // namespace
}  // namespace gpu_columns

Result gpu_result(const Trace& trace, const GpuUse& use) {
    using namespace gpu_columns;

    ResultRows<WholeRow> whole("gpu", "The window, and the accuracy of device times", true);
    whole.columns({
        {"window_start_ns", [](auto& r) { return r.trace.window().start_ns; }, "start of the window", "", No,
         Time},
        {"window_end_ns", [](auto& r) { return r.trace.window().end_ns; }, "end of the window", "", No, Time},
        {"clock_readings", [](auto& r) { return r.clock ? std::optional(r.clock->readings) : std::nullopt; },
         "readings of the device clock"},
        {"clock_median_error_ns",
         [](auto& r) { return r.clock ? std::optional(r.clock->median_error_ns) : std::nullopt; },
         "their median error"},
        {"clock_worst_error_ns",
         [](auto& r) { return r.clock ? std::optional(r.clock->worst_error_ns) : std::nullopt; },
         "their worst error"},
    });
    whole.add({trace, gpu_clock(trace)});

    auto devices = device_rows<OfDevice<GpuDevice>>("gpu_devices", "Devices, by process");
    devices.columns({
        {"name", [](auto& r) { return text_or_null(r->name); }, "model"},
        {"sm_count", [](auto& r) { return when(r->sm_count > 0, r->sm_count); }, "number of multiprocessors"},
    });
    devices.columns(times_columns<GpuDevice>());
    devices.columns({
        {"first_ns", &GpuDevice::first_ns, "start of its first work in the window", "", No, Time},
        {"last_ns", &GpuDevice::last_ns, "end of its last work", "", No, Time},
        {"kernel_busy_ns", &GpuDevice::kernel_busy_ns, "time with any kernel running"},
        {"copy_busy_ns", &GpuDevice::copy_busy_ns, "time with any copy running"},
        {"overlap_ns", &GpuDevice::overlap_ns, "time with a copy and a kernel running"},
        {"concurrent_ns", &GpuDevice::concurrent_ns, "time with several kernels running"},
        {"most_concurrent", &GpuDevice::most_concurrent, "most kernels running at once"},
        {"starved_short_ns", &GpuDevice::starved_short_ns,
         "gaps below 100 us between its first and last work with nothing queued"},
        {"starved_short_gaps", &GpuDevice::starved_short_gaps, "number of these"},
        {"starved_long_ns", &GpuDevice::starved_long_ns, "the longer gaps of that kind"},
        {"starved_long_gaps", &GpuDevice::starved_long_gaps, "number of these"},
        {"early", &GpuDevice::early, "work that began before the call that launched it: the clocks disagree"},
        {"unlaunched", &GpuDevice::unlaunched, "work without a launching call"},
        {"outside", &GpuDevice::outside, "work launched outside any range"},
        {"short_kernels", [](auto& r) { return r->short_kernels.count; }, "kernels under 10 us"},
        {"short_kernels_ns", [](auto& r) { return r->short_kernels.total_ns; }, "time of these"},
    });

    auto streams = device_rows<OfDevice<GpuStream>>("gpu_streams", "Streams of the devices");
    streams.columns({
        {"stream", [](auto& r) { return when(r->stream >= 0, r->stream); }, "number of the stream", "stream",
         Yes, None, "-"},
    });
    streams.columns(times_columns<GpuStream>());
    streams.columns({
        {"name", &GpuStream::name, "name of the stream", "name", Name},
    });

    auto launches = device_rows<OfDevice<LaunchTimes>>("gpu_launches",
                                                       "Times from launches to the work that they launch");
    launches.columns({
        {"kind", [](auto& r) { return std::string(r->kind); },
         "queue: from the start of the launching call until its first work began; queue_after_call: from its "
         "end; launch_call: the call itself"},
        {"title", [](auto& r) { return std::string(r->title); }, "the kind in words", "launches"},
    });
    launches.columns(statistics_columns<OfDevice<LaunchTimes>>(
        "", [](auto& r) -> const TimeStatistics& { return r->times; }, "these times"));

    auto gaps = device_rows<GapRow>("gpu_gaps", "The longest periods when a device had no work");
    gaps.columns({
        {"gap", &GapRow::gap, "number of the gap", "", No, None},
        {"start_ns", &GpuGap::start_ns, "start", "at", Yes, Time},
        {"duration_ns", &GpuGap::duration_ns, "length", "idle"},
        {"place", [](auto& r) { return std::string(place_of(*r.operator->())); },
         "before_first, between or after_last: where it is among the device's work", "place"},
        {"is_starved", &GpuGap::is_starved,
         "nothing was queued: the work after it was launched after it began", "starved"},
    });
    gaps.columns(thread_key<GapRow>());
    gaps.columns({
        {"before", [](auto& r) { return when(r->place != GpuGapPlace::BeforeFirst, r->before); },
         "the work before it"},
        {"after", [](auto& r) { return when(r->place != GpuGapPlace::AfterLast, r->after); },
         "the work after it", "next work"},
        {"host_name",
         [](auto& r) { return r.host() != nullptr ? text_or_null(r.host()->name) : std::nullopt; },
         "the range that the thread was in for most of it", "host activity", Name, Auto, "(in no range)"},
        {"host_ns",
         [](auto& r) { return when(r.host() != nullptr, r.host() != nullptr ? r.host()->time_ns : 0); },
         "time in that range"},
    });

    auto gap_hosts = device_rows<HostRow>("gpu_gap_hosts", "Activity of threads in the longest gaps");
    gap_hosts.columns({
        {"gap", &HostRow::gap, "number of the gap in gpu_gaps", "", No, None},
    });
    gap_hosts.columns(host_columns());

    auto idle_hosts = device_rows<HostRow>(
        "gpu_idle_hosts",
        "Activity of the launching threads while a device was idle between its first and last work");
    idle_hosts.columns(host_columns());

    auto kernels = device_rows<OfDevice<GpuKernel>>("gpu_kernels", "Kernels, by name");
    kernels.columns({
        {"total_ns", [](auto& r) { return r->times.total_ns; }, "time of all launches", "time"},
        {"share", &GpuKernel::share, "share of the time of all work of the device", "share"},
        {"count", [](auto& r) { return r->times.count; }, "number of launches", "count"},
        {"mean_ns", [](auto& r) { return r->times.mean_ns; }, "mean time", "mean"},
        {"min_ns", [](auto& r) { return r->times.min_ns; }, "shortest time", "min", Wide},
        {"median_ns", [](auto& r) { return r->times.median_ns; }, "median time"},
        {"p99_ns", [](auto& r) { return r->times.p99_ns; }, "99th percentile of the time"},
        {"max_ns", [](auto& r) { return r->times.max_ns; }, "longest time", "max", Wide},
        {"queued", &GpuKernel::queued, "launches with a known queue time"},
        {"mean_queue_ns", [](auto& r) { return when(r->queued > 0, r->mean_queue_ns); },
         "mean time from the launching call to the kernel", "queue"},
        {"grid", [](auto& r) { return triple(r->shape.grid); }, "most frequent grid", "grid"},
        {"block", [](auto& r) { return triple(r->shape.block); }, "its block", "block"},
        {"registers_per_thread", [](auto& r) { return when(r->shape.registers >= 0, r->shape.registers); },
         "registers of each thread", "regs", Yes, None},
        {"shared_bytes", [](auto& r) { return when(r->shape.shared_bytes >= 0, r->shape.shared_bytes); },
         "shared memory of each block"},
        {"shapes", &GpuKernel::shapes, "number of different shapes"},
        {"blocks_per_sm", [](auto& r) { return r->occupancy.blocks_per_sm; },
         "blocks for each multiprocessor", "blocks/SM", Wide, Ratio},
        {"warps_per_sm", [](auto& r) { return r->occupancy.warps_per_sm; }, "warps for each multiprocessor",
         "", No, Ratio},
        {"occupancy", [](auto& r) { return r->occupancy.occupancy; }, "estimated occupancy", "occupancy",
         Used, Share},
        {"small_grid_ns", &GpuKernel::small_grid_ns,
         "time of launches with fewer blocks than the device has multiprocessors"},
        {"low_occupancy_ns", &GpuKernel::low_occupancy_ns,
         "time of other launches with an estimate below a quarter"},
        {"name", &GpuKernel::name, "name of the kernel", "kernel", Name},
    });
    auto ranges =
        launchers_table("gpu_ranges", "range", "The nearest ranges around the calls that launched work");
    auto functions =
        launchers_table("gpu_functions", "function", "The nearest Python functions around these calls");

    auto transfers = device_rows<OfDevice<GpuTransfer>>("gpu_transfers", "Copies and sets, by direction");
    transfers.columns({
        {"direction", &GpuTransfer::direction, "HtoD, DtoH, ..., Memset, or the name of the work"},
        {"is_pageable", &GpuTransfer::is_pageable, "from or to memory that is not pinned"},
        {"transfer", [](auto& r) { return r->direction + (r->is_pageable ? ", pageable" : ""); },
         "both in words", "direction"},
        {"count", &GpuTransfer::count, "number of transfers", "count"},
        {"sized", &GpuTransfer::sized, "transfers with a known size"},
        {"bytes", [](auto& r) { return when(r->sized > 0, r->bytes); }, "sum of these sizes", "bytes"},
        {"time_ns", &GpuTransfer::time_ns, "time of all transfers", "time"},
        {"sized_ns", &GpuTransfer::sized_ns, "time of those with a known size"},
        {"gb_per_s", [](auto& r) { return when(r->sized_ns > 0, r->bytes_per_ns()); }, "bytes per nanosecond",
         "GB/s", Yes, Ratio},
    });
    for (const GpuDevice& device : use.devices) {
        const auto of = [&]<class T>(const T& it) {
            return OfDevice<T>{trace, device.process, device.device, it};
        };
        devices.add(of(device));
        for (const GpuStream& stream : device.streams) streams.add(of(stream));
        for (const LaunchTimes& times :
             {LaunchTimes{"queue", "queue, from the call's start", device.queue},
              {"queue_after_call", "queue, from the call's end", device.queue_after_call},
              {"launch_call", "the launching call", device.launch_calls}}) {
            if (device.queue.count > 0) launches.add(of(times));
        }
        for (const GpuGap& gap : device.longest_gaps) {
            const auto number = static_cast<std::int64_t>(gaps.table.rows);
            gaps.add({of(gap), number});
            for (const GpuHostWork& work : gap.host) gap_hosts.add({of(work), number, gap.duration_ns});
        }
        std::int64_t idle_ns = 0;
        for (const GpuHostWork& work : device.idle_host) idle_ns += work.time_ns;
        for (const GpuHostWork& work : device.idle_host) idle_hosts.add({of(work), std::nullopt, idle_ns});
        for (const GpuKernel& kernel : device.kernels) kernels.add(of(kernel));
        const GpuTimes& times = device.times;
        const std::int64_t work_ns =
            times.kernels.total_ns + times.copies.total_ns + times.sets.total_ns + times.others.total_ns;
        for (const GpuLauncher& range : device.ranges) ranges.add({of(range), work_ns});
        for (const GpuLauncher& function : device.functions) functions.add({of(function), work_ns});
        for (const GpuTransfer& transfer : device.transfers) transfers.add(of(transfer));
    }

    ResultRows<GpuCall> calls("gpu_calls", "Calls into the runtime or driver of devices, by name");
    calls.columns({
        {"total_ns", [](auto& r) { return r.times.total_ns; }, "time of all calls", "time"},
        {"count", [](auto& r) { return r.times.count; }, "number of calls", "count"},
        {"mean_ns", [](auto& r) { return r.times.mean_ns; }, "mean time", "mean"},
        {"min_ns", [](auto& r) { return r.times.min_ns; }, "shortest time"},
        {"median_ns", [](auto& r) { return r.times.median_ns; }, "median time", "median"},
        {"p99_ns", [](auto& r) { return r.times.p99_ns; }, "99th percentile of the time", "p99"},
        {"max_ns", [](auto& r) { return r.times.max_ns; }, "longest time", "max"},
        {"name", &GpuCall::name, "name of the function", "call", Name},
    });
    for (const GpuCall& call : use.calls) calls.add(call);

    ResultRows<WaitRow> waits("gpu_waits", "Threads that waited for devices");
    waits.columns(thread_key<WaitRow>());
    waits.columns({
        {"count", [](auto& r) { return r.waits.count; }, "number of waits", "waits"},
        {"time_ns", [](auto& r) { return r.waits.time_ns; }, "time of all waits", "time"},
        {"idle_after_ns", [](auto& r) { return r.waits.idle_after_ns; },
         "time that a device was idle from the end of a wait until the thread's next launch", "idle after"},
    });

    ResultRows<WaitRow> wait_callers("gpu_wait_callers", "The ranges that waited");
    wait_callers.columns(thread_key<WaitRow>());
    wait_callers.columns({
        {"name", [](auto& r) { return text_or_null(r.caller->name); }, "name of the range", "range", Name,
         Auto, "(in no range)"},
        {"count", [](auto& r) { return r.caller->count; }, "number of waits", "waits"},
        {"time_ns", [](auto& r) { return r.caller->time_ns; }, "time of these waits", "time"},
    });
    for (const GpuWaits& of_thread : use.waits) {
        waits.add({trace, of_thread, nullptr});
        for (const GpuLauncher& caller : of_thread.callers) wait_callers.add({trace, of_thread, &caller});
    }

    ResultRows<FindingRow> findings("gpu_findings", "Performance problems");
    findings.columns({
        {"finding", &FindingRow::finding, "number of the finding", "", No, None},
        {"rule", &GpuFinding::rule, "name of the rule; docs/guide/gpu.md has the thresholds", "rule"},
    });
    findings.columns(device_key<FindingRow>());
    findings.columns(thread_key<FindingRow>());
    findings.columns({
        {"share", &GpuFinding::share, "the number that was compared with the threshold", "share"},
        {"text", &GpuFinding::text, "the problem in one sentence", "text", Name},
    });

    ResultRows<FindingRow> evidence("gpu_evidence", "Evidence for the findings");
    evidence.columns({
        {"finding", &FindingRow::finding, "number of the finding in gpu_findings", "", No, None},
        {"what", [](auto& r) { return r.evidence->what; }, "what was counted or measured", "what", Name},
        {"count", [](auto& r) { return when(r.evidence->count > 0, r.evidence->count); }, "number", "count"},
        {"time_ns", [](auto& r) { return when(r.evidence->time_ns >= 0, r.evidence->time_ns); }, "time",
         "time"},
    });
    for (const GpuFinding& finding : use.findings) {
        const FindingRow row{{trace, finding.process, finding.device, finding},
                             static_cast<std::int64_t>(findings.table.rows),
                             nullptr};
        findings.add(row);
        for (const GpuEvidence& each : finding.evidence) evidence.add({row, row.finding, &each});
    }
    return made_result(trace, whole, devices, streams, launches, gaps, gap_hosts, idle_hosts, kernels, ranges,
                       functions, transfers, calls, waits, wait_callers, findings, evidence);
}

}  // namespace marey
