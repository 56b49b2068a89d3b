// file_head.cpp: through zlib, which reads plain files as they are.
#include "import/file_head.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include <kymo/error.h>

#if KYMO_HAVE_ZLIB
#include <zlib.h>
#endif

namespace kymo {
namespace {

constexpr std::size_t kHeadBytes = 64 * 1024;

}  // namespace

std::vector<std::byte> read_file_head(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) throw Error(path + ": " + std::strerror(errno));
    struct stat status {};
    const bool is_folder = ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
    std::vector<std::byte> head(kHeadBytes);
    ssize_t count = -1;
    int error = EISDIR;
    // What cannot be read twice (a pipe) is left to its reader.
    if (!is_folder && !S_ISREG(status.st_mode)) {
        ::close(fd);
        return {};
    }
#if KYMO_HAVE_ZLIB
    if (gzFile file = is_folder ? nullptr : ::gzdopen(fd, "rb"); file != nullptr) {
        count = ::gzread(file, head.data(), static_cast<unsigned>(head.size()));
        error = errno;
        if (count < 0 && error == 0) count = 0;  // no gzip after all, or damaged at once: its reader will say
        ::gzclose(file);
    } else {
        ::close(fd);
    }
#else
    if (!is_folder) {
        count = ::read(fd, head.data(), head.size());
        error = errno;
    }
    ::close(fd);
#endif
    if (count < 0) throw Error(path + ": " + std::strerror(error));
    head.resize(static_cast<std::size_t>(count));
    return head;
}

}  // namespace kymo
