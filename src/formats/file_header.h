// file_header.h: reads the start of a file, from which its format is detected, or all of it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace marey {

/// Returns up to 64 KiB, decompressed if the file is gzip. If the data is damaged, returns the part before
/// the damage; the reader reports the error. Empty for files that cannot be read twice (pipes). Throws
/// marey::Error if nothing can be read.
std::vector<std::byte> read_file_head(const std::string& path);
/// Returns the whole file, decompressed if it is gzip; `damage` is why the data ended early, or empty. Throws
/// marey::Error if it cannot be opened.
std::string read_whole_file(const std::string& path, std::string& damage);

}  // namespace marey
