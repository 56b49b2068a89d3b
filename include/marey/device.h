// device.h: devices that work beside the processor: what they did, and how long ranges took on them.
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

#include <marey/detail/export.h>
#include <marey/memory.h>
#include <marey/value.h>

namespace marey {

/// Kinds of what can be recorded of a device, as a set. Numbers are part of the capture format.
enum DeviceActivities : std::uint32_t {
    kDeviceKernels = 1 << 0,
    kDeviceCopies = 1 << 1,
    kDeviceSets = 1 << 2,         ///< memory set to a value
    kDeviceCalls = 1 << 3,        ///< calls of the host into the device's library
    kDeviceDriverCalls = 1 << 4,  ///< and into the driver below it
    kDeviceWaits = 1 << 5,        ///< what a queue or the host waited for
    kDeviceOverhead = 1 << 6,     ///< what measuring and compiling cost
    /// How long each range took on the device, measured with events around it (DeviceRuntime::record). A
    /// device without an activity source is always recorded so.
    kDeviceTimes = 1 << 7,
    kDeviceDefault = 0x5f,  ///< all but waits and times
    kDeviceAll = 0x7f,      ///< all but times
};

/// Of their names, as in "kernels|waits" (docs/reference/environment.md). Throws marey::Error for one that does not
/// exist.
MAREY_API std::uint32_t parse_device_activities(const std::string& names);

/// What a piece of work was. A number is part of the capture format.
enum class DeviceWorkKind : std::uint8_t {
    Kernel = 1,
    Copy = 2,
    Set = 3,
    Wait = 4,
    Overhead = 5,
    Migration = 6,  ///< pages that unified memory moved
    Timed = 7,      ///< the time between two events of a device, around a range of the host
};

/// The activity that has to be asked for to get such work; 0: it is of no kind that this Marey knows.
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

/// The launch of a kernel. Zeros: not known.
struct KernelShape {
    std::uint32_t grid[3] = {};
    std::uint16_t block[3] = {};
    std::uint16_t registers = 0;      ///< of a thread
    std::uint32_t static_shared = 0;  ///< bytes of a block
    std::uint32_t dynamic_shared = 0;
    std::uint64_t graph_node = 0;  ///< 0: not part of a graph
};

/// Work that a device has done. Times are ticks of device_ticks().
struct DeviceWork {
    DeviceWorkKind kind = DeviceWorkKind::Kernel;
    std::uint32_t site = 0;  ///< DeviceLog::work_site
    Device device{};
    std::int64_t stream = -1;  ///< its queue, at most 2^32 - 2; -1: none
    std::uint32_t context = 0;
    std::uint32_t correlation = 0;  ///< of the call that launched it; 0: not known
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint64_t range = 0;  ///< instead of a call: the id of the range that it belongs to (RangeDetail::id)
    std::uint64_t bytes = 0;  ///< moved or set
    KernelShape kernel{};
    std::span<const KeyedValue> values{};
};

/// A call of the host into the device's library. It belongs to the range around it on its thread.
struct DeviceCall {
    std::uint32_t site = 0;  ///< DeviceLog::call_site
    std::int32_t os_tid = 0;
    std::uint32_t correlation = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::int32_t result = 0;                   ///< not 0: the error that it returned
    DeviceType device_type = DeviceType::Cpu;  ///< whose library it is; Cpu: sessions of any device have it
};

/// How a device's clock was found to go: what it says was `ticks` was `offset` ticks later, give or take
/// `error`. Times of its work are corrected in between measurements, and on from the last two.
struct DeviceClockReading {
    Device device{};
    std::uint64_t ticks = 0;
    std::int64_t offset = 0;
    std::uint32_t error = 0;
};

/// Now, in ticks of the recorder's clock.
MAREY_API std::uint64_t device_ticks() noexcept;
MAREY_API std::uint64_t device_ticks_per_second() noexcept;

/// The log of a device: what its activity source writes into. Any thread may write; nothing throws. What
/// finds no room is dropped and counted, as in the log of a thread.
class MAREY_API DeviceLog {
  public:
    explicit DeviceLog(std::string_view name) noexcept;
    ~DeviceLog();
    DeviceLog(const DeviceLog&) = delete;
    DeviceLog& operator=(const DeviceLog&) = delete;

    /// The number of a name, to be kept: a symbol of C++ is shown in its readable form. 0: no room.
    static std::uint32_t work_site(DeviceWorkKind kind, std::string_view name) noexcept;
    static std::uint32_t call_site(std::string_view name, bool is_driver = false) noexcept;

    void write(const DeviceWork& work) noexcept;
    void write(const DeviceCall& call) noexcept;
    /// An allocation of the device, at a time of its own; to sessions with profile_memory.
    void write(const MemoryReport& report, std::uint64_t ticks) noexcept;
    void write(const DeviceClockReading& reading) noexcept;
    /// A fact for the traces of the running sessions that asked for the device (Trace::metadata): tell it as
    /// soon as it is known, which a crash does not undo, and at each flush. What a session has been told
    /// already costs nothing.
    void write_fact(DeviceType type, std::string_view key, std::string_view json) noexcept;
    /// So many records never came: they are counted as dropped.
    void count_lost(std::uint64_t records) noexcept;

