// memory_table.cpp: the memory report as JSON.
#include <marey/export.h>

#include "json/json_writer.h"

namespace marey {
namespace {

void write_path(JsonWriter& json, const std::vector<std::string>& path) {
    json.key("path").begin_array();
    for (const std::string& name : path) json.value(name);
    json.end_array();
}

void write_holder(JsonWriter& json, const MemoryHolder& holder) {
    json.begin_object();
    write_path(json, holder.path);
    json.member("allocations", holder.allocations).member("allocated_bytes", holder.allocated_bytes);
    json.member("total_allocated_bytes", holder.total_allocated_bytes);
    json.member("freed_bytes", holder.freed_bytes);
    json.member("peak_allocations", holder.peak_allocations).member("peak_bytes", holder.peak_bytes);
    json.member("kept_allocations", holder.kept_allocations).member("kept_bytes", holder.kept_bytes);
    json.end_object();
}

void write_refusal(JsonWriter& json, const Trace& trace, const OutOfMemoryEvent& event) {
    json.begin_object().member("time_ns", event.time_ns);
    json.member("thread_id", trace.threads()[event.thread].id);
    json.member("thread", trace.string(trace.threads()[event.thread].name));
    json.member("asked_bytes", event.asked_bytes).member("allocated", event.allocated);
    json.member("reserved", event.reserved);
    write_path(json, event.path);
    json.end_object();
}

void write_device(JsonWriter& json, const Trace& trace, const DeviceMemory& memory) {
    json.begin_object();
    if (memory.process < trace.processes().size()) json.member("pid", trace.processes()[memory.process].pid);
    json.member("device", device_type_name(memory.device.type)).member("index", memory.device.index);
    json.member("has_totals", memory.has_totals);
    json.member("allocations", memory.allocations).member("allocated_bytes", memory.allocated_bytes);
    json.member("frees", memory.frees).member("freed_bytes", memory.freed_bytes);
    json.member("start_bytes", memory.start_bytes).member("end_bytes", memory.end_bytes);
    json.member("peak_bytes", memory.peak_bytes).member("peak_time_ns", memory.peak_time_ns);
    json.member("peak_reserved", memory.peak_reserved);
    json.member("peak_unknown_bytes", memory.peak_unknown_bytes);
    json.member("kept_allocations", memory.kept_allocations).member("kept_bytes", memory.kept_bytes);
    json.member("earlier_frees", memory.earlier_frees).member("earlier_bytes", memory.earlier_bytes);
    json.member("unseen_frees", memory.unseen_frees);
    json.key("holders").begin_array();
    for (const MemoryHolder& holder : memory.holders) write_holder(json, holder);
    json.end_array().key("out_of_memory").begin_array();
    for (const OutOfMemoryEvent& event : memory.refusals) write_refusal(json, trace, event);
    json.end_array().end_object();
}

}  // namespace

std::string memory_use_json(const Trace& trace, const MemoryUse& use) {
    std::string text;
    JsonWriter json(text, kJsonIndent);
    json.begin_object().member("window_start_ns", trace.window().start_ns);
    json.member("window_end_ns", trace.window().end_ns);
    json.key("devices").begin_array();
    for (const DeviceMemory& memory : use.devices) write_device(json, trace, memory);
    json.end_array().end_object();
    return text + "\n";
}

}  // namespace marey
