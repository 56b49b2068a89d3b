// write.cpp: writes Perfetto protobuf as a stream. Each track is a separate packet sequence.
//
// There are no clock snapshots: the Perfetto UI shows them in a group of their own, and opens a file expanded
// only if the process is its only group. Without snapshots all timestamps are those of one clock.
#include <marey/error.h>
#include <marey/export.h>
#include <marey/samples.h>
#include <marey/suspended_calls.h>

#if MAREY_HAVE_PROTOZERO

#include <algorithm>
#include <cstring>
#include <numeric>
#include <protozero/pbf_builder.hpp>
#include <protozero/varint.hpp>
#include <unordered_map>

#include "analyze/averages/site_groups.h"
#include "analyze/result_keys.h"
#include "base/output_file.h"
#include "base/work_meter.h"
#include "formats/perfetto/fields.h"
#include "formats/perfetto/write_annotations.h"
#include "formats/perfetto/write_tracks.h"
#include "json/json_writer.h"
#include "trace/trace_data.h"

namespace marey {

using namespace perfetto;
using protozero::pbf_builder;

namespace {

constexpr std::uint32_t tag_of(PacketField field, protozero::pbf_wire_type type) {
    return protozero::tag_and_type(field, type);
}
constexpr char kPacketTag = 0x0a;
constexpr char kTimestampTag =
    static_cast<char>(tag_of(PacketField::Timestamp, protozero::pbf_wire_type::varint));
constexpr char kSequenceTag =
    static_cast<char>(tag_of(PacketField::SequenceId, protozero::pbf_wire_type::varint));
constexpr char kEventTag =
    static_cast<char>(tag_of(PacketField::TrackEvent, protozero::pbf_wire_type::length_delimited));
constexpr char kTypeTag =
    static_cast<char>(protozero::tag_and_type(EventField::Type, protozero::pbf_wire_type::varint));

/// Writes up to 10 bytes.
inline char* put_varint(char* out, std::uint64_t value) {
    while (value >= 0x80) {
        *out++ = static_cast<char>(value | 0x80);
        value >>= 7;
    }
    *out++ = static_cast<char>(value);
    return out;
}

/// A few bytes that are rendered once and copied as a whole block; only the first `size` bytes count.
struct Stamp {
    static constexpr std::size_t kCapacity = 40;
    char bytes[kCapacity] = {};
    std::uint8_t size = 0;

    void set(std::string_view text) {
        std::memcpy(bytes, text.data(), text.size());
        size = static_cast<std::uint8_t>(text.size());
    }
    char* put(char* out) const {
        std::memcpy(out, bytes, kCapacity);
        return out + size;
    }
};

/// The data shared by all events of a site.
struct SiteStamp {
    Stamp begin;                 ///< the complete TrackEvent field of a begin event
    std::uint32_t sequence = 0;  ///< the last sequence in which its names are interned
    bool has_facts = false;      ///< has data that does not fit into the stamp
};

class PerfettoTrace {
  public:
    /// `target`: a path or a stream.
    PerfettoTrace(const Trace& trace, auto& target)
        : trace_(trace), tracks_(trace), annotations_(trace), file_(target) {
        window_start_ns_ = trace.window().start_ns;
        window_end_ns_ = std::max(trace.window().end_ns, window_start_ns_);
        base_ns_ = static_cast<std::uint64_t>(std::max<std::int64_t>(window_start_ns_, 0));
    }

    void write() {
        number_sites();
        number_links();
        write_metadata();
        tracks_.describe([&](const std::string& descriptor) {
            pbf_builder<PacketField> packet(begin_packet());
            packet.add_message(PacketField::TrackDescriptor, descriptor);
            packet.add_uint32(PacketField::SequenceId, kDescriptorSequence);
            end_packet();
        });
        write_ranges();
        write_instants();
        write_counters();
        write_memory();
        file_.commit();
    }

  private:
    static constexpr std::uint32_t kDescriptorSequence = 1;

    struct FlowEnd {
        Row range;
        std::uint64_t id;
    };
    /// The parts of a range that are not in its stamp.
    struct Extras {
        std::span<const Argument> values;
        const RangeDetail* detail = nullptr;
        std::uint16_t flags = 0;
    };

    std::uint64_t since_start(std::int64_t ns) const {
        return static_cast<std::uint64_t>(std::clamp(ns, window_start_ns_, window_end_ns_)) -
               static_cast<std::uint64_t>(window_start_ns_);
    }

    std::string& begin_packet() {
        packet_.clear();
        return packet_;
    }
    void end_packet() {
        char* out = file_.reserve(16);
        *out++ = kPacketTag;
        file_.advance(put_varint(out, packet_.size()));
        file_.write(packet_);
    }

