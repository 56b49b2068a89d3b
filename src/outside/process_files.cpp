// process_files.cpp: /proc/PID of one process, and its memory.
#include "outside/process_files.h"

#include <elf.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include <marey/error.h>

#include "base/process_stat.h"
#include "base/small_file.h"

namespace marey {
namespace {

constexpr unsigned kCapSysPtrace = 19;
constexpr std::size_t kLargeRead = 4096;

std::int64_t number_in(std::string_view text, int base = 10) {
    std::int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number, base);
    return number;
}

std::string user_text(std::int64_t user) {
    std::array<char, 4096> room{};
    passwd entry{};
    passwd* found = nullptr;
    const bool is_known =
        getpwuid_r(static_cast<uid_t>(user), &entry, room.data(), room.size(), &found) == 0 &&
        found != nullptr;
    return is_known ? entry.pw_name : "user " + std::to_string(user);
}

AccessFacts facts_of(const std::string& status) {
    const std::string own = read_small_file("/proc/self/status");
    const std::string scope = read_small_file("/proc/sys/kernel/yama/ptrace_scope");
    const auto capabilities = static_cast<std::uint64_t>(number_in(status_value(own, "CapEff"), 16));
    return {.own_user = number_in(status_value(own, "Uid")),
            .target_user = number_in(status_value(status, "Uid")),
            .may_trace = (capabilities >> kCapSysPtrace & 1) != 0,
            .yama_scope = static_cast<int>(number_in(scope))};
}

}  // namespace

std::string denial_text(const AccessFacts& facts) {
    if (facts.yama_scope >= 3)
        return "kernel.yama.ptrace_scope is 3, which forbids it until the next boot (record the program: "
               "marey run)";
    if (facts.own_user == 0 && !facts.may_trace)
        return "root has no CAP_SYS_PTRACE here (start the container with --cap-add SYS_PTRACE)";
    if (facts.own_user != facts.target_user && !facts.may_trace)
        return "it belongs to " + user_text(facts.target_user) + " (use sudo, or become that user)";
    if (facts.yama_scope >= 1 && !facts.may_trace)
        return "kernel.yama.ptrace_scope is " + std::to_string(facts.yama_scope) +
               (facts.yama_scope == 1 ? ", which allows it to parents only"
                                      : ", which allows it to root only") +
               " (use sudo, set it to 0, or record the program: marey run)";
    if (facts.may_trace) return "the kernel forbids it (a security module, or another user namespace)";
    return "it has changed its user or protects itself (use sudo)";
}

std::string_view status_value(std::string_view status, std::string_view name) {
    const std::string key = "\n" + std::string(name) + ":";
    const std::size_t at = status.find(key);
    if (at == status.npos) return {};
    const std::size_t begin = std::min(status.find_first_not_of(" \t", at + key.size()), status.size());
    return status.substr(begin, std::min(status.find('\n', begin), status.size()) - begin);
}

ProcessFiles::ProcessFiles(std::int64_t pid) : pid_(pid) {
    const std::string name = "process " + std::to_string(pid);
    folder_ = ::open(("/proc/" + std::to_string(pid)).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0) throw Error(name + ": " + (errno == ENOENT ? "No such process" : std::strerror(errno)));
    try {
        open_memory(name);
    } catch (...) {
        ::close(folder_);
        throw;
    }
}

ProcessFiles::~ProcessFiles() {
    ::close(memory_);
    ::close(folder_);
}

void ProcessFiles::open_memory(const std::string& name) {
    const std::string status = text("status");
    if (status.empty()) throw Error(name + ": No such process");
    const std::string_view group = status_value(status, "Tgid");
    if (number_in(group) != pid_) throw Error(name + ": is a thread of process " + std::string(group));
    if (const std::string_view state = status_value(status, "State");
        state.starts_with('Z') || state.starts_with('X'))
        throw Error(name + ": has ended, and its parent " + std::string(status_value(status, "PPid")) +
                    " has not waited for it yet");
    if (status_value(status, "VmSize").empty()) throw Error(name + ": is a part of the kernel");
    memory_ = ::open(path("mem").c_str(), O_RDONLY | O_CLOEXEC);
    if (memory_ < 0 && (errno == EACCES || errno == EPERM))
        throw Error(name + ": its memory may not be read: " + denial_text(facts_of(status)));
    if (memory_ < 0) throw Error(name + ": " + std::strerror(errno));
    const std::string head = text("exe", EI_NIDENT);
    if (head.size() == EI_NIDENT && head[EI_CLASS] == ELFCLASS32) {
        ::close(memory_);
        throw Error(name + ": is a 32-bit program, and only 64-bit ones are supported");
    }
}

std::string ProcessFiles::path(std::string_view name) const {
    return "/proc/self/fd/" + std::to_string(folder_) + "/" + std::string(name);
}

std::string ProcessFiles::text(std::string_view name, std::size_t most_bytes) const {
    return read_small_file(path(name).c_str(), most_bytes);
}

std::size_t ProcessFiles::read_some(std::uintptr_t at, void* out, std::size_t bytes) const noexcept {
    if (at > INT64_MAX || bytes > INT64_MAX - at) return 0;
    std::size_t done = 0;
    if (bytes >= kLargeRead) {  // faster, but not allowed everywhere, and it may see another program
        const iovec to{out, bytes},
            from{reinterpret_cast<void*>(at), bytes};  // NOLINT(performance-no-int-to-ptr)
        done = static_cast<std::size_t>(
            std::max<ssize_t>(::process_vm_readv(static_cast<pid_t>(pid_), &to, 1, &from, 1, 0), 0));
    }
    while (done < bytes) {
        const ssize_t count =
            ::pread(memory_, static_cast<char*>(out) + done, bytes - done, static_cast<off_t>(at + done));
        if (count <= 0) break;
        done += static_cast<std::size_t>(count);
    }
    return done;
}

std::size_t CopiedMemory::copy(std::uintptr_t at, std::size_t bytes) {
    Piece piece{at, std::vector<std::byte>(bytes)};
    piece.bytes.resize(process_->read_some(at, piece.bytes.data(), bytes));
    const std::size_t size = piece.bytes.size();
    if (size != 0) pieces_.push_back(std::move(piece));
    return size;
}

const std::byte* CopiedMemory::find(std::uintptr_t at, std::size_t bytes) const noexcept {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        const std::size_t index = (last_ + i) % pieces_.size();
        const Piece& piece = pieces_[index];
        if (at < piece.begin || at - piece.begin > piece.bytes.size() ||
            bytes > piece.bytes.size() - (at - piece.begin))
            continue;
        last_ = index;
        return piece.bytes.data() + (at - piece.begin);
    }
    return nullptr;
}

}  // namespace marey
