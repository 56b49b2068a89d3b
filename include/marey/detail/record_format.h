// record_format.h: the binary layout of blocks and of the records of logs, which docs/formats/capture.md
// describes. It is here and not in src/ because the inlined recording path writes it.
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

}  // namespace layout1
}  // namespace marey::detail
