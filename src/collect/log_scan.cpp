// log_scan.cpp: the first pass. Compact records, the bulk, are counted in a tight loop.
#include "collect/log_scan.h"

#include <algorithm>

#include "collect/log_records.h"

namespace marey {

using namespace detail;

namespace {

constexpr std::size_t kMaxSpanBytes = 0xfffffff0;

class SpanScanner {
  public:
    SpanScanner(const LogSpan& span, const SessionFilter& filter, SpanScan& scan)
        : span_(span), filter_(filter), scan_(scan) {}

    void run() {
        const std::size_t bytes = std::min(span_.bytes, kMaxSpanBytes);
        begin_piece(span_.thread, 0);
        std::size_t at = 0;
        while (at < bytes) {
            at = read_compact(at, bytes);
            const std::size_t length = at < bytes ? record_bytes(span_.data + at, bytes - at) : 0;
            if (length == 0) break;
            read_long(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + length));
            at += length;
        }
        end_piece(static_cast<std::uint32_t>(at));
        // The pieces' offsets were counted while the vector still grew.
        const std::uint32_t* longs = scan_.longs.data();
        for (LogPiece& piece : scan_.pieces) {
            piece.longs = longs;
            longs += piece.long_count;
        }
    }

  private:
    void begin_piece(std::uint32_t thread, std::uint32_t at) {
        LogPiece piece{.span = &span_, .thread = thread};
        piece.begin = piece.end = at;
        scan_.pieces.push_back(piece);
    }
    void end_piece(std::uint32_t at) { scan_.pieces.back().end = at; }

    // Compact records from `at` on, until a long one or the end. Gives where that is.
    std::size_t read_compact(std::size_t at, std::size_t bytes) {
        std::uint64_t least = scan_.min_start;
        std::uint64_t latest = scan_.latest;
        std::uint32_t ranges = 0, parts = 0;
        LogPiece& piece = scan_.pieces.back();
        const std::byte* const data = span_.data;
        while (at + kRecordUnit <= bytes) {
            const auto record = read_as<CompactRecord>(data + at);
            if ((record.word0 & kLongBit) != 0) break;
            at += kRecordUnit;
            const CompactFields fields = unpack(record);
            const std::uint64_t end = span_.base_ticks + fields.delta;
            const std::uint64_t start = end - fields.duration;
            if (fields.kind == static_cast<std::uint8_t>(RecordKind::Range)) [[likely]] {
                least = std::min(least, start);
                latest = std::max(latest, end);
                ranges += filter_.intersects(start, end) && filter_.includes_site(fields.site);
            } else if (fields.kind == static_cast<std::uint8_t>(RecordKind::Instant)) {
                least = std::min(least, end);
                latest = std::max(latest, end);
                piece.instants += filter_.intersects(end, end);
            } else if (fields.kind == static_cast<std::uint8_t>(RecordKind::Part)) {
                ++parts;
            } else if (fields.kind == static_cast<std::uint8_t>(RecordKind::Resumed)) {
                least = std::min(least, start);
                latest = std::max(latest, end);
                ranges += filter_.intersects(start, end);
                ++parts;
            } else if (fields.kind == static_cast<std::uint8_t>(RecordKind::Sample)) {
                latest = std::max(latest, end);
                ++piece.samples;
            } else {
                ++piece.unknown;
            }
        }
        piece.ranges += ranges;
        piece.parts += parts;
        scan_.min_start = least;
        scan_.latest = latest;
        return at;
    }

    void saw(std::uint64_t start, std::uint64_t end) {
        scan_.min_start = std::min(scan_.min_start, start);
        scan_.latest = std::max(scan_.latest, end);
    }

    void read_long(std::uint32_t at, std::uint32_t end_of_record) {
        const auto head = read_as<LongRecord>(span_.data + at);
        LogPiece& piece = scan_.pieces.back();
        switch (static_cast<RecordKind>(head.kind)) {
            case RecordKind::LongRange:
                saw(head.time, std::max(head.time, head.word2));
                piece.ranges += filter_.intersects(head.time, std::max(head.time, head.word2)) &&
                                filter_.includes_site(head.site);
                break;
            case RecordKind::SequencedRange: {
                const std::uint64_t end = unpack_sequenced(head).end;
                saw(head.time, end);
                const bool is_wanted = filter_.intersects(head.time, end) && filter_.includes_site(head.site);
                piece.ranges += is_wanted;
                piece.sequenced += is_wanted;
                break;
            }
            case RecordKind::LongInstant:
                saw(head.time, head.time);
                piece.instants += filter_.intersects(head.time, head.time);
                break;
            case RecordKind::Counter:
                saw(head.time, head.time);
                piece.counters += filter_.intersects(head.time, head.time);
                break;
            case RecordKind::AsyncBegin:
                ++piece.ranges;  // it may turn out to nest
                piece.has_async = true;
                saw(head.time, head.time);
                break;
            case RecordKind::AsyncEnd:
                piece.has_async = true;
                saw(head.time, head.time);
                break;
            case RecordKind::ThreadSwitch:
                end_piece(at);  // belongs to neither of the two pieces
                begin_piece(static_cast<std::uint32_t>(head.word2), end_of_record);
                return;
            case RecordKind::ContextMark:
                piece.has_marks = true;
                break;
            case RecordKind::Adopted:
                break;
            case RecordKind::Dropped:
                if (filter_.intersects(head.time, head.time)) piece.dropped += head.word2;
                break;
            case RecordKind::Memory:
                saw(head.time, head.time);
                break;
            case RecordKind::DeviceWork:
                piece.has_device = true;
                saw(head.time, std::max(head.time, head.word2));
                break;
            case RecordKind::DeviceCall:
                piece.has_device = true;
                saw(head.time, head.time + static_cast<std::uint32_t>(head.word2));
                break;
            case RecordKind::DeviceClock:
                piece.has_device = true;
                break;
            case RecordKind::Blob:
                if (head.word2 == kBlobSend || head.word2 == kBlobReceive) saw(head.time, head.time);
                break;
            default:
                ++piece.unknown;
                break;
        }
        scan_.longs.push_back(at);
        ++piece.long_count;
    }

    const LogSpan& span_;
    const SessionFilter& filter_;
    SpanScan& scan_;
};

}  // namespace

SpanScan scan_span(const LogSpan& span, const SessionFilter& filter) {
    SpanScan scan;
    SpanScanner(span, filter, scan).run();
    return scan;
}

}  // namespace marey
