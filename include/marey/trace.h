// trace.h: the data model of a finished recording: immutable columns, read by all analyses and exports.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/cxx20.h>
#include <marey/detail/export.h>
#include <marey/scope.h>
#include <marey/value.h>

namespace marey {

struct TraceData;  // the storage, src/trace/trace_data.h

/// Index into a trace's strings. 0 is the empty string.
using StringId = std::uint32_t;
/// Index of a row in one of a trace's tables.
using Row = std::uint32_t;
inline constexpr Row kNoRow = std::numeric_limits<Row>::max();

/// A place in the source that marks ranges, instants or counters. `file` is empty and `line` is 0 for names
/// made at run time.
struct SiteInfo {
    StringId name = 0;
    StringId file = 0;
    std::uint32_t line = 0;  ///< without a file: the number of a function in its device's library
    Scope scope = Scope::User;
    StringId overload = 0;  ///< the overload of an operator
    StringId category = 0;  ///< the category in the source trace (imported, NVTX); 0: that of the scope
    StringId raw_name = 0;  ///< the symbol that `name` was demangled from; 0: `name` is as recorded
    friend bool operator==(const SiteInfo&, const SiteInfo&) noexcept = default;
};

/// How a process came to be.
enum class ProcessOrigin : std::uint8_t {
    Unknown,
    Fork,   ///< its parent forked, and it continued the parent's program
    Spawn,  ///< started as a program of its own
    Exec,   ///< a recorded process replaced its program; `pid` and `start` stay the same
};

/// A recorded process. The times of every table are nanoseconds of CLOCK_MONOTONIC_RAW on its host; add
/// `realtime_offset_ns` for wall-clock time since 1970. A process is identified by the boot id in `clock`,
/// `pid_namespace`, `pid` and `start`.
struct ProcessInfo {
    std::int64_t pid = 0;
    std::int32_t node = -1;  ///< rank or node id; -1: none
    StringId name = 0;       ///< path of the executable
    StringId host = 0;
    StringId command_line = 0;
    std::int64_t realtime_offset_ns = 0;
    Row parent = kNoRow;  ///< the nearest ancestor in this trace, or the program that it replaced
    ProcessOrigin origin = ProcessOrigin::Unknown;
    StringId tree = 0;   ///< id of the tree of processes that was recorded together, in hexadecimal
    StringId clock = 0;  ///< "<boot id>/<time namespace>": processes with equal texts share a clock
    std::uint64_t pid_namespace = 0;
    std::uint64_t start = 0;        ///< clock ticks from boot to its start, as in /proc/PID/stat; 0: unknown
    StringId ancestors = 0;         ///< "<pid>:<start>:<pid namespace> ...", the parent first
    std::int64_t fork_ns = 0;       ///< when its parent forked; 0: it did not
    std::uint32_t fork_thread = 0;  ///< ThreadInfo::id of the forking thread in the parent; 0: unknown
    std::int32_t exit_code = -1;    ///< -1: unknown, or killed by a signal
    std::int32_t exit_signal = -1;  ///< that killed it; -1: none, or unknown
    std::int64_t realtime_error_ns = 0;  ///< possible error of its wall clock, by its kernel; 0: unknown
};

/// A thread, or another source with a separate log (`os_tid` 0).
struct ThreadInfo {
    Row process = 0;
    std::uint32_t id = 0;  ///< logical id, from 1, never reused in its process
    std::int64_t os_tid = 0;
    StringId name = 0;
    std::int64_t birth_ns = 0;
    std::int64_t death_ns = 0;             ///< 0 if it is still alive
    std::uint64_t dropped = 0;             ///< records lost for lack of space, or made inside a slow path
    std::uint64_t overwritten_chunks = 0;  ///< chunks of this thread that the ring policy reused
    std::uint64_t resyncs = 0;             ///< ends that did not match the innermost open range
    std::uint64_t clamped = 0;             ///< negative durations set to 0
};

/// The kind of a track.
enum class TrackKind : std::uint8_t {
    Thread,   ///< the nested ranges of a thread
    Async,    ///< ranges that cross threads or ended out of order; the ranges of each async track nest
    Device,   ///< device work in one of its queues
    Overlap,  ///< imported: ranges of a thread or a device that cross those of its first track
};

/// A track (row) of the timeline. `thread` of a device's track is a row of the thread table with `os_tid` 0.
/// Its ranges are contiguous rows of the range table, in pre-order: a parent comes directly before its first
/// child, siblings are in order of their start. Every range lies within its parent.
struct TrackInfo {
    TrackKind kind = TrackKind::Thread;
    Row thread = 0;
    StringId name = 0;
    Row first_range = 0;
    Row range_count = 0;
    Device device{};           ///< where its ranges ran: the CPU, except on device tracks
    std::int64_t stream = -1;  ///< the queue of that device; -1: none
};

/// Flags of a range.
enum RangeFlags : std::uint16_t {
    kBeganBefore = 1 << 0,  ///< started before the trace's window
    /// Still open at the window's end; its end is the window's end (with kRemote: or the end of its own
    /// session).
    kUnfinished = 1 << 1,
    kAsync = 1 << 2,        ///< ended out of order or on another thread
    kRemote = 1 << 3,       ///< from a session of another process
    kEndInferred = 1 << 4,  ///< closed by a resync; its end is the time of the resync
    kPart = 1 << 5,         ///< a part of a suspended call (a generator, a coroutine)
    kFurtherPart = 1 << 6,  ///< with kPart: the trace holds an earlier part of the same call
    /// Imported: made of samples, so its times are estimates. If it has a RangeDetail, it is a sum of calls:
    /// the calls and self times of all ranges of a function add up to the exact numbers.
    kSampled = 1 << 7,
};

/// The columns of the range table; all have the same length. Times are not clipped to the window; `self_ns`
/// is the part of the clipped duration that no child covers.
struct RangeColumns {
    std::span<const std::int64_t> start_ns;
    std::span<const std::int64_t> duration_ns;
    std::span<const std::int64_t> self_ns;
    std::span<const std::uint32_t> site;
    std::span<const Row> parent;  ///< kNoRow for roots; depth-0 ranges have a parent only on overlap tracks
    std::span<const std::uint32_t> depth;  ///< on its track; 0: outermost
    std::span<const std::uint16_t> flags;
    std::size_t size() const noexcept { return start_ns.size(); }
};

/// The columns of the instant table.
struct InstantColumns {
    std::span<const std::int64_t> time_ns;
    std::span<const std::uint32_t> site;
    std::span<const Row> thread;
    std::size_t size() const noexcept { return time_ns.size(); }
};

/// The columns of the counter table.
struct CounterColumns {
    std::span<const std::int64_t> time_ns;
    std::span<const std::uint32_t> site;
    std::span<const Row> thread;
    std::span<const double> value;
    std::size_t size() const noexcept { return time_ns.size(); }
};

/// The elements of a list: rows of Trace::list_items().
struct ListItems {
    std::uint32_t first, count;
};

/// The role of a value.
enum class ArgumentRole : std::uint8_t {
    Keyword = 0,
    Input = 1,
    Output = 2,
    Site = 3  ///< describes the site; attached to the site's first range (see modules.h)
};

/// Metadata of an array. Its sizes, followed by its strides if it has them, are
/// Trace::array_extents()[first_extent ...].
struct ArrayInfo {
    DType dtype = DType::Other;
    Layout layout = Layout::Strided;
    bool is_defined = true;
    bool has_strides = false;
    Device device;
    std::uint32_t first_extent = 0;
    std::uint32_t dimensions = 0;
    ArrayAccess access = ArrayAccess::Unknown;
    std::uint64_t storage = 0;  ///< address
    std::uint64_t storage_id = 0;
    std::uint64_t object = 0;  ///< as in ArrayView::object
};

/// One typed value attached to a range or an instant. Elements of lists, inputs and outputs have no key.
/// `array` is a row of Trace::arrays().
struct Argument {
    StringId key = 0;
    ValueKind kind = ValueKind::None;
    ArgumentRole role = ArgumentRole::Keyword;
    bool truncated = false;  ///< only the beginning of the string or list was kept
    /// Kind None: the original kind, if the session did not record the value. Kind String: Bool, Int or
    /// Double, if it is the text of a scalar that Marey has no number type for, such as a complex number.
    /// Kind List: Array, if it is empty and its items would be arrays.
    ValueKind left_out = ValueKind::None;
    union {
        bool boolean;
        std::int64_t integer = 0;
        double real;
        StringId string;
        ListItems list;
        Row array;
    };

