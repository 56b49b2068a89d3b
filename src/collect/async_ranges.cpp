// async_ranges.cpp: joins async records by id and replays depths to decide which ranges nest.
#include "collect/async_ranges.h"

#include <functional>
#include <queue>

#include "collect/log_records.h"

namespace marey {

using namespace detail;

namespace {

// If more movable ranges than this are open at once on one thread, they become async without a check.
constexpr std::size_t kMaxOpen = 512;

/// Replays one thread forward: which movable ranges are open, and with how many scopes around each.
class NestingCheck {
  public:
    NestingCheck(std::uint32_t thread, std::vector<AsyncRange>& ranges, std::span<const AsyncEvent> events)
        : thread_(thread), ranges_(ranges), events_(events) {}

    void run(std::span<const LogPiece* const> pieces) {
        for (const LogPiece* piece : pieces) {
            std::uint32_t next_long = 0;
            for (std::uint32_t at = piece->begin; at < piece->end;) {
                const bool is_long = next_long < piece->long_count && piece->longs[next_long] == at;
                if (is_long) {
                    const std::byte* const record = piece->span->data + at;
                    const std::size_t bytes = record_bytes(record, piece->end - at);
                    if (bytes == 0) break;
                    read_long(read_as<LongRecord>(record));
                    ++next_long;
                    at += static_cast<std::uint32_t>(bytes);
                } else if (open_.empty()) {
                    at = next_long < piece->long_count ? piece->longs[next_long] : piece->end;
                } else {
                    const CompactFields fields = unpack(read_as<CompactRecord>(piece->span->data + at));
                    if (is_compact_range(fields.kind))
                        close_scope(fields.depth, piece->span->base_ticks + fields.delta);
                    at += static_cast<std::uint32_t>(kRecordUnit);
                }
            }
        }
        // Ranges that are still open nest if they never ended at all.
        for (const Open& open : open_) ranges_[open.range].nests = open.alive && !ranges_[open.range].has_end;
    }

  private:
    struct Open {
        std::uint32_t range;
        std::uint32_t depth;
        bool alive;
    };

    void read_long(const LongRecord& head) {
        switch (static_cast<RecordKind>(head.kind)) {
            case RecordKind::LongRange:
                if ((head.flags & kRecordAsync) == 0) {
                    close_scope(head.depth, head.word2);
                } else {
                    for (Open& open : open_) open.depth -= open.depth > head.depth;
                }
                break;
            case RecordKind::SequencedRange:
                close_scope(unpack_sequenced(head).depth, unpack_sequenced(head).end);
                break;
            case RecordKind::Dropped:
                close_scope(head.depth, head.time);
                break;
            case RecordKind::Adopted:
                for (Open& open : open_) {
                    if (open.depth >= head.depth) open.depth += static_cast<std::uint32_t>(head.word2);
                }
                break;
            case RecordKind::AsyncBegin:
            case RecordKind::AsyncEnd:
                if (next_event_ < events_.size()) take_event(events_[next_event_++]);
                break;
            default:
                break;
        }
    }

    // Ranges that began in the scope do not nest, except steps: these are shown from its end.
    void close_scope(std::uint32_t depth, std::uint64_t end) {
        std::size_t kept = open_.size();
        while (kept != 0 && open_[kept - 1].depth > depth) --kept;
        for (std::size_t i = kept; i < open_.size(); ++i) {
            AsyncRange& range = ranges_[open_[i].range];
            if (!range.is_step()) continue;
            range.shown_from = end;
            open_[kept++] = {open_[i].range, depth, open_[i].alive};
        }
        open_.resize(kept);
    }

