// trace_builder.cpp: the passes over a log, in order, up to the nested rows.
#include "collect/trace_builder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include <marey/error.h>

#include "base/parallel.h"
#include "base/reserve_expected.h"
#include "base/work_meter.h"
#include "collect/device_records.h"
#include "collect/remote_events.h"
#include "collect/replayed_log.h"
#include "trace/columns.h"
#include "trace/torch_names.h"
#include "trace/used_names.h"

namespace marey {

using namespace detail;

namespace {

class TraceBuilder {
  public:
    TraceBuilder(const RawLog& log, const ViewRequest& request) : state_(log, request) {}

    Trace build() {
        read_metadata();
        order_spans();
        start_progress();
        scan();
        group_by_thread();
        close_window();
        read_device_records(state_);
        join_async();
        replay();
        fill_tables(state_);
        add_remote_events(state_);
        drop_unused_names(*state_.data);
        return Trace(std::move(state_.data));
    }

  private:
    void read_metadata() {
        NameTables names = read_names(state_.log.names);
        state_.data->strings = std::move(names.strings);
        state_.data->sites = std::move(names.sites);
        state_.frames = std::move(names.frames);
        state_.filter.site_rows = std::move(names.site_rows);
        state_.journal = read_journal(state_.log.journal, state_.request.session, state_.log.end_ticks);
        if (state_.request.session != 0) {
            state_.session = state_.journal.find_session(state_.request.session);
            if (state_.session == nullptr) {
                throw Error("there is no session " + std::to_string(state_.request.session) + " in this log");
            }
        } else if (!state_.journal.sessions.empty()) {
            state_.session = &state_.journal.sessions.front();
        }
        state_.filter.open_parts = std::move(state_.journal.open_parts);
        state_.filter.has_torch = std::any_of(
            state_.data->sites.begin(), state_.data->sites.end(),
            [&](const SiteInfo& site) { return is_torch_operator(state_.data->strings[site.name]); });
        if (state_.session == nullptr) return;
        const SessionMarks& marks = state_.session->marks;
        state_.filter.start_ticks = marks.start_ticks;
        state_.filter.stopped = marks.stopped;
        if (marks.stopped) state_.filter.stop_ticks = marks.stop_ticks;
        state_.filter.values.keywords = (marks.option_bits & kOptionValues) != 0;
        state_.filter.values.shapes = (marks.option_bits & kOptionShapes) != 0;
        state_.filter.values.concrete = (marks.option_bits & kOptionConcreteInputs) != 0;
        state_.filter.needs_memory = (marks.option_bits & kOptionMemory) != 0;
        state_.filter.needs_samples = (marks.option_bits & kOptionSamples) != 0;
        state_.filter.device_types = marks.device_types;
        state_.filter.device_activities = marks.option_bits / kOptionFirstDeviceActivity;
        state_.filter.thread = marks.thread;
        state_.filter.filters_contexts = marks.thread != 0;
        for (const auto& [context, sessions] : state_.journal.contexts) {
            if (std::find(sessions.begin(), sessions.end(), marks.id) != sessions.end()) {
                state_.filter.contexts.insert(context);
            }
        }
        const ScopeSet wanted = ScopeSet::from_bits(marks.scopes);
        const bool needs_calls = (marks.option_bits & kOptionStacks) != 0;
        state_.filter.included_sites.assign(state_.data->sites.size() + 1, true);
        for (std::size_t i = 0; i < state_.data->sites.size(); ++i) {
            const SiteInfo& site = state_.data->sites[i];
            const bool is_traced_call = (names.site_flags[i] & kSiteTraced) != 0;
            if (wanted.contains(site.scope) && (needs_calls || !is_traced_call)) continue;
            state_.filter.included_sites[i] = false;
            state_.filter.filters_sites = true;
        }
    }

    void order_spans() {
        state_.spans.reserve(state_.log.spans.size());
        for (const LogSpan& span : state_.log.spans) state_.spans.push_back(&span);
        std::stable_sort(state_.spans.begin(), state_.spans.end(),
                         [](const LogSpan* a, const LogSpan* b) { return a->sequence < b->sequence; });
    }

    /// Hands out what is known without the events.
    void start_progress() {
        std::uint64_t bytes = 0;
        for (const LogSpan* span : state_.spans) bytes += span->bytes;
        meter_.emplace(bytes * (1 + kReplayWork));
        LoadProgress* const progress = state_.request.progress;
        if (progress == nullptr) {
            if (meter_->progress() != nullptr) state_.filter.progress = &meter_->progress()->done;
            return;
        }
        progress->done = 0;
        progress->total = bytes * (1 + kReplayWork);
        state_.filter.progress = &progress->done;
        if (progress->on_outline == nullptr) return;
        TraceBuilder outline(state_.log, {.session = state_.request.session});
        outline.read_metadata();
        outline.order_spans();
        outline.close_window();
        fill_outline(outline.state_);
        progress->on_outline(Trace(std::move(outline.state_.data)));
    }

