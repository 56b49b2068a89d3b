// log_records.h: decodes the records of logs and streams, for all their readers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/log_format.h>

namespace marey {

/// Copies a plain struct out of bytes that need not be aligned. The caller has checked the size.
template <class T>
T read_as(const std::byte* data) noexcept {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

inline bool is_long_record(const std::byte* record) noexcept {
    return (std::to_integer<std::uint8_t>(*record) & detail::kLongBit) != 0;
}

/// Size in bytes of the record that starts at `record`, 0 when it does not fit within `left` bytes or is
/// inconsistent.
inline std::size_t record_bytes(const std::byte* record, std::size_t left) noexcept {
    if (left < detail::kRecordUnit) return 0;
    if (!is_long_record(record)) return detail::kRecordUnit;
    if (left < sizeof(detail::LongRecord)) return 0;
    const auto head = read_as<detail::LongRecord>(record);
    const std::size_t bytes = std::size_t{head.units} * detail::kRecordUnit;
    if (bytes < sizeof(detail::LongRecord) || bytes > left) return 0;
    return head.payload_bytes <= bytes - sizeof(detail::LongRecord) ? bytes : 0;
}

/// The fields of a compact record.
struct CompactFields {
    std::uint8_t kind;
    std::uint32_t depth;
    std::uint64_t delta;  ///< end - base_ticks
    std::uint32_t site;
    std::uint64_t duration;  ///< ticks
};
inline CompactFields unpack(detail::CompactRecord record) noexcept {
    return {static_cast<std::uint8_t>(record.word0), static_cast<std::uint8_t>(record.word0 >> 8),
            record.word0 >> 16, static_cast<std::uint32_t>(record.word1 & (detail::kMaxSites - 1)),
            record.word1 >> detail::kSiteBits};
}

inline bool is_compact_range(std::uint8_t kind) noexcept {
    return kind == static_cast<std::uint8_t>(detail::RecordKind::Range) ||
           kind == static_cast<std::uint8_t>(detail::RecordKind::Resumed);
}

/// The fields of a SequencedRange.
struct SequencedFields {
    std::uint32_t depth;
    std::uint64_t end;
    std::uint32_t sequence;
    std::uint32_t forward_thread;  ///< 0: none
};
inline SequencedFields unpack_sequenced(const detail::LongRecord& head) noexcept {
    return {head.flags, std::max(head.time, head.time + static_cast<std::uint32_t>(head.word2)),
            static_cast<std::uint32_t>(head.word2 >> 32), head.depth};
}

/// The fields of a Part.
struct PartFields {
    std::uint8_t flags;   ///< PartRecordFlags; other bits are ignored
    std::uint64_t start;  ///< the low 48 bits
    std::uint64_t call;
};
inline constexpr std::uint64_t kPartStartMask = ~std::uint64_t{0} >> detail::kPartStartShift;
inline PartFields unpack_part(detail::CompactRecord record) noexcept {
    return {static_cast<std::uint8_t>(record.word0 >> 8 & (detail::kPartFirst | detail::kPartLast)),
            record.word0 >> detail::kPartStartShift, record.word1};
}

/// The call of the Resumed at `at` in a block, as if it were a Part, and its site. False: the block has no
/// such call.
inline bool find_resumed(const std::byte* block, std::size_t at, CompactFields& fields,
                         PartFields& part) noexcept {
    const std::size_t place = std::size_t{fields.site >> 1} * detail::kRecordUnit;
    part.flags = (fields.site & 1) != 0 ? detail::kPartLast : 0;
    fields.site = 0;
    if (place + 2 * detail::kRecordUnit > at) return false;
    const auto head = read_as<detail::CompactRecord>(block + place);
    const CompactFields range = unpack(read_as<detail::CompactRecord>(block + place + detail::kRecordUnit));
    if (static_cast<std::uint8_t>(head.word0) != static_cast<std::uint8_t>(detail::RecordKind::Part) ||
        range.kind != static_cast<std::uint8_t>(detail::RecordKind::Range))
        return false;
    part.call = head.word1;
    fields.site = range.site;
    return true;
}

inline std::span<const std::byte> payload_of(const std::byte* record,
                                             const detail::LongRecord& head) noexcept {
    return {record + sizeof(detail::LongRecord), head.payload_bytes};
}

constexpr std::size_t round_up_8(std::size_t bytes) noexcept {
    return (bytes + 7) & ~std::size_t{7};
}

/// Appends a record to a names or journal stream, and what follows it.
void append_stream_record(std::vector<std::byte>& stream, auto kind, auto record, std::string_view tail) {
    const std::size_t at = stream.size(), bytes = round_up_8(sizeof record + tail.size());
    record.head = {static_cast<std::uint16_t>(kind), 0, static_cast<std::uint32_t>(bytes)};
    stream.resize(at + bytes);
    std::memcpy(stream.data() + at, &record, sizeof record);
    std::copy(tail.begin(), tail.end(), reinterpret_cast<char*>(stream.data() + at + sizeof record));
}

/// Walks the records of a names or journal stream: `for (StreamCursor at(stream); at.next();) at.kind()...`.
/// Ends at the first incomplete record; ended_early() reports that.
class StreamCursor {
  public:
    explicit StreamCursor(std::span<const std::byte> stream) noexcept : rest_(stream) {}

    bool next() noexcept {
        rest_ = rest_.subspan(record_.size());
        record_ = {};
        if (rest_.size() < sizeof(detail::StreamRecord)) return false;
        const auto head = read_as<detail::StreamRecord>(rest_.data());
        if (head.bytes < sizeof head || head.bytes % 8 != 0 || head.bytes > rest_.size()) return false;
        kind_ = head.kind;
        record_ = rest_.first(head.bytes);
        return true;
    }
    bool ended_early() const noexcept { return !rest_.empty(); }
    std::size_t rest_bytes() const noexcept { return rest_.size(); }

    std::uint16_t kind() const noexcept { return kind_; }
    /// False when the record is too short to be a T (a later format may lengthen records, never shorten
    /// them).
    template <class T>
    bool get(T& value) const noexcept {
        if (record_.size() < sizeof(T)) return false;
        std::memcpy(&value, record_.data(), sizeof(T));
        return true;
    }
    /// The record, if it has this kind and is long enough to be a T.
    template <class T, class Kind>
    std::optional<T> as(Kind kind) const noexcept {
        T value;
        if (kind_ != static_cast<std::uint16_t>(kind) || !get(value)) return std::nullopt;
        return value;
    }
    /// The bytes after the fixed part, at most `bytes` of them; empty when the record is not that long.
    template <class T>
    std::span<const std::byte> tail(std::size_t bytes) const noexcept {
        if (record_.size() < sizeof(T) || bytes > record_.size() - sizeof(T)) return {};
        return record_.subspan(sizeof(T), bytes);
    }

    template <class T>
    std::string text(std::size_t bytes) const {
        const auto found = tail<T>(bytes);
        return {reinterpret_cast<const char*>(found.data()), found.size()};
    }

  private:
    std::span<const std::byte> rest_;
    std::span<const std::byte> record_;
    std::uint16_t kind_ = 0;
};

}  // namespace marey
