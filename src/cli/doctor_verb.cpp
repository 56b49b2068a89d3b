// doctor_verb.cpp: marey doctor: checks whether recording works on this machine and suggests fixes.
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <marey/device.h>
#include <marey/live.h>
#include <marey/nvtx.h>
#include <marey/outside.h>
#include <marey/range.h>
#include <marey/session.h>
#include <marey/traceback.h>

#include "base/environment.h"
#include "cli/python_program.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDefaultMaxBytes = std::uint64_t{1} << 30;

/// The first line of a file; empty if it cannot be read.
std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// The output of a command (stdout and stderr), and whether it succeeded.
struct CommandOutput {
    std::string text;
    bool is_success = false;
};

CommandOutput run_shell_command(const std::string& command) {
    CommandOutput output;
    std::FILE* const pipe = ::popen((command + " 2>&1 </dev/null").c_str(), "r");
    if (pipe == nullptr) return output;
    std::array<char, 512> piece{};
    while (const std::size_t bytes = std::fread(piece.data(), 1, piece.size(), pipe))
        output.text.append(piece.data(), bytes);
    output.is_success = ::pclose(pipe) == 0;
    while (output.text.ends_with('\n')) output.text.pop_back();
    return output;
}

class DoctorVerb final : public Verb {
  public:
    const char* help() const override { return "Check whether recording works here and suggest fixes"; }
    const char* details() const override {
        return "ok: works. off: not available; recording works without it. BAD: recording does not work,\n"
               "or not well. The exit code is 0 if recording works; with --pid, if the process can be looked "
               "at\n"
               "from outside (marey now PID).";
    }
    void declare(Options& options) override {
        options.text(folder_, "--folder", "FOLDER", "Folder to write captures to (current folder)");
        options.number(pid_, "--pid", "Check what can be seen of this process from outside");
    }

    int run() override {
        terminal_ = standard_output();
        if (pid_) return check_process(static_cast<std::int64_t>(*pid_));
        const bool works = check_recording();
        check_space();
        check_native_lines();
        check_python();
        check_cuda();
        check_nvtx();
        write_out(text_ + "\n" +
                  (works ? "Recording works here.\n" : "Recording does not work here: see above.\n"));
        return works ? kSuccess : kFailure;
    }

  private:
    enum class State { Ok, Off, Bad };

    void add_line(State state, std::string_view title, const std::string& fact,
                  const std::string& help = "") {
        const char* const word = state == State::Ok ? "ok" : state == State::Off ? "off" : "BAD";
        text_ +=
            styled(terminal_, state == State::Bad ? Style::Red : Style::Plain, fmt::format("{:<4}", word));
        text_ += styled(terminal_, Style::Bold, fmt::format("{:<11}", title)) + printable(fact) + "\n";
        if (!help.empty()) add_detail("fix", help);
    }
    void add_detail(std::string_view title, const std::string& fact) {
        text_ += fmt::format("    {:<11}{}: {}\n", "", printable(title), printable(fact));
    }

    int check_process(std::int64_t pid) {
        bool is_readable = true;
        for (const OutsideAccess& access : access_to_process(pid)) {
            is_readable = is_readable && (access.is_available || access.title != "memory");
            add_line(access.is_available ? State::Ok : State::Off, access.title, access.fact, access.help);
        }
        const std::vector<RecordedProcess> recorded = recorded_processes(pid);
        add_line(recorded.empty() ? State::Off : State::Ok, "recording",
                 recorded.empty() ? "it does not record" : "into " + recorded.front().capture,
                 recorded.empty() ? "marey run shows times, calls and ranges, too; MAREY=control=on lets "
                                    "marey start begin later"
                                  : "");
        write_out(text_);
        return is_readable ? kSuccess : kFailure;
    }

    /// Records into a file in the folder and reads it back, as real captures are written and read.
    bool check_recording() {
        const std::string path =
            (fs::path(folder_) / fmt::format("marey-doctor.{}.marey", ::getpid())).string();
        try {
            Session session;
            session.start({.output = path});
            constexpr std::uint64_t kRanges = 1000;
            for (std::uint64_t i = 0; i < kRanges; ++i) {
                MAREY_RANGE("doctor");
            }
            session.stop();
            const std::string written = session.output_path();
            const Trace trace = Trace::load(written);
            ::unlink(written.c_str());
            if (trace.ranges().size() != kRanges)
                throw Error(fmt::format("{} of {} ranges were recorded", trace.ranges().size(), kRanges));
            add_line(State::Ok, "recording", fmt::format("into {}", folder_));
            check_clock(trace);
            check_sampling();
            return true;
        } catch (const Error& error) {
            ::unlink(path.c_str());
            add_line(State::Bad, "recording", error.what(),
                     "use a writable folder: marey run -o FOLDER/x.marey, marey doctor --folder FOLDER");
            return false;
        }
    }

    void check_clock(const Trace& trace) {
        const bool is_counter =
            trace.clock().source != "monotonic_raw" && trace.clock().source != "monotonic";
        add_line(is_counter ? State::Ok : State::Off, "clock", clock_fact(trace),
                 is_counter
                     ? ""
                     : "the CPU's timestamp counter is not used because the kernel does not trust it (" +
                           first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource") +
                           "); ranges cost more, but timestamps are still correct");
        std::string costs;
        for (const CostInfo& cost : trace.costs())
            costs += fmt::format("{}{} {:.1f} ns", costs.empty() ? "" : ", ", cost.kind, cost.ns);
        add_line(State::Ok, "costs", costs);
    }