    // These change the kind and the value, not the key.
    void set_bool(bool value) noexcept { kind = ValueKind::Bool, boolean = value; }
    void set_integer(std::int64_t value) noexcept { kind = ValueKind::Int, integer = value; }
    void set_real(double value) noexcept { kind = ValueKind::Double, real = value; }
    void set_string(StringId value) noexcept { kind = ValueKind::String, string = value; }
    void set_list(ListItems value) noexcept { kind = ValueKind::List, list = value; }
    void set_array(Row value) noexcept { kind = ValueKind::Array, array = value; }
};

/// Describes a range that is a part of a suspended call.
enum PartFlags : std::uint32_t {
    kFirstPart = 1 << 0,  ///< the call began with it
    kLastPart = 1 << 1,   ///< the call returned or raised at its end; otherwise it was suspended
    kWholeCall = 1 << 2,  ///< in exports only: the whole call, from its first part to its last
    kTask = 1 << 3,       ///< with kWholeCall: a task of an event loop; the call is that of its coroutine
};

/// Details that only few ranges have. Sorted by range.
struct RangeDetail {
    constexpr RangeDetail() noexcept = default;
    constexpr RangeDetail(Row the_range, std::int64_t the_sequence, std::uint32_t the_forward_thread,
                          std::uint64_t the_id = 0, std::uint64_t the_call = 0,
                          std::uint32_t the_part = 0) noexcept
        : range(the_range),
          forward_thread(the_forward_thread),
          sequence(the_sequence),
          id(the_id),
          call(the_call),
          part(the_part) {}

