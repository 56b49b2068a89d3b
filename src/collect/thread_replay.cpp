// thread_replay.cpp: records in order of their ends are a tree in post-order: read backwards, parents come
// first.
#include "collect/thread_replay.h"

#include <algorithm>
#include <cstring>

#include "base/reserve_expected.h"
#include "collect/log_records.h"
#include "collect/nesting.h"

namespace marey {

using namespace detail;

namespace {

/// For a session of one thread and its tasks: was the session's context in force on this thread at a time? A
/// range belongs to the context in which it began. Counters tick coarsely, so a mark and a range that begins
/// beside it may have the same time: then the order in the log and the depth decide which came first.
class ContextTimes {
  public:
    ContextTimes(const ThreadReplay& replay, const SessionFilter& filter)
        : start_(filter.start_ticks), is_home_(replay.thread == filter.thread) {
        if (!filter.filters_contexts) return;
        std::size_t events = 0;
        for (const LogPiece* piece : replay.pieces) {
            if (!piece->has_marks && !piece->has_async) continue;
            for (std::uint32_t i = 0; i < piece->long_count; ++i) {
                const std::byte* const record = piece->span->data + piece->longs[i];
                if (record_bytes(record, piece->end - piece->longs[i]) == 0) continue;
                const auto head = read_as<LongRecord>(record);
                const auto kind = static_cast<RecordKind>(head.kind);
                events += kind == RecordKind::AsyncBegin || kind == RecordKind::AsyncEnd ? 1 : 0;
                if (kind != RecordKind::ContextMark || !counts(head)) continue;
                const std::uint64_t time =
                    marks_.empty() ? head.time : std::max(head.time, marks_.back().time);
                marks_.push_back({time, events, head.depth, filter.contexts.count(head.word2) != 0});
            }
        }
        see_all();
    }

    /// From here on only marks that come before something in the log are considered: before the end of the
    /// log, before the thread's async record number `event`, or (replaying backwards) before this mark.
    void see_all() noexcept { seen_ = marks_.size(); }
    void see_before_event(std::size_t event) noexcept {
        seen_ = static_cast<std::size_t>(
            std::upper_bound(marks_.begin(), marks_.end(), event,
                             [](std::size_t at, const Mark& mark) { return at < mark.events_before; }) -
            marks_.begin());
    }
    void pass_back(const LongRecord& mark) noexcept {
        if (seen_ != 0 && counts(mark)) --seen_;
    }

    /// For a record that began at `time` at `depth`; kNoDepth if it began right where it is in the log.
    bool contains(std::uint64_t time, std::uint64_t depth) const noexcept {
        if (is_home_ && time < start_) return true;  // was open when the session started
        const auto end = marks_.begin() + static_cast<std::ptrdiff_t>(seen_);
        auto after = std::upper_bound(marks_.begin(), end, time,
                                      [](std::uint64_t at, const Mark& mark) { return at < mark.time; });
        // Was it already open when the mark was made?
        while (after != marks_.begin() && (after - 1)->time == time && depth < (after - 1)->depth) --after;
        return after == marks_.begin() ? is_home_ : (after - 1)->is_in;
    }
    static constexpr std::uint64_t kNoDepth = ~std::uint64_t{0};

  private:
    struct Mark {
        std::uint64_t time;
        std::size_t events_before;  ///< async records in the log
        std::uint32_t depth;        ///< ranges open
        bool is_in;
    };
    // On the session's own thread, marks before its start do not count.
    bool counts(const LongRecord& mark) const noexcept { return !is_home_ || mark.time >= start_; }