    void write_metadata() {
        pbf_builder<PacketField> packet(begin_packet());
        {
            pbf_builder<ChromeEventsField> events(packet, PacketField::ChromeEvents);
            const auto item = [&](std::string_view name) {
                pbf_builder<MetadataField> metadata(events, ChromeEventsField::Metadata);
                metadata.add_string(MetadataField::Name, name);
                return metadata;
            };
            item(kVersionKey).add_string(MetadataField::String, MAREY_VERSION);
            item(kWindowStartKey).add_int64(MetadataField::Int, window_start_ns_);
            item(kWindowEndKey).add_int64(MetadataField::Int, window_end_ns_);
            if (!trace_.processes().empty())
                item(kRealtimeOffsetKey)
                    .add_int64(MetadataField::Int, trace_.processes().front().realtime_offset_ns);
            item(kSessionKey).add_string(MetadataField::String, trace_.window().session_name);
            item(kFinishedKey).add_bool(MetadataField::Bool, trace_.window().finished);
            for (const ProblemInfo& problem : trace_.problems()) {
                item(kProblemKey)
                    .add_string(MetadataField::String,
                                problem.code + "\n" + std::to_string(problem.count) + "\n" + problem.text);
            }
            if (!trace_.host_clocks().empty()) {
                std::string clocks;
                JsonWriter json(clocks);
                write_rows(json, clocks_table(trace_).table);
                item(kHostClocksKey).add_string(MetadataField::Json, clocks);
            }
            for (const StringId name : flow_names_)
                item(kFlowNameKey).add_string(MetadataField::String, trace_.string(name));
            for (const MetadataInfo& info : trace_.metadata())
                item(info.key).add_string(MetadataField::Json, info.json);
        }
        packet.add_uint32(PacketField::SequenceId, kDescriptorSequence);
        end_packet();
    }

    /// Gives frequent sites small numbers, which have shorter encodings.
    void number_sites() {
        std::vector<std::uint32_t> uses(trace_.sites().size());
        for (const std::uint32_t site : trace_.ranges().site) ++uses[site];
        std::vector<std::uint32_t> order(uses.size());
        std::iota(order.begin(), order.end(), 0u);
        std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) { return uses[a] > uses[b]; });
        site_iid_.resize(order.size());
        for (std::uint32_t i = 0; i < order.size(); ++i) site_iid_[order[i]] = i + 1;
        for (const SiteInfo& info : trace_.sites())
            is_renamed_.push_back(info.scope == Scope::PythonFunction &&
                                  !parse_python_name(trace_.string(info.name)).path.empty());
        sites_.resize(order.size());
        std::string text;
        for (std::uint32_t site = 0; site < sites_.size(); ++site) {
            event_.clear();
            append_begin(site, kSliceBegin);
            text.assign({kEventTag, static_cast<char>(event_.size())});
            text += event_;
            sites_[site].begin.set(text);
            const SiteInfo& info = trace_.sites()[site];
            sites_[site].has_facts = info.overload != 0 || info.raw_name != 0;
        }
    }

    std::uint64_t category_iid(StringId category) {
        return kScopeCount + 1 +
               categories_.try_emplace(category, static_cast<std::uint32_t>(categories_.size()))
                   .first->second;
    }
    static std::uint64_t scope_iid(Scope scope) { return 1 + static_cast<std::uint64_t>(scope); }

    /// Appends to event_ the TrackEvent fields that depend on the site.
    void append_begin(std::uint32_t site, std::int32_t type) {
        const SiteInfo& info = trace_.sites()[site];
        pbf_builder<EventField> event(event_);
        event.add_enum(EventField::Type, type);
        if (info.category != 0) event.add_uint64(EventField::CategoryIids, category_iid(info.category));
        event.add_uint64(EventField::CategoryIids, scope_iid(info.scope));
        event.add_uint64(EventField::NameIid, site_iid_[site]);
        if (info.file != 0 || is_renamed_[site])
            event.add_uint64(EventField::SourceLocationIid, site_iid_[site]);
    }
    /// Appends to interned_ the names for the numbers in append_begin().
    void append_names(std::uint32_t site) {
        const SiteInfo& info = trace_.sites()[site];
        pbf_builder<InternedField> interned(interned_);
        const auto add = [&](InternedField field, std::uint64_t iid, std::string_view text) {
            pbf_builder<InternedTextField> entry(interned, field);
            entry.add_uint64(InternedTextField::Iid, iid);
            entry.add_string(InternedTextField::Text, text);
        };
        if (info.category != 0)
            add(InternedField::EventCategories, category_iid(info.category), trace_.string(info.category));
        add(InternedField::EventCategories, scope_iid(info.scope), scope_name(info.scope));
        const std::string_view name = trace_.string(info.name);
        add(InternedField::EventNames, site_iid_[site],
            is_renamed_[site] ? function_first(name) : std::string(name));
        if (info.file == 0 && !is_renamed_[site]) return;
        pbf_builder<SourceLocationField> place(interned, InternedField::SourceLocations);
        place.add_uint64(SourceLocationField::Iid, site_iid_[site]);
        if (info.file != 0) place.add_string(SourceLocationField::File, trace_.string(info.file));
        if (is_renamed_[site]) place.add_string(SourceLocationField::Function, name);
        if (info.line != 0) place.add_uint32(SourceLocationField::Line, info.line);
    }

