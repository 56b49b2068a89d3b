// saved_trace_repair_fixture.h: for tests: saved traces with valid checksums over invalid contents.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "trace/saved_format.h"

namespace marey::testing {

inline std::uint64_t little_endian_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < size; ++i) number |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
    return number;
}
inline void put_little_endian(std::span<std::byte> bytes, std::size_t at, std::uint64_t number,
                              std::size_t size = 8) {
    for (std::size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<std::byte>(number >> (8 * i));
}

/// The position of a column's entry in an uncompressed file; 0 when it has none.
inline std::size_t find_entry(std::span<const std::byte> file, std::uint32_t id) {
    const std::uint64_t count = little_endian_at(file, 16, 8);
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::size_t at = saved::kHeaderBytes + i * saved::kEntryBytes;
        if (little_endian_at(file, at, 4) == id) return at;
    }
    return 0;
}

/// Sets the magic and all checksums that can be located in an uncompressed file, whatever its contents.
inline void repair_checksums(std::vector<std::byte>& file) {
    if (file.size() < saved::kHeaderBytes) return;
    std::memcpy(file.data(), saved::kMagic, sizeof saved::kMagic);
    const std::uint64_t room = (file.size() - saved::kHeaderBytes) / saved::kEntryBytes;
    const std::uint64_t count = std::min(little_endian_at(file, 16, 8), room);
    std::size_t at = saved::kHeaderBytes + count * saved::kEntryBytes;
    for (std::uint64_t i = 0; i < count; ++i) {
        const std::size_t entry = saved::kHeaderBytes + i * saved::kEntryBytes;
        const std::uint64_t stored =
            std::min<std::uint64_t>(little_endian_at(file, entry + 24, 8), file.size() - at);
        put_little_endian(file, entry + 32, checksum64(std::span(file).subspan(at, stored)));
        at += stored;
    }
    const std::span<const std::byte> contents =
        std::span(file).subspan(saved::kHeaderBytes, count * saved::kEntryBytes);
    put_little_endian(file, 16, count);
    put_little_endian(file, 24, contents.size());
    put_little_endian(file, 32, checksum64(contents));
}

}  // namespace marey::testing
