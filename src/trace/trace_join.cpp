// trace_join.cpp: joins traces of one process that follow one another, and merges or adds those of several
// processes.
#include "trace/trace_join.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include <marey/error.h>
#include <marey/process_end.h>

#include "base/reserve_expected.h"
#include "trace/columns.h"
#include "trace/process_links.h"
#include "trace/row_mapping.h"
#include "trace/string_pool.h"

namespace marey {
namespace {

/// Ranges of one track of a trace, before tracks are joined.
struct Segment {
    Row track;  ///< the joined one
    Row first;
    Row count;
};

/// The steps that joining, merging and adding traces share: takes traces one by one, then settles.
class TraceJoin {
  protected:
    /// `is_merge`: of several processes. `explains_ends`: how each process ended is found out at the end.
    TraceJoin(bool is_merge, bool explains_ends) : is_merge_(is_merge), explains_ends_(explains_ends) {}

    static RowMapping moved_of(Trace& trace, ClockMove move) {
        RowMapping moved;
        moved.trace = with_own_ranges(trace);
        trace = Trace();
        moved.from = &moved.trace.data();
        moved.move = std::move(move);
        moved.window = moved.from->window;
        moved.window.start_ns = moved.time(moved.window.start_ns);
        moved.window.end_ns = moved.time(moved.window.end_ns);
        return moved;
    }

    static std::vector<RowMapping> in_order(std::vector<Trace> traces, std::vector<ClockMove> moves) {
        moves.resize(traces.size());
        std::vector<RowMapping> all;
        for (std::size_t i = 0; i < traces.size(); ++i)
            all.push_back(moved_of(traces[i], std::move(moves[i])));
        std::ranges::stable_sort(all, {}, [](const RowMapping& a) { return a.window.start_ns; });
        return all;
    }

    void take_all(std::vector<RowMapping> all) {
        std::size_t rows = 0;
        for (const RowMapping& moved : all) rows += moved.from->range_start_ns.size();
        check_rows(rows);
        for_each_vector<ModelTable::Ranges>(*data_, [&](auto& column) { reserve_filled(column, rows); });
        for (RowMapping& moved : all) static_cast<void>(take(std::move(moved), 1));  // frees it
    }

    static void check_rows(std::size_t rows) {
        if (rows >= kNoRow)
            throw Error("the traces have more ranges (" + std::to_string(rows) +
                        ") than one trace can hold (4294967294): export them to Parquet one by one and query "
                        "the files "
                        "together");
    }

    /// Appends the rows of a trace, and returns it. `fraction`: of all rows, about, that are there then.
    Trace take(RowMapping taken, double fraction) {
        RowMapping& moved = moved_.emplace_back(std::move(taken));
        sites_.begin_trace();
        processes_.begin_trace();
        threads_.begin_trace();
        tracks_.begin_trace();
        move_names(moved);
        move_places(moved);
        append_ranges(moved, fraction);
        place_tracks(moved);
        append_rows(moved);
        note_copies(moved);
        if (moved.caller != kNoRow) link_call(moved);
        join_facts(moved, moved_.size() == 1);
        moved.from = nullptr;
        return std::exchange(moved.trace, Trace());
    }

    /// The steps that need the windows and tracks of all traces.
    void settle() {
        WindowInfo& whole = data_->window;
        whole.start_ns = moved_.front().window.start_ns;
        whole.end_ns = moved_.front().window.end_ns;
        for (const RowMapping& moved : moved_) {
            whole.start_ns = std::min(whole.start_ns, moved.window.start_ns);
            whole.end_ns = std::max(whole.end_ns, moved.window.end_ns);
        }
        for (const RowMapping& moved : moved_) clip(moved);
        join_tracks();
        sort_rows();
    }

    void move_names(RowMapping& moved) {
        for (const std::string& text : moved.from->strings) moved.strings.push_back(strings_.intern(text));
        for (const SiteInfo& site : renumbered<ModelTable::Sites>(&TraceData::sites, moved)) {
            moved.sites.push_back(sites_.match(key_of(site), data_->sites.size()));
            if (moved.sites.back() == data_->sites.size()) data_->sites.push_back(site);
        }
    }

