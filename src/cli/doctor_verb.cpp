// doctor_verb.cpp: marey doctor: whether recording works here, what of it does not, and what would help.
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <marey/device.h>
#include <marey/error.h>
#include <marey/nvtx.h>
#include <marey/range.h>
#include <marey/session.h>
#include <marey/traceback.h>

#include "cli/footer.h"
#include "cli/python_program.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDefaultMaxBytes = std::uint64_t{1} << 30;

/// The first line of a file of the system; empty: there is none.
std::string first_line(const char* path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::string variable(const char* name) {
    const char* const text = std::getenv(name);
    return text != nullptr ? text : "";
}

/// What a command prints, and whether it succeeded.
struct CommandOutput {
    std::string text;
    bool is_success = false;
};

CommandOutput ask(const std::string& command) {
    CommandOutput said;
    std::FILE* const pipe = ::popen((command + " 2>&1 </dev/null").c_str(), "r");
    if (pipe == nullptr) return said;
    std::array<char, 512> piece{};
    while (const std::size_t bytes = std::fread(piece.data(), 1, piece.size(), pipe))
        said.text.append(piece.data(), bytes);
    said.is_success = ::pclose(pipe) == 0;
    while (said.text.ends_with('\n')) said.text.pop_back();
    return said;
}

class DoctorVerb final : public Verb {
  public:
    const char* help() const override {
        return "Whether recording works here, and what would help where not";
    }
    const char* details() const override {
        return "ok: it works. off: it is not there; recording goes without. BAD: recording does not work, or "
               "not well.\n"
               "The exit code is 0 when recording works.";
    }
    void declare(Options& options) override {
        options.text(folder_, "--folder", "FOLDER", "Where captures are to go (the current folder)");
    }

    int run() override {
        terminal_ = standard_output();
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

    void say(State state, std::string_view title, const std::string& fact, const std::string& help = "") {
        const char* const word = state == State::Ok ? "ok" : state == State::Off ? "off" : "BAD";
        text_ +=
            styled(terminal_, state == State::Bad ? Style::Red : Style::Plain, fmt::format("{:<4}", word));
        text_ += styled(terminal_, Style::Bold, fmt::format("{:<11}", title)) + printable(fact) + "\n";
        if (!help.empty()) more("fix", help);
    }
    void more(std::string_view title, const std::string& fact) {
        text_ += fmt::format("    {:<11}{}: {}\n", "", printable(title), printable(fact));
    }

    /// Records into a file there, and reads it again: the whole way that a capture goes.
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
            say(State::Ok, "recording", fmt::format("into {}", folder_));
            check_clock(trace);
            return true;
        } catch (const Error& error) {
            ::unlink(path.c_str());
            say(State::Bad, "recording", error.what(),
                fmt::format(
                    "give a folder that can be written: marey run -o FOLDER/x.marey, marey doctor --folder "
                    "FOLDER"));
            return false;
        }
    }

    void check_clock(const Trace& trace) {
        const bool is_counter =
            trace.clock().source != "monotonic_raw" && trace.clock().source != "monotonic";
        say(is_counter ? State::Ok : State::Off, "clock", clock_fact(trace),
            is_counter ? ""
                       : "the processor's counter is not used, since the kernel does not trust it (" +
                             first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource") +
                             "); ranges cost more and are right");
        std::string costs;
        for (const CostInfo& cost : trace.costs())
            costs += fmt::format("{}{} {:.1f} ns", costs.empty() ? "" : ", ", cost.kind, cost.ns);
        say(State::Ok, "costs", costs);
    }

    void check_space() {
        struct statvfs info {};
        if (::statvfs(folder_.c_str(), &info) != 0) return;
        const std::uint64_t free = std::uint64_t{info.f_bavail} * info.f_frsize;
        say(free >= kDefaultMaxBytes ? State::Ok : State::Bad, "space", format_bytes(free) + " free",
            free >= kDefaultMaxBytes
                ? ""
                : "a recording may take 1 GiB: give it a smaller ceiling (marey run --max 64MB), or "
                  "another folder (-o)");
    }

    void check_native_lines() {
        if (has_native_lines()) return say(State::Ok, "symbols", "lines of C++ in tracebacks (elfutils)");
        say(State::Off, "symbols", "tracebacks of C++ have names, and no lines",
            "build Marey with elfutils: apt-get install libdw-dev");
    }

    void check_python() {
        const std::string start = python_start_folder();
        if (start.empty())
            return say(State::Off, "python", "this command is not part of the Python package",
                       "install the package: 'pip install .' in a clone of Marey");
        const std::string python = python_command({}).front();
        const std::string package = fs::path(start).parent_path().parent_path().string();
        const std::string path = variable("PYTHONPATH");
        const CommandOutput said =
            ask(fmt::format("MAREY= PYTHONPATH={} {} -m marey._doctor",
                            shell_word(package + (path.empty() ? "" : ":" + path)), shell_word(python)));
        if (!said.is_success) {
            const std::string why = said.text.substr(said.text.rfind('\n') + 1);
            return say(State::Bad, "python", python + ": " + (why.empty() ? "cannot be run" : why),
                       "use the command that pip has installed, with the Python that it belongs to");
        }
        std::size_t at = 0;
        while (at < said.text.size()) {
            const std::size_t end = std::min(said.text.find('\n', at), said.text.size());
            python_line(said.text.substr(at, end - at));
            at = end + 1;
        }
    }

    /// "ok|off|BAD<TAB>title<TAB>fact<TAB>help", as python/marey/_doctor.py prints them.
    void python_line(const std::string& line) {
        std::array<std::string, 4> parts;
        std::size_t at = 0;
        for (std::string& part : parts) {
            const std::size_t end = std::min(line.find('\t', at), line.size());
            part = line.substr(at, end - at);
            at = std::min(end + 1, line.size());
        }
        const State state = parts[0] == "ok" ? State::Ok : parts[0] == "off" ? State::Off : State::Bad;
        say(state, parts[1], parts[2], parts[3]);
    }

    void check_cuda() {
        const std::string driver = first_line("/proc/driver/nvidia/version");
        const auto device = find_device("cuda");
        std::string trouble = device_error("cuda");
        const bool has_driver = trouble.empty() || !driver.empty();
        if (trouble.empty() && device != nullptr && device->activities() == nullptr)
            trouble = device->activities_error() + " Without it ranges are timed with events.";
        say(trouble.empty() ? State::Ok : State::Off, "cuda",
            trouble.empty() ? "kernels, copies and calls are recorded (marey run --gpu)" : trouble,
            has_driver
                ? ""
                : "this machine has no NVIDIA driver; where it has a GPU, install one (nvidia-smi shows it)");
        if (device != nullptr) {
            for (const auto& [title, fact] : device->details()) more(title, fact);
        }
        if (!driver.empty()) more("driver", driver);
        std::ifstream parameters("/proc/driver/nvidia/params");
        for (std::string line; std::getline(parameters, line);) {
            if (line == "RmProfilingAdminOnly: 1")
                more("rights",
                     "hardware counters are for administrators only (NVreg_RestrictProfilingToAdminUsers); "
                     "Marey needs none");
        }
        for (const char* const name : {"CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID"}) {
            if (!variable(name).empty() && !nvtx::is_library(variable(name)))
                more("another tool", fmt::format("{} is {}: it may hold CUPTI, which serves one at a time",
                                                 name, variable(name)));
        }
    }

    void check_nvtx() {
        const std::string listener = variable("NVTX_INJECTION64_PATH");
        if (listener.empty())
            return say(State::Ok, "nvtx", "nobody else listens (NVTX_INJECTION64_PATH is not set)");
        if (nvtx::is_library(listener)) return say(State::Ok, "nvtx", "Marey listens");
        say(State::Off, "nvtx",
            "NVTX_INJECTION64_PATH is " + listener + ": that tool hears the ranges of NVTX",
            "unset NVTX_INJECTION64_PATH");
    }

    std::string folder_ = ".";
    Terminal terminal_;
    std::string text_;
};

}  // namespace

std::unique_ptr<Verb> make_doctor_verb() {
    return std::make_unique<DoctorVerb>();
}

}  // namespace marey::cli