    std::uint64_t start_;
    bool is_home_;
    std::size_t seen_ = 0;
    std::vector<Mark> marks_;
};

/// A few open ranges, to be found by their start.
class OpenIndex {
  public:
    explicit OpenIndex(std::span<const OpenRange* const> open) {
        for (std::uint32_t i = 0; i < open.size(); ++i) {
            entries_.push_back({open[i]->start, i});
            bits_[slot(open[i]->start) / 64] |= std::uint64_t{1} << (slot(open[i]->start) % 64);
        }
        std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
            return a.start != b.start ? a.start < b.start : a.index < b.index;
        });
    }
    bool may_hold(std::uint64_t start) const noexcept {
        return (bits_[slot(start) / 64] >> (slot(start) % 64) & 1) != 0;
    }
    /// Calls `found(index)` for every open range with that start, until it gives true.
    bool find(std::uint64_t start, auto found) const {
        auto at =
            std::lower_bound(entries_.begin(), entries_.end(), start,
                             [](const Entry& entry, std::uint64_t wanted) { return entry.start < wanted; });
        for (; at != entries_.end() && at->start == start; ++at) {
            if (found(at->index)) return true;
        }
        return false;
    }

  private:
    struct Entry {
        std::uint64_t start;
        std::uint32_t index;
    };
    static std::size_t slot(std::uint64_t start) noexcept {
        return (start * 0x9e3779b97f4a7c15u) >> 50;
    }  // 14 bits
    std::vector<Entry> entries_;
    std::uint64_t bits_[(1 << 14) / 64] = {};
};

class Replayer {
  public:
    Replayer(ThreadReplay& replay, const SessionFilter& filter, const ClockFit& fit,
             std::vector<AsyncRange>& async, const RowSlice& slice)
        : replay_(replay),
          filter_(filter),
          async_(async),
          nesting_(replay, filter, fit, slice),
          contexts_(replay, filter),
          open_(filter.stopped ? std::span<const OpenRange* const>(replay.open)
                               : std::span<const OpenRange* const>()),
          next_event_(replay.async_events.size()),
          is_plain_(!filter.filters_sites && !filter.filters_contexts &&
                    (!filter.stopped || replay.open.empty())) {}

    void run() {
        replay_.sequenced.reserve(replay_.sequenced_capacity);
        reserve_filled(replay_.parts, replay_.part_capacity);
        keep_async();
        for (const LogPiece* piece : replay_.sample_pieces) add_samples(*piece);
        std::ranges::stable_sort(replay_.samples, {}, &SampleRow::start);
        push_open();
        for (std::size_t i = replay_.pieces.size(); i-- != 0;) {
            nesting_.pass_gap();
            run_piece(*replay_.pieces[i]);
            filter_.report(kReplayWork * (replay_.pieces[i]->end - replay_.pieces[i]->begin));
        }
        nesting_.finish();
        std::reverse(replay_.instants.begin(), replay_.instants.end());
        std::reverse(replay_.counters.begin(), replay_.counters.end());
        std::reverse(replay_.memory.begin(), replay_.memory.end());
        std::stable_sort(replay_.memory.begin(), replay_.memory.end(),
                         [](const MemoryRow& a, const MemoryRow& b) { return a.time_ns < b.time_ns; });
    }

  private:
    bool is_wanted(std::uint32_t site, std::uint64_t start, std::uint64_t end,
                   std::uint64_t depth = ContextTimes::kNoDepth) const {
        return filter_.intersects(start, end) && filter_.includes_site(site) &&
               (!filter_.filters_contexts || contexts_.contains(start, depth));
    }

    void keep_async() {
        for (std::size_t i = 0; i < replay_.async_events.size(); ++i) {
            const AsyncEvent& event = replay_.async_events[i];
            if (event.range == AsyncEvent::kNone) continue;
            AsyncRange& range = async_[event.range];
            // A range whose begin is not in the log is shown where it ended, if the end states when it began.
            if (event.is_begin ? false : range.has_begin || range.start == 0) continue;
            const std::uint64_t end = range.has_end ? std::max(range.start, range.end) : ~std::uint64_t{0};
            if (event.is_begin) {
                contexts_.see_before_event(i);
            } else {
                contexts_.see_all();
            }
            range.is_kept = is_wanted(range.site, range.start, end);
            if (range.is_kept && !range.nests) {
                nesting_.add_async({0,
                                    range.start,
                                    end,
                                    range.site,
                                    flags_of(range.flags),
                                    {range.payload, range.payload_bytes}});
            }
        }
        contexts_.see_all();
    }

