// track_table.h: the tracks of a Perfetto trace, and their positions in the trace model.
#pragma once

#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <marey/trace.h>

#include "formats/perfetto/fields.h"
#include "formats/perfetto/read_annotations.h"
#include "formats/protobuf_wire.h"
#include "trace/trace_assembler.h"

namespace marey {

using namespace perfetto;

/// Collects descriptors, which may come in any order and after the events of their tracks; place() then
/// creates the processes, threads and lanes.
///
/// A thread track becomes that thread. Other tracks below a thread or a process become async lanes. Tracks
/// below neither become separate threads. In files written by Marey, the description of a track gives its
/// kind.
class PerfettoTrackTable {
  public:
    explicit PerfettoTrackTable(TraceAssembler& assembler) : assembler_(assembler) {}

    // Each returns the number of a track, the same for the same arguments.
    std::uint32_t of_uuid(std::uint64_t uuid) {
        const auto [place, is_new] = by_uuid_.try_emplace(uuid);
        if (is_new) place->second = add_track();
        return place->second;
    }
    std::uint32_t of_thread(std::int64_t pid, std::int64_t tid) {
        const auto [place, is_new] = by_thread_.try_emplace({pid, tid});
        if (is_new) {
            place->second = add_track();
            Track& track = tracks_.back();
            track.is_described = track.has_thread = true;
            track.pid = pid;
            track.tid = tid;
        }
        return place->second;
    }
    std::uint32_t of_async(std::int64_t pid, StringId scope, std::uint64_t id) {
        const auto [place, is_new] = by_async_.try_emplace({pid, scope, id});
        if (is_new) {
            place->second = add_track();
            Track& track = tracks_.back();
            track.is_described = track.has_process = true;
            track.pid = pid;
            track.name = scope;
        }
        return place->second;
    }

    // These throw protozero::exception if a message is damaged.
    void describe(std::string_view message) {
        Track track;
        std::uint64_t uuid = 0;
        Process process;
        bool has_name = false;
        const auto take_name = [&](Message& m) {
            track.name = assembler_.string(m.get_view());
            has_name = true;
        };
        read_fields(message, into(varint(TrackField::Uuid), uuid),
                    into(varint(TrackField::ParentUuid), track.parent_uuid),
                    on(bytes(TrackField::Name), take_name), on(bytes(TrackField::StaticName), take_name),
                    on(bytes(TrackField::AtraceName), take_name),
                    on(bytes(TrackField::Description),
                       [&](Message& m) { track.description = assembler_.string(m.get_view()); }),
                    into(varint(TrackField::SiblingRank), track.rank),
                    on(bytes(TrackField::Process),
                       [&](Message& m) {
                           read_process(m.get_view(), process);
                           track.has_process = true;
                           track.pid = process.pid;
                       }),
                    on(bytes(TrackField::Thread),
                       [&](Message& m) {
                           std::tie(track.pid, track.tid) = read_thread(m.get_view());
                           track.has_thread = true;
                       }),
                    on(bytes(TrackField::Counter), [&](Message& m) { read_counter(m.get_view(), track); }));
        std::string_view own_name;
        if (follows(assembler_.text(track.description), kOwnName, own_name)) {
            const StringId name = assembler_.string(std::string(own_name));
            if (track.has_process) process.name = name;
            if (track.has_thread) thread_names_[{track.pid, track.tid}] = name;
        }
        if (track.has_process) merge(process);
        Track& known = tracks_[of_uuid(uuid)];
        if (!has_name) track.name = known.name;
        if (known.is_described && !track.has_thread && !track.has_process) {  // extends an earlier descriptor
            track.has_thread = known.has_thread;
            track.has_process = known.has_process;
            track.pid = known.pid;
            track.tid = known.tid;
            if (track.parent_uuid == 0) track.parent_uuid = known.parent_uuid;
        }
        track.is_described = true;
        known = track;
    }
    void describe_process(std::string_view message) {
        Process process;
        read_process(message, process);
        merge(process);
    }
    /// Returns the process id and the thread id.
    std::pair<std::int64_t, std::int64_t> describe_thread(std::string_view message) {
        const auto ids = read_thread(message);
        of_thread(ids.first, ids.second);
        return ids;
    }
    void describe_tree(std::string_view message) {
        const auto read_thread_entry = [&](Message& m) {
            std::int64_t tid = 0, pid = 0;
            std::string_view name;
            read_fields(m.get_view(), into(varint(TreeThreadField::Tid), tid),
                        into(varint(TreeThreadField::Pid), pid), into(bytes(TreeThreadField::Name), name));
            thread_names_.try_emplace({pid, tid}, assembler_.string(name));
        };
        const auto read_process_entry = [&](Message& m) {
            Process process;
            std::vector<std::string_view> command_line;
            read_fields(m.get_view(), into(varint(TreeProcessField::Pid), process.pid),
                        into(bytes(TreeProcessField::CommandLine), command_line));
            if (!command_line.empty()) process.name = assembler_.string(command_line.front());
            // A new one gets a row when its first event is added.
            Process& known = processes_.try_emplace(process.pid, process).first->second;
            if (known.name == 0) known.name = process.name;
        };
        read_fields(message, on(bytes(ProcessTreeField::Threads), read_thread_entry),
                    on(bytes(ProcessTreeField::Processes), read_process_entry));
    }

