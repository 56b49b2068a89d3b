// session_options.h: the options of a session, and the table of their names in Python, in the variable MAREY
// and on the command line. To add an option, add a member and its line in the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <marey/detail/export.h>
#include <marey/device.h>
#include <marey/scope.h>

namespace marey {

/// The action when a session has used up its `max_bytes`.
enum class Policy : std::uint8_t {
    Stop = 0,  ///< stop recording: the trace contains the beginning
    Drop = 1,  ///< continue, but drop and count new records
    Ring = 2,  ///< overwrite the oldest records: the trace contains the end (a flight recorder)
};

/// The threads that a session records.
enum class Threads : std::uint8_t {
    All = 0,    ///< every thread, including threads started later
    Tasks = 1,  ///< the thread that starts the session, and the tasks it passes on (propagated contexts)
};

/// Selects the Python calls that a session with `with_stack` records; see docs/reference/python_tracer.md,
/// "Filters".
struct CallOptions {
    /// Patterns: if it contains a '/' or ends in ".py", a glob for the path of a file; otherwise the dotted
    /// name of a module, which includes its submodules. An empty `include` means everything.
    std::vector<std::string> include{};
    std::vector<std::string> exclude{};
    bool fold_libraries = false;        ///< leave out calls from library code into library code
    bool lines = false;                 ///< record the caller's line with each call
    std::uint32_t max_depth = 0;        ///< maximum depth of Python calls on a thread; 0: any
    std::uint64_t min_duration_ns = 0;  ///< leave out shorter calls
    std::uint64_t budget = 0;           ///< stop recording calls after this many; 0: never
    bool operator==(const CallOptions&) const = default;
};

/// The options of a session. A plain struct: set only the members to change.
struct SessionOptions {
    std::string name{};  ///< shown in reports
    /// The capture file; empty: memory only. With a file, nothing is lost if the program crashes.
    std::string output{};
    std::uint64_t max_bytes = std::uint64_t{1} << 30;  ///< maximum size of the log
    Policy policy = Policy::Stop;
    std::uint64_t last_ns = 0;  ///< keep only this time before the end, with Policy::Ring; 0: all
    Threads threads = Threads::All;
    ScopeSet scopes = ScopeSet::all();  ///< empty: all

    bool record_values = true;  ///< record keyword values of ranges
    /// Record the arguments of the process. If not, later sessions of the process do not either.
    bool record_command_line = true;
    bool record_shapes = false;    ///< record metadata of array inputs and outputs
    bool concrete_inputs = false;  ///< record values of scalar inputs too; implies record_shapes
    bool profile_memory = false;   ///< record allocation reports
    bool with_flops = false;       ///< record the inputs for the formulas of flops.h; implies concrete_inputs
    bool with_stack = false;       ///< record Python calls
    std::uint32_t sample = 0;      ///< sample the stacks of threads so often per second of CPU time; 0: never
    bool with_modules = false;     ///< record the submodules of modules (marey/modules.h)
    CallOptions calls{};           ///< selects the Python calls
    /// The devices to record: names for find_device(), such as "cuda". Unavailable devices are left out, and
    /// the trace's problems contain the reason.
    std::vector<std::string> devices{};
    std::uint32_t device_activities = kDeviceDefault;  ///< DeviceActivities to record
    /// NVTX ranges are expected. They are always recorded when they reach Marey (marey/nvtx.h); with this
    /// option, the trace has the problem nvtx_not_listening if they cannot reach it.
    bool with_nvtx = false;
    /// In a distributed program on several hosts, compare the hosts' clocks while recording
    /// (marey/clock_exchange.h). Only frameworks do that, such as marey.torch, over a connection of their
    /// own.
    bool clock_exchange = true;
    bool control = false;  ///< let other processes of this user start recordings (marey/control.h)
};

/// How the text of an option is read, where its type does not decide that.
enum class OptionForm : std::uint8_t {
    Usual = 0,        ///< by type: on or off, a number, a text, a word, or names separated by '|'
    Size = 1,         ///< a number of bytes, with an optional unit
    Nanoseconds = 2,  ///< `marey run` takes a time with its unit, Python a number of microseconds
    Activities = 3,   ///< names of device activities
    Patterns = 4,     ///< one pattern (marey/call_pattern.h); the option may be repeated
    Seconds = 5,      ///< a time with its unit, Python takes a number of seconds; kept in nanoseconds
};

/// One option and its names. SessionOptions has its default.
struct SessionOption {
    using Member =
        std::variant<bool SessionOptions::*, std::uint32_t SessionOptions::*, std::uint64_t SessionOptions::*,
                     std::string SessionOptions::*, std::vector<std::string> SessionOptions::*,
                     Policy SessionOptions::*, Threads SessionOptions::*, ScopeSet SessionOptions::*,
                     bool CallOptions::*, std::uint32_t CallOptions::*, std::uint64_t CallOptions::*,
                     std::vector<std::string> CallOptions::*>;

    Member member;
    const char* name;              ///< the keyword in Python
    const char* key;               ///< in the variable MAREY; empty: not available there
    const char* flag = "";         ///< of `marey run`; empty: none, or one that `marey run` declares itself
    const char* help = "";         ///< of the flag
    const char* placeholder = "";  ///< of the flag's value; empty: it takes none
    OptionForm form = OptionForm::Usual;