    // Ranges that never ended, outermost first: scopes at their depth, movable ranges between them.
    void push_open() {
        std::size_t next_async = 0;
        const auto push_async_above = [&](std::uint64_t depth) {
            for (; next_async < replay_.unfinished_async.size(); ++next_async) {
                const std::uint32_t index = replay_.unfinished_async[next_async];
                if (async_[index].begin_depth > depth) return;
                if (async_[index].is_kept) push_async(index);
            }
        };
        for (const OpenRange* open : replay_.open) {
            push_async_above(open->depth);
            const std::uint64_t end = open->end != 0 ? open->end : ~std::uint64_t{0};
            const LoggedRange range{open->depth, open->start,           end,
                                    open->site,  flags_of(open->flags), open->payload};
            const bool fits = is_wanted(open->site, open->start, end, open->depth);
            const bool has_waited = open->end != 0 && (open->flags & kRecordWaited) != 0;
            if (fits && open->end != 0 && !has_waited) {
                nesting_.add_async(range);
                set_part(*open);
                continue;
            }
            if (!fits) continue;
            if ((open->flags & kRecordCrosses) != 0) {
                nesting_.push_crossing(range);
            } else if ((open->flags & kRecordAsync) == 0 || has_waited) {
                nesting_.push_scope(range);
            }
            set_part(*open);
        }
        push_async_above(~std::uint64_t{0});
    }

    void set_part(const OpenRange& open) noexcept {
        const auto found = filter_.open_parts.find({replay_.thread, open.start});
        if (found == filter_.open_parts.end()) return;
        nesting_.set_part(open.start & kPartStartMask, found->second.first, found->second.second);
    }

    void push_async(std::uint32_t index) {
        AsyncRange& range = async_[index];
        const std::uint64_t end = range.has_end ? std::max(range.start, range.end) : ~std::uint64_t{0};
        const std::uint32_t depth = range.has_end ? range.end_depth : range.begin_depth;
        const std::uint64_t from = std::max(range.start, std::min(range.shown_from, end));
        const LoggedRange logged{depth,      range.start,           end,
                                 range.site, flags_of(range.flags), {range.payload, range.payload_bytes}};
        range.on_stack = range.is_step() ? nesting_.push_step(logged, from, index + 1)
                                         : nesting_.push_async(logged, index + 1);
    }

    static std::uint16_t flags_of(std::uint8_t record_flags) noexcept {
        return (record_flags & kRecordUnfinished) != 0 ? std::uint16_t{kEndInferred} : std::uint16_t{0};
    }

    // Compact records are between the long ones.
    void run_piece(const LogPiece& piece) {
        std::uint32_t next_long = piece.end;
        for (std::uint32_t i = piece.long_count; i-- != 0;) {
            const std::uint32_t at = piece.longs[i];
            const std::byte* const record = piece.span->data + at;
            const std::size_t bytes = record_bytes(record, next_long - at);
            const std::uint32_t end = at + static_cast<std::uint32_t>(bytes);
            run_compact(piece, end, next_long);
            if (bytes != 0) run_long(record);
            next_long = at;
        }
        run_compact(piece, piece.begin, next_long);
    }

    void run_compact(const LogPiece& piece, std::uint32_t begin, std::uint32_t next_long) {
        const std::byte* const data = piece.span->data;
        const std::uint64_t base = piece.span->base_ticks;
        for (std::size_t at = next_long; at >= begin + kRecordUnit;) {
            at -= kRecordUnit;
            const CompactFields fields = unpack(read_as<CompactRecord>(data + at));
            const std::uint64_t end = base + fields.delta;
            const std::uint64_t start = end - fields.duration;
            if (fields.kind == static_cast<std::uint8_t>(RecordKind::Range)) [[likely]] {
                if (!filter_.intersects(start, end)) {
                    nesting_.pass_unseen();
                    continue;
                }
                if (!is_plain_ && !takes_part(fields.site, start, end, fields.depth)) continue;
                nesting_.push_plain(fields.depth, start, end, fields.site);
            } else if (fields.kind == static_cast<std::uint8_t>(RecordKind::Instant)) {
                add_instant(end, fields.site, {});
            } else if (fields.kind == static_cast<std::uint8_t>(RecordKind::Part)) {
                const PartFields part = unpack_part(read_as<CompactRecord>(data + at));
                if (part.call != 0) nesting_.set_part(part.start, part.call, part.flags);
            } else if (fields.kind == static_cast<std::uint8_t>(RecordKind::Resumed)) {
                run_resumed(data, at, fields, start, end);
            }
        }
    }