    Row range = kNoRow;
    /// Logical id of the thread of the forward range; 0: this is not a backward range.
    std::uint32_t forward_thread = 0;
    std::int64_t sequence = -1;  ///< number in the forward thread's sequence; -1: none
    std::uint64_t id = 0;        ///< id for observers, of operations; 0: none
    /// For generators and coroutines: number of the call in its process; 0: a call of one part.
    std::uint64_t call = 0;
    std::uint32_t part = 0;   ///< PartFlags
    std::uint32_t calls = 0;  ///< with kSampled: the calls that it stands for, at most 2^32 - 1
};

/// A task of an event loop. Its steps are the parts of its coroutine's call.
struct TaskInfo {
    Row process = 0;
    std::uint64_t call = 0;  ///< RangeDetail::call of its coroutine
    StringId name = 0;
    friend bool operator==(const TaskInfo&, const TaskInfo&) noexcept = default;
};

/// A message that was sent or received with a token (marey/token.h). Both ends of a message have the same
/// `sender` and `number`.
struct MessageInfo {
    std::int64_t time_ns = 0;
    std::uint64_t sender = 0;  ///< random number of the sending process
    std::uint64_t number = 0;  ///< of the message in that process
    Row thread = 0;
    Row range = kNoRow;  ///< the innermost range on the thread at that time
    bool is_received = false;
};

/// The kind of an arrow between two ranges.
enum class LinkKind : std::uint8_t {
    ForwardBackward = 1,  ///< from a forward range to its backward range
    Launch = 2,           ///< from the launching host call to the device's range
    Remote = 3,           ///< from the range of a call to a range of the called process
    /// An arrow of another kind, described by `name`: imported, or "spawn" from a range to the first range of
    /// a process that began in it, or "message" from the range that sent a message to the one that received
    /// it
    Flow = 4,
};
/// An arrow between two ranges. Sorted by `from`.
struct LinkInfo {
    Row from = kNoRow;
    Row to = kNoRow;
    LinkKind kind = LinkKind::ForwardBackward;
    StringId name = 0;  ///< 0: the kind describes it
};

/// Allocation reports, in order of threads, then times.
struct MemoryColumns {
    std::span<const std::int64_t> time_ns;
    std::span<const Row> thread;
    std::span<const std::uint64_t> address;
    std::span<const std::int64_t> bytes;  ///< negative: freed
    std::span<const std::int64_t> total_allocated;
    std::span<const std::int64_t> total_reserved;
    std::span<const Device> device;
    std::span<const std::uint8_t> out_of_memory;  ///< 1: `bytes` were requested and refused
    std::size_t size() const noexcept { return time_ns.size(); }
};

/// The state of a thread when it was sampled.
enum class SampleState : std::uint8_t { Running, Waiting, Preempted };
inline const char* sample_state_name(SampleState state) noexcept {
    constexpr const char* kNames[] = {"running", "waiting", "preempted"};
    return state <= SampleState::Preempted ? kNames[static_cast<std::size_t>(state)] : "";
}

/// Samples, in order of threads, then times. A wait is one sample, however long it took.
struct SampleColumns {
    std::span<const std::int64_t> time_ns;      ///< when it was taken; of a wait: when it began
    std::span<const std::int64_t> duration_ns;  ///< of a wait; 0 for other samples
    std::span<const std::int64_t> cpu_ns;       ///< CPU time that the sample stands for; 0 for waits
    std::span<const Row> thread;
    std::span<const SampleState> state;
    std::span<const Row> stack;  ///< row of Trace::stacks(); kNoRow: unknown
    std::span<const Row> range;  ///< the innermost range of the thread at that time, or kNoRow
    std::size_t size() const noexcept { return time_ns.size(); }
};

/// A frame and the stack around it, whose row is smaller. Equal stacks of one recording have the same row.
struct StackInfo {
    Row frame = 0;
    Row outer = kNoRow;
};

/// A function and a place in it. Frames of one function differ by `line` or `offset`.
struct FrameInfo {
    StringId name =
        0;  ///< of the function, like a recorded call's; native: "library+0x12ab" until symbolized
    StringId file = 0;         ///< source file, if known
    std::uint32_t line = 0;    ///< the line that ran; 0: unknown
    StringId module = 0;       ///< native frames: path of the program or library; 0: a Python frame
    std::uint64_t offset = 0;  ///< native frames: of the call, in the file
};

/// How a process was sampled.
struct SamplingInfo {
    Row process = 0;
    StringId clock = 0;         ///< "perf_event" or "cpu_clock"
    double rate_asked = 0;      ///< samples per second of CPU time
    double rate_reached = 0;    ///< likewise; 0: nothing ran
    std::uint64_t samples = 0;  ///< that were taken, of running threads
    std::uint64_t torn = 0;     ///< samples whose Python frames could not be read; the native ones are there
    std::uint64_t cut = 0;      ///< samples whose outer frames are missing
    std::uint64_t lost = 0;     ///< for lack of space
};

/// A fact about the whole recording, set by the user or by the tool that recorded it.
struct MetadataInfo {
    std::string key;
    std::string json;  ///< a complete JSON value
};

/// A problem that readers of the trace should be aware of: lost data, damage, a limit that was reached.
struct ProblemInfo {
    std::string code;  ///< short and stable: "dropped", "size_limit_reached", "damaged_chunk", ...
    std::string text;  ///< one sentence for users
    std::uint64_t count = 1;
};

/// One exchange with another host, to compare the clocks (marey/clock_exchange.h): `process` sent a request
/// and received the answer, at times of its own clock; `peer` received and answered it, at times of its own.
struct ClockExchangeInfo {
    Row process = 0;
    StringId peer = 0;  ///< name of the host that answered
    std::int64_t sent_ns = 0;
    std::int64_t arrived_ns = 0;
    std::int64_t answered_ns = 0;
    std::int64_t received_ns = 0;
};

/// The clock of a host in a trace of several hosts. The times of the trace are already those of the
/// reference.
struct HostClockInfo {
    StringId host = 0;
    StringId reference = 0;
    StringId method = 0;         ///< as in HostClock::method
    StringId evidence = 0;       ///< what the fit used: "112 exchanges, 340 collectives"
    std::int64_t offset_ns = 0;  ///< was added to its times, at the start of the window
    double rate = 0;             ///< against the reference, minus 1
    std::int64_t error_ns = 0;   ///< largest error of its times; the largest number: unknown
};

/// The clock of the recording and its accuracy.
struct ClockInfo {
    std::string source;  ///< "cntvct_el0", "tsc", "monotonic_raw", "injected"
    double ticks_per_second = 0;
    std::uint32_t pairs = 0;        ///< number of clock pairs used for the fit
    std::int64_t max_error_ns = 0;  ///< largest error of a time: half the widest pair used
    bool extrapolated = false;      ///< the end is after the last pair (a crash)
};

/// The cost of recording one event, measured once in the recording process.
struct CostInfo {
    /// "range", "range_with_values", "instant", "counter", "allocation_report"; with their hook, if calls
    /// were recorded: "python_call", "python_resume"
    std::string kind;
    double ns = 0;
};

/// The window of the session that the trace shows.
struct WindowInfo {
    std::string session_name;
    std::uint64_t session_id = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    bool finished = true;  ///< false: the program crashed or was killed, or this is a snapshot
    std::uint64_t max_bytes = 0;
    std::string policy;  ///< "stop", "drop" or "ring"
    bool size_limit_reached = false;
    std::uint64_t log_bytes = 0;  ///< bytes of log records that the trace was built from
    // These are not saved.
    std::uint64_t first_id = 0;      ///< added to the ids of events, so that traces of one process share none
    bool has_pytorch_flops = false;  ///< only operators that PyTorch's profiler counts have FLOPs
};

/// A session in a capture.
struct SessionInfo {
    std::uint64_t id = 0;
    std::string name;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;  ///< if not finished: its latest known time
    bool finished = true;     ///< false: the program crashed or was killed, or the session is still running
};

/// Lists the sessions of a capture, in order of their starts, without reading its events; of a run, those of
/// its processes one after another. Throws marey::Error.
MAREY_API std::vector<SessionInfo> list_sessions(const std::string& path);

/// Changes to a trace that has just been recorded.
struct TraceChanges {
    /// Returns another name for a site, or an empty string. Null: names are unchanged.
    std::function<std::string(Scope scope, std::string_view name)> rename;
    bool drops_forward_links = false;  ///< no links from operators to their backward passes
    std::uint64_t first_id = 0;        ///< as in WindowInfo
    bool has_pytorch_flops = false;    ///< likewise
};

/// A finished recording. Cheap to copy (shared and immutable) and safe to read from any thread.
class MAREY_API Trace {
  public:
    Trace();  ///< an empty trace
    explicit Trace(std::shared_ptr<const TraceData> data) noexcept : data_(std::move(data)) {}

