// run_verb.cpp: marey run: runs a program that records itself, and prints a summary.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include <marey/device.h>
#include <marey/merge.h>
#include <marey/nvtx.h>
#include <marey/process_end.h>
#include <marey/session_options.h>

#include "base/environment.h"
#include "cli/browser.h"
#include "cli/capture_files.h"
#include "cli/child_process.h"
#include "cli/member_packing.h"
#include "cli/output_argument.h"
#include "cli/python_program.h"
#include "cli/run_summary.h"
#include "cli/verb.h"
#include "cli/watch.h"

namespace marey::cli {
namespace {

/// The flags of kSessionOptions, and their part of the variable MAREY.
class SessionFlags {
  public:
    void declare(Options& options) {
        for (std::size_t i = 0; i < std::size(kSessionOptions); ++i) {
            const SessionOption& option = kSessionOptions[i];
            OptionText& given = given_[i];
            if (*option.flag == '\0') continue;
            const std::string names = option.flag;
            const std::string name = names.substr(0, names.find(','));
            if (option.form == OptionForm::Patterns) {
                options.texts(given.texts, name, option.placeholder, option.help);
            } else if (*option.placeholder != '\0') {
                options.text(given.text, name, option.placeholder, option.help);
            } else {
                options.flag(given.is_set, name, option.help);
            }
            if (name != names) options.old_name(names.substr(name.size() + 1), name);
        }
    }

    /// The value given for the option with this key; empty: none.
    std::string& text(std::string_view key) {
        std::size_t i = 0;
        while (key != kSessionOptions[i].key) ++i;
        return given_[i].text;
    }

    /// Checks the values and returns the entries of the variable, each after a comma.
    std::string entries() {
        std::string entries;
        for (std::size_t i = 0; i < std::size(kSessionOptions); ++i) {
            const SessionOption& option = kSessionOptions[i];
            std::vector<std::string> values = given_[i].texts;
            if (given_[i].is_set) values.emplace_back("on");
            if (!given_[i].text.empty()) values.push_back(given_[i].text);
            for (const std::string& value : values) entries += "," + entry(option, value);
        }
        return entries;
    }

    /// The options that the flags set, once entries() has been called.
    const SessionOptions& wanted() const { return wanted_; }

  private:
    struct OptionText {
        bool is_set = false;
        std::string text;
        std::vector<std::string> texts;
    };

    /// Converts the value of a flag, "user,function" or "10us", to the form of the variable.
    std::string entry(const SessionOption& option, std::string value) {
        if (std::string_view(option.placeholder) == "LIST") std::ranges::replace(value, ',', '|');
        try {
            if (option.form == OptionForm::Nanoseconds || option.form == OptionForm::Seconds) {
                const std::optional<std::uint64_t> ns = parse_duration(value);
                if (!ns)
                    throw Error("invalid duration '" + value +
                                "': expected a number with a unit (ns, us, ms or s), such as 10us");
                value = std::to_string(*ns) + (option.form == OptionForm::Seconds ? "ns" : "");
            }
            set_option(wanted_, option, value);
        } catch (const Error& error) {
            const std::string_view flags = option.flag;
            throw Error(fmt::format("run: {}: {}", flags.substr(0, flags.find(',')), error.what()));
        }
        return option_entry(option.key, value);
    }

