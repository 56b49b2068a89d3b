// log_codec.h: log records as columns that compress well, and back, bit for bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/byte_planes.h"

namespace marey {

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

    Thread& begin_span(std::uint32_t thread, std::uint64_t base_ticks);
    std::uint32_t& predicted_site(std::uint8_t op) {
        return next_site[(last_site * 0x9e3779b1u + op * 0x85ebca6bu) >> 20];
    }
};

/// Appends spans to columns. The records must be complete.
class LogEncoder {
  public:
    void encode(std::span<const std::byte> records, std::uint32_t thread, std::uint64_t base_ticks);
    LogColumns& columns() noexcept { return columns_; }

  private:
    void put_time(std::size_t column, std::uint64_t difference);
    void put_number(std::size_t column, std::uint64_t value);
    void put_bytes(std::size_t column, const std::byte* bytes, std::size_t count);
    void put_site(std::uint8_t op, std::uint32_t site);
    void put_range(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t start,
                   std::uint64_t end);
    void put_compact(LogCodecState::Thread& thread, std::span<const std::byte> records,
                     std::uint64_t base_ticks);
    bool put_part(std::span<const std::byte> records, std::uint64_t base_ticks);
    void put_long(LogCodecState::Thread& thread, const std::byte* record, std::size_t bytes);

    LogColumns columns_;
    LogCodecState state_;
};

/// The inverse. Throws marey::Error on columns that no encoder made; never reads or writes out of bounds.
class LogDecoder {
  public:
    explicit LogDecoder(const LogColumns& columns) noexcept : columns_(columns) {}

    /// The next span: exactly `bytes` bytes of records.
    std::vector<std::byte> decode(std::uint32_t thread, std::uint64_t base_ticks, std::uint64_t bytes);

  private:
    std::span<const std::byte> take(std::size_t column, std::size_t count);
    std::uint8_t take_byte(std::size_t column) { return std::to_integer<std::uint8_t>(take(column, 1)[0]); }
    std::uint64_t take_number(std::size_t column);
    std::uint64_t take_time(std::size_t column);
    std::uint32_t take_site(std::uint8_t op);
    void take_range(LogCodecState::Thread& thread, std::uint32_t depth, std::uint64_t& start,
                    std::uint64_t& end);
    void take_long(LogCodecState::Thread& thread, std::uint8_t op, std::vector<std::byte>& records);

    const LogColumns& columns_;
    std::array<std::size_t, kLogColumns> at_{};
    LogCodecState state_;
};

}  // namespace marey
