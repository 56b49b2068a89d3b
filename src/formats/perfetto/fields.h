// fields.h: the field numbers of Perfetto's protobuf messages that we write or read, and the marks
// that identify our own files.
#pragma once

#include <cstdint>
#include <string_view>

namespace marey::perfetto {

/// The file is a sequence of packets.
enum class TraceField : std::uint32_t { Packet = 1 };

enum class PacketField : std::uint32_t {
    ProcessTree = 2,
    ChromeEvents = 5,
    ClockSnapshot = 6,
    Timestamp = 8,
    SequenceId = 10,
    TrackEvent = 11,
    InternedData = 12,
    SequenceFlags = 13,
    StateCleared = 41,
    PacketsDropped = 42,
    ProcessDescriptor = 43,
    ThreadDescriptor = 44,
    CompressedPackets = 50,
    TimestampClock = 58,
    Defaults = 59,
    TrackDescriptor = 60,
};
inline constexpr std::uint32_t kStateClearedFlag = 1;  // of SequenceFlags
inline constexpr std::uint32_t kNeedsStateFlag = 2;

enum class ClockSnapshotField : std::uint32_t { Clocks = 1, PrimaryClock = 2 };
enum class ClockField : std::uint32_t { Id = 1, Timestamp = 2, IsIncremental = 3, UnitNs = 4 };
inline constexpr std::uint32_t kRealtimeClock = 1;
inline constexpr std::uint32_t kMonotonicRawClock = 5;
inline constexpr std::uint32_t kBootClock = 6;  // the trace's clock, unless a snapshot states another
inline constexpr std::uint32_t kFirstSequenceClock = 64;
inline constexpr std::uint32_t kLastSequenceClock = 127;

enum class DefaultsField : std::uint32_t { TrackEvent = 11, TimestampClock = 58 };
enum class EventDefaultsField : std::uint32_t {
    TrackUuid = 11,
    ExtraCounterTracks = 31,
    ExtraDoubleCounterTracks = 45,
};

enum class TrackField : std::uint32_t {
    Uuid = 1,
    Name = 2,
    Process = 3,
    Thread = 4,
    ParentUuid = 5,
    Counter = 8,
    StaticName = 10,
    ChildOrdering = 11,
    SiblingRank = 12,
    AtraceName = 13,
    Description = 14,
};
inline constexpr std::int32_t kExplicitOrder = 3;  // of ChildOrdering

enum class ProcessField : std::uint32_t { Pid = 1, CommandLine = 2, Name = 6, Labels = 8 };
enum class ThreadField : std::uint32_t { Pid = 1, Tid = 2, Name = 5, ReferenceTimeUs = 6 };
enum class CounterField : std::uint32_t {
    Categories = 2,
    Unit = 3,
    UnitMultiplier = 4,
    IsIncremental = 5,
};
inline constexpr std::int32_t kUnitBytes = 3;  // of CounterField::Unit

enum class EventField : std::uint32_t {
    TimestampDeltaUs = 1,
    ThreadTimeDeltaUs = 2,
    CategoryIids = 3,
    DebugAnnotations = 4,
    LegacyEvent = 6,
    InstructionDelta = 8,
    Type = 9,
    NameIid = 10,
    TrackUuid = 11,
    ExtraCounterValues = 12,
    TimestampAbsoluteUs = 16,
    ThreadTimeAbsoluteUs = 17,
    InstructionAbsolute = 20,
    Categories = 22,
    Name = 23,
    CounterValue = 30,
    ExtraCounterTracks = 31,
    SourceLocation = 33,
    SourceLocationIid = 34,
    FlowIdsOld = 36,
    TerminatingFlowIdsOld = 42,
    DoubleCounterValue = 44,
    ExtraDoubleCounterTracks = 45,
    ExtraDoubleCounterValues = 46,
    FlowIds = 47,
    TerminatingFlowIds = 48,
};
inline constexpr std::int32_t kSliceBegin = 1;  // of EventField::Type
inline constexpr std::int32_t kSliceEnd = 2;
inline constexpr std::int32_t kInstant = 3;
inline constexpr std::int32_t kCounter = 4;

/// Events in the form of Chrome's JSON, in old files.
enum class PhaseEventField : std::uint32_t {
    NameIid = 1,
    Phase = 2,
    DurationUs = 3,
    UnscopedId = 6,
    IdScope = 7,
    BindId = 8,
    LocalId = 10,
    GlobalId = 11,
    FlowDirection = 13,
    PidOverride = 18,
    TidOverride = 19,
};
inline constexpr std::int32_t kFlowIn = 1;  // of FlowDirection: bits
inline constexpr std::int32_t kFlowOut = 2;

enum class InternedField : std::uint32_t {
    EventCategories = 1,
    EventNames = 2,
    AnnotationNames = 3,
    SourceLocations = 4,
    AnnotationStrings = 29,
};
/// In every interned text.
enum class InternedTextField : std::uint32_t { Iid = 1, Text = 2 };
enum class SourceLocationField : std::uint32_t { Iid = 1, File = 2, Function = 3, Line = 4 };

enum class AnnotationField : std::uint32_t {
    NameIid = 1,
    Bool = 2,
    Uint = 3,
    Int = 4,
    Double = 5,
    String = 6,
    Pointer = 7,
    Nested = 8,
    Json = 9,
    Name = 10,
    DictEntries = 11,
    ArrayValues = 12,
    StringIid = 17,
};
enum class NestedField : std::uint32_t {
    Type = 1,
    DictKeys = 2,
    DictValues = 3,
    ArrayValues = 4,
    Int = 5,
    Double = 6,
    Bool = 7,
    String = 8,
};
inline constexpr std::int32_t kNestedDict = 1;  // of NestedField::Type
inline constexpr std::int32_t kNestedArray = 2;

enum class ChromeEventsField : std::uint32_t { Metadata = 2 };
enum class MetadataField : std::uint32_t { Name = 1, String = 2, Bool = 3, Int = 4, Json = 5 };

enum class ProcessTreeField : std::uint32_t { Processes = 1, Threads = 2 };
enum class TreeProcessField : std::uint32_t { Pid = 1, CommandLine = 3 };
enum class TreeThreadField : std::uint32_t { Tid = 1, Name = 2, Pid = 3 };

// ---------------------------------------------------------------------------------------- marks of our files

/// Metadata at the beginning of our files. The first identifies a file as ours.
inline constexpr std::string_view kVersionKey = "marey.version";
inline constexpr std::string_view kWindowStartKey = "marey.window_start_ns";
inline constexpr std::string_view kWindowEndKey = "marey.window_end_ns";
/// Wall-clock time minus the file's times, in the first process.
inline constexpr std::string_view kRealtimeOffsetKey = "marey.realtime_offset_ns";
inline constexpr std::string_view kSessionKey = "marey.session";
inline constexpr std::string_view kFinishedKey = "marey.finished";
/// Several: "code\ncount\ntext".
inline constexpr std::string_view kProblemKey = "marey.problem";
/// JSON: the clocks of several hosts.
inline constexpr std::string_view kHostClocksKey = "marey.host_clocks";
/// Several, counted from 1: the names of flows that have one.
inline constexpr std::string_view kFlowNameKey = "marey.flow_name";

/// The descriptions of tracks that are not threads.
inline constexpr std::string_view kAsyncTrack =
    "Ranges of this thread that ended out of order or on another thread.";
inline constexpr std::string_view kOverlapTrack = "Ranges that cross those of the first track.";
inline constexpr std::string_view kDeviceTrack = "What a queue of this device did.";

/// The start of the description of a process or thread that is shown under another name than its own.
inline constexpr std::string_view kOwnName = "Name in the system: ";

/// The annotation that holds what Marey stores about a range beyond the values its program gave.
inline constexpr std::string_view kFacts = "marey";
/// The category of allocation reports, and of the counters that show their totals.
inline constexpr std::string_view kMemoryCategory = "marey.memory";
/// The prefix of process labels.
inline constexpr std::string_view kRankLabel = "rank ";
inline constexpr std::string_view kHostLabel = "host ";
inline constexpr std::string_view kDeviceLabel = "device ";
inline constexpr std::string_view kOwnerLabel = "process ";

/// Ids for processes and threads that have none: above any Linux id, below 2^31.
inline constexpr std::int64_t kFirstFreeId = 1'000'000'000;

/// Flow ids: the link's kind, the number of its name (0: none), the link's own number.
inline constexpr unsigned kFlowKindShift = 56;
inline constexpr unsigned kFlowNameShift = 36;
inline constexpr std::uint64_t kFlowNameMask = (std::uint64_t{1} << (kFlowKindShift - kFlowNameShift)) - 1;

}  // namespace marey::perfetto
