// trace.h: the finished model of a recording. Immutable columns, built once; everything downstream reads
// them.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// A place that marks ranges, instants or counters. `file` is empty and `line` 0 for names made at run time.
struct SiteInfo {
    StringId name = 0;
    StringId file = 0;
    std::uint32_t line = 0;
    Scope scope = Scope::User;
    StringId overload = 0;  ///< which of an operator's variants
    StringId category = 0;  ///< the word of its maker for its kind (imported, NVTX); 0: the scope's
    StringId raw_name = 0;  ///< the symbol that `name` is the readable form of; 0: `name` is as recorded
    friend bool operator==(const SiteInfo&, const SiteInfo&) noexcept = default;
};

/// A process that recorded. Times of every table are nanoseconds of CLOCK_MONOTONIC_RAW of its host;
/// add `realtime_offset_ns` for wall-clock time since 1970.
struct ProcessInfo {
    std::int64_t pid = 0;
    std::int32_t node = -1;  ///< rank or node id, -1 when none was given
    StringId name = 0;       ///< path of the executable
    StringId host = 0;
    StringId command_line = 0;
    std::int64_t realtime_offset_ns = 0;
};

/// A thread, or something with a log of its own that is not a thread (`os_tid` 0).
struct ThreadInfo {
    Row process = 0;
    std::uint32_t id = 0;  ///< logical id, from 1, never reused in its process
    std::int64_t os_tid = 0;
    StringId name = 0;
    std::int64_t birth_ns = 0;
    std::int64_t death_ns = 0;  ///< 0 while it lives
    std::uint64_t dropped = 0;  ///< records lost because there was no room, or made inside a slow path
    std::uint64_t overwritten_chunks = 0;  ///< chunks of this thread that the ring policy reused
    std::uint64_t resyncs = 0;             ///< ends that did not match the innermost open range
    std::uint64_t clamped = 0;             ///< negative durations set to 0
};

enum class TrackKind : std::uint8_t {
    Thread,   ///< the nested ranges of a thread
    Async,    ///< ranges that cross threads or ended out of order; each async track holds ranges that nest
    Device,   ///< what a device did, in one of its queues
    Overlap,  ///< imported: ranges of a thread or a device that cross those of its first track, but are else
              ///< the same
};

/// A row of the timeline. `thread` of a device's track is a row of the thread table with `os_tid` 0. Its
/// ranges are contiguous rows of the range table, in pre-order: a parent stands directly before its first
/// child, siblings in order of their start. Every range lies within its parent.
struct TrackInfo {
    TrackKind kind = TrackKind::Thread;
    Row thread = 0;
    StringId name = 0;
    Row first_range = 0;
    Row range_count = 0;
    Device device{};           ///< where its ranges ran: the processor, except on tracks of a device
    std::int64_t stream = -1;  ///< the queue of that device; -1: none
};

enum RangeFlags : std::uint16_t {
    kBeganBefore = 1 << 0,  ///< started before the trace's window
    kUnfinished = 1 << 1,   ///< still open at the window's end (its end is the window's end; kRemote: or when
                            ///< its own session ended)
    kAsync = 1 << 2,        ///< ended out of order or on another thread
    kRemote = 1 << 3,       ///< came from another process's session
    kEndInferred = 1 << 4,  ///< closed by a resync, its end is when that was noticed
};

/// The columns of the range table; all have the same length. Times are true times, not clipped to the window;
/// `self_ns` is the part of the clipped duration that no child covers.
struct RangeColumns {
    std::span<const std::int64_t> start_ns;
    std::span<const std::int64_t> duration_ns;
    std::span<const std::int64_t> self_ns;
    std::span<const std::uint32_t> site;
    std::span<const Row> parent;  ///< kNoRow for roots; of a track's first level, only on tracks that overlap
    std::span<const std::uint32_t> depth;  ///< on its track: 0 for the outermost
    std::span<const std::uint16_t> flags;
    std::size_t size() const noexcept { return start_ns.size(); }
};

struct InstantColumns {
    std::span<const std::int64_t> time_ns;
    std::span<const std::uint32_t> site;
    std::span<const Row> thread;
    std::size_t size() const noexcept { return time_ns.size(); }
};

