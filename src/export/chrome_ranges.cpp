// chrome_ranges.cpp: the ranges of a trace and the arrows between them as events of a Chrome trace.
#include "export/chrome_ranges.h"

#include <algorithm>

#include "trace/chrome_categories.h"
#include "trace/trace_data.h"

namespace kymo {
namespace {

/// Of what follows a range's duration, less its values and what its site says.
constexpr std::size_t kMostOfRest = 13 * ChromeArguments::kNumberBytes + 4 * Stamp::kBlock;
constexpr std::uint16_t kFlagsShown = kBeganBefore | kUnfinished | kEndInferred;

void append_member(std::string& members, std::string_view key, std::string_view value) {
    if (!members.empty()) members += ',';
    append_json_string(members, key);
    members += ':';
    append_json_string(members, value);
}

}  // namespace

ChromeRanges::ChromeRanges(const Trace& trace, const ChromeRows& rows, ChromeText& out)
    : trace_(trace),
      rows_(rows),
      out_(out),
      clock_(trace.window()),
      ranges_(trace.ranges()),
      sites_(trace.sites()),
      links_(trace.links()),
      slices_(trace.data().range_arguments),
      details_(trace.range_details()),
      arguments_(trace, out),
      modules_(trace) {
    host_sites_ = make_sites(false);
    if (!rows.devices.empty()) device_sites_ = make_sites(true);
    make_flows();
    index_links();
}

std::vector<ChromeSite> ChromeRanges::make_sites(bool on_device) {
    std::vector<ChromeSite> made;
    made.reserve(sites_.size());
    for (const SiteInfo& site : sites_) {
        const std::string_view category = chrome_category(trace_, site, on_device);
        std::string head = "{\"ph\":\"X\",\"cat\":";
        append_json_string(head, category);
        head += ",\"name\":";
        append_json_string(head, trace_.string(site.name));
        head += ',';
        std::string members;
        if (site.file != 0) {
            std::string at(trace_.string(site.file));
            if (site.line != 0) at += ":" + std::to_string(site.line);
            append_member(members, "at", at);
        }
        if (site.overload != 0) append_member(members, "Overload name", trace_.string(site.overload));
        if (site.raw_name != 0) append_member(members, "Mangled name", trace_.string(site.raw_name));
        const auto number = static_cast<std::uint32_t>(made.size());
        if (const ModuleInfo* const module = modules_.find_site(number); module != nullptr && !on_device) {
            if (!members.empty()) members += ',';
            members += "\"Python module id\":" + std::to_string(module->number);
        }
        if (site.scope != usual_scope(category)) append_member(members, "scope", scope_name(site.scope));
        std::string tail = members.empty() ? "},\n" : ",\"args\":{" + members + "}},\n";
        largest_stamps_ = std::max(largest_stamps_, head.size() + tail.size());
        ChromeSite& entry = made.emplace_back();
        entry.head = Stamp(std::move(head));
        entry.tail = Stamp(std::move(tail));
        entry.members = Stamp(std::move(members));
        entry.kind = is_operator(site.scope)              ? ChromeSite::Kind::Operator
                     : is_python_frame(site.scope)        ? ChromeSite::Kind::Python
                     : site.scope == Scope::DeviceRuntime ? ChromeSite::Kind::Runtime
                                                          : ChromeSite::Kind::Plain;
    }
    return made;
}

// ---- arrows

void ChromeRanges::make_flows() {
    for (const std::string_view name : {"flow", "fwdbwd", "ac2g", "remote", "flow"}) {
        const std::string text =
            "\"cat\":\"" + std::string(name) + "\",\"name\":\"" + std::string(name) + "\",\"id\":";
        flows_.push_back({Stamp("{\"ph\":\"s\"," + text), Stamp("{\"ph\":\"f\",\"bp\":\"e\"," + text)});
    }
}

const ChromeRanges::Flow& ChromeRanges::flow_of(const LinkInfo& link) {
    const auto kind = static_cast<std::size_t>(link.kind);
    if (link.kind != LinkKind::Flow || link.name == 0) return flows_[kind < flows_.size() ? kind : 0];
    for (const auto& [name, flow] : named_flows_) {
        if (name == link.name) return flow;
    }
    std::string text = "\"cat\":";
    append_json_string(text, trace_.string(link.name));
    text += ",\"name\":";
    append_json_string(text, trace_.string(link.name));
    text += ",\"id\":";
    named_flows_.emplace_back(
        link.name, Flow{Stamp("{\"ph\":\"s\"," + text), Stamp("{\"ph\":\"f\",\"bp\":\"e\"," + text)});
    return named_flows_.back().second;
}

bool ChromeRanges::is_valid(const LinkInfo& link) const {
    return link.from < ranges_.size() && link.to < ranges_.size();
}

void ChromeRanges::index_links() {
    if (links_.empty()) return;
    incoming_.assign(ranges_.size(), kNoLink);
    next_incoming_.assign(links_.size(), kNoLink);
    for (std::size_t i = links_.size(); i-- > 0;) {
        if (!is_valid(links_[i])) continue;
        next_incoming_[i] = incoming_[links_[i].to];
        incoming_[links_[i].to] = static_cast<std::uint32_t>(i);
    }
}

/// The range that launched this one; kNoRow: none is known.
Row ChromeRanges::launch_of(Row row) const {
    if (incoming_.empty()) return kNoRow;
    for (std::uint32_t i = incoming_[row]; i != kNoLink; i = next_incoming_[i]) {
        if (links_[i].kind == LinkKind::Launch) return links_[i].from;
    }
    return kNoRow;
}

void ChromeRanges::write_flow(const Stamp& start, std::uint32_t link, const Stamp& row_stamp,
                              std::uint64_t from) {
    char* out = out_.room(start.size() + row_stamp.size() + 2 * kDecimalBytes + 8 + Stamp::kBlock);
    out = start.put(out);
    out = put_decimal(out, std::uint64_t{link} + 1);
    *out++ = ',';
    out = row_stamp.put(out);
    out = put_micros(out, from);
    out_.take(put_literal(out, "},\n"));
}

// ---- ranges

void ChromeRanges::write() {
    for (std::size_t i = 0; i < trace_.tracks().size(); ++i) write_track(i);
}

/// Moves the places in the sparse tables to the first that are not before `row`.
void ChromeRanges::seek(Row row) {
    while (slice_ < slices_.size() && slices_[slice_].row < row) ++slice_;
    while (detail_ < details_.size() && details_[detail_].range < row) ++detail_;
    while (link_ < links_.size() && links_[link_].from < row) ++link_;
    next_sparse_ = std::min(slice_ < slices_.size() ? slices_[slice_].row : kNoRow,
                            detail_ < details_.size() ? details_[detail_].range : kNoRow);
}

void ChromeRanges::write_track(std::size_t index) {
    const TrackInfo& track = trace_.tracks()[index];
    const bool on_device = is_of_device(track);
    const std::vector<ChromeSite>& sites = on_device ? device_sites_ : host_sites_;
    const Stamp row_stamp(chrome_row_text(rows_.track[index]));
    const std::size_t most =
        largest_stamps_ + row_stamp.size() + 2 * kDecimalBytes + kMostOfRest + 2 * Stamp::kBlock;
    const Row end = track.first_range + track.range_count;
    seek(track.first_range);
    for (Row row = track.first_range; row < end; ++row) {
        const std::uint64_t from = clock_.since_start(ranges_.start_ns[row]);
        const std::uint64_t to = clock_.since_start(ranges_.start_ns[row] + ranges_.duration_ns[row]);
        const ChromeSite& site = sites[ranges_.site[row]];
        char* out = out_.room(most);
        out = site.head.put(out);
        out = row_stamp.put(out);
        out = put_micros(out, from);
        out = put_literal(out, ",\"dur\":");
        out = put_micros(out, to - from);
        const bool is_plain = site.kind == ChromeSite::Kind::Plain && !on_device && row != next_sparse_ &&
                              (ranges_.flags[row] & kFlagsShown) == 0 && !has_links(row) &&
                              !modules_.has_parts();
        if (is_plain) [[likely]] {
            out_.take(site.tail.put(out));
            continue;
        }
        write_rest(out, row, site, track, row_stamp, from);
    }
}

/// The "args" of a range, the end of its event, and the ends of arrows that lie at it. There is room for
/// `most` bytes at `out`.
void ChromeRanges::write_rest(char* out, Row row, const ChromeSite& site, const TrackInfo& track,
                              const Stamp& row_stamp, std::uint64_t from) {
    out = put_literal(out, ",\"args\":{");
    arguments_.begin();
    const bool is_sparse = row == next_sparse_;
    if (is_sparse && slice_ < slices_.size() && slices_[slice_].row == row) {
        out_.take(out);
        arguments_.append_values(
            {trace_.data().arguments.data() + slices_[slice_].first, slices_[slice_].count});
        out = out_.room(largest_stamps_ + kMostOfRest + Stamp::kBlock);
    }
    if (modules_.has_parts() && site.kind != ChromeSite::Kind::Python && !is_of_device(track)) {
        out_.take(out);
        append_hierarchy(row);
        out = out_.room(largest_stamps_ + kMostOfRest + Stamp::kBlock);
    }
    out = put_numbers(out, row, site, track);
    if (is_sparse && detail_ < details_.size() && details_[detail_].range == row)
        out = arguments_.put_detail(out, details_[detail_]);
    if ((ranges_.flags[row] & kFlagsShown) != 0) out = put_flags(out, ranges_.flags[row]);
    out = arguments_.put_rendered(out, site.members);
    out_.take(put_literal(out, "}},\n"));
    if (!incoming_.empty()) write_flows(row, row_stamp, from);
    if (is_sparse) seek(row + 1);
}

/// In which modules it ran.
void ChromeRanges::append_hierarchy(Row row) {
    std::string member;
    const std::string hierarchy = modules_.hierarchy(row);
    if (hierarchy.empty()) return;
    append_member(member, "Module Hierarchy", hierarchy);
    arguments_.append_rendered(Stamp(std::move(member)));
}

void ChromeRanges::write_flows(Row row, const Stamp& row_stamp, std::uint64_t from) {
    for (std::uint32_t i = incoming_[row]; i != kNoLink; i = next_incoming_[i])
        write_flow(flow_of(links_[i]).finish, i, row_stamp, from);
    for (; link_ < links_.size() && links_[link_].from == row; ++link_) {
        if (is_valid(links_[link_]))
            write_flow(flow_of(links_[link_]).start, static_cast<std::uint32_t>(link_), row_stamp, from);
    }
}

char* ChromeRanges::put_flags(char* out, std::uint16_t flags) {
    static const Stamp kBegan("\"began_before\":true"), kOpen("\"finished\":false"),
        kInferred("\"end_inferred\":true");
    if ((flags & kBeganBefore) != 0) out = arguments_.put_rendered(out, kBegan);
    if ((flags & kUnfinished) != 0) out = arguments_.put_rendered(out, kOpen);
    if ((flags & kEndInferred) != 0) out = arguments_.put_rendered(out, kInferred);
    return out;
}

/// Numbers that tools match events by. Those of ranges are their rows, counted from 1 where 0 means none.
char* ChromeRanges::put_numbers(char* out, Row row, const ChromeSite& site, const TrackInfo& track) {
    Row launch = kNoRow;
    if (is_of_device(track)) {
        launch = launch_of(row);
        if (track.device.index >= 0) out = arguments_.put_number(out, kDeviceNumber, track.device.index);
        if (track.stream >= 0) out = arguments_.put_number(out, kStream, track.stream);
    } else if (site.kind == ChromeSite::Kind::Operator) {
        out = arguments_.put_number(out, kExternalId, std::int64_t{row} + 1);
        out = arguments_.put_number(out, kEventIndex, row);
    } else if (site.kind == ChromeSite::Kind::Python) {
        const Row parent = frame_above(row);
        out = arguments_.put_number(out, kPythonId, std::int64_t{row} + 1);
        if (parent != kNoRow) out = arguments_.put_number(out, kPythonParent, std::int64_t{parent} + 1);
        out = arguments_.put_number(out, kPythonThread, track.thread);
    } else if (site.kind == ChromeSite::Kind::Runtime) {
        launch = row;
    }
    if (launch == kNoRow) return out;
    const Row caller = operator_above(launch);
    if (caller != kNoRow) out = arguments_.put_number(out, kExternalId, std::int64_t{caller} + 1);
    return arguments_.put_number(out, kCorrelation, std::int64_t{launch} + 1);
}

Row ChromeRanges::operator_above(Row row) const {
    for (row = ranges_.parent[row]; row != kNoRow; row = ranges_.parent[row]) {
        if (is_operator(sites_[ranges_.site[row]].scope)) return row;
    }
    return kNoRow;
}

Row ChromeRanges::frame_above(Row row) const {
    for (row = ranges_.parent[row]; row != kNoRow; row = ranges_.parent[row]) {
        if (is_python_frame(sites_[ranges_.site[row]].scope)) return row;
    }
    return kNoRow;
}

}  // namespace kymo
