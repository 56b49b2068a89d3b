// trace_builder.cpp: the passes over a log in order, and the tables around the ranges.
#include "collect/trace_builder.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>

#include <kymo/error.h>

#include "base/parallel.h"
#include "collect/arguments.h"
#include "collect/async_ranges.h"
#include "collect/clock_fit.h"
#include "collect/log_scan.h"
#include "collect/problem_list.h"
#include "collect/thread_replay.h"
#include "collect/view.h"
#include "trace/trace_data.h"

namespace kymo {

using namespace detail;

namespace {

const char* source_name(ClockSource source) {
    switch (source) {
        case ClockSource::MonotonicRaw:
            return "monotonic_raw";
        case ClockSource::Tsc:
            return "tsc";
        case ClockSource::Cntvct:
            return "cntvct_el0";
        case ClockSource::Injected:
            return "injected";
    }
    return "unknown";
}

const char* policy_name(std::uint32_t policy) {
    switch (policy) {
        case 1:
            return "drop";
        case 2:
            return "ring";
        default:
            return "stop";
    }
}

const char* cost_name(std::uint32_t event) {
    switch (static_cast<CostKind>(event)) {
        case CostKind::Range:
            return "range";
        case CostKind::RangeWithValues:
            return "range_with_values";
        case CostKind::Instant:
            return "instant";
        case CostKind::Counter:
            return "counter";
    }
    return "unknown";
}

class TraceBuilder {
  public:
    TraceBuilder(const RawLog& log, const ViewRequest& request)
        : log_(log), request_(request), data_(std::make_shared<TraceData>()) {}

    Trace build() {
        read_metadata();
        scan();
        group_by_thread();
        close_window();
        join_async();
        replay();
        fill_tables();
        return Trace(std::move(data_));
    }

  private:
    void read_metadata() {
        NameTables names = read_names(log_.names);
        data_->strings = std::move(names.strings);
        data_->sites = std::move(names.sites);
        journal_ = read_journal(log_.journal, request_.session);
        if (request_.session != 0) {
            session_ = journal_.find_session(request_.session);
            if (session_ == nullptr) {
                throw Error("there is no session " + std::to_string(request_.session) + " in this log");
            }
        } else if (!journal_.sessions.empty()) {
            session_ = &journal_.sessions.front();
        }
        view_.site_count = static_cast<std::uint32_t>(data_->sites.size());
        if (session_ == nullptr) return;
        const SessionMarks& marks = session_->marks;
        view_.start_ticks = marks.start_ticks;
        view_.stopped = marks.stopped;
        if (marks.stopped) view_.stop_ticks = marks.stop_ticks;
        view_.wants_values = (marks.option_bits & kOptionValues) != 0;
        view_.thread = marks.thread;
        view_.filters_contexts = marks.thread != 0;
        for (const auto& [context, sessions] : journal_.contexts) {
            if (std::find(sessions.begin(), sessions.end(), marks.id) != sessions.end()) {
                view_.contexts.insert(context);
            }
        }
        const ScopeSet wanted = ScopeSet::from_bits(marks.scopes);
        view_.wanted_sites.assign(data_->sites.size() + 1, true);
        for (std::size_t i = 0; i < data_->sites.size(); ++i) {
            if (wanted.contains(data_->sites[i].scope)) continue;
            view_.wanted_sites[i + 1] = false;
            view_.filters_sites = true;
        }
    }

    void scan() {
        spans_.reserve(log_.spans.size());
        for (const LogSpan& span : log_.spans) spans_.push_back(&span);
        std::stable_sort(spans_.begin(), spans_.end(),
                         [](const LogSpan* a, const LogSpan* b) { return a->sequence < b->sequence; });
        scans_.resize(spans_.size());
        parallel_for(
            spans_.size(), [&](std::size_t i) { scans_[i] = scan_span(*spans_[i], view_); },
            request_.threads);
    }

