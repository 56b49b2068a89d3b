// file_header.h: the beginning of a file, by which its format is told.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace marey {

/// Up to 64 KiB, decompressed where the file is gzip; what comes before a damage, which is for the reader to
/// tell. Empty for what cannot be read twice (a pipe). Throws marey::Error when nothing can be read.
std::vector<std::byte> read_file_head(const std::string& path);

}  // namespace marey
