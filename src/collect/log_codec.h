// log_codec.h: log records as columns that compress well, and back, bit for bit.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <marey/error.h>

#include "base/byte_planes.h"
#include "collect/log_records.h"

namespace marey::log_codec {

using namespace detail;

// Ops. Below kDepthGiven: a compact range whose depth differs by op - kNoChange from that of the previous
// record.
inline constexpr std::uint8_t kNoChange = 32;
inline constexpr std::uint8_t kDepthGiven = 64;   // a compact range, depth in kDepths
inline constexpr std::uint8_t kInstant = 65;      // a compact instant of depth and duration 0
inline constexpr std::uint8_t kRawCompact = 66;   // 16 bytes in kRaw
inline constexpr std::uint8_t kLongRangeOp = 67;  // a long range of regular shape
inline constexpr std::uint8_t kLongOp = 68;       // any other long record of regular shape
inline constexpr std::uint8_t kRawLong = 69;      // complete, in kRaw
inline constexpr std::uint8_t kPartOp = 70;       // a part, whose start is that of the compact range after it
inline constexpr std::uint8_t kResumedOp =
    71;  // the compact range after it, whose site is not stored, is Resumed

inline std::size_t regular_units(std::size_t payload_bytes) {
    return (sizeof(LongRecord) + payload_bytes + kRecordUnit - 1) / kRecordUnit;
}

inline bool is_regular(const std::byte* record, const LongRecord& head, std::size_t bytes) {
    if (head.units != regular_units(head.payload_bytes)) return false;
    for (std::size_t at = sizeof head + head.payload_bytes; at < bytes; ++at) {
        if (record[at] != std::byte{0}) return false;
    }
    return true;
}

inline std::uint64_t to_zigzag(std::uint64_t difference) {
    return (difference << 1) ^ (0 - (difference >> 63));
}
inline std::uint64_t from_zigzag(std::uint64_t value) {
    return (value >> 1) ^ (0 - (value & 1));
}

/// Where the parts of records go. docs/formats/capture.md describes each; the numbers are part of the format.
/// A time column takes kTimeColumns places: those of base/byte_planes.h.
inline constexpr std::size_t kTimeColumns = kBytePlanes;
enum LogColumn : std::size_t {
    kOps = 0,  ///< one byte per record
    kSites,    ///< 0: as predicted, else 1 + site; variable length
    kDepths,   ///< where the op does not encode the change of depth
    kKinds,    ///< kind and flags of long records
    kPayloadSizes,
    kPayloads,
    kWords,  ///< word 2 of long records
    kRaw,    ///< records of irregular shape, complete
    kGaps,   ///< time from the previous record to the start of a range without children
    kDurations = kGaps + kTimeColumns,   ///< of those
    kHeads = kDurations + kTimeColumns,  ///< from a parent's start to that of its first child
    kTails = kHeads + kTimeColumns,      ///< from the end of the last child to that of its parent
    kTimes = kTails + kTimeColumns,      ///< time from the previous record to the time of other records
    kLogColumns = kTimes + kTimeColumns,
};
using LogColumns = std::array<std::vector<std::byte>, kLogColumns>;

/// State of both sides: where the last record of each thread ended, and which site tends to follow which.
struct LogCodecState {
    struct First {
        std::uint32_t depth;
        std::uint64_t start;
    };
    struct Thread {
        std::uint64_t now = 0;
        std::uint32_t depth = 0;
        std::vector<First> firsts;  ///< the first range of each depth whose parent is still to come
        bool is_new = true;
    };
    std::unordered_map<std::uint32_t, Thread> threads;
    std::vector<std::uint32_t> next_site = std::vector<std::uint32_t>(4096);
    std::uint32_t last_site = 0;
    std::uint64_t last_call = 0;
    std::uint64_t last_place = 0;  ///< of a Resumed, with its lowest bit
    std::array<std::uint64_t, 256> last_word{};