    OptionText given_[std::size(kSessionOptions)];
    SessionOptions wanted_;
};

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
               "exit code becomes that of marey. Programs that it starts are recorded too, each into a\n"
               "capture of its own; at the end all are packed into one file. Statically linked programs\n"
               "without Marey, setuid programs and programs that get a new environment cannot be "
               "recorded.\n\n"
               "GPU activities: kernels, copies, sets, calls, driver_calls, overhead (together:\n"
               "default), waits (default,waits is the same as all), times.";
    }
    void declare(Options& options) override {
        options.text(output_, "-o,--output", "FILE",
                     "Capture file (SCRIPT.PID.marey; PROGRAM.marey if not Python)");
        options.flag(force_, "--force", "Replace the capture file if it exists");
        session_.declare(options);
        options.flag(ring_, "--ring", "Same as --policy ring: keep the end of the recording");
        options.flag(c_calls_, "--c-calls", "Record calls into C functions too (default on Python 3.12+)");
        options.flag(no_c_calls_, "--no-c-calls",
                     "Do not record calls into C functions (default on Python 3.11)");
        options.flag_or_text(sample_, "--sample", "1000", "RATE",
                             "Sample the stacks of any program, RATE times per second of CPU time (1000)");
        options.flag(calls_, "--calls", "Record Python calls too, with --sample (default without it)");
        options.flag(no_calls_, "--no-calls", "Do not record Python calls, only marked ranges");
        options.flag(no_values_, "--no-values", "Do not record the values of ranges");
        options.flag(no_command_line_, "--no-command-line", "Do not record the program's arguments");
        options.flag(no_children_, "--no-children", "Do not record processes that a Python program starts");
        options.flag(keep_captures_, "--keep-captures",
                     "Do not pack the captures of several processes into one file");
        options.flag(torch_, "--torch", "Record PyTorch operators (compiles an observer on first use)");
        options.flag_or_text(gpu_, "--gpu", "cuda", "DEVICE",
                             "Record GPU work and what launched it; see marey gpu (cuda)");
        watch_.declare_for_run(options);
        options.flag(view_, "--view", "Show the capture in the browser afterwards");
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
        create_run_ledger(tree_, session_.wanted().max_bytes);
        ProcessWatch watch(tree_);
        const std::unique_ptr<Watch> conditions = watch_for();
        std::thread watching;
        std::optional<MemberPacking> packing;  // a name with the program's process id is known when it runs
        const ChildEnd end = run_child(words, variables, [&](int program) {
            put_pid(program);
            packing.emplace(output_, tree_, watch, before, !keep_captures_, !quiet_);
            packing->start(program);
            if (conditions) watching = std::thread([&conditions] { conditions->run(WatchScope::Run); });
        });
        if (watching.joinable()) {
            conditions->stop();
            watching.join();
        }
        if (packing) packing->stop();
        remove_run_ledger(tree_);
        if (end.exec_error != 0) {
            print_error(
                fmt::format("marey: {}\n", printable(start_failure_reason(words[0], end.exec_error))));
            return end_like(end);
        }
        // From here on we return the program's exit code, whatever happens.
        try {
            report(before, end, watch, *packing);
        } catch (const std::exception& error) {
            print_error(fmt::format("marey: {}\n", printable(error.what())));
        }
        return end_like(end);
    }

  private:
    void put_pid(int program) {
        if (const std::size_t mark = output_.find(kPidMark); mark != std::string::npos)
            output_.replace(mark, 1, std::to_string(program));
    }

    /// Looks at the captures of the run, if there are conditions.
    std::unique_ptr<Watch> watch_for() {
        if (watch_.conditions.empty()) return nullptr;
        if (const std::string& last = session_.text("last"); !last.empty()) watch_.last = last;
        watch_.folder = std::filesystem::path(output_).parent_path().string();
        return std::make_unique<Watch>(watch_, [this] { return captures_of(output_); });
    }

    /// Chooses the output file and returns the value of the variable MAREY.
    std::string settings() {
        prepare_output();
        std::string text =
            option_entry("out", std::filesystem::absolute(output_).lexically_normal().string());
        std::string& policy = session_.text("policy");
        if (!policy.empty() && policy != "ring") {
            const char* const other = ring_ ? "--ring" : !session_.text("last").empty() ? "--last" : nullptr;
            if (other != nullptr)
                throw Error(fmt::format("run: {} and --policy {} are mutually exclusive", other, policy));
        }
        if (ring_) policy = "ring";
        if (no_values_) text += ",values=off";
        if (no_command_line_) text += ",command_line=off";
        return text + device_setting() + sample_setting() + session_.entries() + call_settings() +
               fmt::format(",tree={}:{}", tree_, ::getpid());
    }

    /// Names the tree of processes that this command starts.
    static std::string random_tree() {
        std::random_device random;
        std::string id;
        for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", random() & 0xffffffff);
        return id;
    }

    /// Does not check that the device exists: the program may register a device itself.
    std::string device_setting() {
        if (gpu_.empty() && !session_.text("device_activities").empty())
            throw Error("run: --gpu-activities needs --gpu");
        if (gpu_.empty()) return "";
        if (gpu_.find('|') != std::string::npos)
            throw Error("run: --gpu: invalid device name '" + gpu_ + "': use --gpu or --gpu=cuda");
        return "," + option_entry("devices", gpu_);
    }

    std::string sample_setting() const {
        if (sample_.empty()) return "";
        constexpr std::uint32_t kMost = 10000;
        std::uint32_t rate = 0;
        const char* const end = sample_.data() + sample_.size();
        if (const auto read = std::from_chars(sample_.data(), end, rate);
            read.ptr != end || read.ec != std::errc() || rate == 0 || rate > kMost)
            throw Error(
                fmt::format("run: --sample: invalid rate '{}': expected samples per second of CPU time, "
                            "1 to {}",
                            printable(sample_), kMost));
        return fmt::format(",sample={}", rate);
    }