    void take_event(const AsyncEvent& event) {
        if (event.range == AsyncEvent::kNone) return;
        AsyncRange& range = ranges_[event.range];
        if (event.is_begin) {
            const bool ends_here = !range.has_end || range.end_thread == thread_;
            if (ends_here && (range.flags & kRecordAsync) == 0 && open_.size() < kMaxOpen)
                open_.push_back({event.range, range.begin_depth, true});
            return;
        }
        while (!open_.empty() && !open_.back().alive) open_.pop_back();
        if (open_.empty()) return;
        if (open_.back().range == event.range) {
            range.nests = open_.back().depth == range.end_depth || range.is_step();
            open_.pop_back();
            return;
        }
        // Others began after it and are still open: it crosses them.
        for (Open& open : open_) {
            if (open.range == event.range) open.alive = false;
        }
    }

    std::uint32_t thread_;
    std::vector<AsyncRange>& ranges_;
    std::span<const AsyncEvent> events_;
    std::size_t next_event_ = 0;
    std::vector<Open> open_;
};

}  // namespace

AsyncRange& AsyncRanges::find(std::uint64_t id, std::uint32_t& index) {
    const auto [place, is_new] = by_id_.try_emplace(id, static_cast<std::uint32_t>(ranges_.size()));
    if (is_new) ranges_.emplace_back();
    index = place->second;
    return ranges_[index];
}

std::vector<AsyncEvent> AsyncRanges::add_thread(std::uint32_t thread,
                                                std::span<const LogPiece* const> pieces) {
    std::vector<AsyncEvent> events;
    for (const LogPiece* piece : pieces) {
        if (!piece->has_async) continue;
        for (std::uint32_t i = 0; i < piece->long_count; ++i) {
            const std::byte* const record = piece->span->data + piece->longs[i];
            const std::size_t left = piece->end - piece->longs[i];
            if (record_bytes(record, left) == 0) continue;
            const auto head = read_as<LongRecord>(record);
            const bool is_begin = head.kind == static_cast<std::uint8_t>(RecordKind::AsyncBegin);
            if (!is_begin && head.kind != static_cast<std::uint8_t>(RecordKind::AsyncEnd)) continue;
            AsyncEvent event{AsyncEvent::kNone, is_begin};
            std::uint32_t index = 0;
            AsyncRange& range = find(head.word2, index);
            if (is_begin && !range.has_begin) {
                range.has_begin = true;
                range.start = head.time;
                range.site = head.site;
                range.begin_thread = thread;
                range.begin_depth = head.depth;
                range.flags = head.flags;
                range.payload = payload_of(record, head).data();
                range.payload_bytes = static_cast<std::uint32_t>(
                    std::min<std::size_t>(head.payload_bytes, left - sizeof(LongRecord)));
                event.range = index;
            } else if (!is_begin && !range.has_end) {
                range.has_end = true;
                range.end = head.time;
                range.end_thread = thread;
                range.end_depth = head.depth;
                if (!range.has_begin && head.payload_bytes >= sizeof(std::uint64_t) &&
                    left >= sizeof(LongRecord) + sizeof(std::uint64_t)) {
                    range.start = read_as<std::uint64_t>(record + sizeof(LongRecord));
                    range.site = head.site;
                }
                event.range = index;
            }
            events.push_back(event);
        }
    }
    return events;
}

void AsyncRanges::decide_nesting(std::uint32_t thread, std::span<const LogPiece* const> pieces,
                                 std::span<const AsyncEvent> events) {
    NestingCheck(thread, ranges_, events).run(pieces);
}

std::vector<std::uint32_t> place_on_rows(std::span<const std::int64_t> starts,
                                         std::span<const std::int64_t> ends) {
    std::vector<std::uint32_t> rows(starts.size());
    using Busy = std::pair<std::int64_t, std::uint32_t>;  // until when, row
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < starts.size(); ++i) {
        while (!busy.empty() && busy.top().first <= starts[i]) {
            free.push(busy.top().second);
            busy.pop();
        }
        if (free.empty()) {
            rows[i] = count++;
        } else {
            rows[i] = free.top();
            free.pop();
        }
        busy.emplace(ends[i], rows[i]);
    }
    return rows;
}

}  // namespace marey