    void group_by_thread() {
        std::unordered_map<std::uint32_t, std::size_t> index;
        const auto replay_of = [&](std::uint32_t thread) -> ThreadReplay& {
            const auto [place, is_new] = index.try_emplace(thread, replays_.size());
            if (is_new) {
                replays_.emplace_back();
                replays_.back().thread = thread;
            }
            return replays_[place->second];
        };
        for (const SpanScan& scan : scans_) {
            for (const LogPiece& piece : scan.pieces) {
                unknown_records_ += piece.unknown;
                if (piece.begin == piece.end) continue;
                ThreadReplay& replay = replay_of(piece.thread);
                replay.pieces.push_back(&piece);
                replay.range_capacity += piece.ranges;
                log_bytes_ += piece.end - piece.begin;
                dropped_in_log_[piece.thread] += piece.dropped;
            }
        }
        for (const OpenRange& open : view_.stopped ? journal_.open_at_stop : log_.open) {
            ThreadReplay& replay = replay_of(open.thread);
            replay.open.push_back(&open);
            ++replay.range_capacity;
        }
        std::sort(replays_.begin(), replays_.end(),
                  [](const ThreadReplay& a, const ThreadReplay& b) { return a.thread < b.thread; });
        parallel_for(
            replays_.size(),
            [&](std::size_t i) {
                ThreadReplay& replay = replays_[i];
                std::stable_sort(replay.open.begin(), replay.open.end(),
                                 [](const OpenRange* a, const OpenRange* b) { return a->depth < b->depth; });
                if (!view_.stopped) drop_closed_ranges(replay);
            },
            request_.threads);
    }

    // Where the window ends when nobody stopped the session: when the log was read, or the latest time in it.
    void close_window() {
        std::uint64_t least = ~std::uint64_t{0};
        std::uint64_t latest = journal_.latest_ticks;
        for (const SpanScan& scan : scans_) {
            least = std::min(least, scan.least_start);
            latest = std::max(latest, scan.latest);
        }
        for (const LogSpan* span : spans_) latest = std::max(latest, span->pair.ticks);
        for (const OpenRange& open : log_.open) {
            least = std::min(least, open.start);
            latest = std::max(latest, open.start);
        }
        if (session_ == nullptr) view_.start_ticks = least == ~std::uint64_t{0} ? latest : least;
        if (!view_.stopped) view_.stop_ticks = log_.end_ticks != 0 ? log_.end_ticks : latest;
        view_.stop_ticks = std::max(view_.stop_ticks, view_.start_ticks);

        std::vector<ClockPair> pairs = journal_.pairs;
        for (const LogSpan* span : spans_) pairs.push_back(span->pair);
        fit_ = std::make_unique<ClockFit>(log_.clock_source, log_.ticks_per_second, std::move(pairs));
        view_.start_ns = fit_->to_ns(view_.start_ticks);
        view_.end_ns = fit_->to_ns(view_.stop_ticks);
    }

    void join_async() {
        std::vector<ThreadReplay*> with_async;
        for (ThreadReplay& replay : replays_) {
            const bool has_async = std::any_of(replay.pieces.begin(), replay.pieces.end(),
                                               [](const LogPiece* piece) { return piece->has_async; });
            if (!has_async) continue;
            with_async.push_back(&replay);
            replay.async_events = async_.add_thread(replay.thread, replay.pieces);
        }
        parallel_for(
            with_async.size(),
            [&](std::size_t i) {
                ThreadReplay& replay = *with_async[i];
                async_.decide_nesting(replay.thread, replay.pieces, replay.async_events);
                for (const AsyncEvent& event : replay.async_events) {
                    if (!event.is_begin || event.range == AsyncEvent::kNobody) continue;
                    const AsyncRange& range = async_.ranges()[event.range];
                    if (range.nests && !range.has_end) replay.unfinished_async.push_back(event.range);
                }
                std::stable_sort(replay.unfinished_async.begin(), replay.unfinished_async.end(),
                                 [&](std::uint32_t a, std::uint32_t b) {
                                     return async_.ranges()[a].begin_depth < async_.ranges()[b].begin_depth;
                                 });
            },
            request_.threads);
        for (const AsyncRange& range : async_.ranges()) {
            if (!range.has_begin && range.start == 0 && range.end >= view_.start_ticks &&
                range.end <= view_.stop_ticks)
                ++lost_begins_;
        }
    }

    void resize_rows(std::size_t rows) {
        const auto resize = [&](auto& column) { column.resize(rows); };
        resize(data_->range_start_ns);
        resize(data_->range_duration_ns);
        resize(data_->range_self_ns);
        resize(data_->range_site);
        resize(data_->range_parent);
        resize(data_->range_depth);
        resize(data_->range_flags);
    }