    void number_links() {
        std::unordered_map<StringId, std::uint64_t> names;
        std::uint64_t number = 0;
        for (const LinkInfo& link : trace_.links()) {
            std::uint64_t id = (static_cast<std::uint64_t>(link.kind) << kFlowKindShift) | ++number;
            if (link.name != 0) {
                const auto [place, is_new] = names.try_emplace(link.name, names.size() + 1);
                if (is_new) flow_names_.push_back(link.name);
                id |= std::min(place->second, kFlowNameMask) << kFlowNameShift;
            }
            flow_starts_.push_back({link.from, id});
            flow_ends_.push_back({link.to, id});
        }
        const auto is_before = [](const FlowEnd& a, const FlowEnd& b) { return a.range < b.range; };
        std::ranges::stable_sort(flow_starts_, is_before);
        std::ranges::stable_sort(flow_ends_, is_before);
    }

    /// Starts a packet sequence whose default track is `track`.
    void begin_sequence(std::uint64_t track) {
        ++sequence_;
        annotations_.begin_sequence();
        last_ = 0;
        char id[16];
        id[0] = kSequenceTag;
        sequence_stamp_.set({id, static_cast<std::size_t>(put_varint(id + 1, sequence_) - id)});
        pbf_builder<PacketField> packet(begin_packet());
        packet.add_uint32(PacketField::SequenceId, sequence_);
        packet.add_uint32(PacketField::SequenceFlags, kStateClearedFlag);
        {
            pbf_builder<DefaultsField> defaults(packet, PacketField::Defaults);
            pbf_builder<EventDefaultsField> event(defaults, DefaultsField::TrackEvent);
            event.add_uint64(EventDefaultsField::TrackUuid, track);
        }
        end_packet();
    }

    /// Writes a packet with event_ and interned_ at `time`, relative to the start of the window.
    void write_event(std::uint64_t time) {
        pbf_builder<PacketField> packet(begin_packet());
        packet.add_uint64(PacketField::Timestamp, base_ns_ + time);
        last_ = time;
        packet.add_uint32(PacketField::SequenceId, sequence_);
        if (!interned_.empty()) packet.add_message(PacketField::InternedData, interned_);
        packet.add_message(PacketField::TrackEvent, event_);
        end_packet();
        interned_.clear();
    }

    void use_names(std::uint32_t site) {
        if (sites_[site].sequence == sequence_) return;
        sites_[site].sequence = sequence_;
        append_names(site);
    }

    void write_ranges() {
        WorkMeter meter(trace_.ranges().size());
        sequence_ = kDescriptorSequence;
        for (std::size_t i = 0; i < trace_.tracks().size(); ++i) {
            begin_sequence(tracks_.of_track(i));
            write_track(trace_.tracks()[i]);
            meter.add(trace_.tracks()[i].range_count);
        }
    }

    /// The next row, from `row` on, that has values, details or links.
    class NextExtras;

    void write_track(const TrackInfo& track);
    void write_begin(Row row, std::uint64_t time, NextExtras& next);

    /// Writes the end of the innermost open range.
    void write_end() {
        const std::uint64_t time = std::max(open_.back(), last_);
        open_.pop_back();
        char* out = file_.reserve(64 + 2 * Stamp::kCapacity);
        char* const start = out;
        *out = kPacketTag;
        out[2] = kTimestampTag;
        out = put_varint(out + 3, base_ns_ + time);
        out = sequence_stamp_.put(out);
        out[0] = kEventTag;
        out[1] = 2;
        out[2] = kTypeTag;
        out[3] = kSliceEnd;
        out += 4;
        start[1] = static_cast<char>(out - start - 2);
        file_.advance(out);
        last_ = time;
    }

