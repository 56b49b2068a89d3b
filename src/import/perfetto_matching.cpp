// perfetto_matching.cpp: events of a Perfetto trace to ranges, points and links.
#include <algorithm>
#include <string>

#include "import/perfetto_events.h"
#include "trace/perfetto_fields.h"

#if MAREY_HAVE_PROTOZERO

namespace marey {

using namespace perfetto;

std::span<const Argument> PerfettoEvents::values_of(std::uint32_t extras) const {
    if (extras == kNone) return {};
    return {arguments_.data() + extras_[extras].first_value, extras_[extras].value_count};
}

std::uint16_t PerfettoEvents::flags_of(std::uint32_t extras) const {
    return extras == kNone ? std::uint16_t{0} : extras_[extras].flags;
}

void PerfettoEvents::give_extras(std::uint32_t range, std::uint32_t extras) {
    if (extras == kNone) return;
    assembler_.add_values(range, values_of(extras));
    const Extras& more = extras_[extras];
    if (more.has_detail)
        assembler_.add_detail(range, more.sequence, more.forward_thread, more.id, more.call, more.part);
    for (std::uint32_t i = 0; i < more.flow_count; ++i) flows_[more.first_flow + i].range = range;
}

void PerfettoEvents::add_range(std::uint32_t lane, std::int64_t start, std::int64_t duration,
                               std::uint32_t site, std::uint32_t extras, std::uint32_t end_extras,
                               std::uint16_t flags) {
    if (extras != kNone &&
        (extras_[extras].part & kWholeCall) != 0) {  // made up by our exporter, of the parts
        if ((extras_[extras].part & kTask) != 0)
            assembler_.add_task(lane, extras_[extras].call, assembler_.name_of_site(site));
        return;
    }
    flags |= flags_of(extras);
    const std::uint32_t range = assembler_.add_range(lane, start, duration, site, flags);
    give_extras(range, extras);
    give_extras(range, end_extras);
}

/// The ranges of a track: an end closes the innermost one that is open.
void PerfettoEvents::match(std::uint32_t track) {
    std::vector<Event> events = std::move(edges_[track]);
    if (events.empty()) return;
    const auto is_before = [](const Event& a, const Event& b) { return a.time < b.time; };
    if (!std::is_sorted(events.begin(), events.end(), is_before))
        std::stable_sort(events.begin(), events.end(), is_before);
    matches_.assign(events.size(), kNone);  // of begins: their ends
    std::vector<std::uint32_t> open;
    for (std::uint32_t i = 0; i < events.size(); ++i) {
        if (events[i].site != kEnd) {
            open.push_back(i);
        } else if (open.empty()) {
            ++lone_ends_;
        } else {
            matches_[open.back()] = i;
            open.pop_back();
        }
    }
    const std::uint32_t lane = tracks_.lane_of(track);
    for (std::uint32_t i = 0; i < events.size(); ++i) {
        const Event& begin = events[i];
        if (begin.site == kEnd) continue;
        const bool is_whole = matches_[i] != kNone;
        if (!is_whole) ++unfinished_;
        const std::int64_t end = is_whole ? events[matches_[i]].time : std::max(window_end_ns_, begin.time);
        add_range(lane, begin.time, end - begin.time, begin.site, begin.extras,
                  is_whole ? events[matches_[i]].extras : kNone,
                  is_whole ? std::uint16_t{0} : std::uint16_t{kUnfinished});
    }
}

void PerfettoEvents::add_memory(const Instant& instant) {
    TraceAssembler::MemoryReport report;
    report.time_ns = instant.time;
    for (const Argument& value : values_of(instant.extras)) {
        if (value.kind != ValueKind::Int) continue;
        const std::string_view key = assembler_.text(value.key);
        if (key == "Bytes") report.bytes = value.integer;
        if (key == "Total Allocated") report.total_allocated = value.integer;
        if (key == "Total Reserved") report.total_reserved = value.integer;
        if (key == "Device Type") report.device.type = static_cast<DeviceType>(value.integer);
        if (key == "Device Id") report.device.index = static_cast<std::int32_t>(value.integer);
        if (key == "Addr") report.address = static_cast<std::uint64_t>(value.integer);
    }
    report.out_of_memory = instant.out_of_memory;
    assembler_.add_memory(tracks_.thread_of(instant.track), report);
}

void PerfettoEvents::link(const Flow& from, const Flow& to) {
    if (from.range == kNone || to.range == kNone || from.range == to.range) {
        ++lone_flows_;
        return;
    }
    LinkKind kind = LinkKind::Flow;
    StringId name = 0;
    if (is_marey_trace_) {
        const std::uint64_t number = from.id >> kFlowKindShift;
        if (number >= 1 && number <= 4) kind = static_cast<LinkKind>(number);
        const std::uint64_t named = (from.id >> kFlowNameShift) & kFlowNameMask;
        if (named >= 1 && named <= flow_names_.size()) name = flow_names_[named - 1];
    }
    assembler_.add_link(from.range, to.range, kind, name);
}

/// The events of one flow, in order of time, are linked one to the next until one ends it. A flow of one
/// start and one end is linked so whatever the times say.
void PerfettoEvents::link_flows() {
    std::stable_sort(flows_.begin(), flows_.end(), [](const Flow& a, const Flow& b) {
        return a.id != b.id ? a.id < b.id : a.time < b.time;
    });
    for (std::size_t first = 0; first < flows_.size();) {
        std::size_t end = first + 1;
        while (end < flows_.size() && flows_[end].id == flows_[first].id) ++end;
        if (end - first == 2 && flows_[first].is_end && !flows_[first + 1].is_end) {
            link(flows_[first + 1], flows_[first]);
        } else {
            std::size_t last = kNone;
            for (std::size_t i = first; i < end; ++i) {
                if (last != kNone)
                    link(flows_[last], flows_[i]);
                else if (flows_[i].is_end || end - first == 1)
                    ++lone_flows_;
                last = flows_[i].is_end ? std::size_t{kNone} : i;
            }
        }
        first = end;
    }
}

void PerfettoEvents::finish() {
    if (!has_window_) window_end_ns_ = latest_;
    for (std::uint32_t track = 0; track < edges_.size(); ++track) match(track);
    for (const Complete& range : completes_)
        add_range(tracks_.lane_of(range.track), range.time, range.duration, range.site, range.extras, kNone,
                  0);
    for (const Instant& instant : instants_) {
        if (instant.is_memory)
            add_memory(instant);
        else
            assembler_.add_instant(tracks_.thread_of(instant.track), instant.time, instant.site,
                                   values_of(instant.extras));
    }
    for (const Sample& sample : samples_) {
        if (is_marey_trace_ && tracks_.shows_memory(sample.track)) continue;
        const bool has_home = is_marey_trace_ && sample.home != kNone;
        const Row thread =
            has_home ? tracks_.thread_of(sample.home) : tracks_.counter_thread_of(sample.track);
        SiteInfo site;
        site.name = tracks_.name_of(sample.track);
        assembler_.add_counter(thread, sample.time, assembler_.site(site), sample.value);
    }
    link_flows();
    add_problems();
}

void PerfettoEvents::add_problems() {
    const auto add = [&](const char* code, const char* text, std::uint64_t count) {
        if (count != 0) assembler_.add_problem(code, text, count);
    };
    add("unknown_events", "Track events of kinds that Marey does not know were left out.", unknown_types_);
    add("unread_fields", "Fields of track events that Marey does not know were left out.",
        unread_fields_ + values_.unread());
    add("missing_names", "Names were not in the file: their packets were lost.",
        unnamed_ + values_.unnamed());
    add("lone_ends", "Ends of ranges without a begin were left out.", lone_ends_);
    add("unfinished", "Ranges have no end; they end with the trace.", unfinished_);
    add("lone_flows", "Ends of arrows that lead nowhere, or not from range to range, were left out.",
        lone_flows_);
    add("undescribed_tracks", "Tracks have events, but nothing tells what they are.", tracks_.undescribed());
}

}  // namespace marey

#endif
