// events.h: collects the track events of a Perfetto trace in any order, then matches them.
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
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
                const std::uint64_t uuid = fields.track.value_or(sequence.track.value_or(0));
                if (!fields.value)
                    ++unread_fields_;
                else
                    add_sample(uuid, *fields.value, sequence.track ? tracks_.of_uuid(*sequence.track) : kNone,
                               time);
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
        std::optional<std::uint64_t> track;
        StringId name = 0;
        std::vector<StringId> categories;
        PerfettoSequence::Place place;
        std::vector<std::uint64_t> flows, flow_ends;
        std::vector<Argument> values;
        ReadMetadata facts;
        std::optional<double> value;
        std::vector<std::uint64_t> extra_tracks, extra_double_tracks;
        std::vector<double> extra_values, extra_double_values;

        // A legacy (Chrome-style) event.
        bool has_phase = false;
        std::int32_t phase = 0;
        std::int64_t duration_us = 0;
        std::optional<std::uint64_t> id;
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
        ReadMetadata facts{};
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
        const auto append_to = [](auto& numbers) {
            return [&numbers](std::uint64_t number) { numbers.push_back(number); };
        };
        const auto skip = [](Message& m) { m.skip(); };  // read with the packet, or not needed
        read_fields(
            message, into(varint(EventField::Type), fields.type),
            into(varint(EventField::TrackUuid), fields.track),
            on(varint(EventField::NameIid),
               [&](Message& m) { fields.name = named(sequence.event_names, m.get_uint64()); }),
            on(bytes(EventField::Name), [&](Message& m) { fields.name = assembler_.string(m.get_view()); }),
            each_varint(
                EventField::CategoryIids,
                [&](std::uint64_t iid) { fields.categories.push_back(named(sequence.categories, iid)); }),
            on(bytes(EventField::Categories),
               [&](Message& m) { fields.categories.push_back(assembler_.string(m.get_view())); }),
            on(bytes(EventField::DebugAnnotations),
               [&](Message& m) {
                   values_.read(m.get_view(), sequence, is_marey_trace_, fields.values, fields.facts);
               }),
            on(varint(EventField::SourceLocationIid),
               [&](Message& m) {
                   const PerfettoSequence::Place* const place = sequence.places.find(m.get_uint64());
                   if (place != nullptr)
                       fields.place = *place;
                   else
                       ++unnamed_;
               }),
            on(bytes(EventField::SourceLocation), [&](Message& m) { parse_place(m.get_view(), fields); }),
            on(bytes(EventField::LegacyEvent), [&](Message& m) { parse_phase(m.get_view(), fields); }),
            each_fixed64(EventField::FlowIds, append_to(fields.flows)),
            each_fixed64(EventField::TerminatingFlowIds, append_to(fields.flow_ends)),
            each_varint(EventField::FlowIdsOld, append_to(fields.flows)),
            each_varint(EventField::TerminatingFlowIdsOld, append_to(fields.flow_ends)),
            on(varint(EventField::CounterValue),
               [&](Message& m) { fields.value = static_cast<double>(m.get_int64()); }),
            on(fixed64(EventField::DoubleCounterValue), [&](Message& m) { fields.value = m.get_double(); }),
            each_varint(EventField::ExtraCounterTracks, append_to(fields.extra_tracks)),
            each_varint(EventField::ExtraCounterValues,
                        [&](std::uint64_t value) {
                            fields.extra_values.push_back(
                                static_cast<double>(static_cast<std::int64_t>(value)));
                        }),
            each_varint(EventField::ExtraDoubleCounterTracks, append_to(fields.extra_double_tracks)),
            each_fixed64(EventField::ExtraDoubleCounterValues,
                         [&](std::uint64_t value) {
                             fields.extra_double_values.push_back(std::bit_cast<double>(value));
                         }),
            on(varint(EventField::TimestampDeltaUs), skip), on(varint(EventField::TimestampAbsoluteUs), skip),
            on(varint(EventField::ThreadTimeDeltaUs), skip),
            on(varint(EventField::ThreadTimeAbsoluteUs), skip),
            on(varint(EventField::InstructionDelta), skip), on(varint(EventField::InstructionAbsolute), skip),
            otherwise([&](Message& m) {
                ++unread_fields_;
                m.skip();
            }));
    }
    void parse_phase(std::string_view message, Fields& fields) {
        fields.has_phase = true;
        std::uint64_t bind_id = 0;
        std::int32_t direction = 0;
        read_fields(message, into(varint(PhaseEventField::Phase), fields.phase),
                    into(varint(PhaseEventField::DurationUs), fields.duration_us),
                    into(varint(PhaseEventField::UnscopedId), fields.id),
                    into(varint(PhaseEventField::LocalId), fields.id),
                    into(varint(PhaseEventField::GlobalId), fields.id),
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
        if (fields.track) return tracks_.of_uuid(*fields.track);
        if (fields.has_thread)
            return tracks_.of_thread(fields.pid >= 0 ? fields.pid : sequence.pid,
                                     fields.tid >= 0 ? fields.tid : sequence.tid);
        if (sequence.track) return tracks_.of_uuid(*sequence.track);
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
        Extras extras{.first_value = static_cast<std::uint32_t>(arguments_.size()),
                      .value_count = static_cast<std::uint32_t>(fields.values.size())};
        arguments_.insert(arguments_.end(), fields.values.begin(), fields.values.end());
        extras.first_flow = static_cast<std::uint32_t>(flows_.size());
        for (const std::uint64_t id : fields.flows) flows_.push_back({id, time, kNone, false});
        for (const std::uint64_t id : fields.flow_ends) flows_.push_back({id, time, kNone, true});
        extras.flow_count = static_cast<std::uint32_t>(flows_.size()) - extras.first_flow;
        extras.facts = facts;
        extras_.push_back(extras);
        return static_cast<std::uint32_t>(extras_.size() - 1);
    }
    void add_phase(const Fields& fields, const PerfettoSequence& sequence, std::int64_t time) {
        std::uint32_t track = track_of(fields, sequence);
        bool is_memory = false;
        if (fields.id && !fields.track &&
            std::string_view("benSFTp").find(static_cast<char>(fields.phase)) != std::string_view::npos) {
            const StringId scope = fields.categories.empty() ? 0 : fields.categories.front();
            track = tracks_.of_async(fields.pid >= 0 ? fields.pid : sequence.pid, scope, *fields.id);
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
