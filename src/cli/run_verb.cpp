// run_verb.cpp: kymo run: runs a program that records itself, and says what came of it.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <kymo/error.h>
#include <kymo/scope.h>
#include <kymo/trace.h>

#include "cli/capture_files.h"
#include "cli/child_process.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace kymo::cli {
namespace {

/// Above that many captures, only their names are shown.
constexpr std::size_t kReadAtMost = 16;

/// A value for the variable KYMO, whose parts are separated by commas.
std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == ',' || c == '\\') result += '\\';
        result += c;
    }
    return result;
}

/// A file name as it has to be typed in a shell.
std::string shell_word(const std::string& text) {
    const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || std::strchr("._-/+:@%", c) != nullptr || c >= 0x80;
    });
    if (plain) return printable(text);
    std::string result = "'";
    for (const char c : text) {
        if (c == '\'') {
            result += "'\\''";
        } else {
            result += c;
        }
    }
    return printable(result + "'");
}

/// "user,function" as the variable wants it: "user|function". Throws for a scope that does not exist.
std::string scope_list(const std::string& text) {
    std::string list;
    std::size_t from = 0;
    while (from <= text.size()) {
        const std::size_t end = std::min(text.find_first_of(",|", from), text.size());
        const std::string name = text.substr(from, end - from);
        bool known = name == "all";
        for (int i = 0; i < kScopeCount; ++i) known = known || name == scope_name(static_cast<Scope>(i));
        if (!known) {
            std::string names = "all";
            for (int i = 0; i < kScopeCount; ++i)
                names += std::string(", ") + scope_name(static_cast<Scope>(i));
            throw Error("run: --scopes: there is no scope '" + name + "'; known: " + names);
        }
        list += (list.empty() ? "" : "|") + name;
        from = end + 1;
    }
    return list;
}

