// device.h: recording devices such as GPUs: the work they did, and how long ranges took on them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <marey/detail/cxx20.h>
#include <marey/detail/export.h>
#include <marey/memory.h>
#include <marey/value.h>

namespace marey {

/// The kinds of device activity to record, as a bit set. The numbers are part of the capture format.
enum DeviceActivities : std::uint32_t {
    kDeviceKernels = 1 << 0,
    kDeviceCopies = 1 << 1,
    kDeviceSets = 1 << 2,         ///< memory set to a value
    kDeviceCalls = 1 << 3,        ///< host calls into the device's library
    kDeviceDriverCalls = 1 << 4,  ///< host calls into the driver below it
    kDeviceWaits = 1 << 5,        ///< waits of a queue or of the host
    kDeviceOverhead = 1 << 6,     ///< time spent on measuring and compiling
    /// The time that each range took on the device, measured with events around it (DeviceRuntime::record).
    /// Devices without an activity source are always recorded this way.
    kDeviceTimes = 1 << 7,
    kDeviceDefault = 0x5f,  ///< all but waits and times
    kDeviceAll = 0x7f,      ///< all but times
};

/// Parses a list of names such as "kernels|waits" (docs/reference/environment.md) into DeviceActivities.
/// Throws marey::Error for an unknown name.
MAREY_API std::uint32_t parse_device_activities(const std::string& names);

/// The kind of one piece of device work. The numbers are part of the capture format.
enum class DeviceWorkKind : std::uint8_t {
    Kernel = 1,
    Copy = 2,
    Set = 3,
    Wait = 4,
    Overhead = 5,
    Migration = 6,  ///< pages moved by unified memory
    Timed = 7,      ///< the time between two device events around a host range
};

/// The activity that must be enabled to record such work; 0 if the kind is unknown.
constexpr std::uint32_t device_activity(DeviceWorkKind kind) noexcept {
    switch (kind) {
        case DeviceWorkKind::Kernel:
            return kDeviceKernels;
        case DeviceWorkKind::Timed:
            return kDeviceTimes;
        case DeviceWorkKind::Copy:
        case DeviceWorkKind::Migration:
            return kDeviceCopies;
        case DeviceWorkKind::Set:
            return kDeviceSets;
        case DeviceWorkKind::Wait:
            return kDeviceWaits;
        case DeviceWorkKind::Overhead:
            return kDeviceOverhead;
    }
    return 0;
}

/// The launch parameters of a kernel. 0 means unknown.
struct KernelShape {
    std::uint32_t grid[3] = {};
    std::uint16_t block[3] = {};
    std::uint16_t registers = 0;      ///< per thread
    std::uint32_t static_shared = 0;  ///< bytes per block
    std::uint32_t dynamic_shared = 0;
    std::uint64_t graph_node = 0;  ///< 0: not part of a graph
};

/// One piece of finished device work. Times are in ticks of device_ticks().
struct DeviceWork {
    DeviceWorkKind kind = DeviceWorkKind::Kernel;
    std::uint32_t site = 0;  ///< DeviceLog::work_site
    Device device{};
    std::int64_t stream = -1;  ///< its queue, at most 2^32 - 2; -1: none
    std::uint32_t context = 0;
    std::uint32_t correlation = 0;  ///< number of the call that launched it; 0: unknown
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t range = 0;  ///< instead of a call: id of the range that it belongs to (RangeDetail::id)
    std::uint64_t bytes = 0;  ///< moved or set
    KernelShape kernel{};
    std::span<const KeyedValue> values{};
};

/// A host call into the device's library. It belongs to the range around it on its thread.
struct DeviceCall {
    std::uint32_t site = 0;  ///< DeviceLog::call_site
    std::int32_t os_tid = 0;
    std::uint32_t correlation = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::int32_t result = 0;  ///< the error that it returned; 0: none
    DeviceType device_type =
        DeviceType::Cpu;  ///< device type of the library; Cpu: for sessions of any device
};

/// A comparison of a device's clock with the recorder's: the device time `ticks` was really `offset` ticks
/// later, with an uncertainty of `error` ticks. Times of device work are corrected by interpolation between
/// readings, and by extrapolation after the last two.
struct DeviceClockReading {
    Device device{};
    std::uint64_t ticks = 0;
    std::int64_t offset = 0;
    std::uint32_t error = 0;
};

/// The current time in ticks of the recorder's clock.
MAREY_API std::uint64_t device_ticks() noexcept;
/// The frequency of the recorder's clock.
MAREY_API std::uint64_t device_ticks_per_second() noexcept;

/// The log of a device, written by its activity source. Any thread may write; nothing throws. Records that do
/// not fit are dropped and counted, as in the log of a thread.
class MAREY_API DeviceLog {
  public:
    explicit DeviceLog(std::string_view name) noexcept;
    ~DeviceLog();
    DeviceLog(const DeviceLog&) = delete;
    DeviceLog& operator=(const DeviceLog&) = delete;

    /// Registers a name and returns its number, which the caller keeps. C++ symbols are shown demangled.
    /// Returns 0 if there is no space.
    static std::uint32_t work_site(DeviceWorkKind kind, std::string_view name) noexcept;
    /// `number` identifies the function in its library (CUPTI's callback id); 0: none.
    static std::uint32_t call_site(std::string_view name, bool is_driver = false,
                                   std::uint32_t number = 0) noexcept;