    /// Must be called once, before the functions below. `realtime_offset_ns`: as in ProcessInfo.
    void place(bool is_marey_trace, std::int64_t realtime_offset_ns) {
        is_marey_trace_ = is_marey_trace;
        realtime_offset_ns_ = realtime_offset_ns;
        for (const std::int64_t pid : process_order_) {
            if (!is_marey_trace || !processes_[pid].is_device) process_row(pid);
        }
        for (const Track& track : tracks_) {
            if (track.has_thread) thread_row(track.pid, track.tid, track.rank);
        }
    }
    Row thread_of(std::uint32_t track) {
        resolve(track, 0);
        return tracks_[track].thread;
    }
    /// The lane for the ranges of a track.
    std::uint32_t lane_of(std::uint32_t track) {
        resolve(track, 0);
        return tracks_[track].lane;
    }

    /// The thread to which the values of a counter track belong.
    Row counter_thread_of(std::uint32_t track) {
        const std::uint32_t above = place_above(track);
        if (above == kNone) return process_events(0);
        const Track& place = tracks_[above];
        return place.has_thread ? thread_row(place.pid, place.tid, place.rank) : process_events(place.pid);
    }

    std::size_t size() const { return tracks_.size(); }
    StringId name_of(std::uint32_t track) const { return tracks_[track].name; }
    bool is_incremental(std::uint32_t track) const { return tracks_[track].is_incremental; }
    double multiplier(std::uint32_t track) const { return tracks_[track].multiplier; }
    /// Whether it shows totals that are also in allocation reports.
    bool shows_memory(std::uint32_t track) const { return tracks_[track].shows_memory; }
    /// The number of tracks with events but without a descriptor.
    std::uint64_t undescribed() const { return undescribed_; }

  private:
    /// If `text` starts with `start`, sets `rest` to the remainder.
    static bool follows(std::string_view text, std::string_view start, std::string_view& rest) {
        if (!text.starts_with(start)) return false;
        rest = text.substr(start.size());
        return true;
    }

    static void parse_number(std::string_view text, auto& number) {
        std::from_chars(text.data(), text.data() + text.size(), number);
    }

    static constexpr std::uint32_t kNone = ~0u;
    static constexpr int kMaxDepth = 64;  // of nested tracks

    struct Process {
        std::int64_t pid = 0;
        StringId name = 0;
        StringId command_line = 0;
        StringId host = 0;
        std::int32_t node = -1;
        bool is_device = false;
        Device device{};
        std::int64_t owner = 0;  ///< is_device: the process that used it
    };
    struct Track {
        bool is_described = false;
        std::uint64_t parent_uuid = 0;
        bool has_process = false;
        bool has_thread = false;
        std::int64_t pid = 0, tid = 0;
        StringId name = 0;
        StringId description = 0;
        std::int32_t rank = -1;
        bool is_incremental = false;
        bool shows_memory = false;
        double multiplier = 1;
        std::uint32_t lane = kNone;
        Row thread = kNoRow;
    };

