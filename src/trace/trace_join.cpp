// trace_join.cpp: joins traces of one machine that follow one another.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include <marey/error.h>
#include <marey/trace.h>

#include "trace/facts.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

/// The new rows of one trace.
struct Moved {
    const TraceData* from = nullptr;
    std::vector<StringId> strings;
    std::vector<std::uint32_t> sites;
    std::vector<Row> processes;
    std::vector<Row> threads;
    std::vector<Row> tracks;        ///< the joined track of each
    std::vector<Row> track_starts;  ///< the new row of each track's first range
    std::uint32_t first_item = 0;
    std::uint32_t first_array = 0;
    std::uint32_t first_extent = 0;
    Row first_instant = 0;

    Row range(Row row) const {
        if (row == kNoRow) return kNoRow;
        const auto after =
            std::upper_bound(from->tracks.begin(), from->tracks.end(), row,
                             [](Row wanted, const TrackInfo& track) { return wanted < track.first_range; });
        const auto track = static_cast<std::size_t>(after - from->tracks.begin()) - 1;
        return track_starts[track] + (row - from->tracks[track].first_range);
    }
};

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

/// Which rows of several traces are the same object. Rows of one trace never are, whatever their keys: the
/// n-th of a key in one is the n-th of it in another.
template <class Key>
class RowDeduplicator {
  public:
    void begin_trace() { seen_.clear(); }
    /// The row of the first one with that key and place; `next` if this is the first.
    Row match(const Key& key, std::size_t next) {
        return rows_.try_emplace(std::pair(key, seen_[key]++), static_cast<Row>(next)).first->second;
    }

  private:
    std::map<std::pair<Key, std::uint32_t>, Row> rows_;
    std::map<Key, std::uint32_t> seen_;
};

class TraceJoin {
  public:
    Trace join(std::span<const Trace> traces) {
        for (const Trace& trace : traces) moved_.emplace_back().from = &trace.data();
        std::stable_sort(moved_.begin(), moved_.end(), [](const Moved& a, const Moved& b) {
            return a.from->window.start_ns < b.from->window.start_ns;
        });
        for (Moved& moved : moved_) {
            sites_.begin_trace();
            processes_.begin_trace();
            threads_.begin_trace();
            tracks_.begin_trace();
            move_names(moved);
            move_places(moved);
            place_tracks(moved);
        }
        move_ranges();
        for (Moved& moved : moved_) {
            move_points(moved);
            move_values(moved);
            move_details(moved);
            join_facts(*moved.from);
        }
        sort_rows();
        join_windows();
        return Trace(std::move(data_));
    }

  private:
    void move_names(Moved& moved) {
        for (const std::string& text : moved.from->strings) moved.strings.push_back(strings_.intern(text));
        for (SiteInfo site : moved.from->sites) {
            for (StringId* const id :
                 {&site.name, &site.file, &site.overload, &site.category, &site.raw_name})
                *id = moved.strings[*id];
            const auto key = std::tuple(site.name, site.file, site.line, site.scope, site.overload,
                                        site.category, site.raw_name);
            moved.sites.push_back(sites_.match(key, data_->sites.size()));
            if (moved.sites.back() == data_->sites.size()) data_->sites.push_back(site);
        }
    }

