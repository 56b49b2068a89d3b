// child_process.cpp: runs a program as a shell would, passing signals on to it.
#include "cli/child_process.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace marey::cli {
namespace {

constexpr int kForwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM, SIGWINCH};

std::atomic<pid_t> running_child{0};

void forward(int signal, siginfo_t* info, void*) {
    const int saved = errno;
    // Signals from the kernel (a terminal key, a hang-up) go to the whole process group, including the child.
    const bool from_process = info->si_code <= 0;
    const pid_t child = running_child.load(std::memory_order_relaxed);
    if (from_process && child > 0) ::kill(child, signal);
    errno = saved;
}

/// Installs forward() for its lifetime. The signals stay blocked until open() is called.
class Forwarding {
  public:
    Forwarding() {
        sigset_t signals;
        sigemptyset(&signals);
        for (const int signal : kForwarded) sigaddset(&signals, signal);
        sigprocmask(SIG_BLOCK, &signals, &old_mask_);
        struct sigaction action {};
        action.sa_sigaction = forward;
        action.sa_flags = SA_SIGINFO;  // the loops that wait for the child retry after EINTR
        sigemptyset(&action.sa_mask);
        for (std::size_t i = 0; i < std::size(kForwarded); ++i) {
            sigaction(kForwarded[i], nullptr, &old_[i]);
            // Signals that were ignored when we started (nohup) stay ignored, also by the child.
            if (old_[i].sa_handler != SIG_IGN) sigaction(kForwarded[i], &action, nullptr);
        }
    }
    ~Forwarding() {
        for (std::size_t i = 0; i < std::size(kForwarded); ++i) sigaction(kForwarded[i], &old_[i], nullptr);
        open();
    }
    Forwarding(const Forwarding&) = delete;
    Forwarding& operator=(const Forwarding&) = delete;

    void open() const { sigprocmask(SIG_SETMASK, &old_mask_, nullptr); }
    const sigset_t& old_mask() const { return old_mask_; }

  private:
    sigset_t old_mask_{};
    struct sigaction old_[std::size(kForwarded)]{};
};

std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> result;
    result.reserve(words.size() + 1);
    for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
    result.push_back(nullptr);
    return result;
}

std::vector<std::string> environment_with(const Variables& variables) {
    std::vector<std::string> result;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        const bool is_other =
            std::ranges::none_of(variables, [&](const auto& variable) { return variable.first == name; });
        if (is_other) result.emplace_back(text);
    }
    for (const auto& [name, value] : variables) {
        if (value) result.push_back(name + "=" + *value);
    }
    return result;
}

/// All that the new process needs, prepared in advance: it shares our memory until it executes the program.
struct Start {
    char** arguments;
    char** environment;
    std::string* numbered = nullptr;  ///< the environment entry that receives the process id
    std::size_t mark = 0;             ///< where in it
    const sigset_t* mask;
    int error = 0;
};

/// Replaces the mark with the id of this process. The text has the capacity for it.
void put_own_pid(std::string& text, std::size_t mark) noexcept {
    char digits[24];
    const auto [end, failed] = std::to_chars(std::begin(digits), std::end(digits), ::getpid());
    text.replace(mark, 1, digits, static_cast<std::size_t>(end - digits));
}

/// Restores the default handler by a system call: the new process shares its parent's memory, and
/// ThreadSanitizer's sigaction() would change its records of the parent's handlers there.
void handle_by_default(int signal) noexcept {
    static constexpr unsigned long kDefault[8] = {};  // handler, flags, restorer, mask: all zero
    ::syscall(SYS_rt_sigaction, signal, kDefault, nullptr, _NSIG / 8);
}