    std::uint32_t add_track() {
        tracks_.emplace_back();
        return static_cast<std::uint32_t>(tracks_.size() - 1);
    }
    void read_process(std::string_view message, Process& process) {
        std::string command_line;
        read_fields(message, into(varint(ProcessField::Pid), process.pid),
                    on(bytes(ProcessField::CommandLine),
                       [&](Message& m) {
                           if (!command_line.empty()) command_line += ' ';
                           command_line += m.get_view();
                       }),
                    on(bytes(ProcessField::Name),
                       [&](Message& m) { process.name = assembler_.string(m.get_view()); }),
                    on(bytes(ProcessField::Labels), [&](Message& m) { read_label(m.get_view(), process); }));
        if (!command_line.empty()) process.command_line = assembler_.string(command_line);
    }
    void read_label(std::string_view label, Process& process) {
        std::string_view rest;
        if (follows(label, kRankLabel, rest)) parse_number(rest, process.node);
        if (follows(label, kHostLabel, rest)) process.host = assembler_.string(rest);
        if (follows(label, kOwnerLabel, rest)) parse_number(rest, process.owner);
        if (follows(label, kDeviceLabel, rest)) {
            process.is_device = true;
            process.device = perfetto_device(rest);
        }
    }
    void read_counter(std::string_view message, Track& track) {
        read_fields(message,
                    on(bytes(CounterField::Categories),
                       [&](Message& m) { track.shows_memory |= m.get_view() == kMemoryCategory; }),
                    on(varint(CounterField::UnitMultiplier),
                       [&](Message& m) { track.multiplier = static_cast<double>(m.get_int64()); }),
                    into(varint(CounterField::IsIncremental), track.is_incremental));
    }
    std::pair<std::int64_t, std::int64_t> read_thread(std::string_view message) {
        std::int64_t pid = 0, tid = 0;
        StringId name = 0;
        read_fields(
            message, into(varint(ThreadField::Pid), pid), into(varint(ThreadField::Tid), tid),
            on(bytes(ThreadField::Name), [&](Message& m) { name = assembler_.string(m.get_view()); }));
        if (name != 0) thread_names_[{pid, tid}] = name;
        return {pid, tid};
    }
    /// Later descriptors of a process extend earlier ones.
    void merge(const Process& process) {
        const auto [place, is_new] = processes_.try_emplace(process.pid, process);
        if (is_new) {
            process_order_.push_back(process.pid);
            return;
        }
        Process& known = place->second;
        if (process.name != 0) known.name = process.name;
        if (process.command_line != 0) known.command_line = process.command_line;
        if (process.host != 0) known.host = process.host;
        if (process.node >= 0) known.node = process.node;
    }