bool is_python_script(const std::string& program) {
    struct stat info {};
    return program.ends_with(".py") && ::stat(program.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

/// The Python of the environment that this command was installed into, which its start script names; else the
/// one that a shell would find.
std::string python() {
    const char* path = std::getenv("KYMO_PYTHON");
    return path != nullptr && *path != '\0' ? path : "python3";
}

class RunVerb final : public Verb {
  public:
    const char* help() const override { return "Run a program and record it"; }
    const char* details() const override {
        return "As in: kymo run [OPTIONS] -- PROGRAM [ARGUMENTS]\n\n"
               "The program must be linked to Kymo (or load something that is); it need not start a session. "
               "A file\n"
               "x.py is run by Python (of the environment that kymo was installed into) and must import "
               "kymo. "
               "Signals\n"
               "are passed on to it, and its exit code is passed back. Programs that it starts record too, "
               "into\n"
               "captures of their own. Programs linked statically without Kymo, and setuid programs, cannot "
               "be seen.";
    }
    void declare(Options& options) override {
        options.text(output_, "-o,--output", "FILE",
                     "The capture (PROGRAM.kymo, or PROGRAM-2.kymo if that exists)");
        options.flag(force_, "--force", "Replace the capture if it exists");
        options.text(max_, "--max", "SIZE", "Ceiling of the recording, as in 512MB (1 GiB)");
        options.choice(policy_, "--policy", {"stop", "drop", "ring"},
                       "At the ceiling: stop recording, drop what is new, or overwrite what is old (stop)");
        options.text(scopes_, "--scopes", "LIST", "Only these kinds of range, as in user,function");
        options.flag(memory_, "--memory", "Allocation reports too (kymo memory shows them)");
        options.flag(shapes_, "--shapes", "Shapes of the arrays that operations take and give");
        options.flag(flops_, "--flops", "What it takes to count floating-point operations; brings --shapes");
        options.command(words_);
    }

    int run() override {
        if (words_.empty()) throw Error("run: the program is missing (see kymo run --help)");
        const std::string variable = settings();
        const std::vector<std::string> before = captures_of(output_);
        std::vector<std::string> words = words_;
        if (is_python_script(words_[0])) words.insert(words.begin(), python());
        const ChildEnd end = run_child(words, {"KYMO", variable});
        if (end.exec_error != 0) {
            print_error(fmt::format("kymo: {}: {}\n", printable(words[0]), std::strerror(end.exec_error)));
            return end_like(end);
        }
        // From here on the program's exit code is ours, whatever happens.
        try {
            report(before);
        } catch (const std::exception& error) {
            print_error(fmt::format("kymo: {}\n", printable(error.what())));
        }
        return end_like(end);
    }

  private:
    /// Chooses the output and gives the value of the variable KYMO.
    std::string settings() {
        prepare_output();
        std::string text = "out=" + escaped(std::filesystem::absolute(output_).lexically_normal().string());
        if (!max_.empty()) {
            const std::optional<std::uint64_t> bytes = parse_bytes(max_);
            if (!bytes || *bytes == 0) throw Error("run: --max: '" + max_ + "' is no size; try 512MB");
            text += fmt::format(",max={}", *bytes);
        }
        if (!policy_.empty()) text += ",policy=" + policy_;
        if (!scopes_.empty()) text += ",scopes=" + scope_list(scopes_);
        if (memory_) text += ",memory=on";
        if (shapes_) text += ",shapes=on";
        if (flops_) text += ",flops=on";
        return text;
    }

    void prepare_output() {
        if (output_.empty()) {
            output_ = free_capture_name(words_[0]);
        } else {
            struct stat info {};
            if (::lstat(output_.c_str(), &info) == 0) {
                if (!force_) throw Error(output_ + ": exists already (--force replaces it)");
                if (S_ISDIR(info.st_mode)) throw Error(output_ + ": is a directory");
                if (::unlink(output_.c_str()) != 0) throw Error(output_ + ": " + std::strerror(errno));
            }
        }
        const std::string folder = output_.substr(0, output_.size() - base_name(output_).size());
        if (::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) != 0)
            throw Error((folder.empty() ? "the current folder" : folder) +
                        ": cannot write a capture here: " + std::strerror(errno));
    }

    void report(const std::vector<std::string>& before) const {
        std::vector<std::string> captures = captures_of(output_);
        std::erase_if(captures, [&](const std::string& path) {
            return std::find(before.begin(), before.end(), path) != before.end();
        });
        const Terminal terminal = standard_error();
        if (captures.empty()) {
            const char* why = is_python_script(words_[0]) ? "did not import kymo"
                                                          : "did not load libkymo (it is not linked to Kymo, "
                                                            "or is setuid)";
            print_error(fmt::format("kymo: nothing was recorded: {} {}\n", printable(words_[0]), why));
            return;
        }
        std::string text = "\n";
        std::string best = captures.front();
        std::uint64_t most = 0;
        for (std::size_t i = 0; i < captures.size(); ++i) {
            std::uint64_t events = 0;
            text += line(captures[i], i < kReadAtMost, terminal, events);
            if (events > most) {
                most = events;
                best = captures[i];
            }
        }
        if (most > 0) {
            const std::string word = shell_word(best);
            text += fmt::format(
                "next:  kymo report {0}   |   kymo tree {0}   |   kymo export {0} --to chrome\n", word);
        }
        print_error(text);
    }

    /// What is said of one capture.
    static std::string line(const std::string& path, bool read, const Terminal& terminal,
                            std::uint64_t& events) {
        struct stat info {};
        if (::stat(path.c_str(), &info) != 0) info.st_size = 0;
        const std::string size = format_bytes(static_cast<std::uint64_t>(info.st_size));
        const std::string start = "kymo: " + styled(terminal, Style::Bold, printable(path));
        if (!read) return fmt::format("{}: {}\n", start, size);
        try {
            const Progress progress("reading " + path);
            const Trace trace = Trace::load(path);
            events = trace.ranges().size() + trace.instants().size() + trace.counters().size();
            if (events == 0)
                return fmt::format("{}: linked to Kymo, but no range was reached\n{}", start,
                                   problem_lines(trace, terminal));
            return fmt::format("{}: {}, {}\n{}", start, events_fact(trace), size,
                               problem_lines(trace, terminal));
        } catch (const Error& error) {
            return fmt::format("kymo: {}\n", printable(error.what()));
        }
    }

    std::vector<std::string> words_;
    std::string output_;
    bool force_ = false;
    std::string max_;
    std::string policy_;
    std::string scopes_;
    bool memory_ = false;
    bool shapes_ = false;
    bool flops_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_run_verb() {
    return std::make_unique<RunVerb>();
}

}  // namespace kymo::cli