    void scan() {
        state_.scans.resize(state_.spans.size());
        parallel_for(
            state_.spans.size(),
            [&](std::size_t i) {
                state_.scans[i] = scan_span(*state_.spans[i], state_.filter);
                state_.filter.report(state_.spans[i]->bytes);
            },
            state_.request.threads);
    }

    void group_by_thread() {
        std::unordered_map<std::uint32_t, std::size_t> index;
        const auto replay_of = [&](std::uint32_t thread) -> ThreadReplay& {
            const auto [place, is_new] = index.try_emplace(thread, state_.replays.size());
            if (is_new) {
                state_.replays.emplace_back();
                state_.replays.back().thread = thread;
            }
            return state_.replays[place->second];
        };
        for (const SpanScan& scan : state_.scans) {
            for (const LogPiece& piece : scan.pieces) {
                state_.unknown_records += piece.unknown;
                if (piece.begin == piece.end) continue;
                ThreadReplay& replay = replay_of(piece.thread);
                state_.log_bytes += piece.end - piece.begin;
                if (piece.samples != 0) {  // with nothing else, and in an order of their own
                    replay.sample_pieces.push_back(&piece);
                    continue;
                }
                replay.pieces.push_back(&piece);
                replay.range_capacity += piece.ranges;
                replay.sequenced_capacity += piece.sequenced;
                replay.part_capacity += piece.parts;
                state_.dropped_in_log[piece.thread] += piece.dropped;
            }
        }
        for (const OpenRange& open : state_.filter.stopped ? state_.journal.open_at_stop : state_.log.open) {
            ThreadReplay& replay = replay_of(open.thread);
            replay.open.push_back(&open);
            ++replay.range_capacity;
        }
        std::sort(state_.replays.begin(), state_.replays.end(),
                  [](const ThreadReplay& a, const ThreadReplay& b) { return a.thread < b.thread; });
        parallel_for(
            state_.replays.size(),
            [&](std::size_t i) {
                ThreadReplay& replay = state_.replays[i];
                std::stable_sort(replay.open.begin(), replay.open.end(),
                                 [](const OpenRange* a, const OpenRange* b) { return a->depth < b->depth; });
                drop_closed_ranges(replay, state_.filter.stopped ? state_.filter.stop_ticks : kNotStopped);
            },
            state_.request.threads);
    }

    // The end of the window when the session was not stopped: when the log was read, or the latest time in
    // it.
    void close_window() {
        std::uint64_t least = ~std::uint64_t{0};
        std::uint64_t latest = state_.journal.latest_ticks;
        for (const SpanScan& scan : state_.scans) {
            least = std::min(least, scan.min_start);
            latest = std::max(latest, scan.latest);
        }
        for (const LogSpan* span : state_.spans) latest = std::max(latest, span->pair.ticks);
        for (const OpenRange& open : state_.log.open) {
            least = std::min(least, open.start);
            latest = std::max(latest, open.start);
        }
        if (state_.session == nullptr)
            state_.filter.start_ticks = least == ~std::uint64_t{0} ? latest : least;
        if (!state_.filter.stopped)
            state_.filter.stop_ticks = state_.log.end_ticks != 0 ? state_.log.end_ticks : latest;
        state_.filter.stop_ticks = std::max(state_.filter.stop_ticks, state_.filter.start_ticks);

        state_.fit = state_.request.fit;
        if (state_.fit == nullptr)
            state_.fit =
                std::make_shared<const ClockFit>(state_.log.clock_source, state_.log.ticks_per_second,
                                                 clock_pairs(state_.log, state_.journal));
        state_.filter.start_ns = state_.fit->to_ns(state_.filter.start_ticks);
        state_.filter.end_ns = state_.fit->to_ns(state_.filter.stop_ticks);
    }

    void join_async() {
        std::vector<ThreadReplay*> with_async;
        for (ThreadReplay& replay : state_.replays) {
            const bool has_async = std::any_of(replay.pieces.begin(), replay.pieces.end(),
                                               [](const LogPiece* piece) { return piece->has_async; });
            if (!has_async) continue;
            with_async.push_back(&replay);
            replay.async_events = state_.async.add_thread(replay.thread, replay.pieces);
        }
        parallel_for(
            with_async.size(),
            [&](std::size_t i) {
                ThreadReplay& replay = *with_async[i];
                state_.async.decide_nesting(replay.thread, replay.pieces, replay.async_events);
                for (const AsyncEvent& event : replay.async_events) {
                    if (!event.is_begin || event.range == AsyncEvent::kNone) continue;
                    const AsyncRange& range = state_.async.ranges()[event.range];
                    if (range.nests && !range.has_end) replay.unfinished_async.push_back(event.range);
                }
                std::stable_sort(replay.unfinished_async.begin(), replay.unfinished_async.end(),
                                 [&](std::uint32_t a, std::uint32_t b) {
                                     return state_.async.ranges()[a].begin_depth <
                                            state_.async.ranges()[b].begin_depth;
                                 });
            },
            state_.request.threads);
        for (const AsyncRange& range : state_.async.ranges()) {
            if (!range.has_begin && range.start == 0 && range.end >= state_.filter.start_ticks &&
                range.end <= state_.filter.stop_ticks)
                ++state_.lost_begins;
        }
    }

