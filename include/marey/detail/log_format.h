// log_format.h: the binary layout of captures: that of logs (record_format.h), of the streams of names and of
// the journal, and of the file.
#pragma once

#include <cstddef>
#include <cstdint>

#include <marey/detail/record_format.h>

namespace marey::detail {
inline namespace layout1 {

// ---- records of the names and journal streams ----
//
// Each starts with a StreamRecord; `bytes` is the size of the whole record, a multiple of 8. A stream
// consists of the blocks of its kind in order of sequence. A string field is a string id of the names stream
// (0 = "").

struct StreamRecord {
    std::uint16_t kind;
    std::uint16_t reserved;
    std::uint32_t bytes;
};

enum class NameKind : std::uint16_t {
    String = 1,
    Site = 2,
    Module = 3,
    RunTimeSite = 4,
    StackNodes = 5,
    CodePlace = 6,
    ModuleExtent = 7
};

struct StringRecord {  // followed by `length` bytes, padded to 8
    StreamRecord head;
    std::uint32_t id;  ///< from 1, dense
    std::uint32_t length;
};
struct SiteRecord {  // followed by a SiteCategory, if it has one
    StreamRecord head;
    std::uint32_t id;  ///< from 1, dense
    std::uint32_t name;
    std::uint32_t file;
    std::uint32_t line;
    std::uint32_t scope;
    std::uint32_t flags;  ///< SiteFlags
};
struct SiteCategory {
    std::uint32_t category;  ///< SiteInfo::category
    std::uint32_t reserved;
};
enum SiteFlags : std::uint32_t {
    kSiteTraced = 1 << 0,    ///< from a call tracer: for sessions that record calls
    kSiteOverload = 1 << 1,  ///< an operator: `file` is the name of its overload
    kSiteFunction = 1 << 2,  ///< the name is that of the function: equal names at other places are others
};

/// A site whose name was made at run time. A capture contains only those that its sessions may refer to, so
/// that ids are not dense. The same record may occur twice.
struct RunTimeSiteRecord {  // followed by `length` bytes, the name, padded to 8
    StreamRecord head;
    std::uint32_t id;  ///< from kFirstRunTimeSite
    std::uint32_t scope;
    std::uint32_t category;  ///< as in SiteCategory; 0: none
    std::uint32_t length;
};

/// A program or shared library that contains native frames.
struct ModuleRecord {
    StreamRecord head;
    std::uint32_t id;  ///< from 1, dense
    std::uint32_t path;
    std::uint32_t build_id;  ///< in hexadecimal; 0: none
    std::uint32_t reserved;
    std::uint64_t bias;  ///< address in memory minus address in the file
};

struct StackNodesRecord {  // followed by `count` StackNodes
    StreamRecord head;
    std::uint32_t first;  ///< number of the first one
    std::uint32_t count;
};

/// A place in a Python code object that samples refer to.
struct CodePlaceRecord {
    StreamRecord head;
    std::uint32_t place;  ///< from 1
    std::uint32_t site;   ///< of the code object; 0: one that samples leave out
    std::uint32_t line;   ///< 0: unknown
    std::uint32_t reserved;
};

/// Where a module is in memory. Of several that overlap, the last one is meant.
struct ModuleExtentRecord {
    StreamRecord head;
    std::uint32_t module;
    std::uint32_t reserved;
    std::uint64_t begin;
    std::uint64_t end;
};

enum class JournalKind : std::uint16_t {
    ThreadStarted = 1,
    ThreadNamed = 2,
    ThreadEnded = 3,
    Clock = 4,
    SessionStart = 5,
    SessionStop = 6,
    OpenAtStop = 7,
    Losses = 8,
    Cost = 9,
    Note = 10,
    Context = 11,
    RemoteEvents = 12,
    Metadata = 13,
    OpenPart = 14,
    SiteValues = 15,
    ProcessEnd = 16,
    ProcessIdentity = 17,
    RunProblem = 18,
    ClockExchange = 24,
    Sampling = 25,
};

struct ThreadStartedRecord {
    StreamRecord head;
    std::uint32_t thread;
    std::uint32_t name;
    std::int64_t os_tid;  ///< 0: a log that is not a thread
    std::uint64_t pthread_id;
    std::uint64_t ticks;
};
struct ThreadNamedRecord {
    StreamRecord head;
    std::uint32_t thread;
    std::uint32_t name;
};
struct ThreadEndedRecord {
    StreamRecord head;
    std::uint32_t thread;
    std::uint32_t reserved;
    std::uint64_t ticks;
};
struct ClockRecord {
    StreamRecord head;
    ClockPair pair;
};
struct SessionStartRecord {
    StreamRecord head;
    std::uint64_t session;
    std::uint64_t ticks;
    std::uint64_t max_bytes;
    std::uint32_t scopes;
    std::uint32_t name;
    std::uint32_t thread;        ///< 0: all threads; otherwise the thread whose tasks it follows
    std::uint32_t option_bits;   ///< OptionBits
    std::uint32_t policy;        ///< 0 stop, 1 drop, 2 ring
    std::uint32_t device_types;  ///< the device types that it records, one bit for each DeviceType
};
enum OptionBits : std::uint32_t {
    kOptionValues = 1 << 0,
    kOptionShapes = 1 << 1,
    kOptionConcreteInputs = 1 << 2,
    kOptionMemory = 1 << 3,
    kOptionFlops = 1 << 4,
    kOptionStacks = 1 << 5,
    kOptionModules = 1 << 6,
    kOptionSamples = 1 << 7,
    kOptionFirstDeviceActivity = 1 << 8,  ///< this bit and those above it are DeviceActivities, shifted
};
struct SessionStopRecord {
    StreamRecord head;
    std::uint64_t session;
    std::uint64_t ticks;
    std::uint32_t size_limit_reached;  ///< max_bytes was reached and the policy applied
    std::uint32_t reserved;
};
/// A range that was open when its session stopped. Replaces the thread blocks for that session.
struct OpenAtStopRecord {  // followed by payload_bytes of payload, padded to 8
    StreamRecord head;
    std::uint64_t session;
    std::uint64_t start;
    std::uint32_t thread;
    std::uint32_t depth;
    std::uint32_t site;
    std::uint32_t flags;  ///< RecordFlags
    std::uint32_t payload_bytes;
    std::uint32_t reserved;
};
/// Running totals of one thread. A session's losses are the last totals minus the last ones before its
/// SessionStart.
struct LossesRecord {
    StreamRecord head;
    std::uint32_t thread;
    std::uint32_t session;  ///< the low bits of the one that overwrote the chunks; 0: any
    std::uint64_t dropped;
    std::uint64_t overwritten_chunks;
    std::uint64_t resyncs;
    std::uint64_t clamped;
};
enum class CostKind : std::uint32_t {
    Range = 0,
    RangeWithValues = 1,
    Instant = 2,
    Counter = 3,
    AllocationReport = 4,
    PythonCall = 5,   ///< with its hook
    PythonResume = 6  ///< of a generator or coroutine, with its hook
};
enum class SamplingClock : std::uint32_t { PerfEvent = 1, CpuClock = 2 };
/// How the process is sampled, and totals since it began to be.
struct SamplingRecord {
    StreamRecord head;
    std::uint32_t clock;  ///< SamplingClock
    std::uint32_t rate;   ///< that was asked for: samples per second of CPU time
    std::uint64_t torn;
    std::uint64_t cut;
    std::uint64_t lost;
};
struct CostRecord {
    StreamRecord head;
    std::uint32_t event;  ///< CostKind
    std::uint32_t reserved;
    std::uint64_t picoseconds;
};
/// A failure during recording; it becomes a problem of the trace.
struct NoteRecord {
    StreamRecord head;
    std::uint32_t code;  ///< string
    std::uint32_t text;  ///< string
    std::uint64_t count;
};
/// How the process ended. Appended by its parent, after the last record of the process.
struct ProcessEndRecord {
    StreamRecord head;
    std::int32_t exit_code;
    std::int32_t signal;  ///< 0: it exited
};
/// A problem of the whole run. Appended by `marey run`; the code and the text follow, padded to 8.
struct RunProblemRecord {
    StreamRecord head;
    std::uint64_t count;
    std::uint32_t code_bytes;
    std::uint32_t text_bytes;
};
/// One exchange with another host, in nanoseconds of CLOCK_MONOTONIC_RAW on either host. The name of the host
/// that answered follows, padded to 8.
struct ClockExchangeRecord {
    StreamRecord head;
    std::int64_t sent_ns;
    std::int64_t arrived_ns;   ///< on the clock of the host that answered
    std::int64_t answered_ns;  ///< likewise
    std::int64_t received_ns;
    std::uint32_t peer_bytes;
    std::uint32_t reserved;
};
/// A process that another one descends from.
struct AncestorRecord {
    std::int64_t pid;
    std::uint64_t start;          ///< as in ProcessIdentityRecord
    std::uint64_t pid_namespace;  ///< in which `pid` counts
};
inline constexpr std::size_t kMaxAncestors = 16;
enum class ProcessOriginCode : std::uint32_t {
    Unknown = 0,
    Fork = 1,
    Program = 2,  ///< a program was executed in it
};
/// Which process this is, and where it came from. (boot_id, pid_namespace, pid, start) identifies it.
struct ProcessIdentityRecord {  // followed by `ancestors` AncestorRecords, the parent first
    StreamRecord head;
    std::uint8_t tree[16];  ///< of the process tree that is recorded together
    char boot_id[40];
    std::uint64_t time_namespace;  ///< inode; 0: unknown
    std::uint64_t pid_namespace;   ///< inode; 0: unknown
    std::uint64_t start;           ///< clock ticks from boot to the start of the process (/proc/PID/stat)
    std::uint64_t fork_ticks;      ///< Fork: when its parent forked, on the counter that both share
    std::uint32_t fork_thread;     ///< Fork: logical id of the forking thread in the parent; 0: unknown
    std::uint32_t origin;          ///< ProcessOriginCode
    std::uint32_t ancestors;
    /// `maxerror` of adjtimex(2) when the capture began, in microseconds; 0: unknown, or not synchronised.
    std::uint32_t wall_error_us;
};
/// Events of another process that were added to a session. The message (docs/formats/event_message.md)
/// follows, padded to 8.
struct RemoteEventsRecord {
    StreamRecord head;
    std::uint64_t session;
    std::uint64_t call_start;  ///< start of the call, in ticks of this process; 0: unknown
    std::uint64_t call_end;
    std::uint32_t thread;  ///< the thread that made the call; 0: unknown
    std::uint32_t prefix;  ///< string added before every name
    std::int32_t node;
    std::uint32_t message_bytes;
};
/// A fact that the user added to a session. Its value, JSON text, follows, padded to 8.
struct MetadataRecord {
    StreamRecord head;
    std::uint64_t session;
    std::uint32_t key;
    std::uint32_t json_bytes;
};
/// The call that an open range is a part of.
struct OpenPartRecord {
    StreamRecord head;
    std::uint64_t start;  ///< of the range
    std::uint64_t call;
    std::uint32_t thread;
    std::uint32_t flags;  ///< PartRecordFlags
};
/// Facts about a site other than its name: values as in the payload of ranges follow, padded to 8. If they do
/// not fit into one record, there are several records with the same ticks.
struct SiteValuesRecord {
    StreamRecord head;
    std::uint64_t ticks;
    std::uint32_t site;
    std::uint32_t payload_bytes;
};
struct ContextRecord {  // followed by `count` u64 session ids
    StreamRecord head;
    std::uint64_t context;
    std::uint64_t count;
};

// ---- the file ----

inline constexpr char kFileMagic[8] = {'M', 'A', 'R', 'E', 'Y', 'C', 'A', 'P'};
inline constexpr std::uint32_t kFormatVersion = 1;
inline constexpr std::uint32_t kByteOrderMark = 0x01020304;

enum class ClockSource : std::uint32_t { MonotonicRaw = 0, Tsc = 1, Cntvct = 2, Injected = 3 };

/// The first block of a capture. Blocks follow at multiples of kBlockBytes.
struct FileHeader {
    char magic[8];
    std::uint32_t version;
    std::uint32_t byte_order;
    std::uint32_t header_bytes;  ///< sizeof(FileHeader) of the writer
    std::uint32_t block_bytes;
    std::uint32_t clock_source;      ///< ClockSource
    std::uint32_t finished;          ///< 1 if all its sessions have stopped: readers ignore thread blocks
    std::uint64_t ticks_per_second;  ///< nominal; readers fit the true rate to the clock pairs
    std::int64_t pid;
    std::int64_t node;
    char boot_id[40];
    char host[256];
    char executable[1024];
    char command_line[4096];  ///< arguments separated by NUL
    std::uint32_t command_line_bytes;
    std::uint32_t blocks;   ///< when finished: length of the file in units of kBlockBytes; 0: unknown
    std::uint8_t tree[16];  ///< as in ProcessIdentityRecord; all 0: unknown
    /// Offset and size of the map of small blocks, in this block: a bit for each block of the file, the low
    /// bit of the first byte for this one, which is set while the block is a run of its own in use. 0: none.
    std::uint32_t map_at;
    std::uint32_t map_bytes;
};
inline constexpr std::size_t kBlockMapAt = 8192;
static_assert(sizeof(FileHeader) <= kBlockMapAt);

}  // namespace layout1
}  // namespace marey::detail
