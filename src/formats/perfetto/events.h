// events.h: collects the track events of a Perfetto trace in any order, then matches them.
#pragma once

#include <algorithm>
#include <unordered_map>

#include <marey/trace.h>

#include "formats/perfetto/fields.h"
#include "formats/perfetto/read_annotations.h"
#include "formats/perfetto/sequence.h"
#include "formats/perfetto/track_table.h"
#include "formats/protobuf_wire.h"
#include "trace/trace_assembler.h"

namespace marey {

using namespace perfetto;

/// Collects events in file order; finish() sorts those of each track by time, pairs begins with ends and
/// passes everything to the assembler.
class PerfettoEvents {
  public:
    PerfettoEvents(TraceAssembler& assembler, PerfettoTrackTable& tracks)
        : assembler_(assembler), tracks_(tracks), values_(assembler) {}

    /// Marks the file as written by Marey.
    void set_marey_trace() {
        if (is_marey_trace_) return;
        is_marey_trace_ = true;
        for (int i = 0; i < kScopeCount; ++i)
            scopes_.emplace(assembler_.string(scope_name(static_cast<Scope>(i))), static_cast<Scope>(i));
    }
    /// Only for files written by Marey: the names of flows, in order.
    void add_flow_name(std::string_view name) { flow_names_.push_back(assembler_.string(name)); }
    /// Adds a TrackEvent message at `time_ns`. Throws protozero::exception if it is damaged; then nothing of
    /// the event is kept.
    void add(std::string_view message, const PerfettoSequence& sequence, std::int64_t time) {
        Fields& fields = fields_;
        fields.reset();
        parse(message, sequence, fields);
        ++event_count_;
        latest_ = std::max(latest_, time);
        if (fields.type == 0 && fields.has_phase) return add_phase(fields, sequence, time);
        const std::uint32_t track = track_of(fields, sequence);
        if (!fields.extra_values.empty() || !fields.extra_double_values.empty())
            add_samples(fields, sequence, track, time);
        bool is_memory = false;
        switch (fields.type) {
            case kSliceBegin:
                add_edge(track, {time, site_of(fields, is_memory), keep_extras(fields, time)});
                return;
            case kSliceEnd:
                add_edge(track, {time, kEnd, keep_extras(fields, time)});
                return;
            case kInstant:
                add_instant(fields, track, time);
                return;
            case kCounter: {
                const std::uint64_t uuid = fields.has_track ? fields.track : sequence.track;
                if (!fields.has_value)
                    ++unread_fields_;
                else
                    add_sample(uuid, fields.value,
                               sequence.has_track ? tracks_.of_uuid(sequence.track) : kNone, time);
                return;
            }
            default:
                ++unknown_types_;
        }
    }

    /// Sets when unfinished ranges end (default: with the last event).
    void set_window_end(std::int64_t time_ns) { window_end_ns_ = time_ns, has_window_ = true; }
    /// Must be called once, after all events were added and the tracks were placed.
    void finish();

    std::size_t size() const { return event_count_; }

  private:
    /// The fields of one TrackEvent.
    struct Fields {
        std::int32_t type = 0;
        bool has_track = false;
        std::uint64_t track = 0;
        StringId name = 0;
        std::vector<StringId> categories;
        PerfettoSequence::Place place;
        std::vector<std::uint64_t> flows, flow_ends;
        std::vector<Argument> values;
        ReadMetadata facts;
        bool has_value = false;
        double value = 0;
        std::vector<std::uint64_t> extra_tracks, extra_double_tracks;
        std::vector<double> extra_values, extra_double_values;

        // A legacy (Chrome-style) event.
        bool has_phase = false;
        std::int32_t phase = 0;
        std::int64_t duration_us = 0;
        bool has_id = false;
        std::uint64_t id = 0;
        bool has_thread = false;
        std::int64_t pid = -1, tid = -1;

        /// Resets all fields but keeps the capacity of the lists.
        void reset() {
            Fields old = std::move(*this);
            *this = Fields();
            const auto keep = [](auto& to, auto& from) {
                from.clear();
                to = std::move(from);
            };
            keep(categories, old.categories);
            keep(flows, old.flows);
            keep(flow_ends, old.flow_ends);
            keep(values, old.values);
        }
    };