    void resize_rows(std::size_t rows) {
        for_each_vector<ModelTable::Ranges>(*state_.data, [&](auto& column) {
            reserve_filled(column, rows);
            column.resize(rows);
        });
    }

    RowSlice slice_at(std::size_t first, std::size_t capacity) {
        TraceData& data = *state_.data;
        return {data.range_start_ns.data() + first,
                data.range_duration_ns.data() + first,
                data.range_self_ns.data() + first,
                data.range_site.data() + first,
                data.range_depth.data() + first,
                data.range_flags.data() + first,
                capacity};
    }

    void replay() {
        std::size_t capacity = 0;
        std::vector<std::size_t> firsts;
        for (ThreadReplay& replay : state_.replays) {
            firsts.push_back(capacity);
            replay.range_capacity += replay.device_calls.size();
            capacity += replay.range_capacity;
        }
        if (capacity >= kNoRow) throw Error("more than 4 billion ranges: too many for one trace");
        if (TraceData* const spare = state_.request.spare; spare != nullptr)
            model::visit_table(Only<ModelTable::Ranges>(), [&](const TableInfo&, const auto&... columns) {
                ((columns.in(*state_.data) = std::move(columns.in(*spare))), ...);
            });
        resize_rows(capacity);
        std::vector<std::size_t> order(state_.replays.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return state_.replays[a].range_capacity > state_.replays[b].range_capacity;
        });
        parallel_for(
            order.size(),
            [&](std::size_t i) {
                ThreadReplay& replay = state_.replays[order[i]];
                const RowSlice slice = slice_at(firsts[order[i]], replay.range_capacity);
                replay_thread(replay, state_.filter, *state_.fit, state_.async.ranges(), slice);
                if (!replay.device_calls.empty()) insert_device_calls(replay, state_.filter, slice);
            },
            state_.request.threads);

        // Close the gaps: rows stand at the end of their slices.
        state_.first_rows.assign(state_.replays.size(), 0);
        std::size_t rows = 0;
        for (std::size_t i = 0; i < state_.replays.size(); ++i) {
            const std::size_t from = firsts[i] + state_.replays[i].range_capacity - state_.replays[i].rows;
            move_rows(from, rows, state_.replays[i].rows);
            state_.first_rows[i] = rows;
            rows += state_.replays[i].rows;
        }
        std::size_t async_rows = 0;
        for (const ThreadReplay& replay : state_.replays) async_rows += replay.async_rows.size();
        if (rows + async_rows >= kNoRow) throw Error("more than 4 billion ranges: too many for one trace");
        state_.nested_rows = rows;
        resize_rows(rows + async_rows);
        parallel_for(
            state_.replays.size(),
            [&](std::size_t i) { find_parents(state_.first_rows[i], state_.replays[i].rows); },
            state_.request.threads);
    }

    void move_rows(std::size_t from, std::size_t to, std::size_t count) {
        if (from == to || count == 0) return;
        const auto move = [&](auto& column) {
            std::memmove(column.data() + to, column.data() + from, count * sizeof column[0]);
        };
        move(state_.data->range_start_ns);
        move(state_.data->range_duration_ns);
        move(state_.data->range_self_ns);
        move(state_.data->range_site);
        move(state_.data->range_depth);
        move(state_.data->range_flags);
    }

    // In pre-order the parent is the last row before with one depth less.
    void find_parents(std::size_t first, std::size_t count) {
        std::vector<Row> last{kNoRow};  // [d]: parent of a row of depth d
        const std::uint32_t* const depths = state_.data->range_depth.data() + first;
        Row* const parents = state_.data->range_parent.data() + first;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint32_t depth = depths[i];
            if (depth + 1 >= last.size()) last.resize(std::size_t{depth} * 2 + 8, kNoRow);
            parents[i] = last[depth];
            last[depth + 1] = static_cast<Row>(first + i);
        }
    }

    ReplayedLog state_;
    std::optional<WorkMeter> meter_;  ///< if nobody else watches
};

}  // namespace

std::vector<ClockPair> clock_pairs(const RawLog& log, const Journal& journal) {
    std::vector<ClockPair> pairs = journal.pairs;
    for (const LogSpan& span : log.spans) pairs.push_back(span.pair);
    return pairs;
}

Trace build_trace(const RawLog& log, const ViewRequest& request) {
    return TraceBuilder(log, request).build();
}

}  // namespace marey
