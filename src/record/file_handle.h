// file_handle.h: a file that stays open in a program that may close every descriptor it finds.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>

#include <marey/detail/thread_safety.h>

#include "record/recorder_mutex.h"

namespace marey {

/// The same file under a high number, which a program that opens files does not reach; the given descriptor
/// is then closed. Where there is no such number, the given descriptor.
int avoid_standard_fds(int fd) noexcept;

/// A file of ours, open for reading and writing. Programs close descriptors that are not theirs (daemons
/// close all of them), and the number may then lead to one of the program's files. So the file is identified
/// by its device and inode, a number is used or closed only while it leads there, and when it does not, the
/// file is reopened by its path. Any thread may call descriptor() and is_ours(); other calls need external
/// synchronisation.
class FileHandle {
  public:
    /// No file.
    FileHandle() noexcept = default;
    /// Takes over an open descriptor.
    explicit FileHandle(int fd) noexcept;
    ~FileHandle() { close_file(); }

    /// True even after the program has closed the descriptor.
    bool is_held() const noexcept { return is_held_; }
    /// The path used to reopen it.
    void set_path(const std::string& path);
    /// A number that leads to the file now; -1 when the program has closed it and it cannot be reopened.
    int descriptor() noexcept;
    /// Reopens it once more if that is necessary; from now on, descriptor() makes plain system calls only.
    void stop_reopening() noexcept;
    /// Whether that number still leads to the file.
    bool is_ours(int fd) const noexcept;
    /// Whether the path leads to the file.
    bool is_at(const std::string& path) const noexcept;
    /// Whether it has a name, perhaps one that this process cannot reach (after chroot) or does not know.
    bool has_name() noexcept;
    /// The errno of the failed reopening; ESTALE: the path leads to another file.
    int reopen_error() const noexcept { return reopen_error_.load(std::memory_order_relaxed); }
    /// Closes the descriptor if it is still ours; no file is open afterwards. Returns the errno of the close,
    /// or 0.
    int close_file() noexcept;

  private:
    int reopen() noexcept MAREY_REQUIRES(mutex_);  // an errno

    bool is_held_ = false;
    dev_t device_ = 0;
    ino_t inode_ = 0;
    RecorderMutex mutex_;
    int fd_ MAREY_GUARDED_BY(mutex_) = -1;
    std::string path_ MAREY_GUARDED_BY(mutex_);
    std::atomic<int> reopen_error_{0};
};

}  // namespace marey