    void write_instants() {
        const InstantColumns instants = trace_.instants();
        for (Row row = 0; row < instants.size(); ++row) {
            if (row == 0 || instants.thread[row] != instants.thread[row - 1])
                begin_sequence(tracks_.of_thread(instants.thread[row]));
            const std::uint32_t site = instants.site[row];
            event_.clear();
            use_names(site);
            append_begin(site, kInstant);
            annotations_.append(event_, interned_, trace_.instant_arguments(row), facts_of(site, {}));
            write_event(since_start(instants.time_ns[row]));
        }
    }

    PerfettoMetadata facts_of(std::uint32_t site, const Extras& extras) const {
        const SiteInfo& info = trace_.sites()[site];
        return {extras.flags, extras.detail, info.overload, info.raw_name};
    }

    void write_counters() {
        const CounterColumns counters = trace_.counters();
        for (Row row = 0; row < counters.size(); ++row) {
            const Row thread = counters.thread[row];
            if (row == 0 || thread != counters.thread[row - 1]) begin_sequence(tracks_.of_thread(thread));
            write_counter(tracks_.of_counter(thread, counters.site[row]), counters.time_ns[row],
                          counters.value[row]);
        }
    }
    void write_counter(std::uint64_t track, std::int64_t time_ns, double value) {
        event_.clear();
        pbf_builder<EventField> event(event_);
        event.add_enum(EventField::Type, kCounter);
        event.add_uint64(EventField::TrackUuid, track);
        event.add_double(EventField::DoubleCounterValue, value);
        write_event(since_start(time_ns));
    }

    void write_memory() {
        const MemoryColumns memory = trace_.memory();
        for (Row row = 0; row < memory.size(); ++row) {
            const Row thread = memory.thread[row];
            if (row == 0 || thread != memory.thread[row - 1]) begin_sequence(tracks_.of_thread(thread));
            event_.clear();
            {
                pbf_builder<EventField> event(event_);
                event.add_enum(EventField::Type, kInstant);
                event.add_string(EventField::Categories, kMemoryCategory);
                event.add_string(EventField::Name,
                                 memory.out_of_memory[row] != 0 ? "[OutOfMemory]" : "[memory]");
            }
            annotations_.append_memory(event_, interned_, row);
            write_event(since_start(memory.time_ns[row]));
            for (const bool reserved : {false, true}) {
                const std::uint64_t total = tracks_.of_memory(thread, memory.device[row], reserved);
                if (total == 0) continue;
                write_counter(
                    total, memory.time_ns[row],
                    static_cast<double>((reserved ? memory.total_reserved : memory.total_allocated)[row]));
            }
        }
    }

    const Trace& trace_;
    PerfettoTracks tracks_;
    PerfettoAnnotations annotations_;
    OutputFile file_;
    std::int64_t window_start_ns_ = 0;
    std::int64_t window_end_ns_ = 0;
    std::uint64_t base_ns_ = 0;  ///< start of the window, in a clock without negative times
    std::vector<SiteStamp> sites_;
    std::vector<std::uint32_t> site_iid_;
    std::vector<bool> is_renamed_;  ///< sites that are shown as "f (a.py:1)" instead of "a.py(1): f"
    std::unordered_map<StringId, std::uint32_t> categories_;
    std::vector<FlowEnd> flow_starts_, flow_ends_;  ///< in order of ranges
    std::vector<StringId> flow_names_;
    std::uint32_t sequence_ = kDescriptorSequence;
    Stamp sequence_stamp_;             ///< the field SequenceId
    std::uint64_t last_ = 0;           ///< time of the sequence's last event, since the start of the window
    std::vector<std::uint64_t> open_;  ///< ends of the open ranges, outermost first
    std::string packet_, event_, interned_;
};

