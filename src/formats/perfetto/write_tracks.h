// write_tracks.h: the tracks of a trace as Perfetto track descriptors.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <marey/trace.h>
#include <protozero/pbf_builder.hpp>

#include "formats/perfetto/fields.h"
#include "trace/program_names.h"

namespace marey {

using namespace perfetto;
using protozero::pbf_builder;

/// Assigns a uuid to every process, thread, track and counter, and describes them. Processes and threads keep
/// their operating system ids if these are unique in the file. The streams of a device belong to a separate
/// process ("GPU 0"), whose label names the process that used it.
class PerfettoTracks {
  public:
    explicit PerfettoTracks(const Trace& trace) : trace_(trace), next_id_(kFirstFreeId) {
        number_processes();
        number_threads();
        number_tracks();
        number_counters();
    }

    /// Calls `take` with every descriptor (a TrackDescriptor message), parents first.
    void describe(const std::function<void(const std::string&)>& take) const {
        for (std::size_t row = 0; row < processes_.size(); ++row) take(describe_process(row));
        for (std::size_t row = 0; row < threads_.size(); ++row) {
            if (threads_[row] != 0) take(describe_thread(row));
        }
        for (const Queues& queues : queues_) take(describe_queues(queues));
        for (std::size_t row = 0; row < tracks_.size(); ++row) {
            if (parents_[row] != 0) take(describe_track(row));
        }
        for (const auto& [key, uuid] : counters_) {
            std::string text;
            pbf_builder<TrackField> track(text);
            track.add_uint64(TrackField::Uuid, uuid);
            track.add_uint64(TrackField::ParentUuid, processes_[key.first]);
            track.add_string(TrackField::Name, trace_.string(trace_.sites()[key.second].name));
            track.add_message(TrackField::Counter, std::string_view());
            take(text);
        }
        for (const auto& [key, total] : memory_) {
            if (!total.is_reported) continue;
            const auto& [process, type, index, reserved] = key;
            const Device device{static_cast<DeviceType>(type), index};
            std::string text;
            pbf_builder<TrackField> track(text);
            track.add_uint64(TrackField::Uuid, total.uuid);
            track.add_uint64(TrackField::ParentUuid, processes_[process]);
            track.add_string(TrackField::Name, device_text(device) + (reserved ? " reserved" : " allocated"));
            {
                pbf_builder<CounterField> counter(track, TrackField::Counter);
                counter.add_string(CounterField::Categories, kMemoryCategory);
                counter.add_enum(CounterField::Unit, kUnitBytes);
            }
            take(text);
        }
    }

    /// The track for the events of a thread that are not ranges.
    std::uint64_t of_thread(Row thread) const {
        return thread < thread_events_.size() ? thread_events_[thread] : processes_.front();
    }
    std::uint64_t of_track(std::size_t track) const { return tracks_[track]; }
    std::uint64_t of_counter(Row thread, std::uint32_t site) const {
        return counters_.at({process_of(thread), site});
    }
    /// The counter track for the memory total of a device, as reported by a thread; 0: no totals are
    /// reported.
    std::uint64_t of_memory(Row thread, Device device, bool reserved) const {
        return memory_.at(memory_key(thread, device, reserved)).uuid;
    }

  private:
    static std::string device_text(Device device) {
        std::string text = device_type_name(device.type);
        if (device.index >= 0) text += ":" + std::to_string(device.index);
        return text;
    }

    static std::string queues_name(Device device) {
        std::string name = device.type == DeviceType::Cuda ? "GPU" : device_type_name(device.type);
        if (device.index >= 0) name += " " + std::to_string(device.index);
        return name;
    }

    static bool is_queue(const TrackInfo& track) { return track.kind == TrackKind::Device; }

    /// Whether a track's ranges only span device time (waits).
    static bool is_wait(const TrackInfo& track) {
        return track.kind == TrackKind::Async && track.device.type != DeviceType::Cpu;
    }

    static std::int32_t as_id(std::int64_t id) { return static_cast<std::int32_t>(id); }

    struct Queues {  ///< a device, shown as a separate process
        std::uint64_t uuid;
        std::int64_t pid;
        Row process;
        Device device;
    };
    struct MemoryTotal {
        std::uint64_t uuid;
        bool is_reported;
    };
    using MemoryKey = std::tuple<Row, std::uint8_t, std::int32_t, bool>;  // process, device, reserved