    bool records_calls() const { return !no_calls_ && (calls_ || sample_.empty()); }

    std::string call_settings() const {
        if (calls_ && no_calls_) throw Error("run: --calls and --no-calls are mutually exclusive");
        if (c_calls_ && no_c_calls_) throw Error("run: --c-calls and --no-c-calls are mutually exclusive");
        if (start_folder_.empty()) return "";
        const char* const c_calls = c_calls_ ? "on" : no_c_calls_ ? "off" : "auto";
        return fmt::format(",c_calls={},calls={}", c_calls, records_calls() ? "on" : "off");
    }

    /// The changes to the environment of the program.
    Variables variables() {
        Variables variables{{"MAREY", settings()},
                            {"MAREY_PYTHON", std::nullopt},
                            {"MAREY_PYTHON_OPTIONS", std::nullopt},
                            {"MAREY_PACKAGE", std::nullopt}};
        if (session_.wanted().with_nvtx || !gpu_.empty()) load_with_nvtx(variables);
        // The Python package records calls and the GPU without this library; other processes need it.
        if (!sample_.empty()) preload(variables);
        const bool is_alone = is_python_ && no_children_ && records_calls();
        if (gpu_ == "cuda" && !is_alone) load_with_cuda(variables);
        if (start_folder_.empty()) return variables;
        const std::string path = environment_text("PYTHONPATH");
        variables.emplace_back("PYTHONPATH", start_folder_ + (path.empty() ? "" : ":" + path));
        if (torch_) variables.emplace_back("MAREY_TORCH", "1");
        if (no_children_) variables.emplace_back("MAREY_CHILDREN", "0");
        return variables;
    }

    /// Makes every program load the library: samples need nothing of the program.
    static void preload(Variables& variables) {
        const std::string others = environment_text("LD_PRELOAD");
        variables.emplace_back("LD_PRELOAD", nvtx::library_path() + (others.empty() ? "" : ":" + others));
    }