    RowSlice slice_at(std::size_t first, std::size_t capacity) {
        TraceData& data = *data_;
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
        for (const ThreadReplay& replay : replays_) {
            firsts.push_back(capacity);
            capacity += replay.range_capacity;
        }
        if (capacity >= kNoRow) throw Error("more than 4 billion ranges: too many for one trace");
        resize_rows(capacity);
        std::vector<std::size_t> order(replays_.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return replays_[a].range_capacity > replays_[b].range_capacity;
        });
        parallel_for(
            order.size(),
            [&](std::size_t i) {
                ThreadReplay& replay = replays_[order[i]];
                replay_thread(replay, view_, *fit_, async_.ranges(),
                              slice_at(firsts[order[i]], replay.range_capacity));
            },
            request_.threads);

        // Close the gaps: rows stand at the end of their slices.
        first_rows_.assign(replays_.size(), 0);
        std::size_t rows = 0;
        for (std::size_t i = 0; i < replays_.size(); ++i) {
            const std::size_t from = firsts[i] + replays_[i].range_capacity - replays_[i].rows;
            move_rows(from, rows, replays_[i].rows);
            first_rows_[i] = rows;
            rows += replays_[i].rows;
        }
        std::size_t async_rows = 0;
        for (const ThreadReplay& replay : replays_) async_rows += replay.async_rows.size();
        if (rows + async_rows >= kNoRow) throw Error("more than 4 billion ranges: too many for one trace");
        nested_rows_ = rows;
        resize_rows(rows + async_rows);
        parallel_for(
            replays_.size(), [&](std::size_t i) { find_parents(first_rows_[i], replays_[i].rows); },
            request_.threads);
    }

    void move_rows(std::size_t from, std::size_t to, std::size_t count) {
        if (from == to || count == 0) return;
        const auto move = [&](auto& column) {
            std::memmove(column.data() + to, column.data() + from, count * sizeof column[0]);
        };
        move(data_->range_start_ns);
        move(data_->range_duration_ns);
        move(data_->range_self_ns);
        move(data_->range_site);
        move(data_->range_depth);
        move(data_->range_flags);
    }

    // In pre-order the parent is the last row before with one depth less.
    void find_parents(std::size_t first, std::size_t count) {
        std::vector<Row> last{kNoRow};  // [d]: parent of a row of depth d
        const std::uint32_t* const depths = data_->range_depth.data() + first;
        Row* const parents = data_->range_parent.data() + first;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint32_t depth = depths[i];
            if (depth + 1 >= last.size()) last.resize(std::size_t{depth} * 2 + 8, kNoRow);
            parents[i] = last[depth];
            last[depth + 1] = static_cast<Row>(first + i);
        }
    }

    void fill_tables() {
        StringPool strings(data_->strings);
        ArgumentDecoder arguments(*data_, strings);
        fill_process(strings);
        fill_threads();
        add_thread_tracks(strings, arguments);
        add_async_tracks(strings, arguments);
        fill_points(arguments);
        fill_unknown_site(strings);
        fill_infos();
        fill_problems(arguments.damaged());
    }

    void fill_process(StringPool& strings) {
        ProcessInfo process;
        process.pid = log_.pid;
        process.node = log_.node;
        process.name = strings.intern(log_.executable);
        process.host = strings.intern(log_.host);
        process.command_line = strings.intern(log_.command_line);
        process.realtime_offset_ns = fit_->realtime_offset_ns();
        data_->processes.push_back(process);
    }

    bool lived_in_window(std::uint32_t id, const JournalThread& thread) const {
        if (view_.filters_contexts) return id == view_.thread;
        if (thread.birth == 0)
            return (thread.dropped | thread.overwritten_chunks | thread.resyncs | thread.clamped) != 0;
        return thread.birth <= view_.stop_ticks && (thread.death == 0 || thread.death >= view_.start_ticks);
    }

    void fill_threads() {
        std::map<std::uint32_t, const ThreadReplay*> with_rows;
        for (const ThreadReplay& replay : replays_) {
            if (replay.rows + replay.async_rows.size() + replay.instants.size() + replay.counters.size() !=
                0) {
                with_rows.emplace(replay.thread, &replay);
                journal_.threads.try_emplace(replay.thread);
            }
        }
        for (const auto& [id, thread] : journal_.threads) {
            if (with_rows.count(id) == 0 && !lived_in_window(id, thread)) continue;
            ThreadInfo info;
            info.id = id;
            info.os_tid = thread.os_tid;
            info.name = thread.name < data_->strings.size() ? thread.name : 0;
            info.birth_ns = thread.birth == 0 ? 0 : fit_->to_ns(thread.birth);
            info.death_ns = thread.death == 0 ? 0 : fit_->to_ns(thread.death);
            info.dropped = std::max(thread.dropped, dropped_in_log_[id]);
            info.overwritten_chunks = thread.overwritten_chunks;
            info.resyncs = thread.resyncs;
            info.clamped = thread.clamped;
            thread_rows_.emplace(id, static_cast<Row>(data_->threads.size()));
            data_->threads.push_back(info);
        }
    }