struct CounterColumns {
    std::span<const std::int64_t> time_ns;
    std::span<const std::uint32_t> site;
    std::span<const Row> thread;
    std::span<const double> value;
    std::size_t size() const noexcept { return time_ns.size(); }
};

/// Where the elements of a list are: rows of Trace::list_items().
struct ListItems {
    std::uint32_t first, count;
};

/// What a value is to its range.
enum class ArgumentRole : std::uint8_t {
    Keyword = 0,
    Input = 1,
    Output = 2,
    Site = 3  ///< it is known of the site, and stands with the site's first range (see modules.h)
};

/// Metadata of an array. Its sizes, and after them its strides if it has them, are
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
    std::uint64_t object = 0;  ///< as ArrayView::object
};

/// One typed value that was attached to a range or an instant. Elements of lists, inputs and outputs have no
/// key. `array` is a row of Trace::arrays().
struct Argument {
    StringId key = 0;
    ValueKind kind = ValueKind::None;
    ArgumentRole role = ArgumentRole::Keyword;
    bool truncated = false;  ///< the string or list was longer than what is kept
    /// Kind None: what it was, when the session did not ask for its value. Kind String: Bool, Int or Double,
    /// when it is the text of a scalar that is no number of ours, such as a complex one.
    ValueKind left_out = ValueKind::None;
    union {
        bool boolean;
        std::int64_t integer = 0;
        double real;
        StringId string;
        ListItems list;
        Row array;
    };
};

/// What a range is to the call that it is a part of.
enum PartFlags : std::uint32_t {
    kFirstPart = 1 << 0,  ///< the call began with it
    kLastPart = 1 << 1,   ///< the call returned or raised at its end; without it, it was suspended then
    kWholeCall = 1 << 2,  ///< in exports only: no part, but the call from its first part to its last
    kTask = 1 << 3,       ///< with kWholeCall: a task of an event loop; the call is that of its coroutine
};

/// What only a few ranges have. Sorted by range.
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
    std::uint32_t forward_thread =
        0;  ///< logical id of the thread of the forward range; 0: this is no backward one
    std::int64_t sequence = -1;  ///< number in the forward thread's sequence; -1: none
    std::uint64_t id = 0;        ///< as observers saw it, of operations; 0: none
    std::uint64_t call =
        0;  ///< generators, coroutines: number of the call in its process; 0: a call of one part
    std::uint32_t part = 0;  ///< PartFlags
};

/// A task of an event loop, which runs a coroutine in steps: the parts of that call.
struct TaskInfo {
    Row process = 0;
    std::uint64_t call = 0;  ///< RangeDetail::call of its coroutine
    StringId name = 0;
    friend bool operator==(const TaskInfo&, const TaskInfo&) noexcept = default;
};

enum class LinkKind : std::uint8_t {
    ForwardBackward = 1,  ///< from a forward range to its backward range
    Launch = 2,           ///< from the host call that launched it to a device's range
    Remote = 3,           ///< from the range of a call to a range of the process that was called
    Flow = 4,             ///< imported: an arrow of another kind, which `name` tells
};
/// An arrow between two ranges. Sorted by `from`.
struct LinkInfo {
    Row from = kNoRow;
    Row to = kNoRow;
    LinkKind kind = LinkKind::ForwardBackward;
    StringId name = 0;  ///< 0: the kind says it
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
    std::span<const std::uint8_t> out_of_memory;  ///< 1: `bytes` were asked for and refused
    std::size_t size() const noexcept { return time_ns.size(); }
};

/// A fact about the whole recording, given by its user or its maker.
struct MetadataInfo {
    std::string key;
    std::string json;  ///< a whole JSON value
};

/// Something that a reader of the trace should know: a loss, a damage, a limit reached.
struct ProblemInfo {
    std::string code;  ///< short and stable: "dropped", "ceiling_reached", "damaged_chunk", ...
    std::string text;  ///< one sentence for people
    std::uint64_t count = 1;
};