    /// Reads a capture or a saved trace. From a damaged or truncated capture it reads the intact parts and
    /// lists the rest in problems(). Throws marey::Error, with the file and the cause, if nothing can be read
    /// or if a saved trace is incomplete.
    static Trace load(const std::string& path);
    /// Reads the session `session_id` of each process in the file that has one (see `marey info`).
    static Trace load(const std::string& path, std::uint64_t session_id);
    /// Reads a capture like load(), but faster, for averages and totals only: parts of suspended calls have
    /// their flags but no RangeDetail.
    static Trace load_for_averages(const std::string& path);
    /// Writes the tables, compressed; load() reads them back unchanged. Throws marey::Error.
    void save(const std::string& path) const;

    /// Returns the trace with one more fact. `json` is a complete JSON value; it replaces the value of an
    /// existing key. Copies the tables. Throws marey::Error if it is not valid JSON.
    Trace with_metadata(std::string_view key, std::string_view json) const;
    /// Returns the trace with some changes. Copies the tables unless `trace` is their only user.
    static Trace changed(Trace trace, const TraceChanges& changes);

    std::string_view string(StringId id) const noexcept;  ///< "" for an unknown id
    std::size_t string_count() const noexcept;

    std::span<const SiteInfo> sites() const noexcept;
    std::span<const ProcessInfo> processes() const noexcept;
    std::span<const ThreadInfo> threads() const noexcept;
    std::span<const TrackInfo> tracks() const noexcept;
    RangeColumns ranges() const noexcept;
    InstantColumns instants() const noexcept;
    CounterColumns counters() const noexcept;
    MemoryColumns memory() const noexcept;
    SampleColumns samples() const noexcept;
    std::span<const StackInfo> stacks() const noexcept;
    std::span<const FrameInfo> frames() const noexcept;
    std::span<const SamplingInfo> sampling() const noexcept;  ///< one for each process that was sampled
    std::span<const Argument> list_items() const noexcept;
    std::span<const ArrayInfo> arrays() const noexcept;
    std::span<const std::int64_t> array_extents() const noexcept;
    std::span<const RangeDetail> range_details() const noexcept;
    std::span<const LinkInfo> links() const noexcept;
    std::span<const MessageInfo> messages() const noexcept;
    std::span<const TaskInfo> task_names() const noexcept;  ///< by process and call
    std::span<const MetadataInfo> metadata() const noexcept;
    std::span<const ProblemInfo> problems() const noexcept;
    /// Whether there is a problem with this code.
    bool has_problem(std::string_view code) const noexcept;
    std::span<const CostInfo> costs() const noexcept;
    std::span<const ClockExchangeInfo> clock_exchanges() const noexcept;
    std::span<const HostClockInfo> host_clocks() const noexcept;  ///< empty for a trace of one host
    const ClockInfo& clock() const noexcept;
    const WindowInfo& window() const noexcept;

