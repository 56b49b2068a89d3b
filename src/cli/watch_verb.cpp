// watch_verb.cpp: marey watch: writes a snapshot when something happens.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "cli/capture_argument.h"
#include "cli/capture_files.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/watch.h"

namespace marey::cli {
namespace {

class WatchVerb final : public Verb {
  public:
    const char* help() const override { return "Write a snapshot when something happens"; }
    const char* details() const override {
        return "WHAT is the number of a process, a capture or a folder of captures; without it, every "
               "program\n"
               "that is being recorded. Programs that start later are watched, too, unless only processes "
               "and\n"
               "captures are named. A snapshot is a capture of the last 30 s.\n"
               "Conditions:\n"
               "  handle > 250ms         a range or function of this name took longer (shell patterns: "
               "get_*)\n"
               "  handle > p99*3         than three times what 99 of 100 of them take\n"
               "  step > 1.5x            than the median of the steps; step > 2s, step > p99*3, too\n"
               "  stall > 30s            a range is open for longer, and its thread does not just wait\n"
               "  stall:handle > 30s     a range of this name is\n"
               "  exception              nothing handled an exception; exception:ValueError\n"
               "  counter queue > 100    a counter is above this\n"
               "  memory > 4GB           the process uses more memory\n"
               "  gap cuda > 50ms        a device had nothing to do for longer\n"
               "  missing rank > 30s     other ranks wait for a rank\n"
               "  died                   the process was killed, or failed";
    }
    void declare(Options& options) override {
        options.optional(words_, "WHAT", "Processes, captures or folders");
        watch_.declare(options);
        options.flag(background_, "--background", "Go on in the background, without messages");
    }
    int run() override {
        Watch watch(watch_, [this] { return captures_now(words_, "watch"); });
        std::vector<std::string> named = words_;
        std::erase_if(named, is_folder);                   // the captures of folders may come later
        if (!named.empty()) captures_now(named, "watch");  // throws if they do not exist
        if (background_ && leave()) return kSuccess;
        current_ = &watch;
        struct sigaction action {};
        action.sa_handler = [](int) { current_.load()->stop(); };
        ::sigaction(SIGINT, &action, nullptr);
        ::sigaction(SIGTERM, &action, nullptr);
        print_error(
            fmt::format("marey: watching for {}; Ctrl-C ends\n",
                        format_plural(static_cast<std::uint64_t>(watch_.conditions.size()), "condition")));
        watch.run(named.empty() ? WatchScope::Open : WatchScope::Named);
        return kSuccess;
    }

  private:
    /// Goes on in a child. True: this is the parent.
    static bool leave() {
        const pid_t child = ::fork();
        if (child < 0) throw Error(fmt::format("watch: {}", std::strerror(errno)));
        if (child > 0) return true;
        ::setsid();
        const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int file = 0; nowhere >= 0 && file < 3; ++file) ::dup2(nowhere, file);
        return false;
    }

    static inline std::atomic<Watch*> current_{nullptr};
    std::vector<std::string> words_;
    WatchOptions watch_;
    bool background_ = false;
};

}  // namespace

MAREY_VERB(watch, WatchVerb)

}  // namespace marey::cli
