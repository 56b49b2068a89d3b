// trace_data.h: the storage of marey::Trace, filled by a builder, then never changed; and what follows from
// it.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include <marey/trace.h>

namespace marey {

/// Rows of a sparse index: the arguments of row `row` are `arguments[first, first + count)`.
struct ArgumentSlice {
    Row row;
    std::uint32_t first;
    std::uint32_t count;
};

struct TraceData {
    std::vector<std::string> strings{std::string()};  ///< [0] is ""
    std::vector<SiteInfo> sites;
    std::vector<ProcessInfo> processes;
    std::vector<ThreadInfo> threads;
    std::vector<TrackInfo> tracks;  ///< in order of first_range

    // The range table; all the same length. Read it with ranges().
    std::vector<std::int64_t> range_start_ns;
    std::vector<std::int64_t> range_duration_ns;
    std::vector<std::int64_t> range_self_ns;
    std::vector<std::uint32_t> range_site;
    std::vector<Row> range_parent;
    std::vector<std::uint32_t> range_depth;
    std::vector<std::uint16_t> range_flags;

    std::vector<std::int64_t> instant_time_ns;
    std::vector<std::uint32_t> instant_site;
    std::vector<Row> instant_thread;

    std::vector<std::int64_t> counter_time_ns;
    std::vector<std::uint32_t> counter_site;
    std::vector<Row> counter_thread;
    std::vector<double> counter_value;

    std::vector<Argument> arguments;
    std::vector<Argument> list_items;
    std::vector<ArgumentSlice> range_arguments;    ///< sorted by row
    std::vector<ArgumentSlice> instant_arguments;  ///< sorted by row
    std::vector<ArrayInfo> arrays;
    std::vector<std::int64_t> array_extents;
    std::vector<RangeDetail> range_details;  ///< sorted by range
    std::vector<LinkInfo> links;             ///< sorted by from

    // Allocation reports; all the same length.
    std::vector<std::int64_t> memory_time_ns;
    std::vector<Row> memory_thread;
    std::vector<std::uint64_t> memory_address;
    std::vector<std::int64_t> memory_bytes;
    std::vector<std::int64_t> memory_total_allocated;
    std::vector<std::int64_t> memory_total_reserved;
    std::vector<Device> memory_device;
    std::vector<std::uint8_t> memory_out_of_memory;

    // Samples; all the same length.
    std::vector<std::int64_t> sample_time_ns;
    std::vector<std::int64_t> sample_duration_ns;
    std::vector<std::int64_t> sample_cpu_ns;
    std::vector<Row> sample_thread;
    std::vector<SampleState> sample_state;
    std::vector<Row> sample_stack;
    std::vector<Row> sample_range;
    std::vector<StackInfo> stacks;
    std::vector<FrameInfo> frames;
    std::vector<SamplingInfo> sampling;

    std::vector<MetadataInfo> metadata;
    std::vector<ProblemInfo> problems;
    std::vector<CostInfo> costs;
    ClockInfo clock;
    WindowInfo window;
    std::vector<TaskInfo> tasks;  ///< sorted by process and call
    std::vector<MessageInfo> messages;
    std::vector<ClockExchangeInfo> clock_exchanges;
    std::vector<HostClockInfo> host_clocks;

    /// Set for a trace from the viewer's cache: its ranges are in this mapped file, and the vectors above are
    /// empty.
    std::shared_ptr<const void> mapping;
    RangeColumns mapped_ranges;
    /// Copies mapped ranges into the vectors, so that they can be changed.
    void own_ranges();

    // The columns as Trace returns them.
    RangeColumns ranges() const noexcept {
        if (mapping != nullptr) return mapped_ranges;
        return {range_start_ns, range_duration_ns, range_self_ns, range_site,
                range_parent,   range_depth,       range_flags};
    }
    InstantColumns instants() const noexcept { return {instant_time_ns, instant_site, instant_thread}; }
    CounterColumns counters() const noexcept {
        return {counter_time_ns, counter_site, counter_thread, counter_value};
    }
    MemoryColumns memory() const noexcept {
        return {memory_time_ns,         memory_thread,         memory_address, memory_bytes,
                memory_total_allocated, memory_total_reserved, memory_device,  memory_out_of_memory};
    }
    SampleColumns samples() const noexcept {
        return {sample_time_ns, sample_duration_ns, sample_cpu_ns, sample_thread,
                sample_state,   sample_stack,       sample_range};
    }
};

/// The tables of a trace, to make another trace of: a copy, unless `trace` is the only reference to them.
std::shared_ptr<TraceData> changeable_data(Trace trace);
/// The trace with its ranges in the vectors, for code that reads these: a copy if they are in a mapped file.
Trace with_own_ranges(const Trace& trace);

/// Sorts tasks; of several for one call the first one is kept.
void sort_tasks(std::vector<TaskInfo>& tasks);

/// An allocation report: a row of the memory columns.
struct AllocationReport {
    std::int64_t time_ns = 0;
    std::uint64_t address = 0;
    std::int64_t bytes = 0;
    std::int64_t total_allocated = 0;
    std::int64_t total_reserved = 0;
    Device device{};
    bool out_of_memory = false;
};
void add_report(TraceData& data, Row thread, const AllocationReport& report);
/// Sorts the reports by thread, then by time.
void sort_reports(TraceData& data);

/// A row of the sample columns.
struct SampleInfo {
    std::int64_t time_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t cpu_ns = 0;
    SampleState state = SampleState::Running;
    Row stack = kNoRow;
    Row range = kNoRow;
};
void add_sample(TraceData& data, Row thread, const SampleInfo& sample);
/// Sorts the samples by thread, then by time.
void sort_samples(TraceData& data);

/// Adds a fact; replaces one with the same key.
inline void put_fact(std::vector<MetadataInfo>& facts, std::string key, std::string json) {
    const auto same = std::ranges::find_if(facts, [&](const MetadataInfo& fact) { return fact.key == key; });
    if (same != facts.end()) {
        same->json = std::move(json);
    } else {
        facts.push_back({std::move(key), std::move(json)});
    }
}

/// For each range, the part of its duration in the window that no child covers. Sums wrap around; any times
/// are safe. Parents must be rows of the table or kNoRow.
std::vector<std::int64_t> self_times(const TraceData& data);

/// Empty when every row that a table refers to exists, columns have equal lengths, sorted columns are sorted,
/// tracks cover all ranges without a gap, ranges are in pre-order with parents before their children, lists
/// do not nest without end, times are within +-2^62 ns, and metadata is JSON. Else the first inconsistency,
/// in a few words.
std::string find_damage(const TraceData& data);

}  // namespace marey