    /// Calls `take` for each number of a repeated field, packed or not.
    template <class Take>
    static void each_varint(Message& fields, Take take) {
        if (fields.wire_type() == protozero::pbf_wire_type::varint) {
            take(fields.get_uint64());
            return;
        }
        const auto packed = fields.get_packed_uint64();
        for (auto it = packed.begin(); it != packed.end(); ++it) take(*it);
    }
    template <class Take>
    static void each_fixed64(Message& fields, Take take) {
        if (fields.wire_type() == protozero::pbf_wire_type::fixed64) {
            take(fields.get_fixed64());
            return;
        }
        for (const std::uint64_t value : fields.get_packed_fixed64()) take(value);
    }
    template <class Take>
    static void each_double(Message& fields, Take take) {
        if (fields.wire_type() == protozero::pbf_wire_type::fixed64) {
            take(fields.get_double());
            return;
        }
        for (const double value : fields.get_packed_double()) take(value);
    }

    static constexpr std::uint32_t kEnd = ~0u;
    static constexpr std::uint32_t kNone = ~0u;

    struct Event {  ///< a begin or an end event
        std::int64_t time;
        std::uint32_t site;    ///< kEnd: an end event
        std::uint32_t extras;  ///< row of extras_, or kNone
    };
    struct Extras {
        std::uint32_t first_value = 0, value_count = 0;
        std::uint32_t first_flow = 0, flow_count = 0;
        std::uint16_t flags = 0;
        bool has_detail = false;
        std::int64_t sequence = -1;
        std::uint32_t forward_thread = 0;
        std::uint64_t id = 0;
        std::uint64_t call = 0;
        std::uint32_t part = 0;
    };
    struct Complete {  ///< a range from a single event
        std::int64_t time, duration;
        std::uint32_t track, site, extras;
    };
    struct Instant {
        std::int64_t time;
        std::uint32_t track, site, extras;
        bool is_memory;
        bool out_of_memory;
    };
    struct Sample {
        std::int64_t time;
        double value;
        std::uint32_t track;
        std::uint32_t home;  ///< the track of its sequence, or kNone
    };
    struct Flow {
        std::uint64_t id;
        std::int64_t time;
        std::uint32_t range;  ///< kNone: not bound to a range
        bool is_end;
    };