    std::string title(Row thread) const {
        const ThreadInfo& info = data_->threads[thread];
        if (info.name != 0) return data_->strings[info.name];
        return "thread " + std::to_string(info.id);
    }

    void add_thread_tracks(StringPool& strings, ArgumentDecoder& arguments) {
        for (std::size_t i = 0; i < replays_.size(); ++i) {
            const ThreadReplay& replay = replays_[i];
            if (replay.rows == 0) continue;
            TrackInfo track;
            track.thread = thread_rows_.at(replay.thread);
            track.name = strings.intern(title(track.thread));
            track.first_range = static_cast<Row>(first_rows_[i]);
            track.range_count = static_cast<Row>(replay.rows);
            data_->tracks.push_back(track);
            for (const PayloadRef& ref : replay.payloads) {
                arguments.decode({ref.data, ref.bytes}, track.first_range + ref.row, data_->range_arguments);
            }
        }
    }

    // Each async track holds ranges that do not overlap: none is another's child by accident.
    void add_async_tracks(StringPool& strings, ArgumentDecoder& arguments) {
        std::size_t row = nested_rows_;
        for (ThreadReplay& replay : replays_) {
            std::vector<AsyncRow>& ranges = replay.async_rows;
            if (ranges.empty()) continue;
            std::reverse(ranges.begin(), ranges.end());  // the replay goes backwards
            std::stable_sort(ranges.begin(), ranges.end(), [](const AsyncRow& a, const AsyncRow& b) {
                return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns < b.end_ns;
            });
            std::vector<std::int64_t> starts, ends;
            for (const AsyncRow& range : ranges) {
                starts.push_back(range.start_ns);
                ends.push_back(range.end_ns);
            }
            const std::vector<std::uint32_t> places = place_on_rows(starts, ends);
            std::vector<std::uint32_t> order(ranges.size());
            for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
            std::stable_sort(order.begin(), order.end(),
                             [&](std::uint32_t a, std::uint32_t b) { return places[a] < places[b]; });
            TrackInfo track;
            track.kind = TrackKind::Async;
            track.thread = thread_rows_.at(replay.thread);
            for (std::size_t i = 0; i < order.size(); ++i) {
                const std::uint32_t place = places[order[i]];
                if (i == 0 || place != places[order[i - 1]]) {
                    if (track.range_count != 0) data_->tracks.push_back(track);
                    const std::string number = place == 0 ? "" : " " + std::to_string(place + 1);
                    track.name = strings.intern(title(track.thread) + " async" + number);
                    track.first_range = static_cast<Row>(row);
                    track.range_count = 0;
                }
                const AsyncRow& range = ranges[order[i]];
                data_->range_start_ns[row] = range.start_ns;
                data_->range_duration_ns[row] = range.end_ns - range.start_ns;
                data_->range_self_ns[row] =
                    std::max<std::int64_t>(range.end_ns - std::max(range.start_ns, view_.start_ns), 0);
                data_->range_site[row] = range.site;
                data_->range_parent[row] = kNoRow;
                data_->range_depth[row] = 0;
                data_->range_flags[row] = range.flags;
                if (range.payload_bytes != 0) {
                    arguments.decode({range.payload, range.payload_bytes}, static_cast<Row>(row),
                                     data_->range_arguments);
                }
                ++track.range_count;
                ++row;
            }
            data_->tracks.push_back(track);
        }
    }