    void write(const DeviceWork& work) noexcept;
    void write(const DeviceCall& call) noexcept;
    /// Writes an allocation of the device at a given time, for sessions with profile_memory.
    void write(const MemoryReport& report, std::uint64_t ticks) noexcept;
    void write(const DeviceClockReading& reading) noexcept;
    /// Writes a fact (Trace::metadata) for the running sessions that record this device type. Call it as soon
    /// as the fact is known, so that it survives a crash, and at each flush. Repeating a fact that a session
    /// already has costs nothing.
    void write_fact(DeviceType type, std::string_view key, std::string_view json) noexcept;
    /// Adds to the number of dropped records: records of the device that never arrived.
    void count_lost(std::uint64_t records) noexcept;

  private:
    void* entry_;
};

/// The combined requests of the running sessions to a kind of device.
struct DeviceNeeds {
    std::uint32_t activities = 0;  ///< DeviceActivities; 0: nothing
    bool memory = false;           ///< allocation reports
    bool operator==(const DeviceNeeds&) const = default;
};

/// Records the activity of a device. Calls come one at a time, from the thread that starts or stops a
/// session; they must not throw, wait for the GIL, or start or stop sessions.
class DeviceActivitySource {
  public:
    virtual ~DeviceActivitySource() = default;
    /// Starts recording, adapts it to `needs`, or stops it if nothing is needed. Returns an empty string, or
    /// a message for the user if it failed.
    virtual std::string record(const DeviceNeeds& needs, DeviceLog& log) noexcept = 0;
    /// Writes buffered records into the log. With `wait_for_work`, also waits for the work launched so far.
    /// Returns within `timeout_ns`; false if some records are missing.
    virtual bool flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept = 0;
    /// Called in the child of a fork, to discard the parent's state.
    virtual void forked() noexcept {}
};

/// A point in the work of a device's current queue. Destroying it releases the event.
class DeviceEvent {
  public:
    virtual ~DeviceEvent() = default;
    virtual std::int32_t device() const noexcept = 0;
};

/// A kind of device. Registered once, for the lifetime of the process. Functions may be called from any
/// thread and throw marey::Error if they fail.
class MAREY_API DeviceRuntime {
  public:
    virtual ~DeviceRuntime();
    /// The name for `use_device`, such as "cuda".
    virtual std::string name() const = 0;
    virtual DeviceType type() const noexcept = 0;
    /// Why the device cannot be used on this machine and how to fix it; empty if it can.
    virtual std::string unavailable() const = 0;

    /// Records an event in the current queue of the calling thread's current device. Null: the thread has no
    /// current device.
    virtual std::unique_ptr<DeviceEvent> record() = 0;
    /// Returns the microseconds between two events recorded on the same device. Waits for both.
    virtual double elapsed_us(const DeviceEvent& from, const DeviceEvent& to) = 0;
    /// Whether the device has reached an event. Empty: the device can only wait for events, not query them.
    virtual std::optional<bool> has_reached(const DeviceEvent&) { return std::nullopt; }
    virtual void mark(std::string_view name) = 0;
    virtual void range_push(std::string_view name) = 0;
    virtual void range_pop() = 0;
    /// Calls `visit` for each device, with that device current.
    virtual void on_each_device(const std::function<void(std::int32_t device)>& visit) = 0;
    /// Waits until every device has finished its work.
    virtual void synchronize() = 0;

    /// Called when the program initialises the device's library, if the library notifies Marey (CUDA's driver
    /// does).
    virtual void begins() noexcept {}

    /// The activity source. Null: there is none, and ranges can only be timed with events.
    virtual DeviceActivitySource* activities() { return nullptr; }
    /// Why there is no activity source and how to fix it.
    virtual std::string activities_error() const;

    /// Lines for `marey doctor`: a title and a fact each ("driver", "12.4"). Called even if the device is
    /// unavailable.
    virtual std::vector<std::pair<std::string, std::string>> details() const { return {}; }
};

/// Returns the current queue of the calling thread as a handle of the device's library (a cudaStream_t); null
/// for the default queue.
using CurrentQueue = void* (*)() noexcept;
/// Sets the function that returns the current queue of a framework with its own queues; null removes it.
/// Events are recorded in that queue.
MAREY_API void set_current_queue(DeviceType type, CurrentQueue get_queue) noexcept;
/// Returns the current queue, for devices; null if no function is set.
MAREY_API void* current_queue(DeviceType type) noexcept;

/// Registers a device. Throws marey::Error if its name or its type is already registered.
MAREY_API void register_device(std::shared_ptr<DeviceRuntime> device);
/// Returns the device with this name, or null. At the first call, the library of the device is loaded:
/// libmarey_NAME.so in the folder of libmarey.so ("cuda"), or where the loader searches.
MAREY_API std::shared_ptr<DeviceRuntime> find_device(std::string_view name);
/// Returns why the device with this name cannot be recorded on this machine; empty if it can.
MAREY_API std::string device_error(std::string_view name);
/// Waits until all registered devices have finished their work. Never throws.
MAREY_API void synchronize_devices() noexcept;
/// Returns the names of the devices registered so far.
MAREY_API std::vector<std::string> registered_devices();

/// Sets whether ranges of this name are timed with events (kDeviceTimes). By default all are; the Python
/// package leaves out PyTorch operators that only inspect memory, such as aten::view and aten::size.
MAREY_API void time_on_device(std::string_view range_name, bool is_timed);

}  // namespace marey
