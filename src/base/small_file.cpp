// small_file.cpp: reads until the end, because files in /proc have no size.
#include "base/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace marey {

std::string read_small_file(const char* path, std::size_t most_bytes) {
    std::string text;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return text;
    char buffer[4096];
    ssize_t count;
    while ((count = read(fd, buffer, std::min(most_bytes - text.size(), sizeof buffer))) > 0)
        text.append(buffer, static_cast<std::size_t>(count));
    close(fd);
    return text;
}

}  // namespace marey
