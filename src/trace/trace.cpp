// trace.cpp: accessors of the model.
#include <marey/trace.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include <marey/error.h>

#include "json/json_scanner.h"
#include "trace/facts.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

std::span<const Argument> find_arguments(const TraceData& data, const std::vector<ArgumentSlice>& index,
                                         Row row) {
    const auto found =
        std::lower_bound(index.begin(), index.end(), row,
                         [](const ArgumentSlice& slice, Row wanted) { return slice.row < wanted; });
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

std::string_view Trace::string(StringId id) const noexcept {
    return id < data_->strings.size() ? std::string_view(data_->strings[id]) : std::string_view();
}

std::size_t Trace::string_count() const noexcept {
    return data_->strings.size();
}

std::span<const SiteInfo> Trace::sites() const noexcept {
    return data_->sites;
}

std::span<const ProcessInfo> Trace::processes() const noexcept {
    return data_->processes;
}

std::span<const ThreadInfo> Trace::threads() const noexcept {
    return data_->threads;
}

std::span<const TrackInfo> Trace::tracks() const noexcept {
    return data_->tracks;
}

RangeColumns Trace::ranges() const noexcept {
    return data_->ranges();
}

InstantColumns Trace::instants() const noexcept {
    return data_->instants();
}

CounterColumns Trace::counters() const noexcept {
    return data_->counters();
}

MemoryColumns Trace::memory() const noexcept {
    return data_->memory();
}

std::span<const ArrayInfo> Trace::arrays() const noexcept {
    return data_->arrays;
}

std::span<const std::int64_t> Trace::array_extents() const noexcept {
    return data_->array_extents;
}

std::span<const RangeDetail> Trace::range_details() const noexcept {
    return data_->range_details;
}

void sort_tasks(std::vector<TaskInfo>& tasks) {
    const auto key = [](const TaskInfo& task) { return std::pair(task.process, task.call); };
    std::stable_sort(tasks.begin(), tasks.end(),
                     [&](const TaskInfo& a, const TaskInfo& b) { return key(a) < key(b); });
    tasks.erase(std::unique(tasks.begin(), tasks.end(),
                            [&](const TaskInfo& a, const TaskInfo& b) { return key(a) == key(b); }),
                tasks.end());
}

std::span<const TaskInfo> Trace::task_names() const noexcept {
    return data_->tasks;
}

std::span<const ClockExchangeInfo> Trace::clock_exchanges() const noexcept {
    return data_->clock_exchanges;
}

std::span<const HostClockInfo> Trace::host_clocks() const noexcept {
    return data_->host_clocks;
}

std::span<const MessageInfo> Trace::messages() const noexcept {
    return data_->messages;
}

std::span<const LinkInfo> Trace::links() const noexcept {
    return data_->links;
}

const RangeDetail* Trace::range_detail(Row range) const noexcept {
    const auto& details = data_->range_details;
    const auto found =
        std::lower_bound(details.begin(), details.end(), range,
                         [](const RangeDetail& detail, Row row) { return detail.range < row; });
    return found != details.end() && found->range == range ? &*found : nullptr;
}

std::span<const Argument> Trace::list_items() const noexcept {
    return data_->list_items;
}

std::span<const MetadataInfo> Trace::metadata() const noexcept {
    return data_->metadata;
}

std::span<const ProblemInfo> Trace::problems() const noexcept {
    return data_->problems;
}

std::span<const CostInfo> Trace::costs() const noexcept {
    return data_->costs;
}

const ClockInfo& Trace::clock() const noexcept {
    return data_->clock;
}

const WindowInfo& Trace::window() const noexcept {
    return data_->window;
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
    const auto after =
        std::upper_bound(tracks.begin(), tracks.end(), range,
                         [](Row row, const TrackInfo& track) { return row < track.first_range; });
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

}  // namespace marey
