// run_verb.cpp: marey run: runs a program that records itself, and prints a summary.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <marey/call_pattern.h>
#include <marey/device.h>
#include <marey/error.h>
#include <marey/export.h>
#include <marey/nvtx.h>
#include <marey/process_end.h>
#include <marey/scope.h>

#include "base/environment.h"
#include "cli/capture_files.h"
#include "cli/child_process.h"
#include "cli/open_trace.h"
#include "cli/python_program.h"
#include "cli/run_summary.h"
#include "cli/terminal.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

/// Escapes a value for the variable MAREY, whose parts are separated by commas.
std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        if (c == ',' || c == '\\') result += '\\';
        result += c;
    }
    return result;
}

/// Converts "user,function" to the form of the variable: "user|function". Throws for an unknown scope.
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
            throw Error("run: --scopes: unknown scope '" + name + "'; expected " + names);
        }
        list += (list.empty() ? "" : "|") + name;
        from = end + 1;
    }
    return list;
}

class RunVerb final : public Verb {
  public:
    const char* help() const override { return "Run a program and record it"; }
    const char* details() const override {
        return "Examples:\n"
               "  marey run [OPTIONS] script.py [ARGUMENTS]\n"
               "  marey run [OPTIONS] -m MODULE [ARGUMENTS]\n"
               "  marey run [OPTIONS] -c CODE [ARGUMENTS]\n"
               "  marey run [OPTIONS] -- PROGRAM [ARGUMENTS]\n\n"
               "Python programs (x.py, x.pyz, a folder with __main__.py, -m, -c, - for standard input)\n"
               "run unchanged under the Python of the environment that marey is installed in; all their\n"
               "calls are recorded, on every thread. Any other program must be linked to Marey, load a\n"
               "library that is, start Python, or use CUDA (--gpu) or NVTX (--nvtx). If PROGRAM.marey\n"
               "exists, its capture is PROGRAM-2.marey. Signals are forwarded to the program, and its\n"
               "exit code becomes that of marey. Programs that it starts are recorded too, into separate\n"
               "captures. Statically linked programs without Marey and setuid programs cannot be\n"
               "recorded.\n\n"
               "GPU activities: kernels, copies, sets, calls, driver_calls, overhead (together:\n"
               "default), waits (default,waits is the same as all), times.";
    }
    void declare(Options& options) override {
        options.text(output_, "-o,--output", "FILE",
                     "Capture file (SCRIPT.PID.marey; PROGRAM.marey if not Python)");
        options.flag(force_, "--force", "Replace the capture file if it exists");
        options.text(max_, "--max-bytes,--max", "SIZE",
                     "Maximum size of the recording, such as 512MB (1 GiB)");
        options.choice(policy_, "--policy", {"stop", "drop", "ring"},
                       "At that size: stop, drop new events or overwrite old ones (stop)");
        options.flag(ring_, "--ring", "Same as --policy ring: keep the end of the recording");
        options.flag(c_calls_, "--c-calls", "Record calls into C functions too (default on Python 3.12+)");
        options.flag(no_c_calls_, "--no-c-calls",
                     "Do not record calls into C functions (default on Python 3.11)");
        options.flag(no_calls_, "--no-calls", "Do not record Python calls, only marked ranges");
        options.texts(include_, "--include", "PATTERN",
                      "Record only these files (src/*.py) or modules (shop.load); repeatable");
        options.texts(exclude_, "--exclude", "PATTERN", "Do not record these files or modules; repeatable");
        options.flag(fold_libraries_, "--fold-libraries", "Record only the outermost call into library code");
        options.text(min_duration_, "--min-duration", "TIME",
                     "Record only calls that take at least this long, such as 10us (0)");
        options.number(max_depth_, "--max-depth", "Record only calls up to this depth (0: any)");
        options.number(budget_, "--budget", "Stop recording calls after this many (0: never)");
        options.flag(call_lines_, "--call-lines", "Record the line that each call was made from");
        options.flag(no_children_, "--no-children", "Do not record processes that a Python program starts");
        options.text(scopes_, "--scopes", "LIST", "Record only these kinds of range, such as user,function");
        options.flag(memory_, "--memory", "Record allocation reports too (see marey memory)");
        options.flag(shapes_, "--shapes", "Record the shapes of arrays that operations take and return");
        options.flag(flops_, "--flops", "Record the values needed to count FLOPs; implies --shapes");
        options.flag(torch_, "--torch", "Record PyTorch operators (compiles an observer on first use)");
        options.flag_or_text(gpu_, "--gpu", "cuda", "DEVICE",
                             "Record GPU work and what launched it; see marey gpu (cuda)");
        options.text(gpu_activities_, "--gpu-activities", "LIST",
                     "GPU activities to record, such as default,waits (default)");
        options.flag(nvtx_, "--nvtx", "Record NVTX ranges, in any program that uses NVTX");
        options.flag(open_, "--open", "Export the capture afterwards and open it in a browser");
        options.flag(quiet_, "-q,--quiet", "Do not print a summary at the end");
        options.command(words_);
    }

