// trace_events.cpp: events_of: the rows of a trace as an event message.
#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <unordered_set>

#include "collect/remote_events.h"
#include "record/clock.h"
#include "record/process_identity.h"
#include "record/recorder.h"
#include "trace/trace_data.h"

namespace marey {

namespace {

constexpr DeviceType kDeviceTypes[] = {DeviceType::Cpu, DeviceType::Cuda, DeviceType::Xpu,
                                       DeviceType::Mps, DeviceType::Meta, DeviceType::None};

// Parses the output of device_text().
Device parse_device(std::string_view text) {
    Device device{DeviceType::Other, -1};
    const std::size_t colon = text.find(':');
    for (const DeviceType type : kDeviceTypes) {
        if (text.substr(0, colon) == device_type_name(type)) device.type = type;
    }
    if (colon != std::string_view::npos)
        device.index = static_cast<std::int32_t>(std::atoi(std::string(text.substr(colon + 1)).c_str()));
    return device;
}

// Whether the trace's times are those of this machine's clock since boot: it was recorded here, by this
// process, and its clock has the same offset to the wall clock as ours.
bool is_of_this_boot(const Trace& trace, const detail::FileHeader& facts) {
    if (trace.processes().empty()) return false;
    const ProcessInfo& process = trace.processes()[0];
    constexpr std::int64_t kMaxDriftNs = 600'000'000'000;
    const detail::ClockPair now = Clock::pair();
    const std::int64_t offset_ns = now.real_ns - now.raw_ns;
    return process.pid == facts.pid && trace.string(process.host) == facts.host &&
           process.realtime_offset_ns > offset_ns - kMaxDriftNs &&
           process.realtime_offset_ns < offset_ns + kMaxDriftNs;
}

class EventCollector {
  public:
    EventCollector(const Trace& trace, const EventFilter& filter)
        : trace_(trace),
          filter_(filter),
          string_ids_(trace.string_count(), 0),
          thread_is_used_(trace.threads().size(), false) {
        names_.insert(filter.names.begin(), filter.names.end());
    }

    EventMessage collect() {
        message_.start_ns = trace_.window().start_ns;
        message_.end_ns = trace_.window().end_ns;
        if (!trace_.processes().empty()) message_.processes.clear();
        for (const ProcessInfo& process : trace_.processes()) {
            message_.processes.push_back({process.pid, process.node, std::string(trace_.string(process.host)),
                                          std::string(trace_.string(process.name))});
        }
        add_ranges();
        add_callers();
        if (filter_.marks) add_marks();
        if (filter_.memory) add_memory();
        for (Row row = 0; row < trace_.threads().size(); ++row) {
            const ThreadInfo& thread = trace_.threads()[row];
            if (thread_is_used_[row])
                message_.threads.push_back({thread.process, thread.id, thread.os_tid, string(thread.name)});
        }
        return std::move(message_);
    }

  private:
    StringId string(StringId id) {
        if (id == 0 || id >= string_ids_.size()) return 0;
        if (string_ids_[id] == 0) string_ids_[id] = message_.add_string(trace_.string(id));
        return string_ids_[id];
    }

    bool includes_site(const SiteInfo& site) const {
        return filter_.scopes.contains(site.scope) &&
               (names_.empty() || names_.count(std::string(trace_.string(site.name))) != 0);
    }
    bool includes_thread(Row thread) const { return thread < trace_.threads().size(); }

    RemoteEvent& add_event(RemoteEvent::Kind kind, Row thread) {
        thread_is_used_[thread] = true;
        RemoteEvent& event = message_.events.emplace_back();
        event.kind = kind;
        event.process = trace_.threads()[thread].process;
        event.thread = trace_.threads()[thread].id;
        return event;
    }

    void add_ranges() {
        const RangeColumns ranges = trace_.ranges();
        for (const TrackInfo& track : trace_.tracks()) {
            if (!includes_thread(track.thread)) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const SiteInfo& site = trace_.sites()[ranges.site[row]];
                if (!includes_site(site) || (filter_.ranges && !filter_.ranges(row))) continue;
                event_of_row_.emplace(row, message_.events.size());
                RemoteEvent& event = add_event(RemoteEvent::Kind::Range, track.thread);
                event.scope = site.scope;
                event.name = string(site.name);
                event.start_ns = ranges.start_ns[row];
                event.end_ns = ranges.start_ns[row] + ranges.duration_ns[row];
                event.is_async = (ranges.flags[row] & kAsync) != 0;
                event.is_unfinished = (ranges.flags[row] & kUnfinished) != 0;
                if (const RangeDetail* const detail = trace_.range_detail(row)) {
                    event.id = detail->id;
                    event.sequence = detail->sequence;
                    event.forward_thread = detail->forward_thread;
                }
                add_values(event, trace_.range_arguments(row), (ranges.flags[row] & kRemote) != 0);
            }
        }
    }