    void run_resumed(const std::byte* block, std::size_t at, CompactFields fields, std::uint64_t start,
                     std::uint64_t end) {
        PartFields part{};
        const bool has_call = find_resumed(block, at, fields, part) && part.call != 0;
        if (!filter_.intersects(start, end)) return nesting_.pass_unseen();
        if (!is_plain_ && !takes_part(fields.site, start, end, fields.depth)) return;
        nesting_.push_plain(fields.depth, start, end, fields.site);
        if (has_call) nesting_.set_part(start & kPartStartMask, part.call, part.flags);
    }

    // Whether a scope within the window is shown. A hidden scope still separates the ranges before its end
    // from those that began after it.
    bool takes_part(std::uint32_t site, std::uint64_t start, std::uint64_t end, std::uint32_t depth) {
        nesting_.pass_unseen();
        if (is_open_at_stop(start, end, site)) return false;
        if (is_wanted(site, start, end, depth)) return true;
        nesting_.pass_dropped(depth);
        return false;
    }

    // The session's own list of open ranges has it too, with the depth as it was then.
    bool is_open_at_stop(std::uint64_t start, std::uint64_t end, std::uint32_t site) const {
        return open_.may_hold(start) && open_.find(start, [&](std::uint32_t i) {
            return replay_.open[i]->site == site && (end > filter_.stop_ticks || replay_.open[i]->end != 0);
        });
    }

    // The same for a range that another thread had ended before the stop: its own thread logged it later.
    bool was_ended_at_stop(const LongRecord& head) const {
        return open_.may_hold(head.time) && open_.find(head.time, [&](std::uint32_t i) {
            return replay_.open[i]->site == head.site && replay_.open[i]->end != 0;
        });
    }

    void run_long(const std::byte* record) {
        const auto head = read_as<LongRecord>(record);
        const std::span<const std::byte> payload = payload_of(record, head);
        switch (static_cast<RecordKind>(head.kind)) {
            case RecordKind::LongRange:
                run_long_range(head, payload);
                break;
            case RecordKind::SequencedRange:
                run_sequenced(head);
                break;
            case RecordKind::LongInstant:
                add_instant(head.time, head.site, payload);
                break;
            case RecordKind::Counter:
                add_counter(head);
                break;
            case RecordKind::Memory:
                add_memory(head, payload);
                break;
            case RecordKind::AsyncBegin:
            case RecordKind::AsyncEnd:
                if (next_event_ != 0) run_async(replay_.async_events[--next_event_]);
                break;
            case RecordKind::Dropped:
                nesting_.pass_dropped(head.depth);
                break;
            case RecordKind::Adopted:
                if (filter_.intersects(head.time, head.time))
                    nesting_.pass_adopted(head.depth, head.time, head.word2);
                break;
            case RecordKind::ContextMark:
                contexts_.pass_back(head);
                break;
            case RecordKind::Blob:
                if ((head.word2 == kBlobSend || head.word2 == kBlobReceive) &&
                    payload.size() >= sizeof(Token) && filter_.intersects(head.time, head.time))
                    replay_.messages.push_back(
                        {head.time, read_as<Token>(payload.data()), head.word2 == kBlobReceive});
                if (head.word2 == kBlobTask && payload.size() >= sizeof(std::uint64_t)) {
                    replay_.tasks.push_back(
                        {read_as<std::uint64_t>(payload.data()),
                         {reinterpret_cast<const char*>(payload.data()) + sizeof(std::uint64_t),
                          payload.size() - sizeof(std::uint64_t)}});
                }
                break;
            default:
                break;
        }
    }