    Thread& begin_span(std::uint32_t thread, std::uint64_t base_ticks) {
        Thread& state = threads[thread];
        if (state.is_new) state.now = base_ticks;
        state.is_new = false;
        return state;
    }
    std::uint32_t& predicted_site(std::uint8_t op) {
        return next_site[(last_site * 0x9e3779b1u + op * 0x85ebca6bu) >> 20];
    }
};

// The start of the first of the ranges that this one is the parent of; false when it has no children.
inline bool pop_children(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t& first_start) {
    bool found = false;
    while (!thread.firsts.empty() && thread.firsts.back().depth > depth) {
        first_start = thread.firsts.back().start;
        found = true;
        thread.firsts.pop_back();
    }
    return found;
}

inline void end_range(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t start,
                      std::uint64_t end) {
    if (thread.firsts.empty() || thread.firsts.back().depth < depth) thread.firsts.push_back({depth, start});
    thread.now = end;
    thread.depth = depth;
}

/// Appends spans to columns. The records must be complete.
class LogEncoder {
  public:
    void encode(std::span<const std::byte> records, std::uint32_t thread, std::uint64_t base_ticks) {
        LogCodecState::Thread& state = state_.begin_span(thread, base_ticks);
        while (!records.empty()) {
            const std::size_t bytes = record_bytes(records.data(), records.size());
            if (bytes == 0) throw Error("a log span ends in the middle of a record");
            if (is_long_record(records.data())) {
                put_long(state, records.data(), bytes);
            } else {
                put_compact(state, records, base_ticks);
            }
            records = records.subspan(bytes);
        }
    }
    LogColumns& columns() noexcept { return columns_; }

