// control_page.cpp: the folder, the file and its futexes.
#include "record/control_page.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

#include <marey/error.h>

#include "base/descriptor.h"
#include "base/environment.h"

namespace marey {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
    throw Error(path + ": " + std::strerror(error));
}

}  // namespace

std::string control_folder(bool creates) {
    const std::string runtime = environment_text("XDG_RUNTIME_DIR");
    std::string folder = runtime.empty() ? "/tmp/marey-" + std::to_string(::geteuid()) : runtime + "/marey";
    if (creates && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail(folder, errno);
    struct stat status {};
    if (::lstat(folder.c_str(), &status) != 0) {
        if (errno == ENOENT && !creates) return "";
        fail(folder, errno);
    }
    if (!S_ISDIR(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
        throw Error(folder + ": is not a folder that only you can use: remove it, or set XDG_RUNTIME_DIR");
    return folder;
}

void wait_for_change(const std::uint32_t& word, std::uint32_t value, std::int64_t timeout_ns) noexcept {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const timespec timeout{timeout_ns / kSecond, timeout_ns % kSecond};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, value, timeout_ns < 0 ? nullptr : &timeout, nullptr, 0);
}

void wake_all(const std::uint32_t& word) noexcept {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

MappedPage::MappedPage(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (file.get() < 0) fail(path, errno);
    struct stat status {};
    const bool is_page = ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                         status.st_uid == ::geteuid() && status.st_size == sizeof(ControlPage);
    if (!is_page) throw Error(path + ": is not a control page of yours");
    map(file.get(), path);
}

MappedPage::MappedPage(const std::string& path, const ControlPage& content) {
    const std::string temporary = path + ".new";
    ::unlink(temporary.c_str());
    const Descriptor file(
        ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.get() < 0) fail(temporary, errno);
    const ssize_t written = ::write(file.get(), &content, sizeof content);
    const int error = written < 0 ? errno : written != sizeof content ? ENOSPC : 0;
    if (error != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
        const int reason = error != 0 ? error : errno;
        ::unlink(temporary.c_str());
        fail(path, reason);
    }
    map(file.get(), path);
}

void MappedPage::map(int file, const std::string& path) {
    void* const memory = ::mmap(nullptr, sizeof(ControlPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) fail(path, errno);
    page_ = static_cast<ControlPage*>(memory);
}

MappedPage::~MappedPage() {
    ::munmap(page_, sizeof(ControlPage));
}

}  // namespace marey