    void fill_points(ArgumentDecoder& arguments) {
        for (const ThreadReplay& replay : replays_) {
            if (replay.instants.empty() && replay.counters.empty()) continue;
            const Row thread = thread_rows_.at(replay.thread);
            for (const InstantRow& instant : replay.instants) {
                if (instant.payload_bytes != 0) {
                    arguments.decode({instant.payload, instant.payload_bytes},
                                     static_cast<Row>(data_->instant_time_ns.size()),
                                     data_->instant_arguments);
                }
                data_->instant_time_ns.push_back(instant.time_ns);
                data_->instant_site.push_back(instant.site);
                data_->instant_thread.push_back(thread);
            }
            for (const CounterRow& counter : replay.counters) {
                data_->counter_time_ns.push_back(counter.time_ns);
                data_->counter_site.push_back(counter.site);
                data_->counter_thread.push_back(thread);
                data_->counter_value.push_back(counter.value);
            }
        }
    }

    void fill_unknown_site(StringPool& strings) {
        const auto is_used = [&](const auto& column) {
            return std::find(column.begin(), column.end(), view_.site_count) != column.end();
        };
        if (!is_used(data_->range_site) && !is_used(data_->instant_site) && !is_used(data_->counter_site))
            return;
        SiteInfo site;
        site.name = strings.intern("(unknown)");
        data_->sites.push_back(site);
        unknown_site_ = true;
    }

    void fill_infos() {
        ClockInfo& clock = data_->clock;
        clock.source = source_name(log_.clock_source);
        clock.ticks_per_second = fit_->ticks_per_second();
        clock.pairs = fit_->pairs_used();
        clock.max_error_ns = fit_->max_error_ns();
        clock.extrapolated = fit_->is_extrapolated_at(view_.stop_ticks);
        for (const CostRecord& cost : journal_.costs) {
            data_->costs.push_back({cost_name(cost.event), static_cast<double>(cost.picoseconds) / 1000});
        }
        WindowInfo& window = data_->window;
        window.start_ns = view_.start_ns;
        window.end_ns = view_.end_ns;
        window.finished = session_ != nullptr ? view_.stopped : log_.finished;
        window.log_bytes = log_bytes_;
        window.policy = policy_name(0);
        if (session_ != nullptr) {
            const SessionMarks& marks = session_->marks;
            if (session_->name < data_->strings.size()) window.session_name = data_->strings[session_->name];
            window.session_id = marks.id;
            window.max_bytes = marks.max_bytes;
            window.policy = policy_name(marks.policy);
            window.ceiling_reached = marks.ceiling_reached;
        }
        if (journal_.saved.present) {
            clock = journal_.saved.clock;
            window.log_bytes = journal_.saved.log_bytes;
            window.ceiling_reached = journal_.saved.ceiling_reached;
        }
    }

    void fill_problems(std::uint64_t damaged_arguments) {
        ProblemList problems(data_->problems);
        for (const RawProblem& problem : log_.problems)
            problems.add(problem.code, problem.text, problem.count);
        for (const JournalNote& note : journal_.notes) {
            const auto text = [&](std::uint32_t id) {
                return id < data_->strings.size() ? data_->strings[id] : std::string();
            };
            problems.add(text(note.code), text(note.text), std::max<std::uint64_t>(note.count, 1));
        }
        std::uint64_t adjusted = 0;
        std::uint64_t misplaced = 0;
        for (const ThreadReplay& replay : replays_) {
            adjusted += replay.adjusted;
            misplaced += replay.misplaced;
        }
        const bool crashed = !data_->window.finished && !log_.finished && log_.end_ticks == 0;
        problems.add_findings(*data_, {crashed, unknown_records_, lost_begins_, adjusted, misplaced,
                                       damaged_arguments, unknown_site_});
    }

    const RawLog& log_;
    const ViewRequest request_;
    std::shared_ptr<TraceData> data_;
    Journal journal_;
    const JournalSession* session_ = nullptr;
    View view_;
    std::unique_ptr<ClockFit> fit_;
    std::vector<const LogSpan*> spans_;  // by sequence
    std::vector<SpanScan> scans_;
    std::vector<ThreadReplay> replays_;  // by thread id
    std::vector<std::size_t> first_rows_;
    std::size_t nested_rows_ = 0;
    AsyncRanges async_;
    std::map<std::uint32_t, Row> thread_rows_;
    std::unordered_map<std::uint32_t, std::uint64_t> dropped_in_log_;
    std::uint64_t log_bytes_ = 0;
    std::uint64_t unknown_records_ = 0;
    std::uint64_t lost_begins_ = 0;
    bool unknown_site_ = false;
};

}  // namespace

Trace build_trace(const RawLog& log, const ViewRequest& request) {
    return TraceBuilder(log, request).build();
}

}  // namespace kymo