  private:
    void put_time(std::size_t column, std::uint64_t difference) {
        std::uint8_t sign = 0;
        if (difference >> 63 != 0) {
            difference = 0 - difference;
            sign = kNegativeNumber;
        }
        const auto length = static_cast<std::size_t>((std::bit_width(difference) + 7) / 8);
        columns_[column].push_back(static_cast<std::byte>(length | sign));
        for (std::size_t i = 0; i < length; ++i) {
            columns_[column + byte_plane(length, i)].push_back(static_cast<std::byte>(difference >> (8 * i)));
        }
    }
    void put_number(std::size_t column, std::uint64_t value) {
        std::vector<std::byte>& bytes = columns_[column];
        for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::byte>(value | 0x80));
        bytes.push_back(static_cast<std::byte>(value));
    }
    void put_bytes(std::size_t column, const std::byte* bytes, std::size_t count) {
        columns_[column].insert(columns_[column].end(), bytes, bytes + count);
    }
    void put_site(std::uint8_t op, std::uint32_t site) {
        std::uint32_t& predicted = state_.predicted_site(op);
        put_number(kSites, predicted == site ? 0 : std::uint64_t{site} + 1);
        predicted = site;
        state_.last_site = site;
    }
    void put_range(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t start,
                   std::uint64_t end) {
        std::uint64_t first_start = 0;
        if (pop_children(thread, depth, first_start)) {
            put_time(kHeads, first_start - start);
            put_time(kTails, end - thread.now);
        } else {
            put_time(kGaps, start - thread.now);
            put_time(kDurations, end - start);
        }
        end_range(thread, depth, start, end);
    }
    void put_compact(LogCodecState::Thread& thread, std::span<const std::byte> records,
                     std::uint64_t base_ticks) {
        const std::byte* const record = records.data();
        const CompactFields fields = unpack(read_as<CompactRecord>(record));
        const std::uint64_t end = base_ticks + fields.delta;
        if (is_compact_range(fields.kind)) {
            const bool is_resumed = fields.kind == static_cast<std::uint8_t>(RecordKind::Resumed);
            if (is_resumed) {
                columns_[kOps].push_back(std::byte{kResumedOp});
                put_number(kWords, to_zigzag(std::uint64_t{fields.site} - state_.last_place));
                state_.last_place = fields.site;
            }
            const std::int64_t change = std::int64_t{fields.depth} - std::int64_t{thread.depth};
            const bool fits = change >= -kNoChange && change < kNoChange;
            const auto op = fits ? static_cast<std::uint8_t>(change + kNoChange) : kDepthGiven;
            columns_[kOps].push_back(std::byte{op});
            if (!fits) put_number(kDepths, fields.depth);
            if (!is_resumed) put_site(op, fields.site);
            put_range(thread, fields.depth, end - fields.duration, end);
        } else if (fields.kind == static_cast<std::uint8_t>(RecordKind::Instant) && fields.depth == 0 &&
                   fields.duration == 0) {
            columns_[kOps].push_back(std::byte{kInstant});
            put_site(kInstant, fields.site);
            put_time(kTimes, end - thread.now);
            thread.now = end;
        } else if (fields.kind != static_cast<std::uint8_t>(RecordKind::Part) ||
                   !put_part(records, base_ticks)) {
            columns_[kOps].push_back(std::byte{kRawCompact});
            put_bytes(kRaw, record, kRecordUnit);
        }
    }
    // A part before its range. False: nothing was done.
    bool put_part(std::span<const std::byte> records, std::uint64_t base_ticks) {
        const auto record = read_as<CompactRecord>(records.data());
        if (records.size() < 2 * kRecordUnit || is_long_record(records.data() + kRecordUnit)) return false;
        const CompactFields range = unpack(read_as<CompactRecord>(records.data() + kRecordUnit));
        if (range.kind != static_cast<std::uint8_t>(RecordKind::Range)) return false;
        const std::uint64_t start = base_ticks + range.delta - range.duration;
        if ((start & kPartStartMask) != record.word0 >> kPartStartShift) return false;
        columns_[kOps].push_back(std::byte{kPartOp});
        columns_[kKinds].push_back(static_cast<std::byte>(record.word0 >> 8));
        put_number(kWords, to_zigzag(record.word1 - state_.last_call));
        state_.last_call = record.word1;
        return true;
    }
    void put_long(LogCodecState::Thread& thread, const std::byte* record, std::size_t bytes) {
        const auto head = read_as<LongRecord>(record);
        if (!is_regular(record, head, bytes)) {
            columns_[kOps].push_back(std::byte{kRawLong});
            put_bytes(kRaw, record, bytes);
            return;
        }
        const bool is_range = head.kind == static_cast<std::uint8_t>(RecordKind::LongRange);
        const std::uint8_t op = is_range ? kLongRangeOp : kLongOp;
        columns_[kOps].push_back(std::byte{op});
        if (!is_range) columns_[kKinds].push_back(std::byte{head.kind});
        columns_[kKinds].push_back(std::byte{head.flags});
        put_site(op, head.site);
        put_number(kDepths, to_zigzag(std::uint64_t{head.depth} - thread.depth));
        put_number(kPayloadSizes, head.payload_bytes);
        put_bytes(kPayloads, record + sizeof head, head.payload_bytes);
        if (is_range) {
            put_range(thread, head.depth, head.time, head.word2);
        } else {
            put_time(kTimes, head.time - thread.now);
            thread.now = head.time;
            put_number(kWords, to_zigzag(head.word2 - state_.last_word[head.kind]));
            state_.last_word[head.kind] = head.word2;
        }
    }

    LogColumns columns_;
    LogCodecState state_;
};

/// The inverse. Throws marey::Error on columns that no encoder made; never reads or writes out of bounds.
class LogDecoder {
  public:
    explicit LogDecoder(const LogColumns& columns) noexcept : columns_(columns) {}

