// file_head.h: the beginning of a file, by which its format is told.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kymo {

/// Up to 64 KiB, decompressed where the file is gzip. Throws kymo::Error when it cannot be opened or read.
std::vector<std::byte> read_file_head(const std::string& path);

}  // namespace kymo