    /// The values attached to a range or an instant; empty for most rows (a binary search in a sparse index).
    std::span<const Argument> range_arguments(Row range) const noexcept;
    std::span<const Argument> instant_arguments(Row instant) const noexcept;

    /// The details of a range beyond its columns; null for most ranges.
    const RangeDetail* range_detail(Row range) const noexcept;

    std::string_view range_name(Row range) const noexcept;
    Row track_of(Row range) const noexcept;  ///< binary search over the tracks
    /// The part of a range's duration that lies in the window.
    std::int64_t clipped_duration_ns(Row range) const noexcept;

    const TraceData& data() const noexcept { return *data_; }

  private:
    friend std::shared_ptr<TraceData> changeable_data(Trace trace);

    std::shared_ptr<const TraceData> data_;
};

/// The items of a list, and the array of a value, as far as they exist: a trace made by hand may refer to
/// others.
inline std::span<const Argument> items_of(const Trace& trace, const Argument& value) noexcept {
    const std::span<const Argument> items = trace.list_items();
    if (value.kind != ValueKind::List || value.list.first > items.size()) return {};
    return items.subspan(value.list.first,
                         std::min<std::size_t>(value.list.count, items.size() - value.list.first));
}
inline const ArrayInfo* array_of(const Trace& trace, const Argument& value) noexcept {
    if (value.kind != ValueKind::Array || value.array >= trace.arrays().size()) return nullptr;
    return &trace.arrays()[value.array];
}
/// The sizes or the strides of an array, if they are known.
inline std::span<const std::int64_t> extents_of(const Trace& trace, const ArrayInfo& array,
                                                bool strides) noexcept {
    const std::span<const std::int64_t> all = trace.array_extents();
    const std::size_t first = array.first_extent + std::size_t{strides ? array.dimensions : 0};
    const bool is_known = array.is_defined && (!strides || array.has_strides) && first <= all.size() &&
                          array.dimensions <= all.size() - first;
    return is_known ? all.subspan(first, array.dimensions) : std::span<const std::int64_t>();
}

/// Joins traces of one machine whose windows do not overlap, given in any order. Equal threads, sites and
/// tracks are merged; ranges are cut at the end of their own window, so that the time between two windows
/// does not count. Throws marey::Error if windows overlap.
MAREY_API Trace join_traces(std::span<const Trace> traces);

}  // namespace marey