    /// The next span: exactly `bytes` bytes of records.
    std::vector<std::byte> decode(std::uint32_t thread, std::uint64_t base_ticks, std::uint64_t bytes) {
        LogCodecState::Thread& state = state_.begin_span(thread, base_ticks);
        std::vector<std::byte> records;
        records.reserve(std::min<std::uint64_t>(bytes, (columns_[kOps].size() - at_[kOps]) * kRecordUnit));
        const auto put = [&](std::uint8_t kind, std::uint32_t depth, std::uint64_t end, std::uint32_t site,
                             std::uint64_t duration) {
            const std::uint64_t delta = end - base_ticks;
            if (delta >> kDeltaBits != 0 || duration >> kDurationBits != 0 || site >= kMaxSites ||
                depth > 0xff) {
                throw Error("corrupt capture: a compact record's values are too large");
            }
            const CompactRecord record{kind | std::uint64_t{depth} << 8 | delta << 16,
                                       site | duration << kSiteBits};
            const auto* const first = reinterpret_cast<const std::byte*>(&record);
            records.insert(records.end(), first, first + sizeof record);
        };
        bool is_part = false;     // the record before
        bool is_resumed = false;  // the range that follows
        while (records.size() < bytes) {
            const std::uint8_t op = take_byte(kOps);
            if ((is_part || is_resumed) && op > kDepthGiven)
                throw Error("corrupt capture: a part record without its range");
            if (op <= kDepthGiven) {
                const auto depth = static_cast<std::uint32_t>(
                    op == kDepthGiven ? take_number(kDepths) : std::uint64_t{state.depth} + op - kNoChange);
                const auto site = is_resumed ? static_cast<std::uint32_t>(state_.last_place) : take_site(op);
                std::uint64_t start = 0;
                std::uint64_t end = 0;
                take_range(state, depth, start, end);
                if (std::exchange(is_part, false)) {
                    std::byte* const place = records.data() + records.size() - kRecordUnit;
                    auto part = read_as<CompactRecord>(place);
                    part.word0 |= start << kPartStartShift;
                    std::memcpy(place, &part, sizeof part);
                }
                const auto kind = std::exchange(is_resumed, false) ? RecordKind::Resumed : RecordKind::Range;
                put(static_cast<std::uint8_t>(kind), depth, end, site, end - start);
            } else if (op == kResumedOp) {
                state_.last_place += from_zigzag(take_number(kWords));
                is_resumed = true;
            } else if (op == kPartOp) {
                CompactRecord part{};
                part.word0 = static_cast<std::uint64_t>(RecordKind::Part) | std::uint64_t{take_byte(kKinds)}
                                                                                << 8;
                part.word1 = state_.last_call += from_zigzag(take_number(kWords));
                const auto* const first = reinterpret_cast<const std::byte*>(&part);
                records.insert(records.end(), first, first + sizeof part);
                is_part = true;
            } else if (op == kInstant) {
                const std::uint32_t site = take_site(op);
                state.now += take_time(kTimes);
                put(static_cast<std::uint8_t>(RecordKind::Instant), 0, state.now, site, 0);
            } else if (op == kRawCompact) {
                const auto record = take(kRaw, kRecordUnit);
                if (is_long_record(record.data()))
                    throw Error("corrupt capture: expected a compact record, found a long one");
                records.insert(records.end(), record.begin(), record.end());
            } else if (op == kLongRangeOp || op == kLongOp) {
                take_long(state, op, records);
            } else if (op == kRawLong) {
                const std::size_t left = columns_[kRaw].size() - at_[kRaw];
                const std::size_t size = record_bytes(columns_[kRaw].data() + at_[kRaw], left);
                if (size == 0 || !is_long_record(columns_[kRaw].data() + at_[kRaw]))
                    throw Error("corrupt capture: expected a long record");
                const auto record = take(kRaw, size);
                records.insert(records.end(), record.begin(), record.end());
            } else {
                throw Error("corrupt capture: unknown record op");
            }
        }
        if (records.size() != bytes || is_part)
            throw Error("corrupt capture: records do not fill their span");
        return records;
    }

