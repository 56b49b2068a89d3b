// input_file.cpp: opens files to read, and refuses those that may never end.
#include "base/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <marey/error.h>

namespace marey {
namespace {

constexpr int kWriterWaitMs = 2000;

/// Whether a pipe has data or a writer. Reads nothing.
bool has_writer(int pipe) noexcept {
    int copy[2];
    if (::pipe2(copy, O_CLOEXEC) != 0) return true;
    const ssize_t count = ::tee(pipe, copy[1], 1, SPLICE_F_NONBLOCK);
    ::close(copy[0]);
    ::close(copy[1]);
    return count != 0;
}

/// The reason why an open file cannot be read; empty: none.
std::string fault_of(int fd, struct stat& status) {
    if (::fstat(fd, &status) != 0) return std::strerror(errno);
    if (S_ISDIR(status.st_mode)) return std::strerror(EISDIR);
    if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode)) return "is a device, not a file";
    if (S_ISFIFO(status.st_mode)) {
        pollfd readable{fd, POLLIN, 0};
        if (::poll(&readable, 1, kWriterWaitMs) == 0 && !has_writer(fd))
            return "no program writes to this pipe";
    }
    return ::fcntl(fd, F_SETFL, 0) == 0 ? "" : std::strerror(errno);
}

}  // namespace

Descriptor open_input(const std::string& path, struct stat& status) {
    // Without O_NONBLOCK, the kernel waits here for the writer of a pipe.
    Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (fd.get() < 0) throw Error(path + ": " + std::strerror(errno));
    const std::string fault = fault_of(fd.get(), status);
    if (fault.empty()) return fd;
    throw Error(path + ": " + fault);
}

}  // namespace marey