    void move_places(RowMapping& moved) {
        const std::size_t known_processes = data_->processes.size();
        for (const ProcessInfo& process : renumbered<ModelTable::Processes>(&TraceData::processes, moved)) {
            const ProcessKey key{
                process.pid,   process.node,  process.host,          process.name,
                process.start, process.clock, process.pid_namespace, is_merge_ ? process.command_line : 0};
            moved.processes.push_back(processes_.match(key, data_->processes.size()));
            if (moved.processes.back() != data_->processes.size()) continue;
            data_->processes.push_back(process);
            const ProcessInfo& before = moved.from->processes[moved.processes.size() - 1];
            const std::int64_t shift_ns = moved.window.start_ns - moved.from->window.start_ns;
            data_->processes.back().realtime_offset_ns = before.realtime_offset_ns - shift_ns;
        }
        for (std::size_t i = known_processes; i < data_->processes.size(); ++i) {
            Row& parent = data_->processes[i].parent;
            if (parent != kNoRow) parent = moved.processes[parent];
        }
        for (const ThreadInfo& thread : renumbered<ModelTable::Threads>(&TraceData::threads, moved)) {
            moved.threads.push_back(
                threads_.match(std::tuple(thread.process, thread.id, thread.os_tid), data_->threads.size()));
            if (moved.threads.back() == data_->threads.size()) {
                data_->threads.push_back(thread);
            } else {
                ThreadInfo& known = data_->threads[moved.threads.back()];
                if (thread.name != 0) known.name = thread.name;
                known.death_ns = thread.death_ns;
                known.dropped += thread.dropped;
                known.overwritten_chunks += thread.overwritten_chunks;
                known.resyncs += thread.resyncs;
                known.clamped += thread.clamped;
            }
        }
    }

    // The same track of each trace becomes one, unless a later one begins before the end of an earlier one;
    // overlap tracks stay separate, so that tracks with the parents of their ranges still come before them.
    void place_tracks(RowMapping& moved) {
        for (const TrackInfo& track : renumbered<ModelTable::Tracks>(&TraceData::tracks, moved)) {
            const TrackKey key{track.kind,        track.thread,       track.name,
                               track.device.type, track.device.index, track.stream};
            Row joined = static_cast<Row>(data_->tracks.size());
            if (track.kind != TrackKind::Overlap) joined = tracks_.match(key, joined);
            const auto [start_ns, end_ns] = span_of(moved, track);
            const bool is_crossing = joined < data_->tracks.size() && start_ns < track_ends_[joined];
            if (is_crossing) joined = static_cast<Row>(data_->tracks.size());
            if (joined == data_->tracks.size()) {
                data_->tracks.push_back(track);
                data_->tracks.back().range_count = 0;
                if (is_crossing && track.kind != TrackKind::Async)
                    data_->tracks.back().kind = TrackKind::Overlap;
                track_ends_.push_back(end_ns);
            }
            track_ends_[joined] = std::max(track_ends_[joined], end_ns);
            data_->tracks[joined].range_count += track.range_count;
            moved.tracks.push_back(joined);
            segments_.push_back({joined, moved.range(track.first_range), track.range_count});
        }
    }

    /// The time from a track's first range to its last, in the window of its trace.
    static std::pair<std::int64_t, std::int64_t> span_of(const RowMapping& moved, const TrackInfo& track) {
        const TraceData& from = *moved.from;
        using Limits = std::numeric_limits<std::int64_t>;
        if (track.range_count == 0) return {Limits::max(), Limits::min()};
        Row last = track.first_range + track.range_count - 1;
        while (from.range_depth[last] != 0) last = from.range_parent[last];
        return {std::max(moved.time(from.range_start_ns[track.first_range]), moved.window.start_ns),
                std::min(moved.time(from.range_start_ns[last] + from.range_duration_ns[last]),
                         moved.window.end_ns)};
    }

