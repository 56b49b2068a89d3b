// trace.cpp: accessors of the model, and the self times of ranges.
#include <marey/trace.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include <marey/error.h>

#include "json/json_scanner.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

std::span<const Argument> find_arguments(const TraceData& data, const std::vector<ArgumentSlice>& index,
                                         Row row) {
    const auto found = std::ranges::lower_bound(index, row, {}, &ArgumentSlice::row);
    if (found == index.end() || found->row != row) return {};
    return std::span(data.arguments).subspan(found->first, found->count);
}

}  // namespace

Trace::Trace() {
    static const auto empty = std::make_shared<const TraceData>();
    data_ = empty;
}

void TraceData::own_ranges() {
    if (mapping == nullptr) return;
    const auto copy = [](auto& to, auto from) { to.assign(from.begin(), from.end()); };
    copy(range_start_ns, mapped_ranges.start_ns);
    copy(range_duration_ns, mapped_ranges.duration_ns);
    copy(range_self_ns, mapped_ranges.self_ns);
    copy(range_site, mapped_ranges.site);
    copy(range_parent, mapped_ranges.parent);
    copy(range_depth, mapped_ranges.depth);
    copy(range_flags, mapped_ranges.flags);
    mapped_ranges = {};
    mapping.reset();
}

std::shared_ptr<TraceData> changeable_data(Trace trace) {
    std::shared_ptr<TraceData> data;
    if (trace.data_.use_count() > 1) {
        data = std::make_shared<TraceData>(trace.data());
    } else {
        std::atomic_thread_fence(
            std::memory_order_acquire);  // after reads by threads that gave up a reference
        data = std::const_pointer_cast<TraceData>(std::move(trace.data_));
    }
    data->own_ranges();
    return data;
}

Trace with_own_ranges(const Trace& trace) {
    return trace.data().mapping == nullptr ? trace : Trace(changeable_data(trace));
}

Trace Trace::with_metadata(std::string_view key, std::string_view json) const {
    if (!is_json(json)) throw Error("metadata of '" + std::string(key) + "': the value is not JSON");
    auto data = std::make_shared<TraceData>(*data_);
    put_fact(data->metadata, std::string(key), std::string(json));
    return Trace(std::move(data));
}

Trace Trace::changed(Trace trace, const TraceChanges& changes) {
    // Tables without another user are not shared: nobody notices that they change.
    const std::shared_ptr<const TraceData> given = std::move(trace.data_);
    const std::shared_ptr<TraceData> data = given.use_count() == 1 ? std::const_pointer_cast<TraceData>(given)
                                                                   : std::make_shared<TraceData>(*given);
    if (changes.rename != nullptr) {
        StringPool strings(data->strings);
        for (SiteInfo& site : data->sites) {
            const std::string name = changes.rename(site.scope, data->strings[site.name]);
            if (!name.empty()) site.name = strings.intern(name);
        }
    }
    if (changes.drops_forward_links)
        std::erase_if(data->links,
                      [](const LinkInfo& link) { return link.kind == LinkKind::ForwardBackward; });
    data->window.first_id = changes.first_id;
    data->window.has_pytorch_flops = changes.has_pytorch_flops;
    return Trace(data);
}

// The tables: each method returns a member of the storage.
#define MAREY_TABLE(Type, name, member) \
    Type Trace::name() const noexcept { \
        return data_->member;           \
    }
MAREY_TABLE(std::span<const SiteInfo>, sites, sites)
MAREY_TABLE(std::span<const ProcessInfo>, processes, processes)
MAREY_TABLE(std::span<const ThreadInfo>, threads, threads)
MAREY_TABLE(std::span<const TrackInfo>, tracks, tracks)
MAREY_TABLE(std::span<const ArrayInfo>, arrays, arrays)
MAREY_TABLE(std::span<const RangeDetail>, range_details, range_details)
MAREY_TABLE(std::span<const TaskInfo>, task_names, tasks)
MAREY_TABLE(std::span<const ClockExchangeInfo>, clock_exchanges, clock_exchanges)
MAREY_TABLE(std::span<const HostClockInfo>, host_clocks, host_clocks)
MAREY_TABLE(std::span<const MessageInfo>, messages, messages)
MAREY_TABLE(std::span<const LinkInfo>, links, links)
MAREY_TABLE(std::span<const Argument>, list_items, list_items)
MAREY_TABLE(std::span<const MetadataInfo>, metadata, metadata)
MAREY_TABLE(std::span<const ProblemInfo>, problems, problems)
MAREY_TABLE(std::span<const CostInfo>, costs, costs)
MAREY_TABLE(const ClockInfo&, clock, clock)
MAREY_TABLE(const WindowInfo&, window, window)
MAREY_TABLE(RangeColumns, ranges, ranges())
MAREY_TABLE(InstantColumns, instants, instants())
MAREY_TABLE(CounterColumns, counters, counters())
MAREY_TABLE(MemoryColumns, memory, memory())
MAREY_TABLE(SampleColumns, samples, samples())
MAREY_TABLE(std::span<const StackInfo>, stacks, stacks)
MAREY_TABLE(std::span<const FrameInfo>, frames, frames)
MAREY_TABLE(std::span<const SamplingInfo>, sampling, sampling)
#undef MAREY_TABLE

