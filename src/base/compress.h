// compress.h: zstd, if this build has it. The only file that depends on it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace marey {

/// False: this build was made without zstd, and the functions below throw marey::Error.
bool can_compress() noexcept;

/// One frame with a checksum. Levels as in zstd: 1 (fast) to 19 (small).
std::vector<std::byte> compress(std::span<const std::byte> bytes, int level);

/// The bytes of one frame, which must be exactly `size`; allocates that much and no more. Throws marey::Error
/// when the frame is damaged or has another size.
std::vector<std::byte> decompress(std::span<const std::byte> frame, std::size_t size);

}  // namespace marey