/// Runs in the new process until it executes the program. Signals that we catch get their default handlers.
int become_program(void* argument) {
    Start& start = *static_cast<Start*>(argument);
    for (const int signal : kForwarded) {
        struct sigaction action {};
        sigaction(signal, nullptr, &action);
        if (action.sa_handler != SIG_IGN) handle_by_default(signal);
    }
    if (start.numbered != nullptr) put_own_pid(*start.numbered, start.mark);
    sigprocmask(SIG_SETMASK, start.mask, nullptr);
    ::execvpe(start.arguments[0], start.arguments, start.environment);
    start.error = errno;
    ::_exit(127);
}

#if defined(__SANITIZE_THREAD__)
// ThreadSanitizer treats every clone() as a fork. This is the same function under its other name.
extern "C" int clone_alike(int (*)(void*), void*, int, void*, ...) noexcept __asm__("__clone");
#else
constexpr auto& clone_alike = ::clone;
#endif

/// Starts the program; returns 0, or the errno of the failure. Works like posix_spawn, which cannot pass the
/// program its own process id. Does not fork: libmarey's fork handlers are for programs that record.
int start_program(pid_t& child, Start& start, std::size_t words) {
    constexpr std::size_t kStackBytes = 128 * 1024;
    std::vector<char> stack(kStackBytes + words * sizeof(char*));
    char* const top = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(stack.data() + stack.size()) &
                                              ~std::uintptr_t{63});
    child = clone_alike(become_program, top, CLONE_VM | CLONE_VFORK | SIGCHLD, &start);
    if (child < 0) return errno;
    if (start.error != 0) ::waitpid(child, nullptr, 0);
    return start.error;
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& words, const Variables& variables,
                   const std::function<void(int)>& started) {
    std::vector<std::string> entries = environment_with(variables);
    std::vector<char*> arguments = pointers(words);
    const Forwarding forwarding;
    Start start{.arguments = arguments.data(), .environment = nullptr, .mask = &forwarding.old_mask()};
    for (std::string& entry : entries) {
        if ((start.mark = entry.find(kPidMark)) == std::string::npos) continue;
        entry.reserve(entry.size() + 24);  // so that inserting the process id does not move it
        start.numbered = &entry;
        break;
    }
    std::vector<char*> environment = pointers(entries);
    start.environment = environment.data();
    pid_t child = 0;
    ChildEnd end;
    end.exec_error = start_program(child, start, arguments.size());
    // A file of that name exists, but it is not in PATH or its interpreter is missing.
    if (end.exec_error == ENOENT && ::access(words[0].c_str(), F_OK) == 0) end.exec_error = EACCES;
    if (end.exec_error != 0) return end;
    end.pid = child;
    running_child = child;
    started(child);
    forwarding.open();

    // Wait without reaping, so that a signal that arrives now is not sent to a process that reuses the pid.
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
    }
    running_child = 0;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        end.signal = WTERMSIG(status);
    } else {
        end.exit_code = WEXITSTATUS(status);
    }
    return end;
}

std::string start_failure_reason(const std::string& program, int exec_error) {
    struct stat info {};
    if (exec_error != EACCES || ::stat(program.c_str(), &info) != 0)
        return program + ": " + std::strerror(exec_error);
    if (S_ISDIR(info.st_mode)) return "can't find '__main__' module in '" + program + "'";
    if (!S_ISREG(info.st_mode)) return program + ": " + std::strerror(exec_error);
    if (::access(program.c_str(), X_OK) != 0)
        return program + ": is not executable, and its name is not that of a Python program (x.py, x.pyz)";
    if (program.find('/') == std::string::npos)
        return program + ": is not in PATH; use ./" + program + " for the file in this folder";
    return program + ": cannot be executed: the interpreter that it names may be missing";
}

int end_like(const ChildEnd& end) {
    if (end.exec_error != 0) return end.exec_error == ENOENT ? 127 : 126;
    if (end.signal == 0) return end.exit_code;
    // Do not overwrite the child's core dump with ours.
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(end.signal, SIG_DFL);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, end.signal);
    sigprocmask(SIG_UNBLOCK, &signals, nullptr);
    ::kill(::getpid(), end.signal);
    return 128 + end.signal;
}

}  // namespace marey::cli
