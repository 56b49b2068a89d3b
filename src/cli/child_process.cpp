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
    // What the kernel sends (a key of the terminal, a hang-up) goes to the whole process group, the child
    // included.
    const bool from_process = info->si_code <= 0;
    const pid_t child = running_child.load(std::memory_order_relaxed);
    if (from_process && child > 0) ::kill(child, signal);
    errno = saved;
}

/// Puts forward() in place for as long as it lives, with those signals blocked until open() is called.
class Forwarding {
  public:
    Forwarding() {
        sigset_t signals;
        sigemptyset(&signals);
        for (const int signal : kForwarded) sigaddset(&signals, signal);
        sigprocmask(SIG_BLOCK, &signals, &old_mask_);
        struct sigaction action {};
        action.sa_sigaction = forward;
        action.sa_flags = SA_SIGINFO;  // the waits for the child go on by themselves
        sigemptyset(&action.sa_mask);
        for (std::size_t i = 0; i < std::size(kForwarded); ++i) {
            sigaction(kForwarded[i], nullptr, &old_[i]);
            // What we were told to ignore (nohup) stays ignored, by the child too.
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
        const bool is_other = std::none_of(variables.begin(), variables.end(),
                                           [&](const auto& variable) { return variable.first == name; });
        if (is_other) result.emplace_back(text);
    }
    for (const auto& [name, value] : variables) {
        if (value) result.push_back(name + "=" + *value);
    }
    return result;
}

/// What the new process needs, made before it is: it shares our memory until it is another program.
struct Start {
    char** arguments;
    char** environment;
    std::string* numbered = nullptr;  ///< the entry of the environment that is to hold the process id
    std::size_t mark = 0;             ///< where in it
    const sigset_t* mask;
    int error = 0;
};

/// Puts the id of this process in the place of the mark. The text has room for it.
void put_own_pid(std::string& text, std::size_t mark) noexcept {
    char digits[24];
    const auto [end, failed] = std::to_chars(std::begin(digits), std::end(digits), ::getpid());
    text.replace(mark, 1, digits, static_cast<std::size_t>(end - digits));
}

/// Asked of the kernel itself: the new process has its parent's memory, and there what ThreadSanitizer's
/// sigaction() remembers of the parent's handlers.
void handle_by_default(int signal) noexcept {
    static constexpr unsigned long kDefault[8] = {};  // handler, flags, restorer, mask: nothing of any
    ::syscall(SYS_rt_sigaction, signal, kDefault, nullptr, _NSIG / 8);
}

/// The life of the new process until it is the program. Signals that we catch are not to be caught by it.
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
// ThreadSanitizer takes every clone() for a fork. This is the same function by its other name.
extern "C" int clone_alike(int (*)(void*), void*, int, void*, ...) noexcept __asm__("__clone");
#else
constexpr auto& clone_alike = ::clone;
#endif

/// Starts the program; returns 0 or why it did not start. As posix_spawn does it, which cannot tell the
/// program its own number. No fork: the handlers that libmarey has for it are for programs that record.
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

ChildEnd run_child(const std::vector<std::string>& words, const Variables& variables) {
    std::vector<std::string> entries = environment_with(variables);
    std::vector<char*> arguments = pointers(words);
    const Forwarding forwarding;
    Start start{.arguments = arguments.data(), .environment = nullptr, .mask = &forwarding.old_mask()};
    for (std::string& entry : entries) {
        if ((start.mark = entry.find(kPidMark)) == std::string::npos) continue;
        entry.reserve(entry.size() + 24);  // so that it stays where it is
        start.numbered = &entry;
        break;
    }
    std::vector<char*> environment = pointers(entries);
    start.environment = environment.data();
    pid_t child = 0;
    ChildEnd end;
    end.exec_error = start_program(child, start, arguments.size());
    // A thing of that name is there, though not where PATH leads, or what it needs is not.
    if (end.exec_error == ENOENT && ::access(words[0].c_str(), F_OK) == 0) end.exec_error = EACCES;
    if (end.exec_error != 0) return end;
    end.pid = child;
    running_child = child;
    forwarding.open();

    // Wait without reaping, so that a signal that arrives now is not sent to somebody who got the same pid.
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
        return program + ": is not executable, and has no name of a program of Python (x.py, x.pyz)";
    if (program.find('/') == std::string::npos)
        return program + ": is not in PATH; ./" + program + " is the one in this folder";
    return program + ": cannot be executed: is the interpreter that it names there?";
}

int end_like(const ChildEnd& end) {
    if (end.exec_error != 0) return end.exec_error == ENOENT ? 127 : 126;
    if (end.signal == 0) return end.exit_code;
    // The child's core dump, if there is one, is the one that counts.
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