    void number_processes() {
        std::set<std::int64_t> taken;
        for (const ProcessInfo& process : trace_.processes()) {
            std::int64_t pid = process.pid;
            if (pid <= 0 || pid >= kFirstFreeId || !taken.insert(pid).second) pid = next_id_++;
            pids_.push_back(pid);
            processes_.push_back(next_uuid_++);
        }
        if (processes_.empty()) {  // a hand-made trace
            pids_.push_back(next_id_++);
            processes_.push_back(next_uuid_++);
        }
    }
    void number_threads() {
        std::vector<bool> has_queue(trace_.threads().size()), has_calls(trace_.threads().size());
        for (const TrackInfo& track : trace_.tracks()) {
            if (track.thread >= has_queue.size() || track.kind == TrackKind::Overlap) continue;
            (is_queue(track) || is_wait(track) ? has_queue : has_calls)[track.thread] = true;
        }
        std::set<std::int64_t> taken;
        for (std::size_t row = 0; row < trace_.threads().size(); ++row) {
            std::int64_t tid = trace_.threads()[row].os_tid;
            const bool is_only_queue = has_queue[row] && !has_calls[row];
            if (!is_only_queue && (tid <= 0 || tid >= kFirstFreeId || !taken.insert(tid).second))
                tid = next_id_++;
            tids_.push_back(tid);
            threads_.push_back(is_only_queue ? 0 : next_uuid_++);
        }
        thread_events_ = threads_;
    }
    void number_tracks() {
        std::vector<bool> has_first(threads_.size());
        // The first track of each stream, which other tracks of the same stream overlap.
        std::map<std::tuple<Row, std::uint8_t, std::int32_t, std::int64_t>, std::uint64_t> first;
        for (const TrackInfo& track : trace_.tracks()) {
            const bool has_thread = track.thread < threads_.size();
            const std::uint64_t thread = has_thread ? threads_[track.thread] : 0;
            const std::tuple key{track.thread, static_cast<std::uint8_t>(track.device.type),
                                 track.device.index, track.stream};
            if (track.kind == TrackKind::Thread && thread != 0 && !has_first[track.thread]) {
                has_first[track.thread] = true;
                first.emplace(key, thread);
                tracks_.push_back(thread);
                parents_.push_back(0);
                continue;
            }
            tracks_.push_back(next_uuid_++);
            if (is_queue(track) || is_wait(track)) {
                parents_.push_back(queues_[queues_of(process_of(track.thread), track.device)].uuid);
                if (is_queue(track)) first.emplace(key, tracks_.back());
                if (has_thread && thread_events_[track.thread] == 0)
                    thread_events_[track.thread] = tracks_.back();
            } else if (const auto found = first.find(key);
                       track.kind == TrackKind::Overlap && found != first.end()) {
                parents_.push_back(found->second);
            } else {
                parents_.push_back(thread != 0 ? thread : processes_[process_of(track.thread)]);
            }
        }
        // Waits for a stream appear below it.
        for (std::size_t row = 0; row < tracks_.size(); ++row) {
            const TrackInfo& track = trace_.tracks()[row];
            if (!is_wait(track)) continue;
            const auto queue = first.find({track.thread, static_cast<std::uint8_t>(track.device.type),
                                           track.device.index, track.stream});
            if (queue != first.end()) parents_[row] = queue->second;
        }
    }
    void number_counters() {
        const CounterColumns counters = trace_.counters();
        for (std::size_t i = 0; i < counters.size(); ++i) {
            const auto [place, is_new] =
                counters_.try_emplace({process_of(counters.thread[i]), counters.site[i]});
            if (is_new) place->second = next_uuid_++;
        }
        const MemoryColumns memory = trace_.memory();
        for (std::size_t i = 0; i < memory.size(); ++i) {
            for (const bool reserved : {false, true}) {
                MemoryTotal& total = memory_[memory_key(memory.thread[i], memory.device[i], reserved)];
                total.is_reported |= (reserved ? memory.total_reserved : memory.total_allocated)[i] != 0;
            }
        }
        for (auto& [key, total] : memory_) total.uuid = total.is_reported ? next_uuid_++ : 0;
    }
    Row process_of(Row thread) const {
        if (thread >= trace_.threads().size()) return 0;
        const Row process = trace_.threads()[thread].process;
        return process < processes_.size() ? process : 0;
    }
    std::size_t queues_of(Row process, Device device) {
        for (std::size_t i = 0; i < queues_.size(); ++i) {
            if (queues_[i].process == process && queues_[i].device == device) return i;
        }
        queues_.push_back({next_uuid_++, next_id_++, process, device});
        return queues_.size() - 1;
    }
    MemoryKey memory_key(Row thread, Device device, bool reserved) const {
        return {process_of(thread), static_cast<std::uint8_t>(device.type), device.index, reserved};
    }