struct ClockInfo {
    std::string source;  ///< "cntvct_el0", "tsc", "monotonic_raw", "injected"
    double ticks_per_second = 0;
    std::uint32_t pairs = 0;        ///< clock pairs that the fit rests on
    std::int64_t max_error_ns = 0;  ///< half the widest pair used: how far a time can be off
    bool extrapolated = false;      ///< the end lies after the last pair (a crash)
};

/// What recording one event costs, measured once in the recording process.
struct CostInfo {
    std::string kind;  ///< "range", "range_with_values", "instant", "counter", "allocation_report"
    double ns = 0;
};

/// The window of the session that the trace shows.
struct WindowInfo {
    std::string session_name;
    std::uint64_t session_id = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    bool finished = true;  ///< false: the program died, or this is a snapshot
    std::uint64_t max_bytes = 0;
    std::string policy;  ///< "stop", "drop" or "ring"
    bool ceiling_reached = false;
    std::uint64_t log_bytes = 0;  ///< bytes of log records that the trace was built from
};

/// A session that a capture holds.
struct SessionInfo {
    std::uint64_t id = 0;
    std::string name;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;  ///< not finished: the latest time known of it
    bool finished = true;     ///< false: the program died while it ran, or it still runs
};

/// The sessions of a capture, in order of their starts, without reading its events. Throws marey::Error.
MAREY_API std::vector<SessionInfo> list_sessions(const std::string& path);

/// A finished recording. Cheap to copy (shared, immutable), safe to read from any thread.
class MAREY_API Trace {
  public:
    Trace();  ///< an empty trace
    explicit Trace(std::shared_ptr<const TraceData> data) noexcept : data_(std::move(data)) {}

    /// Reads a capture, or a trace that was saved. A damaged or cut-off capture gives what is whole, with the
    /// rest in problems(). Throws marey::Error, naming the file and the cause, when nothing can be read, or
    /// when a saved trace is not whole.
    static Trace load(const std::string& path);
    /// Reads the session `session_id` of a capture that holds several (see `marey info`).
    static Trace load(const std::string& path, std::uint64_t session_id);
    /// Writes the tables, compressed; load() reads them back equal. Throws marey::Error.
    void save(const std::string& path) const;

    /// The same with one more fact, `json` a whole JSON value; a key that it has gets the new value. Copies
    /// the tables. Throws marey::Error when it is no JSON.
    Trace with_metadata(std::string_view key, std::string_view json) const;

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
    std::span<const Argument> list_items() const noexcept;
    std::span<const ArrayInfo> arrays() const noexcept;
    std::span<const std::int64_t> array_extents() const noexcept;
    std::span<const RangeDetail> range_details() const noexcept;
    std::span<const LinkInfo> links() const noexcept;
    std::span<const TaskInfo> task_names() const noexcept;  ///< by process and call
    std::span<const MetadataInfo> metadata() const noexcept;
    std::span<const ProblemInfo> problems() const noexcept;
    std::span<const CostInfo> costs() const noexcept;
    const ClockInfo& clock() const noexcept;
    const WindowInfo& window() const noexcept;

    /// Values attached to a range / an instant; empty for most rows (a binary search in a sparse index).
    std::span<const Argument> range_arguments(Row range) const noexcept;
    std::span<const Argument> instant_arguments(Row instant) const noexcept;

    /// What is known of a range beyond its columns; null for most.
    const RangeDetail* range_detail(Row range) const noexcept;

    std::string_view range_name(Row range) const noexcept;
    Row track_of(Row range) const noexcept;  ///< binary search over the tracks
    /// The part of a range's duration that lies in the window.
    std::int64_t clipped_duration_ns(Row range) const noexcept;

    const TraceData& data() const noexcept { return *data_; }

  private:
    std::shared_ptr<const TraceData> data_;
};

/// Traces of one machine whose windows follow one another (in any order here) as one: what is the same
/// thread, site or track becomes one; ranges are cut where their own window ends, so that the time between
/// two windows counts for nothing. Throws marey::Error when windows overlap.
MAREY_API Trace join_traces(std::span<const Trace> traces);

}  // namespace marey