    int run() override {
        if (words_.empty()) throw Error("run: no program given (see marey run --help)");
        if (words_[0].starts_with("--"))
            throw Error("run: unknown option " + words_[0] + " (see marey run --help)");
        is_python_ = is_python_program(words_);
        start_folder_ = python_start_folder();
        if (is_python_ && start_folder_.empty())
            throw Error(
                "run: this command was built without the Python package, so it cannot record Python programs "
                "(install the package: 'pip install .' in a clone of Marey)");
        if (torch_ && start_folder_.empty())
            throw Error(
                "run: --torch needs the Python package (install it: 'pip install .' in a clone of Marey)");
        const Variables variables = this->variables();
        std::vector<std::string> before = captures_beside(output_);
        before.push_back(output_);
        std::erase_if(before, [](const std::string& path) { return ::access(path.c_str(), F_OK) != 0; });
        const std::vector<std::string> words = is_python_ ? python_command(words_) : words_;
        const ChildEnd end = run_child(words, variables);
        if (end.exec_error != 0) {
            print_error(
                fmt::format("marey: {}\n", printable(start_failure_reason(words[0], end.exec_error))));
            return end_like(end);
        }
        if (const std::size_t mark = output_.find(kPidMark); mark != std::string::npos)
            output_.replace(mark, 1, std::to_string(end.pid));
        // From here on we return the program's exit code, whatever happens.
        try {
            report(before, end);
        } catch (const std::exception& error) {
            print_error(fmt::format("marey: {}\n", printable(error.what())));
        }
        return end_like(end);
    }

  private:
    /// Chooses the output file and returns the value of the variable MAREY.
    std::string settings() {
        prepare_output();
        std::string text = "out=" + escaped(std::filesystem::absolute(output_).lexically_normal().string());
        if (!max_.empty()) {
            const std::optional<std::uint64_t> bytes = parse_bytes(max_);
            if (!bytes || *bytes == 0)
                throw Error("run: --max: invalid size '" + max_ +
                            "': expected a number with an optional unit, such as 512MB");
            text += fmt::format(",max={}", *bytes);
        }
        if (ring_ && !policy_.empty() && policy_ != "ring")
            throw Error("run: --ring and --policy " + policy_ + " are mutually exclusive");
        if (ring_) policy_ = "ring";
        if (!policy_.empty()) text += ",policy=" + policy_;
        if (!scopes_.empty()) text += ",scopes=" + scope_list(scopes_);
        if (memory_) text += ",memory=on";
        if (shapes_) text += ",shapes=on";
        if (flops_) text += ",flops=on";
        if (nvtx_) text += ",nvtx=on";
        return text + device_setting() + call_settings();
    }

    /// Does not check that the device exists: the program may register a device itself.
    std::string device_setting() const {
        if (gpu_.empty() && !gpu_activities_.empty()) throw Error("run: --gpu-activities needs --gpu");
        if (gpu_.empty()) return "";
        if (gpu_.find('|') != std::string::npos)
            throw Error("run: --gpu: invalid device name '" + gpu_ + "': use --gpu or --gpu=cuda");
        return ",devices=" + escaped(gpu_) + activities_setting();
    }

    /// Converts "default,waits" to the form of the variable: "default|waits".
    std::string activities_setting() const {
        if (gpu_activities_.empty()) return "";
        std::string names = gpu_activities_;
        std::replace(names.begin(), names.end(), ',', '|');
        try {
            parse_device_activities(names);
        } catch (const Error& error) {
            throw Error(std::string("run: --gpu-activities: ") + error.what());
        }
        return ",device_activities=" + names;
    }

    static std::string pattern_setting(const std::string& name, const std::string& pattern) {
        if (const char* const fault = call_pattern_error(pattern))
            throw Error("run: --" + name + ": the pattern '" + pattern + "' " + fault);
        return "," + name + "=" + escaped(pattern);
    }

