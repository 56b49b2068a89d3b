// events.h: collects the track events of a Perfetto trace in any order, then matches them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

#include "formats/perfetto/read_annotations.h"
#include "formats/perfetto/sequence.h"
#include "formats/perfetto/track_table.h"
#include "trace/trace_assembler.h"

namespace marey {

namespace perfetto {
class Message;
}

/// Collects events in file order; finish() sorts those of each track by time, pairs begins with ends and
/// passes everything to the assembler.
class PerfettoEvents {
  public:
    PerfettoEvents(TraceAssembler& assembler, PerfettoTrackTable& tracks);
    ~PerfettoEvents();

    /// Marks the file as written by Marey.
    void set_marey_trace();
    /// Only for files written by Marey: the names of flows, in order.
    void add_flow_name(std::string_view name) { flow_names_.push_back(assembler_.string(name)); }
    /// Adds a TrackEvent message at `time_ns`. Throws protozero::exception if it is damaged; then nothing of
    /// the event is kept.
    void add(std::string_view message, const PerfettoSequence& sequence, std::int64_t time_ns);

    /// Sets when unfinished ranges end (default: with the last event).
    void set_window_end(std::int64_t time_ns) { window_end_ns_ = time_ns, has_window_ = true; }
    /// Must be called once, after all events were added and the tracks were placed.
    void finish();

    std::size_t size() const { return event_count_; }

  private:
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
    struct Fields;

    void parse(std::string_view message, const PerfettoSequence& sequence, Fields& fields);
    static bool parse_numbers(perfetto::Message& event, std::uint32_t field, Fields& fields);
    void parse_phase(std::string_view message, Fields& fields);
    void parse_place(std::string_view message, Fields& fields);
    std::uint32_t track_of(const Fields& fields, const PerfettoSequence& sequence);
    std::uint32_t site_of(const Fields& fields, bool& is_memory);
    std::uint32_t keep_extras(const Fields& fields, std::int64_t time);
    void add_phase(const Fields& fields, const PerfettoSequence& sequence, std::int64_t time);
    void add_edge(std::uint32_t track, const Event& event);
    void add_instant(const Fields& fields, std::uint32_t track, std::int64_t time);
    void add_samples(const Fields& fields, const PerfettoSequence& sequence, std::uint32_t home,
                     std::int64_t time);
    void add_sample(std::uint64_t uuid, double value, std::uint32_t home, std::int64_t time);

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
    std::unique_ptr<Fields> fields_;
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
