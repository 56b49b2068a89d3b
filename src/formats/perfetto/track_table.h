// track_table.h: the tracks of a Perfetto trace, and their positions in the trace model.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <marey/trace.h>

#include "trace/trace_assembler.h"

namespace marey {

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
    std::uint32_t of_uuid(std::uint64_t uuid);
    std::uint32_t of_thread(std::int64_t pid, std::int64_t tid);
    std::uint32_t of_async(std::int64_t pid, StringId scope, std::uint64_t id);

    // These throw protozero::exception if a message is damaged.
    void describe(std::string_view track_descriptor);
    void describe_process(std::string_view process_descriptor);
    /// Returns the process id and the thread id.
    std::pair<std::int64_t, std::int64_t> describe_thread(std::string_view thread_descriptor);
    void describe_tree(std::string_view process_tree);

    /// Must be called once, before the functions below. `realtime_offset_ns`: as in ProcessInfo.
    void place(bool is_marey_trace, std::int64_t realtime_offset_ns);
    Row thread_of(std::uint32_t track);
    /// The lane for the ranges of a track.
    std::uint32_t lane_of(std::uint32_t track);

    /// The thread to which the values of a counter track belong.
    Row counter_thread_of(std::uint32_t track);

    std::size_t size() const { return tracks_.size(); }
    StringId name_of(std::uint32_t track) const { return tracks_[track].name; }
    bool is_incremental(std::uint32_t track) const { return tracks_[track].is_incremental; }
    double multiplier(std::uint32_t track) const { return tracks_[track].multiplier; }
    /// Whether it shows totals that are also in allocation reports.
    bool shows_memory(std::uint32_t track) const { return tracks_[track].shows_memory; }
    /// The number of tracks with events but without a descriptor.
    std::uint64_t undescribed() const { return undescribed_; }

  private:
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

    std::uint32_t add_track();
    void read_process(std::string_view message, Process& process);
    void read_label(std::string_view label, Process& process);
    void read_counter(std::string_view message, Track& track);
    std::pair<std::int64_t, std::int64_t> read_thread(std::string_view message);
    void merge(const Process& process);

    std::uint32_t parent_of(const Track& track) const;
    std::uint32_t place_above(std::uint32_t track) const;
    Row process_row(std::int64_t pid);
    Row thread_row(std::int64_t pid, std::int64_t tid, std::int32_t rank);
    Row process_events(std::int64_t pid);
    Row add_thread(Row process, std::int64_t os_tid, StringId name, std::int32_t rank);
    void resolve(std::uint32_t index, int level);
    void set_lane(Track& track, Row thread, TrackKind kind, StringId name, Device device = {},
                  std::int64_t stream = -1);

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