    void run_long_range(const LongRecord& head, std::span<const std::byte> payload) {
        const std::uint64_t end = std::max(head.time, head.word2);
        const LoggedRange range{head.depth, head.time, end, head.site, flags_of(head.flags), payload};
        nesting_.pass_unseen();
        if ((head.flags & kRecordAsync) != 0) {
            if (was_ended_at_stop(head)) return;
            const bool is_shown = is_wanted(head.site, head.time, end, head.depth) &&
                                  !is_open_at_stop(head.time, end, head.site);
            if (is_shown && (head.flags & kRecordCrosses) != 0) return nesting_.push_crossing(range);
            if (is_shown && filter_.has_torch && nesting_.push_around_open(range)) return;
            // A session's open list is as of its stop: later changes of depth are not in it.
            if (!(filter_.stopped && end > filter_.stop_ticks)) nesting_.pass_removed(head.depth, head.time);
            if (is_shown) nesting_.add_async(range);
            return;
        }
        if (!filter_.intersects(head.time, end) || !takes_part(head.site, head.time, end, head.depth)) return;
        nesting_.push_scope(range);
    }

    void run_sequenced(const LongRecord& head) {
        const SequencedFields fields = unpack_sequenced(head);
        if (!filter_.intersects(head.time, fields.end)) return nesting_.pass_unseen();
        if (!is_plain_ && !takes_part(head.site, head.time, fields.end, fields.depth)) return;
        nesting_.push_sequenced(head.time, fields, head.site);
    }

    void run_async(const AsyncEvent& event) {
        if (event.range == AsyncEvent::kNone) return;
        AsyncRange& range = async_[event.range];
        if (!range.nests || !range.is_kept) return;
        if (!event.is_begin) {
            push_async(event.range);
        } else if (range.on_stack) {
            nesting_.pop_async(event.range + 1);
            range.on_stack = false;
        }
    }

    void add_instant(std::uint64_t time, std::uint32_t site, std::span<const std::byte> payload) {
        if (!is_wanted(site, time, time)) return;
        replay_.instants.push_back({nesting_.to_ns(time), filter_.site_rows.row(site),
                                    static_cast<std::uint32_t>(payload.size()), payload.data()});
    }

    void add_counter(const LongRecord& head) {
        if (!is_wanted(head.site, head.time, head.time)) return;
        double value;
        if ((head.flags & kRecordInteger) != 0) {
            value = static_cast<double>(static_cast<std::int64_t>(head.word2));
        } else {
            std::memcpy(&value, &head.word2, sizeof value);
        }
        replay_.counters.push_back({nesting_.to_ns(head.time), value, filter_.site_rows.row(head.site)});
    }

    void add_memory(const LongRecord& head, std::span<const std::byte> payload) {
        if (!filter_.needs_memory || !is_wanted(0, head.time, head.time)) return;
        if (payload.size() < sizeof(MemoryPayload)) {
            ++replay_.damaged_memory;
            return;
        }
        replay_.memory.push_back({nesting_.to_ns(head.time), head.word2, payload.data()});
    }

    void add_samples(const LogPiece& piece) {
        filter_.report(kReplayWork * (piece.end - piece.begin));
        if (!filter_.needs_samples) return;
        for (std::size_t at = piece.begin; at + kRecordUnit <= piece.end;) {
            const std::byte* const record = piece.span->data + at;
            const std::size_t bytes = record_bytes(record, piece.end - at);
            if (bytes == 0) return;
            at += bytes;
            const CompactFields fields = unpack(read_as<CompactRecord>(record));
            const std::uint64_t end = piece.span->base_ticks + fields.delta;
            const auto state = static_cast<std::uint8_t>(fields.depth & kSampleState);
            if (fields.kind != static_cast<std::uint8_t>(RecordKind::Sample) || state == kSampleState)
                continue;
            const bool is_wait = state == static_cast<std::uint8_t>(SampleState::Waiting);
            const std::uint64_t start = is_wait ? end - std::min(end, fields.duration) : end;
            if (!is_wanted(0, start, end)) continue;
            replay_.samples.push_back({std::max(start, filter_.start_ticks),
                                       std::min(end, filter_.stop_ticks), is_wait ? 0 : fields.duration,
                                       fields.site, state});
        }
    }