    /// Which clock samples have: that of perf_event_open, unless it is refused.
    void check_sampling() {
        Session session;
        session.start({.sample = 1000});
        using Clock = std::chrono::steady_clock;
        for (const auto end = Clock::now() + std::chrono::milliseconds(30); Clock::now() < end;) {
        }
        const Trace trace = session.stop();
        if (trace.sampling().empty()) {
            add_line(State::Off, "sampling", "not available");
        } else if (trace.string(trace.sampling()[0].clock) == "perf_event") {
            add_line(State::Ok, "sampling", "by a clock for each thread (perf_event_open)");
        } else {
            add_line(State::Off, "sampling",
                     "by a thread that looks at the others: perf_event_open is refused",
                     "rates above 1,000 are not reached; let containers use perf_event_open, and set "
                     "kernel.perf_event_paranoid to 2 or less");
        }
    }

    void check_space() {
        struct statvfs info {};
        if (::statvfs(folder_.c_str(), &info) != 0) return;
        const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
        add_line(
            free >= kDefaultMaxBytes ? State::Ok : State::Bad, "space", format_bytes(free) + " free",
            free >= kDefaultMaxBytes
                ? ""
                : "a recording may take up to 1 GiB: set a lower limit (marey run --max-bytes 64MB) or use "
                  "another folder (-o)");
    }

    void check_native_lines() {
        if (has_native_lines())
            return add_line(State::Ok, "symbols", "C++ tracebacks have line numbers (elfutils)");
        add_line(State::Off, "symbols", "C++ tracebacks have function names but no line numbers",
                 "build Marey with elfutils: apt-get install libdw-dev");
    }

    void check_python() {
        const std::string start = python_start_folder();
        if (start.empty())
            return add_line(State::Off, "python", "this command is not part of the Python package",
                            "install the package: 'pip install .' in a clone of Marey");
        const std::string python = python_command({}).front();
        const std::string package = fs::path(start).parent_path().parent_path().parent_path().string();
        const std::string path = environment_text("PYTHONPATH");
        const CommandOutput output = run_shell_command(
            fmt::format("MAREY= PYTHONPATH={} {} -m marey.launch.doctor",
                        shell_word(package + (path.empty() ? "" : ":" + path)), shell_word(python)));
        if (!output.is_success) {
            const std::string reason = output.text.substr(output.text.rfind('\n') + 1);
            return add_line(State::Bad, "python", python + ": " + (reason.empty() ? "cannot be run" : reason),
                            "use the marey command that pip installed for this Python");
        }
        for (const std::string& line : split(output.text, '\n')) add_python_line(line);
    }

    /// Adds a line "ok|off|BAD<TAB>title<TAB>fact<TAB>help" printed by python/marey/launch/doctor.py.
    void add_python_line(const std::string& line) {
        std::array<std::string, 4> parts;
        std::size_t at = 0;
        for (std::string& part : parts) {
            const std::size_t end = std::min(line.find('\t', at), line.size());
            part = line.substr(at, end - at);
            at = std::min(end + 1, line.size());
        }
        const State state = parts[0] == "ok" ? State::Ok : parts[0] == "off" ? State::Off : State::Bad;
        add_line(state, parts[1], parts[2], parts[3]);
    }

    void check_cuda() {
        const std::string driver = first_line("/proc/driver/nvidia/version");
        const auto device = find_device("cuda");
        std::string trouble = device_error("cuda");
        const bool has_driver = trouble.empty() || !driver.empty();
        if (trouble.empty() && device != nullptr && device->activities() == nullptr)
            trouble = device->activities_error() + " Without it, ranges are timed with events.";
        add_line(trouble.empty() ? State::Ok : State::Off, "cuda",
                 trouble.empty() ? "kernels, copies and calls are recorded (marey run --gpu)" : trouble,
                 has_driver ? ""
                            : "if this machine has an NVIDIA GPU, install its driver (nvidia-smi shows "
                              "whether it works)");
        if (device != nullptr) {
            for (const auto& [title, fact] : device->details()) add_detail(title, fact);
        }
        if (!driver.empty()) add_detail("driver", driver);
        std::ifstream parameters("/proc/driver/nvidia/params");
        for (std::string line; std::getline(parameters, line);) {
            if (line == "RmProfilingAdminOnly: 1")
                add_detail("permissions",
                           "hardware counters are restricted to administrators "
                           "(NVreg_RestrictProfilingToAdminUsers); Marey does not need them");
        }
        for (const char* const name : {"CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"}) {
            if (!environment_text(name).empty() && !nvtx::is_library(environment_text(name)))
                add_detail("another tool",
                           fmt::format("{} is {}: it may hold CUPTI, which supports one tool at a time", name,
                                       environment_text(name)));
        }
    }

    void check_nvtx() {
        const std::string library = environment_text("NVTX_INJECTION64_PATH");
        if (library.empty())
            return add_line(State::Ok, "nvtx",
                            "no other tool is attached (NVTX_INJECTION64_PATH is not set)");
        if (nvtx::is_library(library)) return add_line(State::Ok, "nvtx", "Marey is attached");
        add_line(State::Off, "nvtx",
                 "NVTX_INJECTION64_PATH is " + library + ": that tool receives the NVTX ranges",
                 "unset NVTX_INJECTION64_PATH");
    }

    std::string folder_ = ".";
    std::optional<std::uint64_t> pid_;
    Terminal terminal_;
    std::string text_;
};

}  // namespace

MAREY_VERB(doctor, DoctorVerb)

}  // namespace marey::cli
