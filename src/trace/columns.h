// columns.h: every column of the model: its name, its type and its meaning. This list serves saving and
// loading, joining, checking, comparing, CSV, Arrow and docs/reference/tables.md. A new column is a field in
// marey/trace.h (or a vector in trace_data.h) and a line here.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "trace/column.h"
#include "trace/trace_data.h"

namespace marey {

// If this fails, the model has a new field: give it a column below.
static_assert(sizeof(SiteInfo) == 28 && sizeof(ProcessInfo) == 104 && sizeof(ThreadInfo) == 72);
static_assert(sizeof(TrackInfo) == 40 && sizeof(ArgumentSlice) == 12 && sizeof(Argument) == 16 &&
              sizeof(MessageInfo) == 40);
static_assert(sizeof(ArrayInfo) == 48 && sizeof(RangeDetail) == 40 && sizeof(LinkInfo) == 16);
static_assert(sizeof(StackInfo) == 8 && sizeof(FrameInfo) == 24 && sizeof(SamplingInfo) == 56);
static_assert(sizeof(Device) == 8 &&
              sizeof(TraceData) == 52 * sizeof(std::vector<int>) + sizeof(ClockInfo) + sizeof(WindowInfo) +
                                       sizeof(std::shared_ptr<const void>) + sizeof(RangeColumns));

/// The columns of one table: visit_table(Only<ModelTable::Sites>(), visit) calls visit(TableInfo, Column...).
template <ModelTable kTable>
using Only = std::integral_constant<ModelTable, kTable>;

namespace model {

/// Makes the columns that are in `rows`.
template <class Rows>
constexpr auto columns_of(Rows TraceData::*rows) {
    return [rows]<class Member>(std::uint32_t id, const char* name, Member member, const char* meaning,
                                const ColumnOptions& options = {}) {
        return Column<Rows, Member>{options, id, name, meaning, rows, member};
    };
}
template <class Rows>
constexpr auto whole(std::uint32_t id, const char* name, Rows TraceData::*rows, const char* meaning,
                     const ColumnOptions& options = {}) {
    return columns_of(rows)(id, name, std::identity(), meaning, options);
}

inline constexpr auto kDeviceType = [](auto& row) -> auto& {
    return row.device.type;
};
inline constexpr auto kDeviceIndex = [](auto& row) -> auto& {
    return row.device.index;
};

/// The names of enumerations: of their numbers from 0.
template <const auto& kNames>
const char* name_in(std::uint64_t number) {
    return name_at(kNames, number);
}
template <class Enum, const char* (*kName)(Enum)>
const char* name_by(std::uint64_t number) {
    return kName(static_cast<Enum>(number));
}
inline constexpr const char* kLayouts[] = {"strided", "sparse", "sparse_csr", "blocked", "jagged", "other"};
inline constexpr const char* kAccesses[] = {"unknown", "read", "write"};
inline constexpr const char* kTrackKinds[] = {"thread", "async", "device", "overlap"};
inline constexpr const char* kValueKinds[] = {"none", "bool", "int", "double", "string", "list", "array"};
inline constexpr const char* kRoles[] = {"keyword", "input", "output"};
inline constexpr const char* kOrigins[] = {"unknown", "fork", "spawn", "exec"};
inline constexpr const char* kLinkKinds[] = {"unknown", "forward_backward", "launch", "remote", "flow"};

using D = TraceData;
using enum Cells;

inline constexpr NumberStyle kRising{ColumnForm::Varints, true};
inline constexpr NumberStyle kTimes{ColumnForm::Planes, true};
inline constexpr NumberStyle kWide{ColumnForm::Planes, false};

inline constexpr ColumnOptions kText{.cells = String};
inline constexpr ColumnOptions kRareText{.cells = String, .null = Null::Zero};
inline constexpr ColumnOptions kRisingText{.cells = String, .style = kRising};
inline constexpr ColumnOptions kRareNumber{.null = Null::Zero};
inline constexpr ColumnOptions kRisingNumber{.style = kRising};
inline constexpr ColumnOptions kWideNumber{.style = kWide};
inline constexpr ColumnOptions kMaybe{.null = Null::Negative};
inline constexpr ColumnOptions kTime{.cells = Time};
inline constexpr ColumnOptions kMoments{.cells = Time, .style = kTimes};
inline constexpr ColumnOptions kSites{.cells = Site};
inline constexpr ColumnOptions kProcesses{.cells = Process};
inline constexpr ColumnOptions kThreads{.cells = Thread, .style = kRising};
inline constexpr ColumnOptions kRanges{.cells = Range, .style = kRising};
inline constexpr ColumnOptions kScope{.name_of = name_by<Scope, scope_name>};
inline constexpr ColumnOptions kDevice{.name_of = name_by<DeviceType, device_type_name>};
template <const auto& kNames>
inline constexpr ColumnOptions kNamed{.name_of = name_in<kNames>};

void visit_table(Only<ModelTable::Ranges>, auto&& visit) {
    visit(TableInfo{ModelTable::Ranges, "ranges",
                    "Ranges of code, by track; within a track parents come first."},
          whole(0, "start_ns", &D::range_start_ns, "Not clipped to the window", kTime),
          whole(0, "duration_ns", &D::range_duration_ns, "Not clipped to the window", kTime),
          whole(0, "self_ns", &D::range_self_ns, "The part inside the window that no child covers", kTime),
          whole(0, "depth", &D::range_depth, "Depth on its track"),
          whole(0, "parent", &D::range_parent, "Row of `ranges`", {.cells = Range, .null = Null::NoRow}),
          whole(0, "site", &D::range_site, "Row of `sites`", kSites),
          whole(0, "flags", &D::range_flags, "The booleans above as bits: 1, 2, 4, 8, 16, 128 and 256"));
}

void visit_table(Only<ModelTable::Instants>, auto&& visit) {
    visit(TableInfo{ModelTable::Instants, "instants", "Moments that the program marked."},
          whole(1, "time_ns", &D::instant_time_ns, "When it happened", kMoments),
          whole(3, "thread", &D::instant_thread, "Row of `threads`", kThreads),
          whole(2, "site", &D::instant_site, "Row of `sites`", kSites));
}

void visit_table(Only<ModelTable::Counters>, auto&& visit) {
    visit(TableInfo{ModelTable::Counters, "counters", "Numbers that the program recorded over time."},
          whole(1, "time_ns", &D::counter_time_ns, "When it was recorded", kMoments),
          whole(4, "value", &D::counter_value, "The number", kWideNumber),
          whole(3, "thread", &D::counter_thread, "Row of `threads`", kThreads),
          whole(2, "site", &D::counter_site, "Row of `sites`", kSites));
}

void visit_table(Only<ModelTable::Memory>, auto&& visit) {
    const auto device = columns_of(&D::memory_device);
    visit(TableInfo{ModelTable::Memory, "memory", "Allocation reports."},
          whole(1, "time_ns", &D::memory_time_ns, "When it happened", kMoments),
          whole(3, "address", &D::memory_address, "Of the memory", kWideNumber),
          whole(4, "bytes", &D::memory_bytes, "Negative if freed", kWideNumber),
          whole(5, "total_allocated", &D::memory_total_allocated, "Bytes in use on the device afterwards",
                {.style = kTimes}),
          whole(6, "total_reserved", &D::memory_total_reserved,
                "Bytes that the allocator holds on the device afterwards", {.style = kTimes}),
          device(7, "device", &Device::type, "Kind of device", kDevice),
          device(8, "device_index", &Device::index, "Number of the device", kMaybe),
          whole(9, "out_of_memory", &D::memory_out_of_memory, "The allocation of `bytes` failed",
                {.cells = Flag}),
          whole(2, "thread", &D::memory_thread, "Row of `threads`", kThreads));
}

void visit_table(Only<ModelTable::Samples>, auto&& visit) {
    visit(TableInfo{ModelTable::Samples, "samples", "Stacks of threads at moments, and while they waited."},
          whole(1, "time_ns", &D::sample_time_ns, "When it was taken; of a wait: when it began", kMoments),
          whole(3, "duration_ns", &D::sample_duration_ns, "Length of a wait; 0 for other samples",
                {.style = kWide}),
          whole(4, "cpu_ns", &D::sample_cpu_ns, "CPU time that the sample stands for; 0 for waits",
                {.style = kWide}),
          whole(5, "state", &D::sample_state, "`running`, `waiting` or `preempted`",
                {.name_of = name_by<SampleState, sample_state_name>}),
          whole(6, "stack", &D::sample_stack, "Row of `sample_stacks`: its innermost frame",
                {.cells = Stack, .null = Null::NoRow, .style = kWide}),
          whole(7, "range", &D::sample_range, "Row of `ranges`: the innermost at that time",
                {.cells = Range, .null = Null::NoRow, .style = kRising}),
          whole(2, "thread", &D::sample_thread, "Row of `threads`", kThreads));
}

void visit_table(Only<ModelTable::Stacks>, auto&& visit) {
    const auto stack = columns_of(&D::stacks);
    visit(TableInfo{ModelTable::Stacks, "sample_stacks",
                    "Frames and the stacks around them, outer ones first."},
          stack(1, "frame", &StackInfo::frame, "Row of `sample_frames`", {.cells = Frame, .style = kRising}),
          stack(2, "outer", &StackInfo::outer, "Row of `sample_stacks`: the stack around this frame",
                {.cells = Stack, .null = Null::NoRow, .style = kRising}));
}

void visit_table(Only<ModelTable::Frames>, auto&& visit) {
    const auto frame = columns_of(&D::frames);
    visit(
        TableInfo{ModelTable::Frames, "sample_frames", "Places in functions that were on stacks."},
        frame(1, "name", &FrameInfo::name, "The function, or `library+0x12ab`", kText),
        frame(2, "file", &FrameInfo::file, "Source file", kRareText),
        frame(3, "line", &FrameInfo::line, "The line that ran", kRareNumber),
        frame(4, "module", &FrameInfo::module, "For native frames: the program or library", kRareText),
        frame(5, "offset", &FrameInfo::offset, "For native frames: of the call, in that file", kWideNumber));
}

void visit_table(Only<ModelTable::Sampling>, auto&& visit) {
    const auto sampling = columns_of(&D::sampling);
    visit(TableInfo{ModelTable::Sampling, "sampling", "How processes were sampled."},
          sampling(1, "process", &SamplingInfo::process, "Row of `processes`", kProcesses),
          sampling(2, "clock", &SamplingInfo::clock, "`perf_event` or `cpu_clock`", kText),
          sampling(3, "rate_asked", &SamplingInfo::rate_asked, "Samples per second of CPU time"),
          sampling(4, "rate_reached", &SamplingInfo::rate_reached, "The same, as measured"),
          sampling(5, "samples", &SamplingInfo::samples, "Samples of running threads"),
          sampling(6, "torn", &SamplingInfo::torn, "Samples whose Python frames could not be read"),
          sampling(7, "cut", &SamplingInfo::cut, "Samples whose outer frames are missing"),
          sampling(8, "lost", &SamplingInfo::lost, "Samples lost for lack of space"));
}

void visit_table(Only<ModelTable::Links>, auto&& visit) {
    const auto link = columns_of(&D::links);
    visit(TableInfo{ModelTable::Links, "links", "Arrows between ranges."},
          link(1, "from", &LinkInfo::from, "Row of `ranges`", kRanges),
          link(2, "to", &LinkInfo::to, "Row of `ranges`", kRanges),
          link(3, "kind", &LinkInfo::kind, "`forward_backward`, `launch`, `remote` or `flow`",
               kNamed<kLinkKinds>),
          link(4, "name", &LinkInfo::name, "Describes a flow", kRareText));
}

template <ModelTable kOnly, class Visit>
requires(kOnly == ModelTable::Arguments || kOnly == ModelTable::ListItems) void visit_table(Only<kOnly>,
                                                                                            Visit&& visit) {
    constexpr bool kIsItem = kOnly == ModelTable::ListItems;
    const auto value = columns_of(kIsItem ? &D::list_items : &D::arguments);
    visit(kIsItem ? TableInfo{kOnly, "list_items", "The items of lists."}
                  : TableInfo{kOnly, "arguments", "The values attached to ranges and instants."},
          value(1, "key", &Argument::key, "Keyword", kRareText),
          value(3, "role", &Argument::role, "`keyword`, `input` or `output`", kNamed<kRoles>),
          value(2, "kind", &Argument::kind,
                "`none`, `bool`, `int`, `double`, `string`, `list` or `array`; selects one of the next "
                "columns",
                kNamed<kValueKinds>),
          value(4, "truncated", &Argument::truncated, "Only the beginning of the text or list was kept"),
          value(5, "left_out", &Argument::left_out,
                "The kind of a value that was not kept, or of the scalar whose text a string contains",
                {.null = Null::Zero, .name_of = name_in<kValueKinds>}));
}

void visit_table(Only<ModelTable::Arrays>, auto&& visit) {
    const auto array = columns_of(&D::arrays);
    visit(TableInfo{ModelTable::Arrays, "arrays", "Arrays among the values."},
          array(1, "dtype", &ArrayInfo::dtype, "Element type", {.name_of = name_by<DType, dtype_name>}),
          array(2, "layout", &ArrayInfo::layout, "How it is stored", kNamed<kLayouts>),
          array(3, "is_defined", &ArrayInfo::is_defined, "False for an empty handle"),
          array(8, "dimensions", &ArrayInfo::dimensions, "Number of dimensions"),
          array(7, "first_extent", &ArrayInfo::first_extent,
                "Row of `array_extents` where its sizes begin, followed by its strides if `has_strides` "
                "is true",
                {.cells = FirstExtent, .style = kRising}),
          array(4, "has_strides", &ArrayInfo::has_strides, "Whether its strides were recorded"),
          array(5, "device", kDeviceType, "Kind of device", kDevice),
          array(6, "device_index", kDeviceIndex, "Number of the device", kMaybe),
          array(9, "storage", &ArrayInfo::storage, "Address of its memory", kWideNumber),
          array(10, "storage_id", &ArrayInfo::storage_id, "Identifies its memory", kWideNumber),
          array(11, "object", &ArrayInfo::object,
                "Identifies the array object (`marey/value.h`); 0 if unknown", kWideNumber),
          array(12, "access", &ArrayInfo::access, "`unknown`, `read` or `write`", kNamed<kAccesses>));
}

void visit_table(Only<ModelTable::ArrayExtents>, auto&& visit) {
    visit(TableInfo{ModelTable::ArrayExtents, "array_extents", "Sizes and strides of arrays."},
          whole(1, "extent", &D::array_extents, "A size or a stride, in elements"));
}

void visit_table(Only<ModelTable::RangeDetails>, auto&& visit) {
    const auto detail = columns_of(&D::range_details);
    constexpr ColumnOptions kRisingId{.null = Null::Zero, .style = kRising};
    visit(TableInfo{ModelTable::RangeDetails, "range_details", "More about the few ranges that have it."},
          detail(1, "range", &RangeDetail::range, "Row of `ranges`", kRanges),
          detail(2, "sequence", &RangeDetail::sequence, "Sequence number",
                 {.null = Null::Negative, .style = kRising}),
          detail(3, "forward_thread", &RangeDetail::forward_thread, "`id` of a thread", kRareNumber),
          detail(4, "id", &RangeDetail::id, "The id that observers saw", kRisingId),
          detail(5, "call", &RangeDetail::call, "Number of the call that the range is a part of", kRisingId),
          detail(6, "part", &RangeDetail::part, "Bits: 1 the first part of the call, 2 the last part",
                 kRareNumber),
          detail(7, "calls", &RangeDetail::calls, "The calls that an imported sum of calls stands for",
                 kRareNumber));
}

void visit_table(Only<ModelTable::Tracks>, auto&& visit) {
    const auto track = columns_of(&D::tracks);
    visit(TableInfo{ModelTable::Tracks, "tracks", "The rows of a timeline."},
          track(1, "kind", &TrackInfo::kind, "`thread`, `async`, `device` or `overlap`", kNamed<kTrackKinds>),
          track(2, "thread", &TrackInfo::thread, "Row of `threads`", kThreads),
          track(3, "name", &TrackInfo::name, "Its name", kRisingText),
          track(4, "first_range", &TrackInfo::first_range, "Its first row of `ranges`", kRisingNumber),
          track(5, "range_count", &TrackInfo::range_count, "The number of its rows of `ranges`"),
          track(6, "device", kDeviceType, "Where its ranges ran", kDevice),
          track(7, "device_index", kDeviceIndex, "Number of the device", kMaybe),
          track(8, "stream", &TrackInfo::stream, "The device's queue", kMaybe));
}

void visit_table(Only<ModelTable::Threads>, auto&& visit) {
    const auto thread = columns_of(&D::threads);
    visit(TableInfo{ModelTable::Threads, "threads", "Threads, and other sources of events."},
          thread(1, "process", &ThreadInfo::process, "Row of `processes`", kProcesses),
          thread(2, "id", &ThreadInfo::id, "Logical id, never reused within its process", kRisingNumber),
          thread(3, "os_tid", &ThreadInfo::os_tid, "OS thread id; 0 if this is not a thread", kRisingNumber),
          thread(4, "name", &ThreadInfo::name, "Its name", kRisingText),
          thread(5, "birth_ns", &ThreadInfo::birth_ns, "Its first event", {.cells = Time, .style = kRising}),
          thread(6, "death_ns", &ThreadInfo::death_ns, "Null while the thread is alive",
                 {.cells = Time, .null = Null::Zero}),
          thread(7, "dropped", &ThreadInfo::dropped, "Events lost for lack of space"),
          thread(8, "overwritten_chunks", &ThreadInfo::overwritten_chunks,
                 "Chunks of events that a ring reused"),
          thread(9, "resyncs", &ThreadInfo::resyncs, "Ends that did not match the innermost open range"),
          thread(10, "clamped", &ThreadInfo::clamped, "Negative durations set to 0"));
}

void visit_table(Only<ModelTable::Processes>, auto&& visit) {
    const auto process = columns_of(&D::processes);
    visit(
        TableInfo{ModelTable::Processes, "processes", "Recorded processes."},
        process(1, "pid", &ProcessInfo::pid, "Process id"),
        process(2, "node", &ProcessInfo::node, "Rank", kMaybe),
        process(3, "name", &ProcessInfo::name, "The executable", kText),
        process(4, "host", &ProcessInfo::host, "Host name", kText),
        process(5, "command_line", &ProcessInfo::command_line, "Its arguments, separated by spaces", kText),
        process(6, "realtime_offset_ns", &ProcessInfo::realtime_offset_ns,
                "Add it to a time to get nanoseconds since 1970", kTime),
        process(7, "parent", &ProcessInfo::parent,
                "Row of `processes`: the nearest ancestor that was recorded",
                {.cells = Process, .null = Null::NoRow}),
        process(8, "origin", &ProcessInfo::origin, "How it came to be: `fork`, `spawn`, `exec` or `unknown`",
                kNamed<kOrigins>),
        process(9, "tree", &ProcessInfo::tree, "Id of the process tree that was recorded together",
                kRareText),
        process(10, "clock", &ProcessInfo::clock,
                "Boot id and time namespace: processes with equal ones share a clock", kRareText),
        process(11, "pid_namespace", &ProcessInfo::pid_namespace, "Namespace of `pid`; 0 if unknown",
                kWideNumber),
        process(12, "start", &ProcessInfo::start,
                "Clock ticks from boot to its start, as in `/proc/PID/stat`; 0 if unknown", kWideNumber),
        process(13, "ancestors", &ProcessInfo::ancestors,
                "`pid:start:pid_namespace` of its ancestors, the parent first", kRareText),
        process(14, "fork_ns", &ProcessInfo::fork_ns, "When its parent forked",
                {.cells = Time, .null = Null::Zero}),
        process(15, "fork_thread", &ProcessInfo::fork_thread, "`id` of the parent's thread that forked",
                kRareNumber),
        process(16, "exit_code", &ProcessInfo::exit_code, "Its exit code, if known", kMaybe),
        process(17, "exit_signal", &ProcessInfo::exit_signal, "The signal that killed it, if known", kMaybe),
        process(18, "realtime_error_ns", &ProcessInfo::realtime_error_ns,
                "How far its wall clock may be off, as its kernel states, if known", kRareNumber));
}

void visit_table(Only<ModelTable::Sites>, auto&& visit) {
    const auto site = columns_of(&D::sites);
    visit(TableInfo{ModelTable::Sites, "sites", "Places in the source, or names made at run time."},
          site(1, "name", &SiteInfo::name, "The name of its events", kRisingText),
          site(2, "file", &SiteInfo::file, "Source file", kRareText),
          site(3, "line", &SiteInfo::line,
               "Line in the file; without one, the number of a function of a device's library; 0: none"),
          site(4, "scope", &SiteInfo::scope, "What the site marks, such as `user` or `function`", kScope),
          site(5, "overload", &SiteInfo::overload, "The overload of an operator", kRareText),
          site(6, "category", &SiteInfo::category,
               "The kind of range, as named by the tool that produced an imported trace", kRareText),
          site(7, "raw_name", &SiteInfo::raw_name, "The symbol, if `name` is its demangled form", kRareText));
}

void visit_table(Only<ModelTable::Strings>, auto&& visit) {
    visit(TableInfo{ModelTable::Strings, "strings", "All strings of the trace; the first is empty."},
          whole(1, "text", &D::strings, "Any bytes"));
}

void visit_table(Only<ModelTable::Metadata>, auto&& visit) {
    const auto fact = columns_of(&D::metadata);
    visit(TableInfo{ModelTable::Metadata, "metadata", "Facts about the recording."},
          fact(1, "key", &MetadataInfo::key, "Its name"),
          fact(2, "json", &MetadataInfo::json, "A JSON value"));
}

void visit_table(Only<ModelTable::Problems>, auto&& visit) {
    const auto problem = columns_of(&D::problems);
    visit(TableInfo{ModelTable::Problems, "problems", "Lost data, damage, limits that were reached."},
          problem(1, "code", &ProblemInfo::code, "Short and stable, such as `dropped`"),
          problem(2, "text", &ProblemInfo::text, "A sentence"),
          problem(3, "count", &ProblemInfo::count, "How often it occurred"));
}

void visit_table(Only<ModelTable::Costs>, auto&& visit) {
    const auto cost = columns_of(&D::costs);
    visit(TableInfo{ModelTable::Costs, "costs", "The cost of recording."},
          cost(1, "kind", &CostInfo::kind, "The kind of event"),
          cost(2, "ns", &CostInfo::ns, "Nanoseconds to record one"));
}

void visit_table(Only<ModelTable::Messages>, auto&& visit) {
    const auto message = columns_of(&D::messages);
    visit(TableInfo{ModelTable::Messages, "messages", "Messages that were sent and received with tokens."},
          message(1, "time_ns", &MessageInfo::time_ns, "When it was sent or received", kMoments),
          message(2, "sender", &MessageInfo::sender, "Random number of the sending process", kWideNumber),
          message(3, "number", &MessageInfo::number, "Number of the message in that process", kRisingNumber),
          message(4, "is_received", &MessageInfo::is_received, "False where it was sent"),
          message(5, "thread", &MessageInfo::thread, "Row of `threads`", kThreads),
          message(6, "range", &MessageInfo::range, "Row of `ranges`: the innermost at that time",
                  {.cells = Range, .null = Null::NoRow, .style = kRising}));
}

void visit_table(Only<ModelTable::Tasks>, auto&& visit) {
    const auto task = columns_of(&D::tasks);
    visit(
        TableInfo{ModelTable::Tasks, "tasks", "Tasks of event loops, by process and call.", false},
        task(1, "process", &TaskInfo::process, "Row of `processes`", kProcesses),
        task(2, "call", &TaskInfo::call, "`call` of its coroutine's parts in `range_details`", kRisingNumber),
        task(3, "name", &TaskInfo::name, "Its name", kText));
}

void visit_table(Only<ModelTable::HostClocks>, auto&& visit) {
    const auto clock = columns_of(&D::host_clocks);
    visit(TableInfo{ModelTable::HostClocks, "clocks", "The clocks of the hosts, if there are several."},
          clock(1, "host", &HostClockInfo::host, "Host name", kText),
          clock(2, "reference", &HostClockInfo::reference, "The host whose clock the times are of", kText),
          clock(3, "offset_ns", &HostClockInfo::offset_ns, "Was added to its times, at the window's start"),
          clock(4, "rate", &HostClockInfo::rate, "Against the reference, minus 1"),
          clock(5, "error_ns", &HostClockInfo::error_ns, "Largest error, if known", {.null = Null::Largest}),
          clock(8, "evidence", &HostClockInfo::evidence, "What the fit used, such as `16 exchanges`", kText),
          clock(7, "method", &HostClockInfo::method,
                "`reference`, `exchange`, `message`, `collective`, `wall_clock` or `none`", kText));
}

void visit_table(Only<ModelTable::ClockExchanges>, auto&& visit) {
    const auto exchange = columns_of(&D::clock_exchanges);
    visit(TableInfo{ModelTable::ClockExchanges, "clock_exchanges",
                    "Requests to other hosts and their answers, to compare the clocks."},
          exchange(1, "process", &ClockExchangeInfo::process, "Row of `processes`: it asked", kProcesses),
          exchange(2, "peer", &ClockExchangeInfo::peer, "Name of the host that answered", kText),
          exchange(3, "sent_ns", &ClockExchangeInfo::sent_ns, "The request was sent",
                   {.cells = Time, .style = kRising}),
          exchange(4, "arrived_ns", &ClockExchangeInfo::arrived_ns, "It arrived, on the peer's clock",
                   {.cells = Time, .style = kRising}),
          exchange(5, "answered_ns", &ClockExchangeInfo::answered_ns,
                   "The answer was sent, on the peer's clock", {.cells = Time, .style = kRising}),
          exchange(6, "received_ns", &ClockExchangeInfo::received_ns, "The answer arrived",
                   {.cells = Time, .style = kRising}));
}

template <ModelTable kOnly, class Visit>
requires(kOnly == ModelTable::RangeArguments ||
         kOnly == ModelTable::InstantArguments) void visit_table(Only<kOnly>, Visit&& visit) {
    constexpr bool kOfInstants = kOnly == ModelTable::InstantArguments;
    const auto slice = columns_of(kOfInstants ? &D::instant_arguments : &D::range_arguments);
    visit(kOfInstants ? TableInfo{kOnly, "instant_arguments", "Which instants have values.", false}
                      : TableInfo{kOnly, "range_arguments", "Which ranges have values.", false},
          slice(1, "row", &ArgumentSlice::row, "Row of `ranges` or `instants`",
                {.cells = kOfInstants ? Instant : Range, .style = kRising}),
          slice(2, "first", &ArgumentSlice::first, "Its first value",
                {.cells = FirstArgument, .style = kRising}),
          slice(3, "count", &ArgumentSlice::count, "The number of its values"));
}

void visit_table(Only<ModelTable::Clock>, auto&& visit) {
    const auto clock = columns_of(&D::clock);
    visit(TableInfo{ModelTable::Clock, "clock", "The clock of the recording: one row.", false},
          clock(1, "source", &ClockInfo::source, "Such as `tsc`"),
          clock(2, "ticks_per_second", &ClockInfo::ticks_per_second, "Its frequency"),
          clock(3, "pairs", &ClockInfo::pairs, "Clock pairs used for the fit"),
          clock(4, "max_error_ns", &ClockInfo::max_error_ns, "Largest error of a time"),
          clock(5, "extrapolated", &ClockInfo::extrapolated, "The end is after the last pair"));
}

void visit_table(Only<ModelTable::Window>, auto&& visit) {
    const auto window = columns_of(&D::window);
    visit(TableInfo{ModelTable::Window, "window", "The session that the trace shows: one row.", false},
          window(1, "session_name", &WindowInfo::session_name, "Its name"),
          window(2, "session_id", &WindowInfo::session_id, "Its number in the capture"),
          window(3, "start_ns", &WindowInfo::start_ns, "Its start", kTime),
          window(4, "end_ns", &WindowInfo::end_ns, "Its end", kTime),
          window(5, "finished", &WindowInfo::finished, "False after a crash, and for a snapshot"),
          window(6, "max_bytes", &WindowInfo::max_bytes, "The limit on its size"),
          window(7, "policy", &WindowInfo::policy, "`stop`, `drop` or `ring`"),
          window(8, "size_limit_reached", &WindowInfo::size_limit_reached, "Whether it reached that limit"),
          window(9, "log_bytes", &WindowInfo::log_bytes, "Bytes of log records read"));
}

}  // namespace model

/// Calls visit(TableInfo, Column...) for the tables, in the order of docs/reference/tables.md.
void visit_columns(auto&& visit) {
    using enum ModelTable;
    const auto each = [&]<ModelTable... kTables>(Only<kTables>... tables) {
        (model::visit_table(tables, visit), ...);
    };
    each(Only<Ranges>(), Only<Instants>(), Only<Counters>(), Only<Memory>(), Only<Samples>(), Only<Stacks>(),
         Only<Frames>(), Only<Sampling>(), Only<Links>(), Only<Arguments>(), Only<ListItems>(),
         Only<Arrays>(), Only<ArrayExtents>(), Only<RangeDetails>(), Only<Tracks>(), Only<Threads>(),
         Only<Processes>(), Only<Sites>(), Only<Strings>(), Only<Metadata>(), Only<Problems>(), Only<Costs>(),
         Only<Messages>(), Only<HostClocks>(), Only<ClockExchanges>(), Only<Tasks>(), Only<RangeArguments>(),
         Only<InstantArguments>(), Only<Clock>(), Only<Window>());
}

/// Calls use(vector) for each vector of a table. Columns of one vector stand side by side in the list.
template <ModelTable kTable, class Data, class Use>
void for_each_vector(Data& data, Use use) {
    model::visit_table(Only<kTable>(), [&](const TableInfo&, const auto&... columns) {
        const void* last = nullptr;
        const auto once = [&](auto& rows) {
            if (std::exchange(last, &rows) != &rows) use(rows);
        };
        (once(columns.in(data)), ...);
    });
}

/// Calls use(number) for each cell of these kinds in the whole trace.
void for_each_reference(auto& data, Cells wanted, auto use) {
    const auto of_column = [&]<class Rows, class Member>(const Column<Rows, Member>& column) {
        if constexpr (std::is_same_v<typename Column<Rows, Member>::Value, std::uint32_t>) {
            if (column.cells != wanted) return;
            for (auto& row : column.in(data)) use(std::invoke(column.member, row));
        }
    };
    visit_columns([&](const TableInfo&, const auto&... columns) { (of_column(columns), ...); });
    if (wanted != Cells::String) return;
    for (auto* const values : {&data.arguments, &data.list_items}) {
        for (auto& value : *values) {
            if (value.kind == ValueKind::String) use(value.string);
        }
    }
}

}  // namespace marey
