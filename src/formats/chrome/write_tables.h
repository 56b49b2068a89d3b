// write_tables.h: data shared by the events of a Chrome trace: site texts, flow texts and flow targets.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include <marey/modules.h>
#include <marey/trace.h>

#include "analyze/events/event_categories.h"
#include "analyze/gpu/gpu_occupancy.h"
#include "analyze/gpu/gpu_work.h"
#include "formats/chrome/text.h"
#include "formats/chrome/write_clock.h"
#include "formats/chrome/write_rows.h"
#include "json/json_writer.h"
#include "trace/trace_data.h"

namespace marey {

/// The texts that all events of a site share.
struct ChromeSite {
    /// Determines which generated numbers a range gets.
    enum class Kind : std::uint8_t { Plain, Operator, Python, Runtime };

    Stamp head;     ///< {"ph":"X","cat":"...","name":"...",
    Stamp tail;     ///< ,"args":{"at":"file:line"}},\n
    Stamp members;  ///< "at":"file:line" and other properties of the site, or empty
    Kind kind = Kind::Plain;
};

/// The start and finish event of a flow, up to its id.
struct ChromeFlow {
    Stamp start;   ///< {"ph":"s","cat":"...","name":"...","id":
    Stamp finish;  ///< the same with "f" and its binding point
};

/// Built once per trace, then read-only and safe to use from any number of threads.
class ChromeTables {
  public:
    static constexpr std::uint32_t kNoLink = ~std::uint32_t{0};

    /// `trace` must outlive this.
    explicit ChromeTables(const Trace& the_trace)
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

    const Trace& trace;
    /// Whether PyTorch operators are in it: then times and ids follow PyTorch's conventions, on which tools
    /// rely.
    const bool is_torch;
    /// Whether calls and device work carry the id of their operator; PyTorch has an option against it.
    const bool has_operator_ids;
    const std::int64_t first_id;  ///< the id of the first range
    const ChromeClock clock;
    const ChromeRows rows;
    const ModuleTable modules;

    const std::vector<ChromeSite>& sites(bool on_device) const {
        return on_device ? device_sites_ : host_sites_;
    }
    /// The maximum combined size of head and tail over all sites.
    std::size_t largest_stamps() const noexcept { return largest_stamps_; }

    const ChromeFlow& flow_of(const LinkInfo& link) const {
        if (link.kind == LinkKind::Flow && link.name != 0) return named_flows_.find(link.name)->second;
        const auto kind = static_cast<std::size_t>(link.kind);
        return flows_[kind < flows_.size() ? kind : 0];
    }
    bool is_valid(const LinkInfo& link) const noexcept {
        return link.from < range_count_ && link.to < range_count_;
    }
    /// Iterates over the valid links to a range: incoming(row), then next_incoming() of the result, until
    /// kNoLink.
    std::uint32_t incoming(Row row) const noexcept { return incoming_.empty() ? kNoLink : incoming_[row]; }
    std::uint32_t next_incoming(std::uint32_t link) const noexcept { return next_incoming_[link]; }
    /// The number of a link among the flows of its kind, from 1. Forward passes are linked to backward passes
    /// in the order of the latter, as in PyTorch.
    std::uint64_t flow_id(std::uint32_t link) const noexcept {
        return flow_ids_.empty() || flow_ids_[link] == 0 ? std::uint64_t{link} + 1 : flow_ids_[link];
    }
    /// The range that launched this one; kNoRow: unknown.
    Row launch_of(Row row) const noexcept {
        for (std::uint32_t i = incoming(row); i != kNoLink; i = next_incoming_[i]) {
            if (links_[i].kind == LinkKind::Launch) return links_[i].from;
        }
        return kNoRow;
    }

    /// Members that follow from a kernel's shape and its device; null: none.
    const Stamp* kernel_members(Row row) const noexcept {
        return kernel_of_.empty() || kernel_of_[row] == 0 ? nullptr : &kernel_members_[kernel_of_[row] - 1];
    }

  private:
    static ChromeFlow make_flow(std::string_view name) {
        std::string text = "\"cat\":";
        append_json_string(text, name);
        text += ",\"name\":";
        append_json_string(text, name);
        text += ",\"id\":";
        return {Stamp("{\"ph\":\"s\"," + text), Stamp("{\"ph\":\"f\",\"bp\":\"e\"," + text)};
    }

    /// The time in CUDA's own queue is not known: PyTorch writes 0 too.
    static std::string occupancy_members(const GpuOccupancy& occupancy) {
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

    void estimate_kernels() {
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
    std::vector<ChromeSite> make_sites(bool on_device) {
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
                append_json_string(head, std::string(trace.string(site.name)) + '.' +
                                             std::string(trace.string(site.overload)));
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
    void make_flows() {
        for (const std::string_view name : {"flow", "fwdbwd", "ac2g", "remote", "flow"})
            flows_.push_back(make_flow(name));
        for (const LinkInfo& link : links_) {
            if (link.kind == LinkKind::Flow && link.name != 0 && !named_flows_.contains(link.name))
                named_flows_.emplace(link.name, make_flow(trace.string(link.name)));
        }
    }
    void index_links() {
        if (links_.empty()) return;
        incoming_.assign(range_count_, kNoLink);
        next_incoming_.assign(links_.size(), kNoLink);
        for (std::size_t i = links_.size(); i-- > 0;) {
            if (!is_valid(links_[i])) continue;
            next_incoming_[i] = incoming_[links_[i].to];
            incoming_[links_[i].to] = static_cast<std::uint32_t>(i);
        }
    }
    void number_backward_flows() {
        std::vector<std::uint32_t> found;
        for (std::uint32_t i = 0; i < links_.size(); ++i) {
            if (links_[i].kind == LinkKind::ForwardBackward && is_valid(links_[i])) found.push_back(i);
        }
        if (found.empty()) return;
        std::ranges::stable_sort(
            found, {}, [&](std::uint32_t link) { return trace.ranges().start_ns[links_[link].to]; });
        flow_ids_.assign(links_.size(), 0);
        for (std::uint32_t i = 0; i < found.size(); ++i) flow_ids_[found[i]] = i + 1;
    }

    const std::size_t range_count_;
    const std::span<const LinkInfo> links_;
    std::vector<ChromeSite> host_sites_;
    std::vector<ChromeSite> device_sites_;  ///< empty if the trace has no device tracks
    std::size_t largest_stamps_ = 0;
    std::vector<ChromeFlow> flows_;  ///< by kind
    std::unordered_map<StringId, ChromeFlow> named_flows_;
    std::vector<std::uint32_t> incoming_;  ///< per range: the first link to it; empty if there are no links
    std::vector<std::uint32_t> next_incoming_;  ///< per link: the next link to the same range
    std::vector<std::uint32_t> kernel_of_;      ///< per range: 1 + index in kernel_members_; may be empty
    std::vector<Stamp> kernel_members_;
    std::vector<std::uint32_t> flow_ids_;  ///< per link, 0: its number + 1; empty if all are 0
};

}  // namespace marey