    std::uint32_t parent_of(const Track& track) const {
        if (track.parent_uuid == 0) return kNone;
        const auto found = by_uuid_.find(track.parent_uuid);
        return found == by_uuid_.end() ? kNone : found->second;
    }
    /// The nearest thread or process track, starting with this one and going up; kNone: none.
    std::uint32_t place_above(std::uint32_t track) const {
        for (int i = 0; i < kMaxDepth && track != kNone; ++i) {
            if (tracks_[track].has_thread || tracks_[track].has_process) return track;
            track = parent_of(tracks_[track]);
        }
        return kNone;
    }
    Row process_row(std::int64_t pid) {
        const auto [place, is_new] = process_rows_.try_emplace(pid);
        if (!is_new) return place->second;
        ProcessInfo info{.pid = pid, .realtime_offset_ns = realtime_offset_ns_};
        if (const auto found = processes_.find(pid); found != processes_.end()) {
            const Process& process = found->second;
            info.name = process.name;
            info.command_line = process.command_line;
            if (is_marey_trace_) {
                info.node = process.node;
                info.host = process.host;
                if (pid >= kFirstFreeId) info.pid = 0;
            }
        }
        return place->second = assembler_.add_process(info);
    }
    Row thread_row(std::int64_t pid, std::int64_t tid, std::int32_t rank) {
        const auto [place, is_new] = thread_rows_.try_emplace({pid, tid}, kNoRow, kNone);
        if (is_new) {
            const auto name = thread_names_.find({pid, tid});
            const std::int64_t os_tid = is_marey_trace_ && tid >= kFirstFreeId ? 0 : tid;
            place->second.first =
                add_thread(process_row(pid), os_tid, name == thread_names_.end() ? 0 : name->second,
                           is_marey_trace_ ? rank : 0);
        }
        return place->second.first;
    }
    /// The row for events of a process that are not on any thread.
    Row process_events(std::int64_t pid) {
        const auto [place, is_new] = process_events_.try_emplace(pid);
        if (is_new) place->second = add_thread(process_row(pid), 0, assembler_.string("process"), 0);
        return place->second;
    }
    Row add_thread(Row process, std::int64_t os_tid, StringId name, std::int32_t rank) {
        std::set<std::uint32_t>& taken = thread_ids_[process];
        std::uint32_t id = rank > 0 ? static_cast<std::uint32_t>(rank) : 0;
        if (id == 0 || !taken.insert(id).second) {
            id = taken.empty() ? 1 : *taken.rbegin() + 1;
            taken.insert(id);
        }
        return assembler_.add_thread({.process = process, .id = id, .os_tid = os_tid, .name = name});
    }
    void resolve(std::uint32_t index, int level) {
        Track& track = tracks_[index];
        if (track.lane != kNone) return;
        if (!track.is_described) ++undescribed_;
        if (track.has_thread) {
            const Row thread = thread_row(track.pid, track.tid, track.rank);
            std::uint32_t& lane = thread_rows_[{track.pid, track.tid}].second;
            if (lane == kNone) lane = assembler_.add_lane({thread, TrackKind::Thread, {}, -1, 0});
            track.thread = thread;
            track.lane = lane;
            return;
        }
        if (track.has_process)
            return set_lane(track, process_events(track.pid), TrackKind::Async,
                            track.name != 0 ? track.name : assembler_.string("process"));
        const std::uint32_t parent = parent_of(track);
        const std::uint32_t above = place_above(index);
        const bool is_placed = above != kNone;
        if (is_marey_trace_ && is_placed && level < kMaxDepth) {
            const std::string_view description = assembler_.text(track.description);
            const Process* const process =
                tracks_[above].has_process ? &processes_[tracks_[above].pid] : nullptr;
            if (description == kOverlapTrack && parent != kNone) {
                resolve(parent, level + 1);
                track.lane = tracks_[parent].lane;
                track.thread = tracks_[parent].thread;
                return;
            }
            if (description == kDeviceTrack && process != nullptr && process->is_device) {
                const Row thread = add_thread(process_row(process->owner), 0, track.name, 0);
                return set_lane(track, thread, TrackKind::Device, 0, process->device, track.rank);
            }
            if (description == kAsyncTrack && process != nullptr && process->is_device) {
                const bool is_of_queue = parent != above;
                if (is_of_queue) resolve(parent, level + 1);
                const Row thread = is_of_queue ? tracks_[parent].thread
                                               : add_thread(process_row(process->owner), 0, track.name, 0);
                return set_lane(track, thread, TrackKind::Async, track.name, process->device, track.rank);
            }
        }
        const StringId name = track.name != 0 ? track.name : assembler_.string("track");
        if (is_placed) {
            const Track& place = tracks_[above];
            const Row thread =
                place.has_thread ? thread_row(place.pid, place.tid, place.rank) : process_events(place.pid);
            return set_lane(track, thread, TrackKind::Async, name);
        }
        set_lane(track, add_thread(process_row(0), 0, name, 0), TrackKind::Thread, 0);
    }
    void set_lane(Track& track, Row thread, TrackKind kind, StringId name, Device device = {},
                  std::int64_t stream = -1) {
        track.thread = thread;
        track.lane = assembler_.add_lane({thread, kind, device, stream, name});
    }

    TraceAssembler& assembler_;
    bool is_marey_trace_ = false;
    std::int64_t realtime_offset_ns_ = 0;
    std::vector<Track> tracks_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_uuid_;
    std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> by_thread_;
    std::map<std::tuple<std::int64_t, StringId, std::uint64_t>, std::uint32_t> by_async_;
    std::map<std::int64_t, Process> processes_;
    std::vector<std::int64_t> process_order_;
    std::map<std::pair<std::int64_t, std::int64_t>, StringId> thread_names_;
    // Rows that have been created.
    std::map<std::int64_t, Row> process_rows_;
    std::map<std::pair<std::int64_t, std::int64_t>, std::pair<Row, std::uint32_t>> thread_rows_;  // and lane
    std::map<std::int64_t, Row> process_events_;
    std::map<Row, std::set<std::uint32_t>> thread_ids_;
    std::uint64_t undescribed_ = 0;
};

}  // namespace marey
