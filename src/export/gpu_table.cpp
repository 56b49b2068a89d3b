// gpu_table.cpp: the GPU report as JSON; its kernels as CSV.
#include <marey/export.h>

#include "export/csv_field.h"
#include "export/statistics_json.h"
#include "json/json_writer.h"

namespace marey {
namespace {

template <typename Rows, typename Write>
void write_array(JsonWriter& json, std::string_view key, const Rows& rows, const Write& write) {
    json.key(key).begin_array();
    for (const auto& row : rows) write(row);
    json.end_array();
}

template <typename T>
void member_or_null(JsonWriter& json, std::string_view key, bool is_known, const T& value) {
    json.key(key);
    if (is_known) {
        json.value(value);
    } else {
        json.null();
    }
}

void write_thread(JsonWriter& json, const Trace& trace, Row thread) {
    const bool is_known = thread < trace.threads().size();
    const ThreadInfo info = is_known ? trace.threads()[thread] : ThreadInfo{};
    member_or_null(json, "thread", is_known, trace.string(info.name));
    member_or_null(json, "thread_id", is_known, info.id);
}

void write_device_key(JsonWriter& json, const Trace& trace, Row process, const Device& device) {
    if (process < trace.processes().size()) json.member("pid", trace.processes()[process].pid);
    json.member("device", device_type_name(device.type)).member("index", device.index);
}

void write_totals(JsonWriter& json, std::string_view key, const GpuWorkTotals& totals) {
    json.key(key).begin_object().member("count", totals.count);
    json.member("total_ns", totals.total_ns).end_object();
}

void write_times(JsonWriter& json, const GpuTimes& times) {
    json.member("busy_ns", times.busy_ns).member("idle_ns", times.idle_ns);
    json.member("utilisation", times.utilisation());
    write_totals(json, "kernels", times.kernels);
    write_totals(json, "copies", times.copies);
    write_totals(json, "sets", times.sets);
    write_totals(json, "others", times.others);
    write_statistics(json.key("gaps"), times.gaps);
}

void write_host(JsonWriter& json, std::string_view key, const std::vector<GpuHostWork>& rows) {
    write_array(json, key, rows, [&](const GpuHostWork& row) {
        json.begin_object();
        member_or_null(json, "name", !row.name.empty(), row.name);
        member_or_null(json, "function", !row.function.empty(), row.function);
        json.member("time_ns", row.time_ns).end_object();
    });
}

void write_gap(JsonWriter& json, const Trace& trace, const GpuGap& gap) {
    json.begin_object().member("start_ns", gap.start_ns).member("duration_ns", gap.duration_ns);
    json.member("place", gap.place == GpuGapPlace::Between       ? "between"
                         : gap.place == GpuGapPlace::BeforeFirst ? "before_first"
                                                                 : "after_last");
    json.member("is_starved", gap.is_starved);
    write_thread(json, trace, gap.thread);
    member_or_null(json, "before", gap.place != GpuGapPlace::BeforeFirst, gap.before);
    member_or_null(json, "after", gap.place != GpuGapPlace::AfterLast, gap.after);
    write_host(json, "host", gap.host);
    json.end_object();
}

void write_triple(JsonWriter& json, std::string_view key, const std::int64_t (&triple)[3]) {
    json.key(key);
    if (triple[0] < 0) {
        json.null();
        return;
    }
    json.begin_array();
    for (const std::int64_t size : triple) json.value(size);
    json.end_array();
}

void write_kernel(JsonWriter& json, const GpuKernel& kernel) {
    json.begin_object().member("name", kernel.name).member("share", kernel.share);
    write_statistics(json.key("times"), kernel.times);
    json.member("queued", kernel.queued);
    member_or_null(json, "mean_queue_ns", kernel.queued > 0, kernel.mean_queue_ns);
    write_triple(json, "grid", kernel.shape.grid);
    write_triple(json, "block", kernel.shape.block);
    member_or_null(json, "registers_per_thread", kernel.shape.registers >= 0, kernel.shape.registers);
    member_or_null(json, "shared_bytes", kernel.shape.shared_bytes >= 0, kernel.shape.shared_bytes);
    json.member("shapes", kernel.shapes);
    const GpuOccupancy& estimate = kernel.occupancy;
    const auto write = [&](std::string_view key, const std::optional<double>& number) {
        member_or_null(json, key, number.has_value(), number.value_or(0));
    };
    write("blocks_per_sm", estimate.blocks_per_sm);
    write("warps_per_sm", estimate.warps_per_sm);
    write("occupancy", estimate.occupancy);
    json.member("small_grid_ns", kernel.small_grid_ns);
    json.member("low_occupancy_ns", kernel.low_occupancy_ns).end_object();
}

void write_launchers(JsonWriter& json, std::string_view key, const std::vector<GpuLauncher>& rows) {
    write_array(json, key, rows, [&](const GpuLauncher& row) {
        json.begin_object();
        member_or_null(json, "name", !row.name.empty(), row.name);
        json.member("count", row.count).member("time_ns", row.time_ns);
        json.member("short_kernels", row.short_kernels).end_object();
    });
}

void write_device(JsonWriter& json, const Trace& trace, const GpuDevice& device) {
    json.begin_object();
    write_device_key(json, trace, device.process, device.device);
    member_or_null(json, "name", !device.name.empty(), device.name);
    member_or_null(json, "sm_count", device.sm_count > 0, device.sm_count);
    write_times(json, device.times);
    json.member("first_ns", device.first_ns).member("last_ns", device.last_ns);
    write_array(json, "streams", device.streams, [&](const GpuStream& stream) {
        json.begin_object().member("stream", stream.stream).member("name", stream.name);
        write_times(json, stream.times);
        json.end_object();
    });
    json.member("kernel_busy_ns", device.kernel_busy_ns).member("copy_busy_ns", device.copy_busy_ns);
    json.member("overlap_ns", device.overlap_ns).member("concurrent_ns", device.concurrent_ns);
    json.member("most_concurrent", device.most_concurrent);
    json.member("starved_short_ns", device.starved_short_ns);
    json.member("starved_short_gaps", device.starved_short_gaps);
    json.member("starved_long_ns", device.starved_long_ns);
    json.member("starved_long_gaps", device.starved_long_gaps);
    write_array(json, "longest_gaps", device.longest_gaps,
                [&](const GpuGap& gap) { write_gap(json, trace, gap); });
    write_host(json, "idle_host", device.idle_host);
    write_statistics(json.key("queue"), device.queue);
    write_statistics(json.key("queue_after_call"), device.queue_after_call);
    write_statistics(json.key("launch_calls"), device.launch_calls);
    json.member("early", device.early).member("unlaunched", device.unlaunched);
    json.member("outside", device.outside);
    write_totals(json, "short_kernels", device.short_kernels);
    write_array(json, "kernel_table", device.kernels,
                [&](const GpuKernel& kernel) { write_kernel(json, kernel); });
    write_launchers(json, "ranges", device.ranges);
    write_launchers(json, "functions", device.functions);
    write_array(json, "transfers", device.transfers, [&](const GpuTransfer& row) {
        json.begin_object().member("direction", row.direction).member("is_pageable", row.is_pageable);
        json.member("count", row.count).member("sized", row.sized).member("bytes", row.bytes);
        json.member("time_ns", row.time_ns).member("sized_ns", row.sized_ns);
        member_or_null(json, "gb_per_s", row.sized_ns > 0, row.bytes_per_ns());
        json.end_object();
    });
    json.end_object();
}

void write_finding(JsonWriter& json, const Trace& trace, const GpuFinding& finding) {
    json.begin_object().member("rule", finding.rule);
    if (finding.thread == kNoRow) {
        write_device_key(json, trace, finding.process, finding.device);
    } else {
        write_thread(json, trace, finding.thread);
    }
    json.member("share", finding.share).member("text", finding.text);
    write_array(json, "evidence", finding.evidence, [&](const GpuEvidence& row) {
        json.begin_object().member("what", row.what);
        member_or_null(json, "count", row.count > 0, row.count);
        member_or_null(json, "time_ns", row.time_ns >= 0, row.time_ns);
        json.end_object();
    });
    json.end_object();
}

void write_clock(JsonWriter& json, const std::optional<GpuClock>& clock) {
    json.key("clock");
    if (!clock) {
        json.null();
        return;
    }
    json.begin_object().member("readings", clock->readings);
    json.member("median_error_ns", clock->median_error_ns);
    json.member("worst_error_ns", clock->worst_error_ns).end_object();
}

std::string triple_text(const std::int64_t (&triple)[3]) {
    if (triple[0] < 0) return "";
    return std::to_string(triple[0]) + "x" + std::to_string(triple[1]) + "x" + std::to_string(triple[2]);
}

}  // namespace

std::string gpu_use_json(const Trace& trace, const GpuUse& use) {
    std::string text;
    JsonWriter json(text, kJsonIndent);
    json.begin_object().member("window_start_ns", trace.window().start_ns);
    json.member("window_end_ns", trace.window().end_ns);
    write_clock(json, gpu_clock(trace));
    write_array(json, "devices", use.devices,
                [&](const GpuDevice& device) { write_device(json, trace, device); });
    write_array(json, "calls", use.calls, [&](const GpuCall& call) {
        json.begin_object().member("name", call.name);
        write_statistics(json.key("times"), call.times);
        json.end_object();
    });
    write_array(json, "waits", use.waits, [&](const GpuWaits& waits) {
        json.begin_object();
        write_thread(json, trace, waits.thread);
        json.member("count", waits.count).member("time_ns", waits.time_ns);
        json.member("idle_after_ns", waits.idle_after_ns);
        write_launchers(json, "callers", waits.callers);
        json.end_object();
    });
    write_array(json, "findings", use.findings,
                [&](const GpuFinding& finding) { write_finding(json, trace, finding); });
    json.end_object();
    return text + "\n";
}

std::string gpu_kernels_csv(const Trace& trace, const GpuUse& use) {
    std::string text =
        "pid,device,name,count,total_ns,mean_ns,min_ns,max_ns,share,mean_queue_ns,grid,block,"
        "registers_per_thread,shared_bytes,blocks_per_sm,warps_per_sm,occupancy\n";
    const auto number = [&](bool is_known, auto value) {
        text += ',';
        if (is_known) append_json_number(text, value);
    };
    for (const GpuDevice& device : use.devices) {
        for (const GpuKernel& kernel : device.kernels) {
            if (device.process < trace.processes().size())
                append_json_number(text, trace.processes()[device.process].pid);
            number(true, std::int64_t{device.device.index});
            text += ',';
            append_csv_text(text, kernel.name);
            number(true, kernel.times.count);
            number(true, kernel.times.total_ns);
            number(true, kernel.times.mean_ns);
            number(true, kernel.times.min_ns);
            number(true, kernel.times.max_ns);
            number(true, kernel.share);
            number(kernel.queued > 0, kernel.mean_queue_ns);
            text += ',' + triple_text(kernel.shape.grid) + ',' + triple_text(kernel.shape.block);
            number(kernel.shape.registers >= 0, kernel.shape.registers);
            number(kernel.shape.shared_bytes >= 0, kernel.shape.shared_bytes);
            for (const std::optional<double>& estimate :
                 {kernel.occupancy.blocks_per_sm, kernel.occupancy.warps_per_sm, kernel.occupancy.occupancy})
                number(estimate.has_value(), estimate.value_or(0));
            text += '\n';
        }
    }
    return text;
}

}  // namespace marey