    ThreadReplay& replay_;
    const SessionFilter& filter_;
    std::vector<AsyncRange>& async_;
    NestingStack nesting_;
    ContextTimes contexts_;
    OpenIndex open_;
    std::size_t next_event_;
    bool is_plain_;  // only the window has to be checked
};

}  // namespace

void drop_closed_ranges(ThreadReplay& replay, std::uint64_t stop_ticks) {
    if (replay.open.empty()) return;
    const bool is_stopped = stop_ticks != kNotStopped;
    // At a stop it can only be the last range that had ended by then, because its thread does nothing else
    // before it frees the slot. Chunks are in order of time. The last one may have no such range yet, and the
    // first one after the stop may have it, if getting that chunk was what stopped the session.
    auto first = replay.pieces.begin(), end = replay.pieces.end();
    if (is_stopped) {
        while (end != first && (*(end - 1))->span->base_ticks > stop_ticks) --end;
        if (end != replay.pieces.end()) ++end;
        first = end - std::min<std::ptrdiff_t>(end - first, 3);
    }
    const OpenIndex index(replay.open);
    std::vector<bool> is_closed(replay.open.size(), false);
    // A range without duration may be followed by an open one of the same place and tick: they are the same
    // only if it is the last of all.
    std::size_t closed_at_last = replay.open.size();
    const auto check = [&](std::uint64_t start, std::uint64_t ended, std::uint32_t site,
                           std::uint32_t depth) {
        const bool is_empty = ended <= start;
        closed_at_last = replay.open.size();
        if (!index.may_hold(start) || ended > stop_ticks || (is_stopped && is_empty)) return;
        index.find(start, [&](std::uint32_t i) {
            const OpenRange& open = *replay.open[i];
            // One that another thread has ended has its own end.
            if (is_closed[i] || open.site != site || open.depth != depth || (is_stopped && open.end != 0))
                return false;
            if (is_empty) {
                closed_at_last = i;
            } else {
                is_closed[i] = true;
            }
            return true;
        });
    };
    for (; first != end; ++first) {
        const LogPiece* const piece = *first;
        std::uint32_t next_long = 0;
        for (std::uint32_t at = piece->begin; at < piece->end;) {
            const std::byte* const record = piece->span->data + at;
            if (next_long < piece->long_count && piece->longs[next_long] == at) {
                const std::size_t bytes = record_bytes(record, piece->end - at);
                if (bytes == 0) break;
                const auto head = read_as<LongRecord>(record);
                if (head.kind == static_cast<std::uint8_t>(RecordKind::LongRange)) {
                    check(head.time, head.word2, head.site, head.depth);
                } else if (head.kind == static_cast<std::uint8_t>(RecordKind::SequencedRange)) {
                    const SequencedFields fields = unpack_sequenced(head);
                    check(head.time, fields.end, head.site, fields.depth);
                }
                ++next_long;
                at += static_cast<std::uint32_t>(bytes);
            } else {
                CompactFields fields = unpack(read_as<CompactRecord>(record));
                const std::uint64_t start = piece->span->base_ticks + fields.delta - fields.duration;
                PartFields part{};
                if (fields.kind == static_cast<std::uint8_t>(RecordKind::Resumed))
                    find_resumed(piece->span->data, at, fields, part);
                if (is_compact_range(fields.kind))
                    check(start, start + fields.duration, fields.site, fields.depth);
                at += static_cast<std::uint32_t>(kRecordUnit);
            }
        }
    }
    if (closed_at_last < replay.open.size()) is_closed[closed_at_last] = true;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < replay.open.size(); ++i) {
        if (!is_closed[i]) replay.open[kept++] = replay.open[i];
    }
    replay.open.resize(kept);
}

void replay_thread(ThreadReplay& replay, const SessionFilter& filter, const ClockFit& fit,
                   std::vector<AsyncRange>& async, const RowSlice& slice) {
    Replayer(replay, filter, fit, async, slice).run();
}

}  // namespace marey