    void move_places(Moved& moved) {
        for (ProcessInfo process : moved.from->processes) {
            for (StringId* const id : {&process.name, &process.host, &process.command_line})
                *id = moved.strings[*id];
            moved.processes.push_back(processes_.match(
                std::tuple(process.pid, process.node, process.host, process.name), data_->processes.size()));
            if (moved.processes.back() == data_->processes.size()) data_->processes.push_back(process);
        }
        for (ThreadInfo thread : moved.from->threads) {
            thread.process = moved.processes[thread.process];
            thread.name = moved.strings[thread.name];
            moved.threads.push_back(
                threads_.match(std::pair(thread.process, thread.id), data_->threads.size()));
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

    // The same track of each trace becomes one; overlap tracks stay separate, so that tracks with the parents
    // of their ranges still come before them.
    void place_tracks(Moved& moved) {
        for (TrackInfo track : moved.from->tracks) {
            track.thread = moved.threads[track.thread];
            track.name = moved.strings[track.name];
            const TrackKey key{track.kind,        track.thread,       track.name,
                               track.device.type, track.device.index, track.stream};
            Row joined = static_cast<Row>(data_->tracks.size());
            if (track.kind != TrackKind::Overlap) joined = tracks_.match(key, joined);
            if (joined == data_->tracks.size()) {
                data_->tracks.push_back(track);
                data_->tracks.back().range_count = 0;
            }
            data_->tracks[joined].range_count += track.range_count;
            moved.tracks.push_back(joined);
        }
    }

    void move_ranges() {
        std::uint64_t rows = 0;
        for (const Moved& moved : moved_) rows += moved.from->range_start_ns.size();
        if (rows >= kNoRow) throw Error("the joined traces have more ranges than a trace can hold");
        Row next = 0;
        std::vector<Row> ends;
        for (TrackInfo& track : data_->tracks) {
            track.first_range = next;
            ends.push_back(next);
            next += track.range_count;
        }
        data_->range_start_ns.resize(next);
        data_->range_duration_ns.resize(next);
        data_->range_self_ns.resize(next);
        data_->range_site.resize(next);
        data_->range_parent.resize(next);
        data_->range_depth.resize(next);
        data_->range_flags.resize(next);
        for (Moved& moved : moved_) {
            for (std::size_t i = 0; i < moved.tracks.size(); ++i) {
                moved.track_starts.push_back(ends[moved.tracks[i]]);
                ends[moved.tracks[i]] += moved.from->tracks[i].range_count;
            }
            for (std::size_t i = 0; i < moved.tracks.size(); ++i) {
                for (Row at = 0; at < moved.from->tracks[i].range_count; ++at)
                    move_range(moved, moved.from->tracks[i].first_range + at, moved.track_starts[i] + at);
            }
        }
    }

    // Ranges that exceed their own window end there: the time between two windows belongs to none.
    void move_range(const Moved& moved, Row from, Row to) {
        const TraceData& source = *moved.from;
        const std::int64_t end =
            std::min(source.range_start_ns[from] + source.range_duration_ns[from], source.window.end_ns);
        const std::int64_t start =
            std::min(std::max(source.range_start_ns[from], source.window.start_ns), source.window.end_ns);
        data_->range_start_ns[to] = start;
        data_->range_duration_ns[to] = std::max<std::int64_t>(end - start, 0);
        data_->range_self_ns[to] = source.range_self_ns[from];
        data_->range_site[to] = moved.sites[source.range_site[from]];
        data_->range_parent[to] = moved.range(source.range_parent[from]);
        data_->range_depth[to] = source.range_depth[from];
        data_->range_flags[to] = source.range_flags[from];
    }

    void move_points(Moved& moved) {
        const TraceData& from = *moved.from;
        moved.first_instant = static_cast<Row>(data_->instant_time_ns.size());
        append(data_->instant_time_ns, from.instant_time_ns);
        for (const std::uint32_t site : from.instant_site) data_->instant_site.push_back(moved.sites[site]);
        for (const Row thread : from.instant_thread) data_->instant_thread.push_back(moved.threads[thread]);
        append(data_->counter_time_ns, from.counter_time_ns);
        append(data_->counter_value, from.counter_value);
        for (const std::uint32_t site : from.counter_site) data_->counter_site.push_back(moved.sites[site]);
        for (const Row thread : from.counter_thread) data_->counter_thread.push_back(moved.threads[thread]);
        append(data_->memory_time_ns, from.memory_time_ns);
        append(data_->memory_address, from.memory_address);
        append(data_->memory_bytes, from.memory_bytes);
        append(data_->memory_total_allocated, from.memory_total_allocated);
        append(data_->memory_total_reserved, from.memory_total_reserved);
        append(data_->memory_device, from.memory_device);
        append(data_->memory_out_of_memory, from.memory_out_of_memory);
        for (const Row thread : from.memory_thread) data_->memory_thread.push_back(moved.threads[thread]);
    }

    void move_values(Moved& moved) {
        const TraceData& from = *moved.from;
        moved.first_item = static_cast<std::uint32_t>(data_->list_items.size());
        moved.first_array = static_cast<std::uint32_t>(data_->arrays.size());
        moved.first_extent = static_cast<std::uint32_t>(data_->array_extents.size());
        const auto first_value = static_cast<std::uint32_t>(data_->arguments.size());
        const auto move = [&](Argument value) {
            value.key = moved.strings[value.key];
            if (value.kind == ValueKind::String) value.string = moved.strings[value.string];
            if (value.kind == ValueKind::List) value.list.first += moved.first_item;
            if (value.kind == ValueKind::Array) value.array += moved.first_array;
            return value;
        };
        for (const Argument& value : from.arguments) data_->arguments.push_back(move(value));
        for (const Argument& value : from.list_items) data_->list_items.push_back(move(value));
        for (ArrayInfo array : from.arrays) {
            array.first_extent += moved.first_extent;
            data_->arrays.push_back(array);
        }
        append(data_->array_extents, from.array_extents);
        for (const ArgumentSlice& slice : from.range_arguments)
            data_->range_arguments.push_back(
                {moved.range(slice.row), slice.first + first_value, slice.count});
        for (const ArgumentSlice& slice : from.instant_arguments)
            data_->instant_arguments.push_back(
                {slice.row + moved.first_instant, slice.first + first_value, slice.count});
    }

    void move_details(const Moved& moved) {
        for (RangeDetail detail : moved.from->range_details) {
            detail.range = moved.range(detail.range);
            data_->range_details.push_back(detail);
        }
        for (const TaskInfo& task : moved.from->tasks)
            data_->tasks.push_back({moved.processes[task.process], task.call, moved.strings[task.name]});
        for (const LinkInfo& link : moved.from->links)
            data_->links.push_back(
                {moved.range(link.from), moved.range(link.to), link.kind, moved.strings[link.name]});
    }

    void join_facts(const TraceData& from) {
        for (const MetadataInfo& fact : from.metadata) put_fact(data_->metadata, fact.key, fact.json);
        for (const ProblemInfo& problem : from.problems) {
            const auto same =
                std::find_if(data_->problems.begin(), data_->problems.end(), [&](const ProblemInfo& known) {
                    return known.code == problem.code && known.text == problem.text;
                });
            if (same == data_->problems.end()) {
                data_->problems.push_back(problem);
            } else {
                same->count += problem.count;
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
        std::sort(data_->range_arguments.begin(), data_->range_arguments.end(), by_row);
        std::sort(data_->range_details.begin(), data_->range_details.end(),
                  [](const RangeDetail& a, const RangeDetail& b) { return a.range < b.range; });
        std::stable_sort(data_->links.begin(), data_->links.end(),
                         [](const LinkInfo& a, const LinkInfo& b) { return a.from < b.from; });
        sort_reports();
    }

    // Reports stand in order of threads, then times.
    void sort_reports() {
        std::vector<std::size_t> order(data_->memory_thread.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return data_->memory_thread[a] < data_->memory_thread[b];
        });
        const auto reorder = [&](auto& column) {
            auto sorted = column;
            for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
            column = std::move(sorted);
        };
        reorder(data_->memory_time_ns);
        reorder(data_->memory_thread);
        reorder(data_->memory_address);
        reorder(data_->memory_bytes);
        reorder(data_->memory_total_allocated);
        reorder(data_->memory_total_reserved);
        reorder(data_->memory_device);
        reorder(data_->memory_out_of_memory);
    }

    void join_windows() {
        WindowInfo joined;
        for (const Moved& moved : moved_) {
            const WindowInfo& window = moved.from->window;
            const bool is_first = &moved == &moved_.front();
            if (!is_first && window.start_ns < joined.end_ns)
                throw Error("traces can be joined only when one ends before the next begins");
            const std::int64_t start = is_first ? window.start_ns : joined.start_ns;
            const std::uint64_t bytes = joined.log_bytes + window.log_bytes;
            const bool is_full = joined.ceiling_reached || window.ceiling_reached;
            const std::uint64_t first_id = is_first ? window.first_id : joined.first_id;
            joined = window;
            joined.first_id = first_id;
            joined.start_ns = start;
            joined.log_bytes = bytes;
            joined.ceiling_reached = is_full;
        }
        data_->window = std::move(joined);
    }

    using SiteKey = std::tuple<StringId, StringId, std::uint32_t, Scope, StringId, StringId, StringId>;
    using TrackKey = std::tuple<TrackKind, Row, StringId, DeviceType, decltype(Device::index), std::int64_t>;

    std::shared_ptr<TraceData> data_ = std::make_shared<TraceData>();
    StringPool strings_{data_->strings};
    std::vector<Moved> moved_;
    RowDeduplicator<SiteKey> sites_;
    RowDeduplicator<std::tuple<std::int64_t, std::int32_t, StringId, StringId>> processes_;
    RowDeduplicator<std::pair<Row, std::uint32_t>> threads_;
    RowDeduplicator<TrackKey> tracks_;
};

}  // namespace

Trace join_traces(std::span<const Trace> traces) {
    if (traces.size() == 1) return traces[0];
    return TraceJoin().join(traces);
}

}  // namespace marey
