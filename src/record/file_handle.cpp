// file_handle.cpp: recognises our descriptor among ones that reuse its number, and reopens the file.
#include "record/file_handle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace marey {

int avoid_standard_fds(int fd) noexcept {
    constexpr rlim_t kFirst = 512;
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return fd;
    const int first = static_cast<int>(std::min(kFirst, limit.rlim_cur / 2));
    if (fd >= first) return fd;
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, first);
    if (high < 0) return fd;
    close(fd);
    return high;
}

FileHandle::FileHandle(int fd) noexcept : is_held_(true), fd_(fd) {
    struct stat status {};
    if (fstat(fd, &status) != 0) return;
    device_ = status.st_dev;
    inode_ = status.st_ino;
}

void FileHandle::set_path(const std::string& path) {
    const ScopedLock lock(mutex_);
    path_ = path;
}

// These make system calls, because another library may have replaced the functions and be torn down by
// now.
bool FileHandle::is_ours(int fd) const noexcept {
    struct stat status {};
    // The program may have opened the capture too, to read it.
    return fd >= 0 && syscall(SYS_fstat, fd, &status) == 0 && status.st_ino == inode_ &&
           status.st_dev == device_ && (syscall(SYS_fcntl, fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

bool FileHandle::is_at(const std::string& path) const noexcept {
    struct stat status {};
    return syscall(SYS_newfstatat, AT_FDCWD, path.c_str(), &status, 0) == 0 && status.st_ino == inode_ &&
           status.st_dev == device_;
}

bool FileHandle::has_name() noexcept {
    struct stat status {};
    const ScopedLock lock(mutex_);
    return is_ours(fd_) && syscall(SYS_fstat, fd_, &status) == 0 && status.st_nlink > 0;
}

int FileHandle::descriptor() noexcept {
    const ScopedLock lock(mutex_);
    if (is_ours(fd_)) return fd_;
    fd_ = -1;  // not closed: the number is free or belongs to the program
    reopen_error_.store(reopen(), std::memory_order_relaxed);
    return fd_;
}

void FileHandle::stop_reopening() noexcept {
    descriptor();
    const ScopedLock lock(mutex_);
    path_.clear();
}

int FileHandle::reopen() noexcept {
    if (path_.empty()) return ENOENT;
    struct stat status {};
    if (stat(path_.c_str(), &status) != 0) return errno;
    if (!is_at(path_)) return ESTALE;  // the path may lead to a device or a pipe: do not even open it
    const int fd = open(path_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno;
    if (!is_ours(fd)) {
        close(fd);
        return ESTALE;
    }
    fd_ = avoid_standard_fds(fd);
    return 0;
}

int FileHandle::close_file() noexcept {
    const ScopedLock lock(mutex_);
    const int error = is_ours(fd_) && close(fd_) != 0 ? errno : 0;
    fd_ = -1;
    path_.clear();
    is_held_ = false;
    return error;
}

}  // namespace marey