std::string_view Trace::string(StringId id) const noexcept {
    return id < data_->strings.size() ? std::string_view(data_->strings[id]) : std::string_view();
}

std::size_t Trace::string_count() const noexcept {
    return data_->strings.size();
}

std::span<const std::int64_t> Trace::array_extents() const noexcept {
    return data_->array_extents;
}

void sort_tasks(std::vector<TaskInfo>& tasks) {
    const auto key = [](const TaskInfo& task) { return std::pair(task.process, task.call); };
    std::ranges::stable_sort(tasks, {}, [&](const TaskInfo& a) { return key(a); });
    tasks.erase(std::unique(tasks.begin(), tasks.end(),
                            [&](const TaskInfo& a, const TaskInfo& b) { return key(a) == key(b); }),
                tasks.end());
}

const RangeDetail* Trace::range_detail(Row range) const noexcept {
    const auto& details = data_->range_details;
    const auto found = std::ranges::lower_bound(details, range, {}, &RangeDetail::range);
    return found != details.end() && found->range == range ? &*found : nullptr;
}

bool Trace::has_problem(std::string_view code) const noexcept {
    return std::ranges::find(data_->problems, code, &ProblemInfo::code) != data_->problems.end();
}

std::span<const Argument> Trace::range_arguments(Row range) const noexcept {
    return find_arguments(*data_, data_->range_arguments, range);
}

std::span<const Argument> Trace::instant_arguments(Row instant) const noexcept {
    return find_arguments(*data_, data_->instant_arguments, instant);
}

std::string_view Trace::range_name(Row range) const noexcept {
    const RangeColumns ranges = data_->ranges();
    if (range >= ranges.size()) return {};
    const std::uint32_t site = ranges.site[range];
    return site < data_->sites.size() ? string(data_->sites[site].name) : std::string_view();
}

Row Trace::track_of(Row range) const noexcept {
    const auto& tracks = data_->tracks;
    const auto after = std::ranges::upper_bound(tracks, range, {}, &TrackInfo::first_range);
    if (after == tracks.begin()) return kNoRow;
    const TrackInfo& track = *(after - 1);
    if (range - track.first_range >= track.range_count) return kNoRow;
    return static_cast<Row>(after - 1 - tracks.begin());
}

std::int64_t Trace::clipped_duration_ns(Row range) const noexcept {
    const RangeColumns ranges = data_->ranges();
    if (range >= ranges.size()) return 0;
    const std::int64_t start = ranges.start_ns[range];
    const std::int64_t end = start + ranges.duration_ns[range];
    const std::int64_t clipped =
        std::min(end, data_->window.end_ns) - std::max(start, data_->window.start_ns);
    return std::max<std::int64_t>(clipped, 0);
}

std::vector<std::int64_t> self_times(const TraceData& data) {
    const std::size_t count = data.range_start_ns.size();
    std::vector<std::uint64_t> self(count);
    const auto wrap = [](std::int64_t time) { return static_cast<std::uint64_t>(time); };
    for (std::size_t row = 0; row < count; ++row) {
        const auto true_end =
            static_cast<std::int64_t>(wrap(data.range_start_ns[row]) + wrap(data.range_duration_ns[row]));
        const std::int64_t start = std::max(data.range_start_ns[row], data.window.start_ns);
        const std::int64_t end = std::min(true_end, data.window.end_ns);
        if (end <= start) continue;
        const std::uint64_t clipped = wrap(end) - wrap(start);
        self[row] += clipped;
        if (data.range_parent[row] != kNoRow) self[data.range_parent[row]] -= clipped;
    }
    return {self.begin(), self.end()};
}

}  // namespace marey
