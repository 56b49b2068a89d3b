// small_file.h: reads a file of the kernel, such as those in /proc.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <string>

namespace marey {

/// The first bytes of a file, which may have no size; "" when it cannot be read. Plain system calls: this
/// runs before main, and inside programs that may have replaced stdio.
inline std::string read_small_file(const char* path, std::size_t most_bytes = std::size_t{64} << 10) {
    std::string text;
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    char buffer[4096];
    ssize_t count;
    while ((count = ::read(fd, buffer, std::min(most_bytes - text.size(), sizeof buffer))) > 0)
        text.append(buffer, static_cast<std::size_t>(count));
    ::close(fd);
    return text;
}

}  // namespace marey
