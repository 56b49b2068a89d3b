// log_codec.cpp: stores every tick once, as its distance from the previous one.
#include "collect/log_codec.h"

#include <bit>
#include <cstring>
#include <utility>

#include <marey/error.h>

#include "collect/log_records.h"

namespace marey {

using namespace detail;

namespace {

// Ops. Below kDepthGiven: a compact range whose depth differs by op - kNoChange from that of the previous
// record.
constexpr std::uint8_t kNoChange = 32;
constexpr std::uint8_t kDepthGiven = 64;   // a compact range, depth in kDepths
constexpr std::uint8_t kInstant = 65;      // a compact instant of depth and duration 0
constexpr std::uint8_t kRawCompact = 66;   // 16 bytes in kRaw
constexpr std::uint8_t kLongRangeOp = 67;  // a long range of regular shape
constexpr std::uint8_t kLongOp = 68;       // any other long record of regular shape
constexpr std::uint8_t kRawLong = 69;      // complete, in kRaw
constexpr std::uint8_t kPartOp = 70;       // a part, whose start is that of the compact range after it
constexpr std::uint8_t kResumedOp = 71;    // the compact range after it, whose site is not stored, is Resumed

std::size_t regular_units(std::size_t payload_bytes) {
    return (sizeof(LongRecord) + payload_bytes + kRecordUnit - 1) / kRecordUnit;
}

bool is_regular(const std::byte* record, const LongRecord& head, std::size_t bytes) {
    if (head.units != regular_units(head.payload_bytes)) return false;
    for (std::size_t at = sizeof head + head.payload_bytes; at < bytes; ++at) {
        if (record[at] != std::byte{0}) return false;
    }
    return true;
}

std::uint64_t to_zigzag(std::uint64_t difference) {
    return (difference << 1) ^ (0 - (difference >> 63));
}
std::uint64_t from_zigzag(std::uint64_t value) {
    return (value >> 1) ^ (0 - (value & 1));
}

// The start of the first of the ranges that this one is the parent of; false when it has no children.
bool pop_children(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t& first_start) {
    bool found = false;
    while (!thread.firsts.empty() && thread.firsts.back().depth > depth) {
        first_start = thread.firsts.back().start;
        found = true;
        thread.firsts.pop_back();
    }
    return found;
}

void end_range(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t start, std::uint64_t end) {
    if (thread.firsts.empty() || thread.firsts.back().depth < depth) thread.firsts.push_back({depth, start});
    thread.now = end;
    thread.depth = depth;
}

}  // namespace

LogCodecState::Thread& LogCodecState::begin_span(std::uint32_t thread, std::uint64_t base_ticks) {
    Thread& state = threads[thread];
    if (state.is_new) state.now = base_ticks;
    state.is_new = false;
    return state;
}

// ---- encoding ----

void LogEncoder::put_bytes(std::size_t column, const std::byte* bytes, std::size_t count) {
    columns_[column].insert(columns_[column].end(), bytes, bytes + count);
}

void LogEncoder::put_number(std::size_t column, std::uint64_t value) {
    std::vector<std::byte>& bytes = columns_[column];
    for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::byte>(value | 0x80));
    bytes.push_back(static_cast<std::byte>(value));
}

void LogEncoder::put_time(std::size_t column, std::uint64_t difference) {
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

void LogEncoder::put_site(std::uint8_t op, std::uint32_t site) {
    std::uint32_t& predicted = state_.predicted_site(op);
    put_number(kSites, predicted == site ? 0 : std::uint64_t{site} + 1);
    predicted = site;
    state_.last_site = site;
}

void LogEncoder::put_range(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t start,
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

// A part before its range. False: nothing was done.
bool LogEncoder::put_part(std::span<const std::byte> records, std::uint64_t base_ticks) {
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

void LogEncoder::put_compact(LogCodecState::Thread& thread, std::span<const std::byte> records,
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
    } else if (fields.kind != static_cast<std::uint8_t>(RecordKind::Part) || !put_part(records, base_ticks)) {
        columns_[kOps].push_back(std::byte{kRawCompact});
        put_bytes(kRaw, record, kRecordUnit);
    }
}

void LogEncoder::put_long(LogCodecState::Thread& thread, const std::byte* record, std::size_t bytes) {
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

void LogEncoder::encode(std::span<const std::byte> records, std::uint32_t thread, std::uint64_t base_ticks) {
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

// ---- decoding ----

std::span<const std::byte> LogDecoder::take(std::size_t column, std::size_t count) {
    const std::vector<std::byte>& bytes = columns_[column];
    if (count > bytes.size() - at_[column]) throw Error("corrupt capture: a record column ends early");
    const auto taken = std::span(bytes).subspan(at_[column], count);
    at_[column] += count;
    return taken;
}

std::uint64_t LogDecoder::take_number(std::size_t column) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        const std::uint8_t byte = take_byte(column);
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
    }
    throw Error("corrupt capture: a number in a record column is too long");
}

std::uint64_t LogDecoder::take_time(std::size_t column) {
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

std::uint32_t LogDecoder::take_site(std::uint8_t op) {
    const std::uint64_t code = take_number(kSites);
    std::uint32_t& predicted = state_.predicted_site(op);
    const std::uint32_t site = code == 0 ? predicted : static_cast<std::uint32_t>(code - 1);
    predicted = site;
    state_.last_site = site;
    return site;
}

void LogDecoder::take_range(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t& start,
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

void LogDecoder::take_long(LogCodecState::Thread& thread, std::uint8_t op, std::vector<std::byte>& records) {
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
    if (units > 0xffff || (head.kind & kLongBit) == 0) throw Error("corrupt capture: malformed long record");
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

std::vector<std::byte> LogDecoder::decode(std::uint32_t thread, std::uint64_t base_ticks,
                                          std::uint64_t bytes) {
    LogCodecState::Thread& state = state_.begin_span(thread, base_ticks);
    std::vector<std::byte> records;
    records.reserve(std::min<std::uint64_t>(bytes, (columns_[kOps].size() - at_[kOps]) * kRecordUnit));
    const auto put = [&](std::uint8_t kind, std::uint32_t depth, std::uint64_t end, std::uint32_t site,
                         std::uint64_t duration) {
        const std::uint64_t delta = end - base_ticks;
        if (delta >> kDeltaBits != 0 || duration >> kDurationBits != 0 || site >= kMaxSites || depth > 0xff) {
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
            part.word0 = static_cast<std::uint64_t>(RecordKind::Part) | std::uint64_t{take_byte(kKinds)} << 8;
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
    if (records.size() != bytes || is_part) throw Error("corrupt capture: records do not fill their span");
    return records;
}

}  // namespace marey