    /// Whether it selects the Python calls to record.
    bool is_for_calls() const {
        return std::visit([](auto its) { return std::is_invocable_v<decltype(its), CallOptions>; }, member);
    }
    /// Calls `use` with a reference to the member in `options`.
    template <class Use>
    auto visit(SessionOptions& options, Use use) const {
        return std::visit(
            [&](auto its) {
                if constexpr (requires { options.*its; }) {
                    return use(options.*its);
                } else {
                    return use(options.calls.*its);
                }
            },
            member);
    }
};

/// Every option, in the order of `marey run --help`. The key c_calls is not in it: it removes a scope.
inline constexpr SessionOption kSessionOptions[] = {
    {&SessionOptions::output, "output", "out"},
    {&SessionOptions::name, "name", "name"},
    {&SessionOptions::max_bytes, "max_bytes", "max", "--max-bytes,--max",
     "Maximum size of the recording, such as 512MB (1 GiB)", "SIZE", OptionForm::Size},
    {&SessionOptions::policy, "policy", "policy", "--policy",
     "At that size: stop, drop new events or overwrite old ones (stop)", "stop|drop|ring"},
    {&SessionOptions::last_ns, "last", "last", "--last",
     "Keep only this time before the end, such as 30s; implies --ring", "TIME", OptionForm::Seconds},
    {&SessionOptions::threads, "threads", ""},
    {&SessionOptions::scopes, "scopes", "scopes", "--scopes",
     "Record only these kinds of range, such as user,function", "LIST"},
    {&SessionOptions::record_values, "record_values", "values"},
    {&SessionOptions::record_command_line, "record_command_line", "command_line"},
    {&SessionOptions::profile_memory, "profile_memory", "memory", "--memory",
     "Record allocation reports too (see marey memory)"},
    {&SessionOptions::sample, "sample", "sample"},
    {&SessionOptions::record_shapes, "record_shapes", "shapes", "--shapes",
     "Record the shapes of arrays that operations take and return"},
    {&SessionOptions::concrete_inputs, "concrete_inputs", "inputs"},
    {&SessionOptions::with_flops, "with_flops", "flops", "--flops",
     "Record the values needed to count FLOPs; implies --shapes"},
    {&SessionOptions::with_modules, "with_modules", ""},
    {&SessionOptions::devices, "devices", "devices"},
    {&SessionOptions::device_activities, "device_activities", "device_activities", "--gpu-activities",
     "GPU activities to record, such as default,waits (default)", "LIST", OptionForm::Activities},
    {&SessionOptions::with_nvtx, "with_nvtx", "nvtx", "--nvtx",
     "Record NVTX ranges, in any program that uses NVTX"},
    {&SessionOptions::clock_exchange, "clock_exchange", "clock_exchange"},
    {&SessionOptions::control, "control", "control", "--control",
     "Let marey start and marey stop make further recordings"},
    {&CallOptions::include, "include", "include", "--include",
     "Record only these files (src/*.py) or modules (shop.load); repeatable", "PATTERN",
     OptionForm::Patterns},
    {&CallOptions::exclude, "exclude", "exclude", "--exclude",
     "Do not record these files or modules; repeatable", "PATTERN", OptionForm::Patterns},
    {&CallOptions::fold_libraries, "fold_libraries", "fold_libraries", "--fold-libraries",
     "Record only the outermost call into library code"},
    {&CallOptions::min_duration_ns, "min_duration_us", "min_duration_ns", "--min-duration",
     "Record only calls that take at least this long, such as 10us (0)", "TIME", OptionForm::Nanoseconds},
    {&CallOptions::max_depth, "max_depth", "max_depth", "--max-depth",
     "Record only calls up to this depth (0: any)", "N"},
    {&CallOptions::budget, "call_budget", "call_budget", "--budget",
     "Stop recording calls after this many (0: never)", "N"},
    {&CallOptions::lines, "call_lines", "call_lines", "--call-lines",
     "Record the line that each call was made from"},
    {&SessionOptions::with_stack, "with_stack", "calls"},
};

/// Sets an option from its text in the variable MAREY. Throws marey::Error without the option's name if the
/// text is invalid.
MAREY_API void set_option(SessionOptions& options, const SessionOption& option, std::string_view text);

/// Reads the value of the variable MAREY: "out=app.marey,max=512MB,policy=ring"
/// (docs/reference/environment.md). Throws marey::Error with the key that is invalid. `auto_c_calls`: the
/// meaning of "c_calls=auto".
MAREY_API SessionOptions parse_options(std::string_view text, bool auto_c_calls = true);

/// Reads a size in bytes: "512MB", "2 GiB", "4096". Throws marey::Error.
MAREY_API std::uint64_t parse_bytes(std::string_view text);

/// One entry of that text, with the separators in `value` escaped: "out=a\,b.marey".
MAREY_API std::string option_entry(std::string_view key, std::string_view value);

/// The place of this process in a distributed program.
struct EnvironmentRank {
    int rank = -1;  ///< -1: there is only one process
    int size = 0;   ///< number of ranks; 0: unknown
};
/// Reads what `torchrun` (RANK, WORLD_SIZE), Open MPI, MPICH and Slurm's `srun` set.
MAREY_API EnvironmentRank environment_rank_and_size() noexcept;
MAREY_API int environment_rank() noexcept;
/// The capture of a rank: "app.rank3.marey" for rank 3 and "app.marey", or for that name itself. No change
/// for rank -1.
MAREY_API std::string path_of_rank(const std::string& path, int rank);

}  // namespace marey