    /// The settings for Python calls. The package's start file relies on their names and on their place at
    /// the end.
    std::string call_settings() const {
        if (c_calls_ && no_c_calls_) throw Error("run: --c-calls and --no-c-calls are mutually exclusive");
        std::string text;
        for (const std::string& pattern : include_) text += pattern_setting("include", pattern);
        for (const std::string& pattern : exclude_) text += pattern_setting("exclude", pattern);
        if (fold_libraries_) text += ",fold_libraries=on";
        if (!min_duration_.empty()) {
            const std::optional<std::uint64_t> ns = parse_duration(min_duration_);
            if (!ns)
                throw Error("run: --min-duration: invalid duration '" + min_duration_ +
                            "': expected a number with a unit (ns, us, ms or s), such as 10us");
            text += fmt::format(",min_duration_ns={}", *ns);
        }
        if (max_depth_) text += fmt::format(",max_depth={}", *max_depth_);
        if (budget_) text += fmt::format(",call_budget={}", *budget_);
        if (call_lines_) text += ",call_lines=on";
        if (start_folder_.empty()) return text;
        const char* const c_calls = c_calls_ ? "on" : no_c_calls_ ? "off" : "auto";
        return text + fmt::format(",c_calls={},calls={}", c_calls, no_calls_ ? "off" : "on");
    }

    /// The changes to the environment of the program.
    Variables variables() {
        Variables variables{{"MAREY", settings()},
                            {"MAREY_PYTHON", std::nullopt},
                            {"MAREY_PYTHON_OPTIONS", std::nullopt},
                            {"MAREY_PACKAGE", std::nullopt}};
        if (nvtx_ || !gpu_.empty()) load_with_nvtx(variables);
        // The Python package records calls and the GPU without this library; other processes need it.
        const bool is_alone = is_python_ && no_children_ && !no_calls_;
        if (gpu_ == "cuda" && !is_alone) load_with_cuda(variables);
        if (start_folder_.empty()) return variables;
        const std::string path = environment_text("PYTHONPATH");
        variables.emplace_back("PYTHONPATH", start_folder_ + (path.empty() ? "" : ":" + path));
        if (torch_) variables.emplace_back("MAREY_TORCH", "1");
        if (no_children_) variables.emplace_back("MAREY_CHILDREN", "0");
        return variables;
    }

    /// Makes programs that are not linked to Marey load it when they first use NVTX or CUDA. These variables
    /// name one library each, so another tool that is already set stays.
    void load_with_nvtx(Variables& variables) const {
        const std::string other = set_unless_other(variables, "NVTX_INJECTION64_PATH");
        if (nvtx_ && !other.empty())
            print_error("marey: --nvtx: NVTX ranges go to another tool: " + other + " (left unchanged)\n");
    }
    void load_with_cuda(Variables& variables) const {
        const std::string other = set_unless_other(variables, "CUDA_INJECTION64_PATH");
        if (!other.empty())
            print_error("marey: --gpu: CUDA loads another tool, which may block recording of the GPU: " +
                        other + " (left unchanged)\n");
    }

    /// Sets the variable to libmarey. If it already names another library, returns a text with its value.
    static std::string set_unless_other(Variables& variables, const char* name) {
        const std::string value = environment_text(name);
        if (value.empty()) {
            variables.emplace_back(name, nvtx::library_path());
            return "";
        }
        return nvtx::is_library(value) ? "" : fmt::format("{} is {}", name, printable(value));
    }

    /// Each rank of a distributed program may have its own `marey run`.
    void name_by_rank() {
        if (!torch_) return;
        output_ = rank_capture_name(output_, environment_text("RANK"), environment_text("WORLD_SIZE"));
    }

    void prepare_output() {
        if (output_.empty()) {
            // If a file of that name exists, the program chooses another name.
            output_ = is_python_ ? fmt::format("{}.{}.marey", python_program_name(words_), kPidMark)
                                 : free_capture_name(words_[0]);
            name_by_rank();
        } else {
            name_by_rank();
            struct stat info {};
            if (::lstat(output_.c_str(), &info) == 0) {
                if (!force_) throw Error(output_ + ": already exists (use --force to replace it)");
                if (S_ISDIR(info.st_mode)) throw Error(output_ + ": is a directory");
                if (::unlink(output_.c_str()) != 0) throw Error(output_ + ": " + std::strerror(errno));
            }
        }
        if (const int error = creation_error(); error != 0) {
            const std::string folder = output_.substr(0, output_.size() - base_name(output_).size());
            throw Error((folder.empty() ? "the current folder" : folder) +
                        ": cannot write a capture here: " + std::strerror(error));
        }
    }

    /// The errno with which the program would fail to create the capture; 0 if it can. Creates a file and
    /// removes it, since permissions are not enough to decide (a folder in /proc, a quota, a long name).
    int creation_error() const {
        std::string path = output_;
        if (const std::size_t mark = path.find(kPidMark); mark != std::string::npos)
            path.replace(mark, 1, std::to_string(::getpid()));
        const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (file < 0) return errno == EEXIST ? 0 : errno;
        ::close(file);
        ::unlink(path.c_str());
        return 0;
    }

