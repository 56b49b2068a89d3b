// session.h: starts and stops recordings, with options for what to record.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/device.h>
#include <marey/remote.h>
#include <marey/scope.h>
#include <marey/trace.h>

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
    Threads threads = Threads::All;
    ScopeSet scopes = ScopeSet::all();  ///< empty: all

    bool record_values = true;     ///< record keyword values of ranges
    bool record_shapes = false;    ///< record metadata of array inputs and outputs
    bool concrete_inputs = false;  ///< record values of scalar inputs too; implies record_shapes
    bool profile_memory = false;   ///< record allocation reports
    bool with_flops = false;       ///< record the inputs for the formulas of flops.h; implies concrete_inputs
    bool with_stack = false;       ///< record Python calls
    bool with_modules = false;     ///< record the submodules of modules (marey/modules.h)
    CallOptions calls{};           ///< selects the Python calls
    /// The devices to record: names for find_device(), such as "cuda". Unavailable devices are left out, and
    /// the trace's problems contain the reason.
    std::vector<std::string> devices{};
    std::uint32_t device_activities = kDeviceDefault;  ///< DeviceActivities to record
    /// NVTX ranges are expected. They are always recorded when they reach Marey (marey/nvtx.h); with this
    /// option, the trace has the problem nvtx_not_listening if they cannot reach it.
    bool with_nvtx = false;
};

/// One recording. Any number may run at the same time, nested or overlapping, started and stopped by any
/// thread. A Session that is destroyed while it is running is discarded. The object itself is not
/// thread-safe.
class MAREY_API Session {
  public:
    Session() noexcept = default;
    explicit Session(const SessionOptions& options) { start(options); }
    ~Session();
    Session(Session&& other) noexcept;
    Session& operator=(Session&& other) noexcept;

    /// Starts recording. Throws marey::Error if the capture file cannot be created or the session is already
    /// running.
    void start(const SessionOptions& options = {});
    /// Stops recording and returns the trace. Other threads continue undisturbed. With an output file, the
    /// file is complete afterwards. Stopping twice is harmless and returns the same trace.
    Trace stop();
    /// Returns the trace so far and continues recording. Open ranges are marked unfinished.
    Trace snapshot() const;
    /// Stops without building a trace (a capture file is completed all the same).
    void discard() noexcept;
    bool is_running() const noexcept;
    /// Adds events of another process (pack_events). The trace shows them under that process, flagged
    /// kRemote. With an output file, they survive a crash of this process from then on. Throws marey::Error
    /// if the message is invalid (see unpack_events), over 256 MiB or larger than max_bytes allows, or if
    /// this session is not running.
    void add_events(std::string_view message, const RemoteOptions& options = {});
    /// Adds a fact to the trace (Trace::metadata): `json` is a complete JSON value of up to 128 KiB; it
    /// replaces an earlier value of the same key. Throws marey::Error if it is not valid JSON or this session
    /// is not running.
    void add_metadata(std::string_view key, std::string_view json);
    /// Stops recording the session's devices (after waiting for work already launched), or resumes it. If
    /// another session records the devices at the same time, that work is in this session's trace too. Throws
    /// marey::Error if this session is not running.
    void record_devices(bool is_wanted);
    /// The path of the capture. Differs from the requested output if that file existed. Empty without a file.
    const std::string& output_path() const noexcept { return output_path_; }
    std::uint64_t id() const noexcept { return id_; }

  private:
    std::uint64_t id_ = 0;  // 0: never started, or stopped
    std::string output_path_;
    Trace trace_;
};

/// Returns the combined options of all sessions that record the calling thread: the union of scopes and
/// switches, and the largest max_bytes. No scopes means that there is no such session. Takes a lock.
MAREY_API SessionOptions active_options();

}  // namespace marey
