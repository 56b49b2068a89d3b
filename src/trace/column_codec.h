// column_codec.h: encodes one column of numbers or of texts as bytes, and decodes it. The numbers are part of
// the format of saved traces, docs/formats/capture.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trace/columns.h"

namespace marey {

/// A column in the table of contents, in file order.
struct ColumnEntry {
    std::uint32_t id = 0;          ///< table << 8 | column
    std::uint8_t form = 0;         ///< a ColumnForm
    std::uint8_t differences = 0;  ///< 1: each number is the difference from the one before
    std::uint8_t packed = 0;       ///< 1: the bytes are a zstd frame
    std::uint8_t reserved = 0;
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;     ///< unpacked
    std::uint64_t stored = 0;    ///< in the file
    std::uint64_t checksum = 0;  ///< of the stored bytes
};

/// Calls use(field) for each field, in the order of the file.
void for_each_field(auto& entry, const auto& use) {
    use(entry.id), use(entry.form), use(entry.differences), use(entry.packed), use(entry.reserved);
    use(entry.rows), use(entry.bytes), use(entry.stored), use(entry.checksum);
}

/// A column ready to be written.
struct PackedColumn {
    ColumnEntry entry;
    std::vector<std::byte> bytes;
};

/// `level` as in zstd; without zstd nothing is compressed.
inline constexpr int kNotCompressed = 0;
PackedColumn pack_numbers(std::uint32_t id, std::vector<std::uint64_t> numbers, NumberStyle style, int level);
PackedColumn pack_texts(std::uint32_t id, std::span<const std::string_view> texts, int level);
/// A frame, or the bytes unchanged if a frame is not shorter.
std::vector<std::byte> pack_bytes(std::vector<std::byte> bytes, int level);

/// The inverse. `stored` are the column's bytes in the file. Throw marey::Error on input that no writer made.
/// They allocate in proportion to entry.rows (and, for texts, entry.bytes), which the caller must check.
std::vector<std::uint64_t> unpack_numbers(const ColumnEntry& entry, std::span<const std::byte> stored);
/// The bytes of all texts, one after another, and where each ends.
struct UnpackedTexts {
    std::vector<std::byte> payload;
    std::size_t first = 0;
    std::vector<std::uint64_t> lengths;
};
UnpackedTexts unpack_texts(const ColumnEntry& entry, std::span<const std::byte> stored);

}  // namespace marey