    void add_callers() {
        for (const LinkInfo& link : trace_.links()) {
            if (link.kind != LinkKind::Remote) continue;
            const auto from = event_of_row_.find(link.from);
            const auto to = event_of_row_.find(link.to);
            if (from == event_of_row_.end() || to == event_of_row_.end()) continue;
            message_.events[to->second].caller = static_cast<std::int64_t>(from->second);
        }
    }

    void add_marks() {
        const InstantColumns instants = trace_.instants();
        for (Row row = 0; row < instants.size(); ++row) {
            const SiteInfo& site = trace_.sites()[instants.site[row]];
            if (!includes_thread(instants.thread[row]) || !includes_site(site)) continue;
            RemoteEvent& event = add_event(RemoteEvent::Kind::Mark, instants.thread[row]);
            event.scope = site.scope;
            event.name = string(site.name);
            event.start_ns = event.end_ns = instants.time_ns[row];
            add_values(event, trace_.instant_arguments(row), event.process != 0);
        }
    }

    void add_memory() {
        const MemoryColumns memory = trace_.memory();
        for (Row row = 0; row < memory.size(); ++row) {
            if (!includes_thread(memory.thread[row])) continue;
            RemoteEvent& event = add_event(RemoteEvent::Kind::Memory, memory.thread[row]);
            event.start_ns = event.end_ns = memory.time_ns[row];
            event.address = memory.address[row];
            event.device = memory.device[row];
            const bool on_cpu = event.device.type == DeviceType::Cpu;
            (on_cpu ? event.cpu_memory_bytes : event.device_memory_bytes) = memory.bytes[row];
            event.total_allocated = memory.total_allocated[row];
            event.total_reserved = memory.total_reserved[row];
            event.is_refused = memory.out_of_memory[row] != 0;
        }
    }

    void add_values(RemoteEvent& event, std::span<const Argument> arguments, bool is_remote) {
        for (const Argument& argument : arguments) {
            if (argument.role == ArgumentRole::Input) {
                event.shapes.push_back(shape_of(argument));
                continue;
            }
            if (argument.role != ArgumentRole::Keyword || (is_remote && take_field(event, argument)))
                continue;
            RemoteValue value{string(argument.key), false};
            switch (argument.kind) {
                case ValueKind::Bool:
                    value.value = argument.boolean;
                    break;
                case ValueKind::Int:
                    value.value = argument.integer;
                    break;
                case ValueKind::Double:
                    value.value = argument.real;
                    break;
                case ValueKind::String:
                    value.value = string(argument.string);
                    break;
                default:
                    continue;
            }
            event.values.push_back(value);
        }
    }

    std::vector<std::int64_t> shape_of(const Argument& argument) const {
        if (argument.kind != ValueKind::Array || argument.array >= trace_.arrays().size()) return {};
        const ArrayInfo& array = trace_.arrays()[argument.array];
        const auto extents = trace_.array_extents();
        if (array.first_extent > extents.size() || array.dimensions > extents.size() - array.first_extent)
            return {};
        const auto sizes = extents.subspan(array.first_extent, array.dimensions);
        return {sizes.begin(), sizes.end()};
    }

    // A value that a message stored under one of our keywords.
    bool take_field(RemoteEvent& event, const Argument& argument) {
        const std::string_view key = trace_.string(argument.key);
        if (key == remote_keys::kDevice && argument.kind == ValueKind::String) {
            const std::string_view text = trace_.string(argument.string);
            const Device device = parse_device(text);
            if (device == Device() || device_text(device) != text) return false;
            event.device = device;
        } else if (key == remote_keys::kDeviceTime && argument.kind == ValueKind::Int &&
                   argument.integer >= 0) {
            event.device_ns = argument.integer;
        } else if (key == remote_keys::kCpuMemory && argument.kind == ValueKind::Int) {
            event.cpu_memory_bytes = argument.integer;
        } else if (key == remote_keys::kDeviceMemory && argument.kind == ValueKind::Int) {
            event.device_memory_bytes = argument.integer;
        } else if (key == remote_keys::kStack && argument.kind == ValueKind::List) {
            const auto items = trace_.list_items();
            for (std::uint32_t i = 0; i < argument.list.count && argument.list.first + i < items.size(); ++i)
                event.stack.push_back(string(items[argument.list.first + i].string));
        } else {
            return false;
        }
        return true;
    }

    const Trace& trace_;
    const EventFilter& filter_;
    EventMessage message_;
    std::unordered_set<std::string> names_;
    std::vector<StringId> string_ids_;  // in the message, by id in the trace; 0: not added yet
    std::vector<bool> thread_is_used_;
    std::unordered_map<Row, std::size_t> event_of_row_;
};

}  // namespace

EventMessage events_of(const Trace& trace, const EventFilter& filter) {
    EventMessage message = EventCollector(trace, filter).collect();
    const detail::FileHeader facts = Recorder::get().process_facts();
    const StringId clock = trace.processes().empty() ? 0 : trace.processes()[0].clock;
    if (clock != 0) {
        message.boot_id = trace.string(clock);
    } else if (is_of_this_boot(trace, facts)) {
        message.boot_id = own_clock();
    }
    return message;
}

}  // namespace marey
