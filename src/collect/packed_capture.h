// packed_capture.h: the compressed form of a capture: the same RawLog in a tenth of the bytes. Needs zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "record/raw_log.h"

namespace marey {

/// FileHeader::block_bytes of a packed capture: there are no blocks.
inline constexpr std::uint32_t kPackedBlockBytes = 0;

enum class PackFor : std::uint8_t {
    Size,   ///< the fewest bytes, for archives
    Speed,  ///< somebody waits for it
};

/// The bytes of a packed capture that unpacks to the same RawLog (spans in order of sequence).
/// Throws marey::Error when this build has no zstd.
std::vector<std::byte> pack_capture(const RawLog& log, PackFor purpose = PackFor::Size);

/// Restores the record streams exactly. `name` stands for the file in errors. Throws marey::Error on any
/// damage; never allocates more than a fixed multiple of the input. Without records, only the rest is read,
/// and spans have no bytes.
RawLog unpack_capture(std::span<const std::byte> bytes, const std::string& name, bool with_records = true);

}  // namespace marey