    void append_ranges(RowMapping& moved, double fraction) {
        const std::size_t first = data_->range_start_ns.size();
        const std::size_t rows = first + moved.from->range_start_ns.size();
        check_rows(rows);
        moved.first_range = static_cast<Row>(first);
        const auto expected = static_cast<std::size_t>(static_cast<double>(rows) / fraction * 1.02);
        model::visit_table(Only<ModelTable::Ranges>(), [&](const TableInfo&, const auto&... columns) {
            const auto one = [&](const auto& column) {
                auto& to = column.in(*data_);
                const auto& from = column.in(*moved.from);
                if (rows > to.capacity()) reserve_filled(to, expected);
                to.insert(to.end(), from.begin(), from.end());
                if (column.cells != Cells::Time) renumber(*data_, column, first, moved);
            };
            (one(columns), ...);
        });
        for (std::size_t row = first; row < rows; ++row) {
            std::int64_t& start = data_->range_start_ns[row];
            std::int64_t& duration = data_->range_duration_ns[row];
            if (moved.move.own) {
                const std::int64_t end = moved.time(start + duration);
                start = moved.time(start);
                duration = end - start;
            }
            if (start < moved.window.start_ns || duration < 0 || start + duration > moved.window.end_ns)
                moved.exceeding.push_back(static_cast<Row>(row));
        }
    }

    // Ranges that exceed their own window end there: the time outside it is not this trace's, but may be in
    // the window of all. A merged trace with the same window as all keeps the times that exceed it.
    void clip(const RowMapping& moved) {
        const WindowInfo& own = moved.window;
        const bool keeps_start = is_merge_ && own.start_ns == data_->window.start_ns;
        const bool keeps_end = is_merge_ && own.end_ns == data_->window.end_ns;
        for (const Row row : moved.exceeding) {
            std::int64_t& start = data_->range_start_ns[row];
            std::int64_t& duration = data_->range_duration_ns[row];
            std::int64_t end = start + duration;
            if (!keeps_end) end = std::min(end, own.end_ns);
            if (!keeps_end) start = std::min(start, own.end_ns);
            if (!keeps_start) start = std::max(start, own.start_ns);
            duration = std::max<std::int64_t>(end - start, 0);
        }
    }

    // Tracks of several traces that became one are moved together.
    void join_tracks() {
        Row next = 0;
        for (TrackInfo& track : data_->tracks) {
            track.first_range = next;
            next += track.range_count;
        }
        const auto by_track = [](const Segment& a, const Segment& b) { return a.track < b.track; };
        if (std::ranges::is_sorted(segments_, by_track)) return;
        std::vector<Row> starts;  // the new row of each segment's first range
        std::vector<Row> ends;
        for (const TrackInfo& track : data_->tracks) ends.push_back(track.first_range);
        for (const Segment& segment : segments_) {
            starts.push_back(ends[segment.track]);
            ends[segment.track] += segment.count;
        }
        std::size_t last = 0;
        for_each_reference(*data_, Cells::Range, [&](Row& row) {
            if (row == kNoRow) return;
            if (row - segments_[last].first >= segments_[last].count) {
                const auto after = std::ranges::upper_bound(segments_, row, {}, &Segment::first);
                last = static_cast<std::size_t>(after - segments_.begin()) - 1;
            }
            row = starts[last] + (row - segments_[last].first);
        });
        for_each_vector<ModelTable::Ranges>(*data_, [&](auto& column) {
            const auto before = std::exchange(column, {});
            reserve_filled(column, before.size());
            column.resize(before.size());
            for (std::size_t i = 0; i < segments_.size(); ++i)
                std::copy_n(before.begin() + segments_[i].first, segments_[i].count,
                            column.begin() + starts[i]);
        });
    }

    // A process all of whose ranges came in messages is not the one that recorded the trace.
    void note_copies(const RowMapping& moved) {
        const TraceData& from = *moved.from;
        std::vector<bool> has_own(from.processes.size());
        const auto process_of = [&](const TrackInfo& track) { return from.threads[track.thread].process; };
        for (const TrackInfo& track : from.tracks) {
            const auto first = from.range_flags.begin() + track.first_range;
            if (std::any_of(first, first + track.range_count,
                            [](std::uint16_t flags) { return (flags & kRemote) == 0; }))
                has_own[process_of(track)] = true;
        }
        copy_tracks_.resize(data_->tracks.size());
        for (std::size_t i = 0; i < moved.tracks.size(); ++i) {
            const TrackInfo& track = from.tracks[i];
            if (track.range_count != 0 && !has_own[process_of(track)]) copy_tracks_[moved.tracks[i]] = true;
        }
    }