    /// Makes programs that are not linked to Marey load it when they first use NVTX or CUDA. These variables
    /// name one library each, so another tool that is already set stays.
    void load_with_nvtx(Variables& variables) const {
        const std::string other = set_unless_other(variables, "NVTX_INJECTION64_PATH");
        if (session_.wanted().with_nvtx && !other.empty())
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
    void name_by_rank() { output_ = path_of_rank(output_, environment_rank()); }

    void prepare_output() {
        if (output_.empty()) {
            // If a file of that name exists, the program chooses another name.
            output_ = is_python_ ? fmt::format("{}.{}.marey", python_program_name(words_), kPidMark)
                                 : free_capture_name(words_[0]);
            name_by_rank();
        } else {
            name_by_rank();
            OutputArgument{output_, force_}.prepare_capture();
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

    void report(const std::vector<std::string>& before, const ChildEnd& end, const ProcessWatch& watch,
                MemberPacking& packing) const {
        std::vector<std::string> captures = captures_of(output_);
        std::erase_if(captures, [&](const std::string& path) {
            return std::ranges::find(before, path) != before.end();
        });
        const bool is_one = captures.size() == 1 && packing.packer().packed() == 0;
        if (is_one && is_python_ && end.exit_code != 0 && !is_filtered() &&
            !ran_program(Trace::load(captures[0]))) {
            ::unlink(captures[0].c_str());
            if (!quiet_) print_error("marey: nothing was recorded: the program did not start\n");
            return;
        }
        if (captures.empty()) {
            print_error(fmt::format("marey: nothing was recorded: {}\n", empty_capture_reason()));
            return;
        }
        note_ends(captures, end, watch);
        note_unrecorded(captures.front(), watch, packing.facts());
        std::string text;
        std::string best, extent;
        if (!quiet_) {
            RunSummary summary =
                summarize_run(captures, std::move(packing.facts()), why_empty(), standard_error());
            print_error(summary.text);  // before packing, which may take a while
            best = std::move(summary.best);
            extent = std::move(summary.extent);
        }
        if (!is_one && !keep_captures_) {
            std::string line = pack(captures, watch, packing.packer(), extent);
            if (!line.empty()) {
                text += line;
                best = best.empty() ? "" : output_;
            }
        }
        if (!quiet_) {
            if (!best.empty()) {
                const std::string capture = shell_word(best);
                text += fmt::format("{0}  {2}marey report {1}   |   marey tree {1}   |   marey view {1}\n",
                                    styled(standard_error(), Style::Dim, "next:"), capture,
                                    gpu_.empty() ? "" : "marey gpu " + capture + "   |   ");
            }
            print_error(text);
        }
        if (view_) show_in_browser({file_source(captures.front(), "")}, {}, true);
    }

    /// Packs the captures into the output file and returns a line about it; "" if they stay as they are.
    /// `extent`: what they contain.
    std::string pack(std::vector<std::string>& captures, const ProcessWatch& watch, RunPacker& packer,
                     const std::string& extent) const {
        if (captures.front() != output_) return "";
        try {
            const Progress progress("packing " + output_);
            const PackedTree packed = packer.finish(
                captures, [&](const std::string& capture) { return watch.find(capture).is_running; });
            captures = {output_};
            std::string line = fmt::format(
                "\nmarey: {}: {}{}{}, {}\n", printable(output_), format_plural(packed.processes, "process"),
                extent.empty() ? " in one file" : ", ", extent, format_file_size(output_));
            for (const LeftOutFile& file : packed.kept) {
                line += fmt::format("marey: {} stays beside it: {}\n", printable(file.path),
                                    printable(file.reason));
                captures.push_back(file.path);
            }
            return line;
        } catch (const Error& error) {
            print_error(fmt::format("marey: the captures of this run stay as they are: {}\n",
                                    printable(error.what())));
            return "";
        }
    }

    /// Appends how its process ended to each capture. A program that uses exec has several.
    static void note_ends(const std::vector<std::string>& captures, const ChildEnd& end,
                          const ProcessWatch& watch) {
        std::string trouble;
        for (const std::string& capture : captures) {
            try {
                if (!note_end(capture, watch))
                    append_process_end(capture, end.pid, {end.exit_code, end.signal});
            } catch (const Error& error) {  // the same for all of them, most likely
                if (trouble.empty()) trouble = error.what();
            }
        }
        if (!trouble.empty())
            print_error(fmt::format("marey: how processes ended is not recorded: {}\n", printable(trouble)));
    }

    /// Appends which processes could not create their captures to the program's own. On a disk that is still
    /// full, the summary alone names them.
    static void note_unrecorded(const std::string& capture, const ProcessWatch& watch, MemberFacts& facts) {
        const std::vector<UnrecordedProcess> processes = watch.unrecorded();
        for (const UnrecordedProcess& process : processes) facts.explain({process.pid, process.start});
        const std::vector<ProblemInfo> problems = describe_unrecorded(processes);
        if (problems.empty()) return;
        std::string trouble;
        try {
            if (append_problems(capture, capture_origin(capture).pid, problems)) return;
        } catch (const Error& error) {
            trouble = fmt::format("marey: {} does not name the processes that were not recorded: {}\n",
                                  printable(capture), printable(error.what()));
        }
        for (const ProblemInfo& problem : problems)
            trouble += fmt::format("marey: problem: {}\n", printable(problem.text));
        print_error(trouble);
    }

    /// Whether options exclude some of the program's calls.
    bool is_filtered() const {
        const SessionOptions& wanted = session_.wanted();
        const CallOptions& calls = wanted.calls;
        return no_calls_ || !calls.include.empty() || !calls.exclude.empty() || calls.min_duration_ns != 0 ||
               calls.max_depth != 0 || wanted.scopes != ScopeSet::all();
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
            return otherwise + "neither " + printable(words_[0]) +
                   " nor a process that it started loaded libmarey (they are not linked to Marey" +
                   (gpu_ == "cuda"                ? ", used neither CUDA nor NVTX"
                    : session_.wanted().with_nvtx ? " and did not call NVTX"
                                                  : "") +
                   ", or are setuid)" + gpu_missing_reason();
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
    SessionFlags session_;
    WatchOptions watch_;
    bool torch_ = false;
    std::string gpu_;  ///< the device; empty: none
    bool ring_ = false;
    bool c_calls_ = false;
    bool no_c_calls_ = false;
    std::string sample_;
    bool calls_ = false;
    bool no_calls_ = false;
    bool no_values_ = false;
    bool no_command_line_ = false;
    bool no_children_ = false;
    bool keep_captures_ = false;
    const std::string tree_ = random_tree();
    bool view_ = false;
    bool quiet_ = false;
    bool is_python_ = false;
    std::string start_folder_;  ///< of the Python package; empty: not found
};

}  // namespace

MAREY_VERB(run, RunVerb)

}  // namespace marey::cli