    /// Adds the name of a process or thread to its descriptor, if another one is shown.
    void add_own_name(std::string& descriptor, StringId own, std::string_view shown) const {
        if (trace_.string(own) == shown) return;
        pbf_builder<TrackField>(descriptor)
            .add_string(TrackField::Description, std::string(kOwnName).append(trace_.string(own)));
    }
    std::string describe_process(std::size_t row) const {
        std::string text;
        pbf_builder<TrackField> track(text);
        track.add_uint64(TrackField::Uuid, processes_[row]);
        track.add_enum(TrackField::ChildOrdering, kExplicitOrder);
        const ProcessInfo info = row < trace_.processes().size() ? trace_.processes()[row] : ProcessInfo();
        const std::string name = python_program(trace_, info).value_or(std::string(trace_.string(info.name)));
        {
            pbf_builder<ProcessField> process(track, TrackField::Process);
            process.add_int32(ProcessField::Pid, as_id(pids_[row]));
            if (info.command_line != 0)
                process.add_string(ProcessField::CommandLine, trace_.string(info.command_line));
            if (!name.empty()) process.add_string(ProcessField::Name, name);
            if (info.node >= 0)
                process.add_string(ProcessField::Labels, std::string(kRankLabel) + std::to_string(info.node));
            if (info.host != 0)
                process.add_string(ProcessField::Labels,
                                   std::string(kHostLabel).append(trace_.string(info.host)));
        }
        add_own_name(text, info.name, name);
        return text;
    }
    std::string describe_thread(std::size_t row) const {
        const ThreadInfo& info = trace_.threads()[row];
        const Row process = process_of(static_cast<Row>(row));
        const std::string name = shown_thread_name(trace_, info);
        std::string text;
        pbf_builder<TrackField> track(text);
        track.add_uint64(TrackField::Uuid, threads_[row]);
        track.add_uint64(TrackField::ParentUuid, processes_[process]);
        track.add_int32(TrackField::SiblingRank, as_id(info.id));
        {
            pbf_builder<ThreadField> thread(track, TrackField::Thread);
            thread.add_int32(ThreadField::Pid, as_id(pids_[process]));
            thread.add_int32(ThreadField::Tid, as_id(tids_[row]));
            if (!name.empty()) thread.add_string(ThreadField::Name, name);
        }
        add_own_name(text, info.name, name);
        return text;
    }
    std::string describe_queues(const Queues& queues) const {
        std::string text;
        pbf_builder<TrackField> track(text);
        track.add_uint64(TrackField::Uuid, queues.uuid);
        track.add_enum(TrackField::ChildOrdering, kExplicitOrder);
        {
            pbf_builder<ProcessField> process(track, TrackField::Process);
            process.add_int32(ProcessField::Pid, as_id(queues.pid));
            process.add_string(ProcessField::Name, queues_name(queues.device));
            process.add_string(ProcessField::Labels,
                               std::string(kOwnerLabel) + std::to_string(pids_[queues.process]));
            process.add_string(ProcessField::Labels, std::string(kDeviceLabel) + device_text(queues.device));
        }
        return text;
    }
    std::string describe_track(std::size_t row) const {
        const TrackInfo& info = trace_.tracks()[row];
        std::string text;
        pbf_builder<TrackField> track(text);
        track.add_uint64(TrackField::Uuid, tracks_[row]);
        track.add_uint64(TrackField::ParentUuid, parents_[row]);
        std::string_view name = trace_.string(info.name);
        if (name.empty()) name = info.kind == TrackKind::Async ? "async" : "track";
        track.add_string(TrackField::Name, name);
        if (is_queue(info) || is_wait(info)) {
            if (info.stream >= 0 && info.stream <= std::numeric_limits<std::int32_t>::max())
                track.add_int32(TrackField::SiblingRank, static_cast<std::int32_t>(info.stream));
        }
        if (is_queue(info)) {
            track.add_string(TrackField::Description, kDeviceTrack);
        } else {
            track.add_string(TrackField::Description,
                             info.kind == TrackKind::Async ? kAsyncTrack : kOverlapTrack);
        }
        return text;
    }

    const Trace& trace_;
    std::uint64_t next_uuid_ = 1;  // 0 is reserved by Perfetto
    std::int64_t next_id_;
    std::vector<std::uint64_t> processes_, threads_, tracks_;  ///< uuids; 0: a thread that is only a stream
    std::vector<std::int64_t> pids_, tids_;
    std::vector<std::uint64_t> parents_;        ///< parents of tracks; 0: the track is its thread
    std::vector<std::uint64_t> thread_events_;  ///< track for the instants and counters of each thread
    std::vector<Queues> queues_;
    std::map<std::pair<Row, std::uint32_t>, std::uint64_t> counters_;  ///< by process and site
    std::map<MemoryKey, MemoryTotal> memory_;
};

}  // namespace marey