    void append_rows(RowMapping& moved) {
        moved.first_argument = static_cast<std::uint32_t>(data_->arguments.size());
        moved.first_item = static_cast<std::uint32_t>(data_->list_items.size());
        moved.first_array = static_cast<std::uint32_t>(data_->arrays.size());
        moved.first_extent = static_cast<std::uint32_t>(data_->array_extents.size());
        moved.first_instant = static_cast<Row>(data_->instant_time_ns.size());
        moved.first_stack = static_cast<Row>(data_->stacks.size());
        moved.first_frame = static_cast<Row>(data_->frames.size());
        using enum ModelTable;
        append<Instants, Counters, Memory, Samples, Stacks, Frames, Sampling, Arguments, ListItems, Arrays,
               ArrayExtents, RangeArguments, InstantArguments, RangeDetails, Messages, Tasks, Links,
               HostClocks, ClockExchanges>(moved);
        if (moved.move.peer) move_exchanges(moved);
        const auto move_values = [&](std::vector<Argument>& values, std::size_t first) {
            for (std::size_t i = first; i < values.size(); ++i) {
                Argument& value = values[i];
                if (value.kind == ValueKind::String) value.string = moved.strings[value.string];
                if (value.kind == ValueKind::List) value.list.first += moved.first_item;
                if (value.kind == ValueKind::Array) value.array += moved.first_array;
            }
        };
        move_values(data_->arguments, moved.first_argument);
        move_values(data_->list_items, moved.first_item);
    }

    // The outermost ranges, unless one of the same trace called them.
    void link_call(const RowMapping& moved) {
        const TraceData& from = *moved.from;
        std::vector<bool> is_called(from.range_start_ns.size());
        for (const LinkInfo& link : from.links) {
            if (link.kind == LinkKind::Remote) is_called[link.to] = true;
        }
        for (const TrackInfo& track : from.tracks) {
            if (track.kind != TrackKind::Thread && track.kind != TrackKind::Async) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                if (from.range_parent[row] == kNoRow && !is_called[row])
                    data_->links.push_back({moved.caller, moved.range(row), LinkKind::Remote});
            }
        }
    }

    // Two of their times are on the clock of the host that answered.
    void move_exchanges(const RowMapping& moved) {
        const std::vector<ClockExchangeInfo>& from = moved.from->clock_exchanges;
        const std::size_t first = data_->clock_exchanges.size() - from.size();
        for (std::size_t i = 0; i < from.size(); ++i) {
            const std::string& peer = moved.from->strings[from[i].peer];
            ClockExchangeInfo& to = data_->clock_exchanges[first + i];
            to.arrived_ns = moved.move.peer(peer, from[i].arrived_ns);
            to.answered_ns = moved.move.peer(peer, from[i].answered_ns);
        }
    }

    template <ModelTable... kTables>
    void append(const RowMapping& moved) {
        (append_table<kTables>(moved), ...);
    }
    template <ModelTable kTable>
    void append_table(const RowMapping& moved) {
        model::visit_table(Only<kTable>(), [&](const TableInfo&, const auto& front, const auto&... others) {
            const std::size_t first = front.in(*data_).size();
            const auto one = [&](const auto& column) {
                auto& to = column.in(*data_);
                const auto& from = column.in(*moved.from);
                if (to.size() == first) to.insert(to.end(), from.begin(), from.end());
                renumber(*data_, column, first, moved);
            };
            one(front);
            (one(others), ...);
        });
    }

    void add_problem(const ProblemInfo& problem) {
        const auto same = std::ranges::find_if(data_->problems, [&](const ProblemInfo& known) {
            return known.code == problem.code && known.text == problem.text;
        });
        if (same == data_->problems.end()) {
            data_->problems.push_back(problem);
        } else {
            same->count += problem.count;
        }
    }

