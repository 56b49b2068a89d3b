// child_process.cpp: runs a program as a shell would, passing signals on to it.
#include "cli/child_process.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace kymo::cli {
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
        action.sa_flags = SA_SIGINFO | SA_RESTART;
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

/// Starts the program; returns 0 or why it did not start. No fork: the handlers that libkymo has for it are
/// for programs that record. Signals that we catch are reset by exec, those that are ignored stay so.
int start(pid_t& child, std::vector<char*> arguments, const std::vector<char*>& environment,
          const sigset_t& mask) {
    posix_spawnattr_t attributes;
    if (const int error = posix_spawnattr_init(&attributes); error != 0) return error;
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &mask);
    int error =
        ::posix_spawnp(&child, arguments[0], nullptr, &attributes, arguments.data(), environment.data());
    if (error == ENOEXEC &&
        std::strchr(arguments[0], '/') != nullptr) {  // a script without #!, as shells take it
        static char shell[] = "/bin/sh";
        arguments.insert(arguments.begin(), shell);
        error = ::posix_spawn(&child, shell, nullptr, &attributes, arguments.data(), environment.data());
    }
    posix_spawnattr_destroy(&attributes);
    return error;
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& words, const Variables& variables) {
    const std::vector<std::string> entries = environment_with(variables);
    const std::vector<char*> arguments = pointers(words);
    const std::vector<char*> environment = pointers(entries);

    const Forwarding forwarding;
    pid_t child = 0;
    ChildEnd end;
    end.exec_error = start(child, arguments, environment, forwarding.old_mask());
    if (end.exec_error != 0) return end;
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

}  // namespace kymo::cli