    void parse(std::string_view message, const PerfettoSequence& sequence, Fields& fields) {
        const auto named = [&](const InternTable<StringId>& table, std::uint64_t iid) -> StringId {
            const StringId* const found = table.find(iid);
            if (found == nullptr) ++unnamed_;
            return found == nullptr ? 0 : *found;
        };
        Message event(message);
        while (const std::uint32_t field = event.next_field()) {
            switch (field) {
                case varint(EventField::Type):
                    fields.type = event.get_int32();
                    break;
                case varint(EventField::TrackUuid):
                    fields.track = event.get_uint64();
                    fields.has_track = true;
                    break;
                case varint(EventField::NameIid):
                    fields.name = named(sequence.event_names, event.get_uint64());
                    break;
                case bytes(EventField::Name):
                    fields.name = assembler_.string(event.get_view());
                    break;
                case varint(EventField::CategoryIids):
                case bytes(EventField::CategoryIids):
                    each_varint(event, [&](std::uint64_t iid) {
                        fields.categories.push_back(named(sequence.categories, iid));
                    });
                    break;
                case bytes(EventField::Categories):
                    fields.categories.push_back(assembler_.string(event.get_view()));
                    break;
                case bytes(EventField::DebugAnnotations):
                    values_.read(event.get_view(), sequence, is_marey_trace_, fields.values, fields.facts);
                    break;
                case varint(EventField::SourceLocationIid): {
                    const PerfettoSequence::Place* const place = sequence.places.find(event.get_uint64());
                    if (place != nullptr)
                        fields.place = *place;
                    else
                        ++unnamed_;
                    break;
                }
                case bytes(EventField::SourceLocation):
                    parse_place(event.get_view(), fields);
                    break;
                case bytes(EventField::LegacyEvent):
                    parse_phase(event.get_view(), fields);
                    break;
                default:
                    if (parse_numbers(event, field, fields)) break;
                    ++unread_fields_;
                    event.skip();
            }
        }
    }
    /// Reads flows, counters and times; returns false if it is another field, which is not consumed.
    static bool parse_numbers(Message& event, std::uint32_t field, Fields& fields) {
        switch (field) {
            case fixed64(EventField::FlowIds):
            case bytes(EventField::FlowIds):
                each_fixed64(event, [&](std::uint64_t id) { fields.flows.push_back(id); });
                break;
            case fixed64(EventField::TerminatingFlowIds):
            case bytes(EventField::TerminatingFlowIds):
                each_fixed64(event, [&](std::uint64_t id) { fields.flow_ends.push_back(id); });
                break;
            case varint(EventField::FlowIdsOld):
            case bytes(EventField::FlowIdsOld):
                each_varint(event, [&](std::uint64_t id) { fields.flows.push_back(id); });
                break;
            case varint(EventField::TerminatingFlowIdsOld):
            case bytes(EventField::TerminatingFlowIdsOld):
                each_varint(event, [&](std::uint64_t id) { fields.flow_ends.push_back(id); });
                break;
            case varint(EventField::CounterValue):
                fields.value = static_cast<double>(event.get_int64());
                fields.has_value = true;
                break;
            case fixed64(EventField::DoubleCounterValue):
                fields.value = event.get_double();
                fields.has_value = true;
                break;
            case varint(EventField::ExtraCounterTracks):
            case bytes(EventField::ExtraCounterTracks):
                each_varint(event, [&](std::uint64_t id) { fields.extra_tracks.push_back(id); });
                break;
            case varint(EventField::ExtraCounterValues):
            case bytes(EventField::ExtraCounterValues):
                each_varint(event, [&](std::uint64_t value) {
                    fields.extra_values.push_back(static_cast<double>(static_cast<std::int64_t>(value)));
                });
                break;
            case varint(EventField::ExtraDoubleCounterTracks):
            case bytes(EventField::ExtraDoubleCounterTracks):
                each_varint(event, [&](std::uint64_t id) { fields.extra_double_tracks.push_back(id); });
                break;
            case fixed64(EventField::ExtraDoubleCounterValues):
            case bytes(EventField::ExtraDoubleCounterValues):
                each_double(event, [&](double value) { fields.extra_double_values.push_back(value); });
                break;
            case varint(EventField::TimestampDeltaUs):  // already handled by the packet reader
            case varint(EventField::TimestampAbsoluteUs):
            case varint(EventField::ThreadTimeDeltaUs):
            case varint(EventField::ThreadTimeAbsoluteUs):
            case varint(EventField::InstructionDelta):
            case varint(EventField::InstructionAbsolute):
                event.skip();
                break;
            default:
                return false;
        }
        return true;
    }
    void parse_phase(std::string_view message, Fields& fields) {
        fields.has_phase = true;
        std::uint64_t bind_id = 0;
        std::int32_t direction = 0;
        const auto take_unscoped_id = [&](Message& m) {
            fields.has_id = true;
            fields.id = m.get_uint64();
        };
        read_fields(message, into(varint(PhaseEventField::Phase), fields.phase),
                    into(varint(PhaseEventField::DurationUs), fields.duration_us),
                    on(varint(PhaseEventField::UnscopedId), take_unscoped_id),
                    on(varint(PhaseEventField::LocalId), take_unscoped_id),
                    on(varint(PhaseEventField::GlobalId), take_unscoped_id),
                    into(varint(PhaseEventField::BindId), bind_id),
                    into(varint(PhaseEventField::FlowDirection), direction),
                    on(varint(PhaseEventField::PidOverride),
                       [&](Message& m) {
                           fields.pid = m.get_int32();
                           fields.has_thread = true;
                       }),
                    on(varint(PhaseEventField::TidOverride), [&](Message& m) {
                        fields.tid = m.get_int32();
                        fields.has_thread = true;
                    }));
        if ((direction & kFlowOut) != 0)
            fields.flows.push_back(bind_id);
        else if ((direction & kFlowIn) != 0)
            fields.flow_ends.push_back(bind_id);
    }
    void parse_place(std::string_view message, Fields& fields) {
        read_fields(message,
                    on(bytes(SourceLocationField::File),
                       [&](Message& m) { fields.place.file = assembler_.string(m.get_view()); }),
                    into(varint(SourceLocationField::Line), fields.place.line));
    }
    std::uint32_t track_of(const Fields& fields, const PerfettoSequence& sequence) {
        if (fields.has_track) return tracks_.of_uuid(fields.track);
        if (fields.has_thread)
            return tracks_.of_thread(fields.pid >= 0 ? fields.pid : sequence.pid,
                                     fields.tid >= 0 ? fields.tid : sequence.tid);
        if (sequence.has_track) return tracks_.of_uuid(sequence.track);
        if (sequence.has_thread) return tracks_.of_thread(sequence.pid, sequence.tid);
        return tracks_.of_uuid(0);
    }
    std::uint32_t site_of(const Fields& fields, bool& is_memory) {
        SiteInfo site;
        // Our files show Python functions under other names.
        site.name = is_marey_trace_ && fields.place.function != 0 ? fields.place.function : fields.name;
        site.file = fields.place.file;
        site.line = fields.place.line;
        site.overload = fields.facts.overload;
        site.raw_name = fields.facts.raw_name;
        is_memory = false;
        std::span<const StringId> categories = fields.categories;
        if (is_marey_trace_ && !categories.empty()) {
            if (const auto scope = scopes_.find(categories.back()); scope != scopes_.end()) {
                site.scope = scope->second;
                categories = categories.first(categories.size() - 1);
            } else {
                is_memory = assembler_.text(categories.back()) == kMemoryCategory;
            }
        }
        if (categories.size() == 1) {
            site.category = categories.front();
        } else if (categories.size() > 1) {
            std::string joined;
            for (const StringId category : categories) {
                if (!joined.empty()) joined += ',';
                joined += assembler_.text(category);
            }
            site.category = assembler_.string(joined);
        }
        return assembler_.site(site);
    }
    std::uint32_t keep_extras(const Fields& fields, std::int64_t time) {
        const ReadMetadata& facts = fields.facts;
        if (fields.values.empty() && fields.flows.empty() && fields.flow_ends.empty() && facts.flags == 0 &&
            !facts.has_detail)
            return kNone;
        Extras extras;
        extras.first_value = static_cast<std::uint32_t>(arguments_.size());
        extras.value_count = static_cast<std::uint32_t>(fields.values.size());
        arguments_.insert(arguments_.end(), fields.values.begin(), fields.values.end());
        extras.first_flow = static_cast<std::uint32_t>(flows_.size());
        for (const std::uint64_t id : fields.flows) flows_.push_back({id, time, kNone, false});
        for (const std::uint64_t id : fields.flow_ends) flows_.push_back({id, time, kNone, true});
        extras.flow_count = static_cast<std::uint32_t>(flows_.size()) - extras.first_flow;
        extras.flags = facts.flags;
        extras.has_detail = facts.has_detail;
        extras.sequence = facts.sequence;
        extras.forward_thread = facts.forward_thread;
        extras.id = facts.id;
        extras.call = facts.call;
        extras.part = facts.part;
        extras_.push_back(extras);
        return static_cast<std::uint32_t>(extras_.size() - 1);
    }
    void add_phase(const Fields& fields, const PerfettoSequence& sequence, std::int64_t time) {
        std::uint32_t track = track_of(fields, sequence);
        bool is_memory = false;
        if (fields.has_id && !fields.has_track &&
            std::string_view("benSFTp").find(static_cast<char>(fields.phase)) != std::string_view::npos) {
            const StringId scope = fields.categories.empty() ? 0 : fields.categories.front();
            track = tracks_.of_async(fields.pid >= 0 ? fields.pid : sequence.pid, scope, fields.id);
        }
        switch (fields.phase) {
            case 'B':
            case 'b':
            case 'S':
                add_edge(track, {time, site_of(fields, is_memory), keep_extras(fields, time)});
                return;
            case 'E':
            case 'e':
            case 'F':
                add_edge(track, {time, kEnd, keep_extras(fields, time)});
                return;
            case 'X': {
                constexpr std::int64_t kMax = INT64_MAX / 4000;
                const std::int64_t duration = std::clamp(fields.duration_us, -kMax, kMax) * 1000;
                latest_ = std::max(latest_, time + duration);
                completes_.push_back(
                    {time, duration, track, site_of(fields, is_memory), keep_extras(fields, time)});
                return;
            }
            case 'i':
            case 'I':
            case 'R':
            case 'n':
            case 'T':
            case 'p':
                add_instant(fields, track, time);
                return;
            default:
                ++unknown_types_;
        }
    }
    void add_edge(std::uint32_t track, const Event& event) {
        if (track >= edges_.size()) edges_.resize(std::size_t{track} + 1);
        edges_[track].push_back(event);
    }
    void add_instant(const Fields& fields, std::uint32_t track, std::int64_t time) {
        bool is_memory = false;
        const std::uint32_t site = site_of(fields, is_memory);
        instants_.push_back({time, track, site, keep_extras(fields, time), is_memory,
                             is_memory && assembler_.text(fields.name) == "[OutOfMemory]"});
    }
    void add_samples(const Fields& fields, const PerfettoSequence& sequence, std::uint32_t home,
                     std::int64_t time) {
        const auto add = [&](const std::vector<std::uint64_t>& own, const std::vector<std::uint64_t>& usual,
                             const std::vector<double>& values) {
            const std::vector<std::uint64_t>& uuids = own.empty() ? usual : own;
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (i < uuids.size())
                    add_sample(uuids[i], values[i], home, time);
                else
                    ++unread_fields_;
            }
        };
        add(fields.extra_tracks, sequence.extra_counters, fields.extra_values);
        add(fields.extra_double_tracks, sequence.extra_double_counters, fields.extra_double_values);
    }
    void add_sample(std::uint64_t uuid, double value, std::uint32_t home, std::int64_t time) {
        const std::uint32_t track = tracks_.of_uuid(uuid);
        if (tracks_.is_incremental(track)) value = sums_[track] += value;
        samples_.push_back({time, value * tracks_.multiplier(track), track, home});
    }

