// small_file.h: reads a file of the kernel, such as those in /proc.
#pragma once

#include <cstddef>
#include <string>

namespace marey {

/// The first bytes of a file; "" when it cannot be read. Plain system calls: this runs before main, and
/// inside programs that may have replaced stdio.
std::string read_small_file(const char* path, std::size_t most_bytes = std::size_t{64} << 10);

}  // namespace marey