  private:
    void* entry_;
};

/// What the live sessions ask of a kind of device, together.
struct DeviceNeeds {
    std::uint32_t activities = 0;  ///< DeviceActivities; 0: nothing
    bool memory = false;           ///< allocation reports too
    bool operator==(const DeviceNeeds&) const = default;
};

/// Records what a device does. Calls come one at a time, from whichever thread starts or stops a session;
/// they must not throw, wait for the GIL, or start and stop sessions themselves.
class DeviceActivitySource {
  public:
    virtual ~DeviceActivitySource() = default;
    /// Starts, adapts or (nothing needed) stops. What keeps it from doing so, in words for people; empty: all
    /// is well.
    virtual std::string record(const DeviceNeeds& needs, DeviceLog& log) noexcept = 0;
    /// Writes what is still buffered into the log. `wait_for_work`: and what has been launched so far, when
    /// it is done. Returns within `timeout_ns`; false: something is missing.
    virtual bool flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept = 0;
    /// In the child of a fork: forget the parent's state.
    virtual void forked() noexcept {}
};

/// A point in the work of a device's current queue. Destroying it gives it back.
class DeviceEvent {
  public:
    virtual ~DeviceEvent() = default;
    virtual std::int32_t device() const noexcept = 0;
};

/// A kind of device. Registered once, for the life of the process. Functions may be called from any thread
/// and throw marey::Error where they cannot do what they say.
class MAREY_API DeviceRuntime {
  public:
    virtual ~DeviceRuntime();
    /// What `use_device` calls it: "cuda".
    virtual std::string name() const = 0;
    virtual DeviceType type() const noexcept = 0;
    /// Why it cannot be used here, with what would help; empty: it can.
    virtual std::string unavailable() const = 0;

    /// A point in the current queue of the calling thread's current device. Null: the thread has none.
    virtual std::unique_ptr<DeviceEvent> record() = 0;
    /// Microseconds from one point to another, which both have been recorded on one device. Waits for them.
    virtual double elapsed_us(const DeviceEvent& from, const DeviceEvent& to) = 0;
    /// Whether it has come to a point. Nothing: it cannot be asked, only waited for.
    virtual std::optional<bool> has_reached(const DeviceEvent&) { return std::nullopt; }
    virtual void mark(std::string_view name) = 0;
    virtual void range_push(std::string_view name) = 0;
    virtual void range_pop() = 0;
    /// Calls `visit` with each device made current.
    virtual void on_each_device(const std::function<void(std::int32_t device)>& visit) = 0;
    /// Waits until every device has done what it was given.
    virtual void synchronize() = 0;

    /// The program initialises the device's library, where that tells Marey (CUDA's driver does).
    virtual void begins() noexcept {}

    /// Null: it has none, and ranges can only be timed with events.
    virtual DeviceActivitySource* activities() { return nullptr; }
    /// Why there is none, with what would help.
    virtual std::string activities_error() const;

    /// What `marey doctor` says of it, a line each: a title and a fact ("driver", "12.4"). Also where it is
    /// unavailable.
    virtual std::vector<std::pair<std::string, std::string>> details() const { return {}; }
};

/// The queue that is current on the calling thread, as the device's own library calls it (a cudaStream_t);
/// null: the default one.
using CurrentQueue = void* (*)() noexcept;
/// A framework that has queues of its own says which is current; null: it no longer does. Events are recorded
/// there.
MAREY_API void set_current_queue(DeviceType type, CurrentQueue ask) noexcept;
/// What it says, for devices; null where nobody does.
MAREY_API void* current_queue(DeviceType type) noexcept;

/// Makes a device known. Throws marey::Error when its name, or its type, is taken.
MAREY_API void register_device(std::shared_ptr<DeviceRuntime> device);
/// The device of a name. Those that come with Marey ("cuda", "simulated") are loaded at the first asking.
/// Null: there is none of that name.
MAREY_API std::shared_ptr<DeviceRuntime> find_device(std::string_view name);
/// Why a device of that name cannot be recorded here; empty: it can.
MAREY_API std::string device_error(std::string_view name);
/// Waits until the devices that are registered have done what they were given. Nothing throws.
MAREY_API void synchronize_devices() noexcept;
/// The names of those that are registered now.
MAREY_API std::vector<std::string> registered_devices();

/// Whether ranges of a name are timed with events (kDeviceTimes). All are at first, but for PyTorch's
/// operators that only look at memory: aten::view, aten::size and the like.
MAREY_API void time_on_device(std::string_view range_name, bool is_timed);

}  // namespace marey
