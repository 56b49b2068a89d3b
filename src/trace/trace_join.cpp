// trace_join.cpp: joins traces of one machine that follow one another.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include <marey/error.h>
#include <marey/trace.h>

#include "trace/columns.h"
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
    std::uint32_t first_argument = 0;
    std::uint32_t first_item = 0;
    std::uint32_t first_array = 0;
    std::uint32_t first_extent = 0;
    Row first_instant = 0;

    /// The new number of a cell.
    std::uint32_t number(Cells cells, std::uint32_t old) const {
        switch (cells) {
            case Cells::String:
                return strings[old];
            case Cells::Site:
                return sites[old];
            case Cells::Process:
                return processes[old];
            case Cells::Thread:
                return threads[old];
            case Cells::Range:
                return range(old);
            case Cells::Instant:
                return first_instant + old;
            case Cells::FirstArgument:
                return first_argument + old;
            case Cells::FirstExtent:
                return first_extent + old;
            case Cells::Number:
            case Cells::Flag:
            case Cells::Time:
                break;
        }
        return old;
    }

    Row range(Row row) const {
        if (row == kNoRow) return kNoRow;
        const auto after =
            std::upper_bound(from->tracks.begin(), from->tracks.end(), row,
                             [](Row wanted, const TrackInfo& track) { return wanted < track.first_range; });
        const auto track = static_cast<std::size_t>(after - from->tracks.begin()) - 1;
        return track_starts[track] + (row - from->tracks[track].first_range);
    }
};

/// Gives the references of a column their new numbers, from row `first` on.
template <class Rows, class Member>
void renumber(TraceData& data, const Column<Rows, Member>& column, std::size_t first, const Moved& moved) {
    if constexpr (std::is_same_v<typename Column<Rows, Member>::Value, std::uint32_t>) {
        if (column.cells == Cells::Number) return;
        auto& rows = column.in(data);
        for (std::size_t i = first; i < rows.size(); ++i) {
            std::uint32_t& cell = std::invoke(column.member, rows[i]);
            cell = moved.number(column.cells, cell);
        }
    }
}

/// The rows of a small table with their new numbers.
template <ModelTable kTable, class Info>
std::vector<Info> renumbered(std::vector<Info> TraceData::*table, const Moved& moved) {
    TraceData data;
    data.*table = moved.from->*table;
    model::visit_table(Only<kTable>(), [&](const TableInfo&, const auto&... columns) {
        (renumber(data, columns, 0, moved), ...);
    });
    return std::move(data.*table);
}

/// The columns of a site.
std::vector<std::uint32_t> key_of(const SiteInfo& site) {
    std::vector<std::uint32_t> key;
    model::visit_table(Only<ModelTable::Sites>(), [&](const TableInfo&, const auto&... columns) {
        key = {static_cast<std::uint32_t>(std::invoke(columns.member, site))...};
    });
    return key;
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
            append_rows(moved);
            join_facts(*moved.from);
        }
        sort_rows();
        join_windows();
        return Trace(std::move(data_));
    }

  private:
    void move_names(Moved& moved) {
        for (const std::string& text : moved.from->strings) moved.strings.push_back(strings_.intern(text));
        for (const SiteInfo& site : renumbered<ModelTable::Sites>(&TraceData::sites, moved)) {
            moved.sites.push_back(sites_.match(key_of(site), data_->sites.size()));
            if (moved.sites.back() == data_->sites.size()) data_->sites.push_back(site);
        }
    }

    void move_places(Moved& moved) {
        for (const ProcessInfo& process : renumbered<ModelTable::Processes>(&TraceData::processes, moved)) {
            moved.processes.push_back(processes_.match(
                std::tuple(process.pid, process.node, process.host, process.name), data_->processes.size()));
            if (moved.processes.back() == data_->processes.size()) data_->processes.push_back(process);
        }
        for (const ThreadInfo& thread : renumbered<ModelTable::Threads>(&TraceData::threads, moved)) {
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
        for (const TrackInfo& track : renumbered<ModelTable::Tracks>(&TraceData::tracks, moved)) {
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
        for_each_vector<ModelTable::Ranges>(*data_, [&](auto& column) { column.resize(next); });
        for (Moved& moved : moved_) {
            for (std::size_t i = 0; i < moved.tracks.size(); ++i) {
                moved.track_starts.push_back(ends[moved.tracks[i]]);
                ends[moved.tracks[i]] += moved.from->tracks[i].range_count;
            }
            for (std::size_t i = 0; i < moved.tracks.size(); ++i) move_track(moved, i);
        }
    }

    void move_track(const Moved& moved, std::size_t index) {
        const TrackInfo& track = moved.from->tracks[index];
        const Row to = moved.track_starts[index];
        model::visit_table(Only<ModelTable::Ranges>(), [&](const TableInfo&, const auto&... columns) {
            const auto move = [&](const auto& column) {
                const auto source = column.in(*moved.from).begin() + track.first_range;
                std::transform(source, source + track.range_count, column.in(*data_).begin() + to,
                               [&](const auto& cell) {
                                   using T = std::remove_cvref_t<decltype(cell)>;
                                   if constexpr (std::is_same_v<T, std::uint32_t>) {
                                       return moved.number(column.cells, cell);
                                   } else {
                                       return cell;
                                   }
                               });
            };
            (move(columns), ...);
        });
        for (Row row = to; row < to + track.range_count; ++row) clip(row, moved.from->window);
    }

    // Ranges that exceed their own window end there: the time between two windows belongs to none.
    void clip(Row row, const WindowInfo& window) {
        std::int64_t& start = data_->range_start_ns[row];
        std::int64_t& duration = data_->range_duration_ns[row];
        const std::int64_t end = std::min(start + duration, window.end_ns);
        start = std::min(std::max(start, window.start_ns), window.end_ns);
        duration = std::max<std::int64_t>(end - start, 0);
    }

    void append_rows(Moved& moved) {
        moved.first_argument = static_cast<std::uint32_t>(data_->arguments.size());
        moved.first_item = static_cast<std::uint32_t>(data_->list_items.size());
        moved.first_array = static_cast<std::uint32_t>(data_->arrays.size());
        moved.first_extent = static_cast<std::uint32_t>(data_->array_extents.size());
        moved.first_instant = static_cast<Row>(data_->instant_time_ns.size());
        using enum ModelTable;
        append<Instants, Counters, Memory, Arguments, ListItems, Arrays, ArrayExtents, RangeArguments,
               InstantArguments, RangeDetails, Tasks, Links, HostClocks, ClockExchanges>(moved);
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

    template <ModelTable... kTables>
    void append(const Moved& moved) {
        (append_table<kTables>(moved), ...);
    }
    template <ModelTable kTable>
    void append_table(const Moved& moved) {
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
        sort_reports(*data_);
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

    using TrackKey = std::tuple<TrackKind, Row, StringId, DeviceType, decltype(Device::index), std::int64_t>;

    std::shared_ptr<TraceData> data_ = std::make_shared<TraceData>();
    StringPool strings_{data_->strings};
    std::vector<Moved> moved_;
    RowDeduplicator<std::vector<std::uint32_t>> sites_;
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
