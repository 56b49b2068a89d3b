// write_tracks.h: the tracks of a trace as Perfetto track descriptors.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// Assigns a uuid to every process, thread, track and counter, and describes them. Processes and threads keep
/// their operating system ids if these are unique in the file. The streams of a device belong to a separate
/// process ("GPU 0"), whose label names the process that used it.
class PerfettoTracks {
  public:
    explicit PerfettoTracks(const Trace& trace);

    /// Calls `take` with every descriptor (a TrackDescriptor message), parents first.
    void describe(const std::function<void(const std::string&)>& take) const;

    /// The track for the events of a thread that are not ranges.
    std::uint64_t of_thread(Row thread) const;
    std::uint64_t of_track(std::size_t track) const { return tracks_[track]; }
    std::uint64_t of_counter(Row thread, std::uint32_t site) const;
    /// The counter track for the memory total of a device, as reported by a thread; 0: no totals are
    /// reported.
    std::uint64_t of_memory(Row thread, Device device, bool reserved) const;

  private:
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

    void number_processes();
    void number_threads();
    void number_tracks();
    void number_counters();
    Row process_of(Row thread) const;
    std::size_t queues_of(Row process, Device device);
    MemoryKey memory_key(Row thread, Device device, bool reserved) const;

    void add_own_name(std::string& descriptor, StringId own, std::string_view shown) const;
    std::string describe_process(std::size_t row) const;
    std::string describe_thread(std::size_t row) const;
    std::string describe_queues(const Queues& queues) const;
    std::string describe_track(std::size_t row) const;

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
