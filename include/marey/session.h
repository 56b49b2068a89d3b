// session.h: starting and stopping a recording, and what to record.
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

/// What happens when a session has used up its `max_bytes`.
enum class Policy : std::uint8_t {
    Stop = 0,  ///< it ends there: the trace holds the beginning
    Drop = 1,  ///< it goes on, new records are dropped and counted
    Ring = 2,  ///< the oldest records make room: the trace holds the end (a flight recorder)
};

/// Whose ranges a session sees.
enum class Threads : std::uint8_t {
    All = 0,    ///< every thread, those born later too
    Tasks = 1,  ///< the thread that starts the session, and the tasks it hands out (propagated contexts)
};

/// Which Python calls a session with `with_stack` records: docs/reference/python_tracer.md, "Filters".
struct CallOptions {
    /// Patterns: with a '/', or ending in ".py", a glob over the path of a file; else the dotted name of a
    /// module, which covers its submodules. Nothing to include: everything.
    std::vector<std::string> include{};
    std::vector<std::string> exclude{};
    bool fold_libraries = false;        ///< calls that library code makes into library code are left out
    bool lines = false;                 ///< with each call the line that its caller is at
    std::uint32_t max_depth = 0;        ///< of Python calls on a thread; 0: any
    std::uint64_t min_duration_ns = 0;  ///< shorter calls are left out
    std::uint64_t budget = 0;           ///< calls recorded, then that ends; 0: any number
    bool operator==(const CallOptions&) const = default;
};

/// What a session records. A plain struct: name what you want to change.
struct SessionOptions {
    std::string name{};  ///< shown in reports
    std::string
        output{};  ///< capture file; empty: memory only. With a file, nothing is lost when the program dies
    std::uint64_t max_bytes = std::uint64_t{1} << 30;  ///< ceiling of the log
    Policy policy = Policy::Stop;
    Threads threads = Threads::All;
    ScopeSet scopes = ScopeSet::all();  ///< empty: all

    bool record_values = true;     ///< keyword values given to ranges
    bool record_shapes = false;    ///< metadata of array inputs and outputs
    bool concrete_inputs = false;  ///< values of scalar ones as well; brings record_shapes with it
    bool profile_memory = false;   ///< allocation reports
    bool with_flops = false;       ///< what formulas of flops.h need; brings concrete_inputs with it
    bool with_stack = false;       ///< Python calls
    bool with_modules = false;
    CallOptions calls{};  ///< which of the Python calls
    /// Whose work to record: names as find_device() has them ("cuda"). One that cannot be had here is left
    /// out, and the trace's problems say why.
    std::vector<std::string> devices{};
    std::uint32_t device_activities = kDeviceDefault;  ///< what of it: DeviceActivities
    /// Ranges of NVTX are expected. They are recorded whenever Marey hears them (marey/nvtx.h); with this the
    /// trace says so when it cannot, as the problem nvtx_not_listening.
    bool with_nvtx = false;
};

/// One recording. Any number may run at once, nested or overlapping, started and stopped by any thread.
/// A Session that is destroyed while it runs is discarded. Not thread-safe itself (like any value).
class MAREY_API Session {
  public:
    Session() noexcept = default;
    explicit Session(const SessionOptions& options) { start(options); }
    ~Session();
    Session(Session&& other) noexcept;
    Session& operator=(Session&& other) noexcept;

    /// Throws marey::Error when the capture file cannot be made, or when it is running already.
    void start(const SessionOptions& options = {});
    /// What was recorded. The program goes on undisturbed meanwhile. With an output file, the file is
    /// complete afterwards. Stopping twice is harmless and gives the same trace.
    Trace stop();
    /// The trace so far; recording goes on. Its open ranges are marked unfinished.
    Trace snapshot() const;
    /// Stops without building a trace (a capture file is completed all the same).
    void discard() noexcept;
    bool is_running() const noexcept;
    /// Takes in events of another process (pack_events): its trace shows them as that process's, flagged
    /// kRemote. With an output file they survive this process from then on. Throws marey::Error when the
    /// message is not to be trusted (see unpack_events), is over 256 MiB or more than max_bytes allows, and
    /// when this session is not running.
    void add_events(std::string_view message, const RemoteOptions& options = {});
    /// Puts a fact into the trace (Trace::metadata): `json` is a whole JSON value of up to 128 KiB; a key
    /// given before gets the new value. Throws marey::Error when it is no JSON, and when this session is not
    /// running.
    void add_metadata(std::string_view key, std::string_view json);
    /// Leaves out what its devices do from now on (what they were given before is waited for), or goes on
    /// with it. What another session records of them meanwhile is in this one's trace too. Throws
    /// marey::Error when this session is not running.
    void record_devices(bool is_wanted);
    /// Where the capture is: differs from the output asked for when that name was taken. Empty without a
    /// file.
    const std::string& output_path() const noexcept { return output_path_; }
    std::uint64_t id() const noexcept { return id_; }

  private:
    std::uint64_t id_ = 0;  // 0: never started, or stopped
    std::string output_path_;
    Trace trace_;
};

/// What the sessions that see the calling thread's ranges ask for together, of whichever kind they are: the
/// union of scopes and switches, the largest ceiling. No scopes: there is none. Takes a lock.
MAREY_API SessionOptions active_options();

}  // namespace marey