    void match(std::uint32_t track);
    void add_range(std::uint32_t lane, std::int64_t start, std::int64_t duration, std::uint32_t site,
                   std::uint32_t extras, std::uint32_t end_extras, std::uint16_t flags);
    void give_extras(std::uint32_t range, std::uint32_t extras);
    std::uint16_t flags_of(std::uint32_t extras) const;
    std::span<const Argument> values_of(std::uint32_t extras) const;
    void add_memory(const Instant& instant);
    void link_flows();
    void link(const Flow& from, const Flow& to);
    void add_problems();

    TraceAssembler& assembler_;
    PerfettoTrackTable& tracks_;
    PerfettoValues values_;
    Fields fields_;
    bool is_marey_trace_ = false;
    bool has_window_ = false;
    std::int64_t window_end_ns_ = 0;
    std::int64_t latest_ = INT64_MIN;
    std::unordered_map<StringId, Scope> scopes_;  ///< is_marey_trace_
    std::vector<StringId> flow_names_;

    std::vector<std::vector<Event>> edges_;  ///< by track
    std::vector<Complete> completes_;
    std::vector<Instant> instants_;
    std::vector<Sample> samples_;
    std::vector<Extras> extras_;
    std::vector<Argument> arguments_;
    std::vector<Flow> flows_;
    std::unordered_map<std::uint32_t, double> sums_;  ///< values of incremental counters
    std::vector<std::uint32_t> matches_;
    std::size_t event_count_ = 0;

    std::uint64_t unknown_types_ = 0, unread_fields_ = 0, unnamed_ = 0, lone_ends_ = 0, unfinished_ = 0,
                  lone_flows_ = 0;
};

}  // namespace marey