/// Iterates, in row order, over the data that only a few ranges have.
class PerfettoTrace::NextExtras {
  public:
    NextExtras(const PerfettoTrace& owner, Row first) : owner_(owner) {
        const auto is_before = [](const auto& entry, Row row) { return row_of(entry) < row; };
        const TraceData& data = owner.trace_.data();
        slice_ = std::lower_bound(data.range_arguments.begin(), data.range_arguments.end(), first, is_before);
        detail_ = std::lower_bound(data.range_details.begin(), data.range_details.end(), first, is_before);
        start_ = std::lower_bound(owner.flow_starts_.begin(), owner.flow_starts_.end(), first, is_before);
        end_ = std::lower_bound(owner.flow_ends_.begin(), owner.flow_ends_.end(), first, is_before);
        find();
    }
    /// kNoRow: the end.
    Row row() const { return row_; }
    /// Returns the extras of range `row`; its flows are appended to `event`. Rows must not decrease.
    Extras take(Row row, std::string& event) {
        Extras extras;
        if (row != row_) return extras;
        const TraceData& data = owner_.trace_.data();
        if (slice_ != data.range_arguments.end() && slice_->row == row) {
            extras.values = {data.arguments.data() + slice_->first, slice_->count};
            ++slice_;
        }
        if (detail_ != data.range_details.end() && detail_->range == row) extras.detail = &*detail_++;
        pbf_builder<EventField> fields(event);
        for (; start_ != owner_.flow_starts_.end() && start_->range == row; ++start_)
            fields.add_fixed64(EventField::FlowIds, start_->id);
        for (; end_ != owner_.flow_ends_.end() && end_->range == row; ++end_)
            fields.add_fixed64(EventField::TerminatingFlowIds, end_->id);
        find();
        return extras;
    }

  private:
    static Row row_of(const ArgumentSlice& entry) { return entry.row; }
    static Row row_of(const RangeDetail& entry) { return entry.range; }
    static Row row_of(const FlowEnd& entry) { return entry.range; }

    void find() {
        const TraceData& data = owner_.trace_.data();
        row_ = kNoRow;
        if (slice_ != data.range_arguments.end()) row_ = std::min(row_, slice_->row);
        if (detail_ != data.range_details.end()) row_ = std::min(row_, detail_->range);
        if (start_ != owner_.flow_starts_.end()) row_ = std::min(row_, start_->range);
        if (end_ != owner_.flow_ends_.end()) row_ = std::min(row_, end_->range);
    }

    const PerfettoTrace& owner_;
    std::vector<ArgumentSlice>::const_iterator slice_;
    std::vector<RangeDetail>::const_iterator detail_;
    std::vector<FlowEnd>::const_iterator start_, end_;
    Row row_ = kNoRow;
};

void PerfettoTrace::write_track(const TrackInfo& track) {
    constexpr std::uint16_t kPlain =
        static_cast<std::uint16_t>(~(kBeganBefore | kUnfinished | kEndInferred | kRemote));
    const RangeColumns ranges = trace_.ranges();
    NextExtras next(*this, track.first_range);
    open_.clear();
    const Row end = track.first_range + track.range_count;
    for (Row row = track.first_range; row < end; ++row) {
        while (open_.size() > ranges.depth[row]) write_end();
        const std::uint64_t time = std::max(since_start(ranges.start_ns[row]), last_);
        open_.push_back(since_start(ranges.start_ns[row] + ranges.duration_ns[row]));
        const SiteStamp& site = sites_[ranges.site[row]];
        const bool is_plain = row != next.row() && site.sequence == sequence_ && !site.has_facts &&
                              (ranges.flags[row] & ~kPlain) == 0;
        if (!is_plain) [[unlikely]] {
            write_begin(row, time, next);
            continue;
        }
        char* out = file_.reserve(64 + 2 * Stamp::kCapacity);
        char* const start = out;
        *out = kPacketTag;
        out[2] = kTimestampTag;
        out = put_varint(out + 3, base_ns_ + time);
        out = sequence_stamp_.put(out);
        out = site.begin.put(out);
        start[1] = static_cast<char>(out - start - 2);
        file_.advance(out);
        last_ = time;
    }
    while (!open_.empty()) write_end();
}

void PerfettoTrace::write_begin(Row row, std::uint64_t time, NextExtras& next) {
    const std::uint32_t site = trace_.ranges().site[row];
    event_.clear();
    use_names(site);
    append_begin(site, kSliceBegin);
    Extras extras = next.take(row, event_);
    extras.flags = trace_.ranges().flags[row];
    annotations_.append(event_, interned_, extras.values, facts_of(site, extras));
    write_event(time);
}

}  // namespace

void write_perfetto(const Trace& trace, const std::string& path) {
    PerfettoTrace(with_part_flows(with_sample_tracks(with_task_tracks(trace))), path).write();
}

void write_perfetto(const Trace& trace, std::ostream& stream) {
    PerfettoTrace(with_part_flows(with_sample_tracks(with_task_tracks(trace))), stream).write();
}

}  // namespace marey

#else

namespace marey {

void write_perfetto(const Trace&, const std::string& path) {
    throw Error(path + ": this Marey was built without protozero and cannot write Perfetto traces");
}

void write_perfetto(const Trace&, std::ostream&) {
    throw Error("this Marey was built without protozero and cannot write Perfetto traces");
}

}  // namespace marey

#endif
