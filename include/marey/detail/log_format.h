// log_format.h: the binary layout of logs and captures, which docs/formats/capture.md describes. It is here
// and not in src/ because the inlined recording path writes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace marey::detail {
inline namespace layout1 {

/// Increased whenever a layout in detail/ changes; checked when a call site is registered.
inline constexpr std::uint32_t kLayoutNumber = 1;

// ---- blocks ----

inline constexpr std::size_t kBlockBytes = 32 * 1024;     ///< the unit of allocation, in memory and in files
inline constexpr std::size_t kLargeBlocks = 8;            ///< a thread's later log chunks: 256 KiB
inline constexpr std::uint32_t kBlockMagic = 0x4252414d;  // "MARB"

enum class BlockKind : std::uint16_t {
    Free = 0,         ///< unused, whatever its bytes contain
    Names = 1,        ///< part of the names stream: strings and sites
    Journal = 2,      ///< part of the journal stream: threads, clock pairs, sessions, losses
    Log = 3,          ///< a chunk of one thread's log
    Thread = 4,       ///< a thread's state and open ranges (ThreadState in thread_state.h)
    OpenSegment = 5,  ///< more open slots of a very deep thread
    SideSegment = 6,  ///< more side-stack bytes of a thread
    Stacks = 7,       ///< nodes of stacks
};

/// The counter and the system clocks, read together. `width` is the number of ticks that the reading took.
struct ClockPair {
    std::uint64_t ticks = 0;
    std::int64_t raw_ns = 0;   ///< CLOCK_MONOTONIC_RAW
    std::int64_t real_ns = 0;  ///< CLOCK_REALTIME
    std::uint64_t width = 0;
};

/// The start of every block (or run of `blocks` blocks). Readers use only `committed` bytes after it.
struct BlockHeader {
    std::uint32_t magic = 0;
    std::uint16_t kind = 0;
    std::uint16_t blocks = 0;  ///< length of the run, in units of kBlockBytes
    /// Number of times this memory has been used; records of an older use are invalid.
    std::uint32_t generation = 0;
    std::uint32_t thread = 0;      ///< logical id of the thread whose records come first; 0: none
    std::uint64_t sequence = 0;    ///< order in which blocks were put into use, over all threads
    std::uint64_t base_ticks = 0;  ///< Log: the base of the times in compact records
    ClockPair pair;                ///< read when the block was put into use
    std::uint64_t committed = 0;  ///< complete bytes after the header; stored with release after every record
    std::uint32_t segment = 0;    ///< OpenSegment, SideSegment, Stacks: its number, from 0
    std::uint32_t reserved0 = 0;
    std::uint64_t previous = 0;  ///< Log: the ChunkName of the one that its thread filled before; 0: none
    std::uint64_t reserved[5] = {};
};
static_assert(sizeof(BlockHeader) == 128);
static_assert(offsetof(BlockHeader, committed) == 64);

/// Names a chunk of a file for good, although its block may be used again: sequence:40 | block:24, where
/// `block` is its offset in units of kBlockBytes. 0: none.
using ChunkName = std::uint64_t;
inline constexpr unsigned kChunkBlockBits = 24;
constexpr ChunkName chunk_name(std::uint64_t sequence, std::uint64_t block) noexcept {
    return sequence << kChunkBlockBits | block;
}
constexpr std::uint64_t chunk_block(ChunkName name) noexcept {
    return name & ((1u << kChunkBlockBits) - 1);
}

// ---- records of a log ----
//
// Records are multiples of 16 bytes. Bit 7 of the first byte distinguishes the two forms (low bits first):
//   compact (bit 7 clear, always 16 bytes):
//     word 0 = kind:8 | depth:8 | (end - base_ticks):48        word 1 = site:24 | duration:40
//   long (bit 7 set):
//     word 0 = kind:8 | flags:8 | units:16 | site:32           word 1 = time (full ticks)
//     word 2 = by kind                                         word 3 = depth:32 | payload_bytes:32
//     then payload_bytes of payload, padded; the whole is `units` times 16 bytes.
// Readers skip unknown kinds.

inline constexpr std::size_t kRecordUnit = 16;
inline constexpr std::uint8_t kLongBit = 0x80;

enum class RecordKind : std::uint8_t {
    Range = 1,    ///< compact: a closed scope
    Instant = 2,  ///< compact: duration 0; the end is its time
    Part = 3,     ///< compact, in a separate form: the next range is part of a call (PartRecordFlags)
    /// compact: a closed scope that is a further part of a call. Instead of the site: is_last:1 | place:23,
    /// where the block has a Part of this call, followed by its compact range (in units of 16 bytes)
    Resumed = 4,
    /// compact: a sample. Instead of the depth: SampleFlags; of the site: the number of the stack (0:
    /// unknown). Running and preempted: the end is its time, the duration the CPU time in ns since the
    /// thread's sample before. Waiting: the wait, or a part of it, with its duration in ticks.
    Sample = 5,

    LongRange = 0x81,    ///< time = start, word 2 = end
    LongInstant = 0x82,  ///< time; may have a payload
    Counter = 0x83,      ///< time; word 2 = the value's bits: a double, or an int64 with kRecordInteger
    /// time; word 2 = id of the range: beginning thread:24 | count:40; may have a payload
    AsyncBegin = 0x84,
    AsyncEnd = 0x85,      ///< time; word 2 = id; optional payload: its start (u64), in case the begin is lost
    ThreadSwitch = 0x86,  ///< the next records belong to thread `word 2`; time = birth of that thread
    ContextMark = 0x87,   ///< the next records are in context `word 2` (journal: Context); 0 = none
    Dropped = 0x88,       ///< word 2 = records lost here; depth = the smallest depth reached among them
    Blob = 0x89,          ///< word 2 = tag chosen by the source; payload = its bytes
    Memory = 0x8a,        ///< time; word 2 = address; payload = MemoryPayload
    DeviceWork = 0x8b,    ///< time = start, word 2 = end, flags = DeviceWorkKind, depth = correlation;
                          ///< payload = DeviceKernelPayload or DeviceOtherPayload, then values
    DeviceCall = 0x8c,    ///< time = start, word 2 = os_tid:32 | duration:32, depth = correlation, flags =
                          ///< DeviceType; with kRecordLongCall the duration is 0 and the payload a
                          ///< DeviceCallPayload
    DeviceClock = 0x8d,   ///< time = according to the device; word 2 = ticks to add to it, an int64; depth =
                          ///< error of that in ticks; payload = DevicePlace
    SequencedRange = 0x8e,  ///< a closed scope with a sequence number: time = start, flags = its depth,
                            ///< word 2 = duration:32 | number:32, depth = RangeProperties::forward_thread
    Adopted = 0x8f,  ///< time; puts `word 2` scopes that began earlier onto the open stack, the first at
                     ///< `depth`; the scopes that were there are now inside them
};

enum RecordFlags : std::uint8_t {
    kRecordAsync = 1 << 0,       ///< ended out of order: not part of the nesting
    kRecordUnfinished = 1 << 1,  ///< its thread died, or it was closed by a resync
    kRecordInteger = 1 << 2,     ///< Counter: the value is an int64
    kRecordCrosses = 1 << 3,     ///< with kRecordAsync: a call in which ranges began that outlived it, or
                                 ///< ranges around it ended; ranges outside those nest. AsyncBegin: a
                                 ///< step, which is shortened where calls cross it
    kRecordValuesLost = 1 << 4,  ///< had values that did not fit
    kRecordLongCall = 1 << 5,    ///< DeviceCall: a DeviceCallPayload follows
    kRecordWaited = 1 << 6,      ///< OpenAtStop: ended by another thread while its own was waiting: it nests
};
inline constexpr std::uint8_t kCallDeviceMask = 0x1f;  ///< of a DeviceCall's flags

/// Flags of a Part: word 0 = kind:8 | flags:8 | start of its range:48 (low bits), word 1 = number of the
/// call.
enum PartRecordFlags : std::uint8_t {
    kPartFirst = 1 << 0,  ///< the call began with it
    kPartLast = 1 << 1,   ///< the call returned or raised at its end; otherwise it was suspended
};
inline constexpr unsigned kPartStartShift = 16;

/// Instead of the depth of a Sample.
enum SampleFlags : std::uint8_t {
    kSampleState = 3,      ///< these bits: 0 running, 1 waiting, 2 preempted
    kSampleTorn = 1 << 2,  ///< the Python frames could not be read
    kSampleCut = 1 << 3,   ///< outer frames are missing
};

inline constexpr unsigned kSiteBits = 24;
inline constexpr unsigned kDurationBits = 40;
inline constexpr unsigned kDeltaBits = 48;
inline constexpr std::uint32_t kMaxSites = 1u << kSiteBits;
/// Sites of names made at run time (RunTimeSiteRecord) have ids from here on, the others have smaller ones.
inline constexpr std::uint32_t kFirstRunTimeSite = kMaxSites / 2;

/// Tags of Blobs. A task: u64 call, then its name. The ends of a message: a Token (marey/token.h).
inline constexpr std::uint64_t kBlobTask = 1;
inline constexpr std::uint64_t kBlobSend = 2;
inline constexpr std::uint64_t kBlobReceive = 3;

struct CompactRecord {
    std::uint64_t word0;
    std::uint64_t word1;
};
static_assert(sizeof(CompactRecord) == kRecordUnit);

struct LongRecord {
    std::uint8_t kind;
    std::uint8_t flags;
    std::uint16_t units;
    std::uint32_t site;
    std::uint64_t time;
    std::uint64_t word2;
    std::uint32_t depth;
    std::uint32_t payload_bytes;
};
static_assert(sizeof(LongRecord) == 32);

// Payload of ranges and instants: values one after another, each
//   u32 key (string id, 0 inside lists) | u8 kind (ValueKind) | u8 flags (ValueFlags) | u16 count
// then  Bool, Int, Double: 8 bytes;  String: `count` bytes padded to 8;  List: `count` values without keys;
// None: nothing (`count` is the kind of the value that was left out);  Array: an ArrayHeader, `count` sizes
// and, if its flags include kArrayStrides, `count` strides, i64 each (or u32);  kValueFacts: a
// RangeProperties, `count` 0;  kValueStack: `count` frames, a word each;  kValueStackNumber: nothing.
struct ValueHeader {
    std::uint32_t key;
    std::uint8_t kind;
    std::uint8_t flags;
    std::uint16_t count;
};
static_assert(sizeof(ValueHeader) == 8);
// ValueFlags.
inline constexpr std::uint8_t kValueTruncated = 1 << 0;
inline constexpr std::uint8_t kValueInput = 1 << 1;  ///< one of the range's inputs, in order
inline constexpr std::uint8_t kValueOutput = 1 << 2;
/// Two bits of a String: the kind of scalar that it is the text of (Bool, Int, Double); 0: plain text. Both
/// are set in an empty List whose items would be arrays.
inline constexpr unsigned kValueScalarShift = 3;
inline constexpr std::uint8_t kValueScalar = 3 << kValueScalarShift;
struct ArrayHeader {
    std::uint8_t dtype;
    std::uint8_t layout;
    std::uint8_t device_type;
    std::uint8_t flags;  ///< ArrayFlags
    std::int32_t device_index;
    std::uint64_t storage;
    std::uint64_t storage_id;
};
enum ArrayFlags : std::uint8_t {
    kArrayStrides = 1 << 0,  ///< strides follow the sizes
    kArrayUndefined = 1 << 1,
    kArrayContiguous = 1 << 2,  ///< the strides of a dense array, last dimension fastest, are left out
    kArraySmall = 1 << 3,       ///< sizes and strides are u32 each, all of them padded to 8 bytes
    kArrayObject = 1 << 4,      ///< the storage id is ArrayView::object
    kArrayRead = 1 << 5,        ///< ArrayAccess; neither bit: unknown
    kArrayWritten = 1 << 6,
};
static_assert(kArrayRead * 2 == kArrayWritten);  // ArrayAccess, in two bits
/// A value kind for internal facts of the range, such as its sequence number.
inline constexpr std::uint8_t kValueFacts = 0x40;
struct RangeProperties {
    std::int64_t sequence;         ///< -1: none
    std::uint64_t forward_thread;  ///< 0: none
    std::uint64_t id;              ///< 0: none
};
/// The call stack at the start of the range. `count` frames follow, a word each, innermost first.
inline constexpr std::uint8_t kValueStack = 0x41;
/// The same by its number, which is in the place of the key; nothing follows.
inline constexpr std::uint8_t kValueStackNumber = 0x42;
/// A frame of a stack. Python: site:32 (of the code object) | line:31 (the current line; 0: unknown). Native:
/// offset:48 (of the call, in the file) | module:15 (names: Module; 0: none, the offset is an address) | 1.
/// The word 0 is an unknown frame; kFramesLeftOut stands for frames in the middle of a stack that was too
/// deep. In stacks of samples a native frame has no module: its address is that of a ModuleExtent. A Python
/// frame has kFramePlace in its site, and below that the number of a CodePlace.
inline constexpr std::uint64_t kFrameNative = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kFramePlace = std::uint64_t{1} << 31;
inline constexpr unsigned kFrameLineShift = 32;
inline constexpr unsigned kFrameModuleShift = 48;
inline constexpr std::uint32_t kMaxModules = 1u << 15;
inline constexpr std::uint64_t kFramesLeftOut = std::uint64_t{1} << kFrameLineShift;
/// A frame and the stack around it. Its number is its place in all Stacks blocks, from 1.
struct StackNode {
    std::uint64_t frame;
    std::uint32_t outer;        ///< number of the stack around it, smaller than its own; 0: none
    std::uint32_t is_complete;  ///< 1; stored last, with release
};
inline constexpr std::size_t kStackNodes = 2032;  ///< in a block
struct MemoryPayload {
    std::int64_t bytes;  ///< negative: freed
    std::int64_t total_allocated;
    std::int64_t total_reserved;
    std::int32_t device_index;
    std::uint8_t device_type;
    std::uint8_t out_of_memory;
    std::uint16_t reserved;
};
static_assert(sizeof(ArrayHeader) == 24 && sizeof(RangeProperties) == 24 && sizeof(MemoryPayload) == 32);
/// The device and queue of a piece of work.
struct DevicePlace {
    std::uint32_t stream;  ///< ~0: none
    std::uint32_t context;
    std::uint16_t device;
    std::uint8_t device_type;
    std::uint8_t reserved;
};
struct DeviceKernelPayload {  // for kernels; see KernelShape (device.h)
    DevicePlace place;
    std::uint32_t grid[3];
    std::uint16_t block[3];
    std::uint16_t registers;
    std::uint32_t static_shared;
    std::uint32_t dynamic_shared;
    std::uint64_t graph_node;
};
struct DeviceOtherPayload {  // for all other work
    DevicePlace place;
    std::uint32_t reserved;
    std::uint64_t bytes;
    std::uint64_t range;  ///< id of the range that it belongs to, instead of a call; 0: none
};
struct DeviceCallPayload {
    std::uint64_t end;
    std::int32_t result;
    std::uint32_t reserved;
};
static_assert(sizeof(DevicePlace) == 12 && sizeof(DeviceKernelPayload) == 48);
static_assert(sizeof(DeviceOtherPayload) == 32 && sizeof(DeviceCallPayload) == 16);
inline constexpr std::size_t kMaxListItems = 30;
inline constexpr std::size_t kMaxStringBytes = 4096;
inline constexpr std::size_t kMaxPayloadBytes = 16 * 1024;

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