  private:
    std::span<const std::byte> take(std::size_t column, std::size_t count) {
        const std::vector<std::byte>& bytes = columns_[column];
        if (count > bytes.size() - at_[column]) throw Error("corrupt capture: a record column ends early");
        const auto taken = std::span(bytes).subspan(at_[column], count);
        at_[column] += count;
        return taken;
    }
    std::uint8_t take_byte(std::size_t column) { return std::to_integer<std::uint8_t>(take(column, 1)[0]); }
    std::uint64_t take_number(std::size_t column) {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint8_t byte = take_byte(column);
            value |= std::uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) return value;
        }
        throw Error("corrupt capture: a number in a record column is too long");
    }
    std::uint64_t take_time(std::size_t column) {
        const std::uint8_t head = take_byte(column);
        const std::size_t length = head & 0x0f;
        if (length > 8 || (head & ~(kNegativeNumber | 0x0f)) != 0)
            throw Error("corrupt capture: a time in a record column is malformed");
        std::uint64_t difference = 0;
        for (std::size_t i = 0; i < length; ++i) {
            difference |= std::uint64_t{take_byte(column + byte_plane(length, i))} << (8 * i);
        }
        return (head & kNegativeNumber) != 0 ? 0 - difference : difference;
    }
    std::uint32_t take_site(std::uint8_t op) {
        const std::uint64_t code = take_number(kSites);
        std::uint32_t& predicted = state_.predicted_site(op);
        const std::uint32_t site = code == 0 ? predicted : static_cast<std::uint32_t>(code - 1);
        predicted = site;
        state_.last_site = site;
        return site;
    }
    void take_range(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t& start,
                    std::uint64_t& end) {
        std::uint64_t first_start = 0;
        if (pop_children(thread, depth, first_start)) {
            start = first_start - take_time(kHeads);
            end = thread.now + take_time(kTails);
        } else {
            start = thread.now + take_time(kGaps);
            end = start + take_time(kDurations);
        }
        end_range(thread, depth, start, end);
    }
    void take_long(LogCodecState::Thread& thread, std::uint8_t op, std::vector<std::byte>& records) {
        LongRecord head{};
        head.kind = op == kLongRangeOp ? static_cast<std::uint8_t>(RecordKind::LongRange) : take_byte(kKinds);
        head.flags = take_byte(kKinds);
        head.site = take_site(op);
        head.depth = static_cast<std::uint32_t>(thread.depth + from_zigzag(take_number(kDepths)));
        const std::uint64_t payload_bytes = take_number(kPayloadSizes);
        if (payload_bytes > columns_[kPayloads].size())
            throw Error("corrupt capture: a record's payload is too long");
        const auto payload = take(kPayloads, payload_bytes);
        const std::size_t units = regular_units(payload.size());
        if (units > 0xffff || (head.kind & kLongBit) == 0)
            throw Error("corrupt capture: malformed long record");
        head.units = static_cast<std::uint16_t>(units);
        head.payload_bytes = static_cast<std::uint32_t>(payload.size());
        if (op == kLongRangeOp) {
            take_range(thread, head.depth, head.time, head.word2);
        } else {
            head.time = thread.now + take_time(kTimes);
            thread.now = head.time;
            head.word2 = state_.last_word[head.kind] + from_zigzag(take_number(kWords));
            state_.last_word[head.kind] = head.word2;
        }
        const std::size_t at = records.size();
        records.resize(at + units * kRecordUnit);
        std::memcpy(records.data() + at, &head, sizeof head);
        if (!payload.empty()) std::memcpy(records.data() + at + sizeof head, payload.data(), payload.size());
    }

    const LogColumns& columns_;
    std::array<std::size_t, kLogColumns> at_{};
    LogCodecState state_;
};

}  // namespace marey::log_codec