    void join_facts(RowMapping& moved, bool is_first) {
        const TraceData& from = *moved.from;
        for (const MetadataInfo& fact : from.metadata) {
            // The end of each process is in the table of processes; this is about the first.
            const bool is_end = is_merge_ && fact.key.starts_with("process_exit_");
            if (is_first || !is_end) put_fact(data_->metadata, fact.key, fact.json);
        }
        for (const ProblemInfo& problem : from.problems) {
            if (explains_ends_ && problem.code == "crashed") {
                moved.has_crashed = true;
            } else {
                add_problem(problem);
            }
        }
        if (!from.costs.empty()) data_->costs = from.costs;
        const ClockInfo before = std::exchange(data_->clock, from.clock);
        data_->clock.pairs += before.pairs;
        data_->clock.max_error_ns = std::max(data_->clock.max_error_ns, before.max_error_ns);
        data_->clock.extrapolated = data_->clock.extrapolated || before.extrapolated;
    }

    void sort_rows() {
        sort_tasks(data_->tasks);
        const auto by_row = [](const ArgumentSlice& a, const ArgumentSlice& b) { return a.row < b.row; };
        std::ranges::sort(data_->range_arguments, by_row);
        std::ranges::sort(data_->range_details, {}, &RangeDetail::range);
        sort_links(data_->links);
        sort_reports(*data_);
        sort_samples(*data_);
    }

    void add_up(WindowInfo window) {
        window.log_bytes = 0;
        window.first_id = moved_.front().window.first_id;
        for (const RowMapping& moved : moved_) {
            window.log_bytes += moved.window.log_bytes;
            window.size_limit_reached = window.size_limit_reached || moved.window.size_limit_reached;
        }
        data_->window = std::move(window);
    }

    using ProcessKey = std::tuple<std::int64_t, std::int32_t, StringId, StringId, std::uint64_t, StringId,
                                  std::uint64_t, StringId>;
    using TrackKey = std::tuple<TrackKind, Row, StringId, DeviceType, decltype(Device::index), std::int64_t>;

    const bool is_merge_, explains_ends_;
    std::shared_ptr<TraceData> data_ = std::make_shared<TraceData>();
    StringPool strings_{data_->strings};
    std::vector<RowMapping> moved_;
    std::vector<Segment> segments_;  ///< in the order of their rows
    RowDeduplicator<std::vector<std::uint32_t>> sites_;
    RowDeduplicator<ProcessKey> processes_;
    RowDeduplicator<std::tuple<Row, std::uint32_t, std::int64_t>> threads_;
    RowDeduplicator<TrackKey> tracks_;
    std::vector<std::int64_t> track_ends_;  ///< of each joined track
    std::vector<bool> copy_tracks_;         ///< joined tracks with ranges of note_copies()
};

/// Traces of one process that follow one another.
class TraceSequence : TraceJoin {
  public:
    TraceSequence() : TraceJoin(false, false) {}

    Trace join(std::span<const Trace> traces) {
        std::vector<RowMapping> all = in_order({traces.begin(), traces.end()}, {});
        for (std::size_t i = 1; i < all.size(); ++i) {
            if (all[i].window.start_ns < all[i - 1].window.end_ns)
                throw Error("traces can be joined only when one ends before the next begins");
        }
        take_all(std::move(all));
        settle();
        WindowInfo joined = moved_.back().window;
        joined.start_ns = data_->window.start_ns;
        add_up(joined);
        return Trace(std::move(data_));
    }
};

/// Traces of several processes: all at once, or one by one in the order of their windows.
class TraceMerge : TraceJoin {
  public:
    TraceMerge() : TraceJoin(true, true) {}

    Trace merge(std::vector<Trace> traces, std::vector<ClockMove> moves) {
        const bool has_moves = !moves.empty();
        take_all(in_order(std::move(traces), std::move(moves)));
        return merged(has_moves);
    }