    void report(const std::vector<std::string>& before, const ChildEnd& end) const {
        std::vector<std::string> captures = captures_of(output_);
        std::erase_if(captures, [&](const std::string& path) {
            return std::find(before.begin(), before.end(), path) != before.end();
        });
        if (captures.size() == 1 && is_python_ && end.exit_code != 0 && !is_filtered() &&
            !ran_program(Trace::load(captures[0]))) {
            ::unlink(captures[0].c_str());
            if (!quiet_) print_error("marey: nothing was recorded: the program did not start\n");
            return;
        }
        if (captures.empty()) {
            print_error(fmt::format("marey: nothing was recorded: {}\n", empty_capture_reason()));
            return;
        }
        note_end(captures, end);
        if (!quiet_) {
            const RunSummary summary = summarize_run(captures, why_empty(), standard_error());
            std::string text = summary.text;
            if (!summary.best.empty()) {
                const std::string capture = shell_word(summary.best);
                text += fmt::format(
                    "{0}  {2}marey report {1}   |   marey tree {1}   |   marey export {1} -o trace.{3}\n",
                    styled(standard_error(), Style::Dim, "next:"), capture,
                    gpu_.empty() ? "" : "marey gpu " + capture + "   |   ",
                    can_write_perfetto() ? "pftrace" : "json");
            }
            print_error(text);
        }
        if (open_) open_in_browser(captures.front());
    }

    /// Appends how the program ended to its capture. A program that uses exec has several.
    static void note_end(const std::vector<std::string>& captures, const ChildEnd& end) {
        for (const std::string& capture : captures) {
            try {
                append_process_end(capture, end.pid, {end.exit_code, end.signal});
            } catch (const Error& error) {
                print_error(fmt::format("marey: {}\n", printable(error.what())));
            }
        }
    }

    /// Whether options exclude some of the program's calls.
    bool is_filtered() const {
        return no_calls_ || !include_.empty() || !exclude_.empty() || !min_duration_.empty() ||
               max_depth_.value_or(0) != 0 || !scopes_.empty();
    }

    /// Why the capture of a program that has loaded libmarey is empty.
    const char* why_empty() const {
        if (!is_python_) return "empty: the program loaded libmarey but recorded no range";
        if (no_calls_) return "empty: --no-calls excludes calls, and the program marked no range";
        return is_filtered() ? "empty: no call matched the options"
                             : "empty: the program ended before it made a call";
    }

    /// Why there is no capture. If the program failed to create it, it has printed the reason itself.
    std::string empty_capture_reason() const {
        const std::string otherwise = "unless a line above gives the reason, ";
        if (no_calls_ && is_python_)
            return "--no-calls records only ranges that the program marks, and it did not import marey" +
                   std::string(gpu_ == "cuda" ? " or use CUDA" : "") + gpu_missing_reason();
        if (!is_python_)
            return otherwise + printable(words_[0]) + " did not load libmarey (it is not linked to Marey" +
                   (gpu_ == "cuda" ? ", used neither CUDA nor NVTX"
                    : nvtx_        ? " and did not call NVTX"
                                   : "") +
                   ", or is setuid)" + gpu_missing_reason();
        return otherwise + printable(python_command({}).front()) +
               " did not load the marey package: it ended before it ran the program, was started with -E, -I "
               "or -S, or is not the Python that " +
               printable(start_folder_) + " was installed for";
    }

    /// Programs that are not linked to Marey load it together with CUDA; if CUDA is missing, only this text
    /// mentions it.
    std::string gpu_missing_reason() const {
        const std::string trouble = gpu_ == "cuda" ? device_error(gpu_) : "";
        return trouble.empty() ? "" : ". GPU: " + trouble;
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
    bool torch_ = false;
    std::string gpu_;  ///< the device; empty: none
    std::string gpu_activities_;
    bool nvtx_ = false;
    bool ring_ = false;
    bool c_calls_ = false;
    bool no_c_calls_ = false;
    bool no_calls_ = false;
    std::vector<std::string> include_;
    std::vector<std::string> exclude_;
    bool fold_libraries_ = false;
    std::string min_duration_;
    std::optional<std::uint64_t> max_depth_;
    std::optional<std::uint64_t> budget_;
    bool call_lines_ = false;
    bool no_children_ = false;
    bool open_ = false;
    bool quiet_ = false;
    bool is_python_ = false;
    std::string start_folder_;  ///< of the Python package; empty: not found
};

}  // namespace

std::unique_ptr<Verb> make_run_verb() {
    return std::make_unique<RunVerb>();
}

}  // namespace marey::cli
