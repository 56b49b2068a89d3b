// write_tables.cpp: data shared by the events of a Chrome trace.
#include "formats/chrome/write_tables.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/events/event_categories.h"
#include "analyze/gpu/gpu_occupancy.h"
#include "analyze/gpu/gpu_work.h"
#include "json/json_writer.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

ChromeFlow make_flow(std::string_view name) {
    std::string text = "\"cat\":";
    append_json_string(text, name);
    text += ",\"name\":";
    append_json_string(text, name);
    text += ",\"id\":";
    return {Stamp("{\"ph\":\"s\"," + text), Stamp("{\"ph\":\"f\",\"bp\":\"e\"," + text)};
}

/// The time in CUDA's own queue is not known: PyTorch writes 0 too.
std::string occupancy_members(const GpuOccupancy& occupancy) {
    std::string members = "\"queued\":0";
    const auto add = [&](std::string_view key, double value) {
        members += ",\"";
        members += key;
        members += "\":";
        append_json_number(members, value);
    };
    if (occupancy.blocks_per_sm) add("blocks per SM", *occupancy.blocks_per_sm);
    if (occupancy.warps_per_sm) add("warps per SM", *occupancy.warps_per_sm);
    if (occupancy.occupancy) add("est. achieved occupancy %", std::round(*occupancy.occupancy * 100));
    return members;
}

}  // namespace

ChromeTables::ChromeTables(const Trace& the_trace)
    : trace(the_trace),
      is_torch(has_torch_operators(trace)),
      has_operator_ids(std::ranges::none_of(
          trace.metadata(),
          [](const MetadataInfo& fact) { return fact.key == "disable_external_correlation"; })),
      first_id(static_cast<std::int64_t>(trace.window().first_id) + 1),
      clock(trace, is_torch),
      rows(trace),
      modules(trace),
      range_count_(trace.ranges().size()),
      links_(trace.links()) {
    host_sites_ = make_sites(false);
    if (!rows.devices.empty()) device_sites_ = make_sites(true);
    make_flows();
    index_links();
    if (is_torch) number_backward_flows();
    if (!rows.devices.empty()) estimate_kernels();
}

void ChromeTables::estimate_kernels() {
    const std::vector<std::string>& strings = trace.data().strings;
    const bool is_known = std::ranges::find(strings, "blocks per SM") != strings.end();  // imported
    const std::map<std::int64_t, GpuProperties> properties = gpu_properties(trace);
    if (is_known || properties.empty()) return;
    const GpuWork work = collect_gpu_work(trace, {});
    kernel_of_.assign(range_count_, 0);
    std::size_t largest = 0;
    for (const GpuDeviceWork& device : work.devices) {
        const auto facts = properties.find(device.device.index);
        if (facts == properties.end()) continue;
        std::vector<std::uint32_t> of_shape(work.shapes.size(), 0);
        for (const GpuPiece& piece : device.pieces) {
            if (piece.kind != GpuWorkKind::Kernel || piece.shape == kNoIndex) continue;
            if (of_shape[piece.shape] == 0) {
                kernel_members_.emplace_back(
                    occupancy_members(estimate_occupancy(work.shapes[piece.shape], facts->second)));
                largest = std::max(largest, kernel_members_.back().size());
                of_shape[piece.shape] = static_cast<std::uint32_t>(kernel_members_.size());
            }
            kernel_of_[piece.range] = of_shape[piece.shape];
        }
    }
    largest_stamps_ += largest + Stamp::kBlock;
}

std::vector<ChromeSite> ChromeTables::make_sites(bool on_device) {
    std::vector<ChromeSite> made;
    made.reserve(trace.sites().size());
    for (const SiteInfo& site : trace.sites()) {
        const std::string_view category = chrome_category(trace, site, on_device);
        std::string head = "{\"ph\":\"X\",\"cat\":";
        append_json_string(head, category);
        head += ",\"name\":";
        if (site.overload == 0 || site.scope == Scope::PythonFunction) {
            append_json_string(head, trace.string(site.name));
        } else {  // as PyTorch's profiler writes it
            append_json_string(
                head, std::string(trace.string(site.name)) + '.' + std::string(trace.string(site.overload)));
        }
        head += ',';
        std::string members;
        if (site.file != 0) {
            std::string at(trace.string(site.file));
            if (site.line != 0) at += ":" + std::to_string(site.line);
            append_json_member(members, "at", at);
        }
        if (site.overload != 0) append_json_member(members, "Overload name", trace.string(site.overload));
        if (site.raw_name != 0) append_json_member(members, "Mangled name", trace.string(site.raw_name));
        const auto number = static_cast<std::uint32_t>(made.size());
        if (const ModuleInfo* const module = modules.find_site(number); module != nullptr && !on_device) {
            if (!members.empty()) members += ',';
            members += "\"Python module id\":" + std::to_string(module->number);
        }
        if (site.scope != default_scope(category))
            append_json_member(members, "scope", scope_name(site.scope));
        std::string tail = members.empty() ? "},\n" : ",\"args\":{" + members + "}},\n";
        largest_stamps_ = std::max(largest_stamps_, head.size() + tail.size());
        ChromeSite& entry = made.emplace_back();
        entry.head = Stamp(std::move(head));
        entry.tail = Stamp(std::move(tail));
        entry.members = Stamp(std::move(members));
        // PyTorch counts annotations among its operators.
        const bool is_annotation =
            is_torch && !on_device && (site.scope == Scope::User || site.scope == Scope::Step);
        entry.kind = is_operator(site.scope) || is_annotation ? ChromeSite::Kind::Operator
                     : is_python_frame(site.scope)            ? ChromeSite::Kind::Python
                     : site.scope == Scope::DeviceRuntime     ? ChromeSite::Kind::Runtime
                                                              : ChromeSite::Kind::Plain;
    }
    return made;
}

void ChromeTables::make_flows() {
    for (const std::string_view name : {"flow", "fwdbwd", "ac2g", "remote", "flow"})
        flows_.push_back(make_flow(name));
    for (const LinkInfo& link : links_) {
        if (link.kind == LinkKind::Flow && link.name != 0 && !named_flows_.contains(link.name))
            named_flows_.emplace(link.name, make_flow(trace.string(link.name)));
    }
}

void ChromeTables::index_links() {
    if (links_.empty()) return;
    incoming_.assign(range_count_, kNoLink);
    next_incoming_.assign(links_.size(), kNoLink);
    for (std::size_t i = links_.size(); i-- > 0;) {
        if (!is_valid(links_[i])) continue;
        next_incoming_[i] = incoming_[links_[i].to];
        incoming_[links_[i].to] = static_cast<std::uint32_t>(i);
    }
}

void ChromeTables::number_backward_flows() {
    std::vector<std::uint32_t> found;
    for (std::uint32_t i = 0; i < links_.size(); ++i) {
        if (links_[i].kind == LinkKind::ForwardBackward && is_valid(links_[i])) found.push_back(i);
    }
    if (found.empty()) return;
    std::ranges::stable_sort(found, {},
                             [&](std::uint32_t link) { return trace.ranges().start_ns[links_[link].to]; });
    flow_ids_.assign(links_.size(), 0);
    for (std::uint32_t i = 0; i < found.size(); ++i) flow_ids_[found[i]] = i + 1;
}

}  // namespace marey