    TraceData take_next(Trace trace, double fraction) {
        const std::shared_ptr<TraceData> taken = changeable_data(take(moved_of(trace, {}), fraction));
        TraceData spare;
        model::visit_table(Only<ModelTable::Ranges>(), [&](const TableInfo&, const auto&... columns) {
            (columns.in(*taken).clear(), ...);
            ((columns.in(spare) = std::move(columns.in(*taken))), ...);
        });
        return spare;
    }
    Trace merged(bool has_moves) {
        settle();
        if (has_moves) data_->range_self_ns = self_times(*data_);
        WindowInfo merged = moved_.front().window;
        merged.start_ns = data_->window.start_ns;
        merged.end_ns = data_->window.end_ns;
        add_up(merged);
        replace_remote_copies(*data_, copy_tracks_);
        connect_processes(*data_);
        explain_ends();
        return Trace(std::move(data_));
    }

  private:
    /// The program that ran first in the process.
    Row first_program(Row process) const {
        const std::vector<ProcessInfo>& all = data_->processes;
        while (all[process].origin == ProcessOrigin::Exec && all[process].parent != kNoRow)
            process = all[process].parent;
        return process;
    }

    void explain_ends() {
        std::vector<EndedProcess> ended;
        std::vector<bool> is_replaced(data_->processes.size());  // by another program of the same process
        for (const ProcessInfo& process : data_->processes) {
            if (process.origin == ProcessOrigin::Exec && process.parent != kNoRow)
                is_replaced[process.parent] = true;
        }
        for (const RowMapping& moved : moved_) {
            if (!moved.has_crashed) continue;
            const Row process = moved.processes.empty() ? kNoRow : moved.processes.front();
            if (process != kNoRow && is_replaced[process]) {
                if (&moved == &moved_.front()) data_->window.finished = true;
                continue;
            }
            // Whoever reads the trace says how its first process ended.
            const std::vector<Row>& first = moved_.front().processes;
            const bool is_first = process == kNoRow || first.empty() || first_program(process) == first[0];
            if (is_first || data_->processes[process].parent == kNoRow) data_->window.finished = false;
            if (is_first) {
                add_problem({"crashed", "A program ended without closing its capture.", 1});
            } else {
                ended.push_back(ended_process(Trace(data_), process));
            }
        }
        for (const ProblemInfo& problem : describe_ends(ended)) add_problem(problem);
    }
};

/// Traces of other processes that are added to one.
class TraceAddition : TraceJoin {
  public:
    TraceAddition() : TraceJoin(true, false) {}

    Trace add(Trace trace, std::vector<AddedTrace> added) {
        std::vector<Trace> traces{std::move(trace)};
        std::vector<ClockMove> moves(1);
        for (AddedTrace& each : added) {
            traces.push_back(std::exchange(each.trace, Trace()));
            moves.push_back(std::move(each.move));
        }
        std::vector<RowMapping> all = in_order(std::move(traces), std::move(moves));
        for (std::size_t i = 0; i < added.size(); ++i) all[i + 1].caller = added[i].caller;
        take_all(std::move(all));
        settle();
        data_->range_self_ns = self_times(*data_);
        add_up(moved_.front().window);
        connect_processes(*data_);
        return Trace(std::move(data_));
    }
};

}  // namespace

struct TraceMerger::Join : TraceMerge {};

TraceMerger::TraceMerger() : join_(std::make_unique<Join>()) {}
TraceMerger::~TraceMerger() = default;
TraceData TraceMerger::add(Trace trace, double fraction) {
    return join_->take_next(std::move(trace), fraction);
}
Trace TraceMerger::finish() {
    return join_->merged(false);
}

Trace join_traces(std::span<const Trace> traces) {
    if (traces.empty()) return Trace();
    return traces.size() == 1 ? traces[0] : TraceSequence().join(traces);
}

Trace merge_on_clocks(std::vector<Trace> traces, std::vector<ClockMove> moves) {
    return TraceMerge().merge(std::move(traces), std::move(moves));
}

Trace add_traces(Trace trace, std::vector<AddedTrace> added) {
    return TraceAddition().add(std::move(trace), std::move(added));
}

}  // namespace marey
