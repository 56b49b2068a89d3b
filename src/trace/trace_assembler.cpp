// trace_assembler.cpp: sorts, nests, and writes the rows.
#include "trace/trace_assembler.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include <marey/error.h>

#include "base/reserve_expected.h"
#include "native/function_name.h"
#include "trace/columns.h"
#include "trace/part_flags.h"
#include "trace/process_links.h"

namespace marey {

std::size_t TraceAssembler::SiteHash::operator()(const SiteInfo& site) const noexcept {
    std::size_t hash = 0;
    model::visit_table(Only<ModelTable::Sites>(), [&](const TableInfo&, const auto&... columns) {
        const auto mix = [&](auto part) {
            hash = (hash ^ static_cast<std::uint32_t>(part)) * 0x9e3779b97f4a7c15u;
            hash ^= hash >> 32;
        };
        (mix(std::invoke(columns.member, site)), ...);
    });
    return hash;
}

TraceAssembler::TraceAssembler() : data_(std::make_shared<TraceData>()), strings_(data_->strings) {}

SiteInfo TraceAssembler::named(std::string_view name) {
    SiteInfo info;
    info.name = string(name);
    if (!name.starts_with("_Z")) return info;
    const auto [place, is_new] = readable_.try_emplace(info.name, info.name);
    if (is_new) {
        if (const std::optional<std::string> text = demangle(name)) place->second = string(*text);
    }
    if (place->second != info.name) info.raw_name = std::exchange(info.name, place->second);
    return info;
}

std::uint32_t TraceAssembler::site(const SiteInfo& info) {
    const auto [place, is_new] = sites_.try_emplace(info, static_cast<std::uint32_t>(data_->sites.size()));
    if (is_new) data_->sites.push_back(info);
    return place->second;
}

Row TraceAssembler::add_process(const ProcessInfo& info) {
    data_->processes.push_back(info);
    return static_cast<Row>(data_->processes.size() - 1);
}

Row TraceAssembler::add_thread(const ThreadInfo& info) {
    data_->threads.push_back(info);
    return static_cast<Row>(data_->threads.size() - 1);
}

std::uint32_t TraceAssembler::add_lane(const Lane& lane) {
    if (lanes_.size() >= kMaxLanes) throw Error("more rows than a trace can hold");
    lanes_.push_back(lane);
    return static_cast<std::uint32_t>(lanes_.size() - 1);
}

TraceAssembler::RangeId TraceAssembler::add_range(std::uint32_t lane, std::int64_t start_ns,
                                                  std::int64_t duration_ns, std::uint32_t site,
                                                  std::uint16_t flags) {
    if (ranges_.size() >= kNoRow) throw Error("more ranges than a trace can hold");
    if (duration_ns < 0) {
        duration_ns = 0;
        ++data_->threads[lanes_[lane].thread].clamped;
    }
    // The end must be a valid time, too.
    duration_ns =
        std::min(duration_ns, std::numeric_limits<std::int64_t>::max() - std::max<std::int64_t>(start_ns, 0));
    ranges_.push_back({start_ns, duration_ns, site, lane, static_cast<std::uint8_t>(flags)});
    return static_cast<RangeId>(ranges_.size() - 1);
}

void TraceAssembler::add_values(RangeId range, std::span<const Argument> values) {
    if (values.empty()) return;
    data_->range_arguments.push_back({range, static_cast<std::uint32_t>(data_->arguments.size()),
                                      static_cast<std::uint32_t>(values.size())});
    data_->arguments.insert(data_->arguments.end(), values.begin(), values.end());
}

void TraceAssembler::add_detail(RangeId range, std::int64_t sequence, std::uint32_t forward_thread,
                                std::uint64_t id, std::uint64_t call, std::uint32_t part) {
    data_->range_details.push_back({range, sequence, forward_thread, id, call, part});
}

void TraceAssembler::add_calls(RangeId range, std::uint64_t calls) {
    RangeDetail& detail = data_->range_details.emplace_back();
    detail.range = range;
    detail.calls = static_cast<std::uint32_t>(std::min<std::uint64_t>(calls, ~std::uint32_t{0}));
}

void TraceAssembler::add_link(RangeId from, RangeId to, LinkKind kind, StringId name) {
    // Arrows between the parts of a call are created again by each export.
    if (kind == LinkKind::Flow && data_->strings[name] == "next part") return;
    data_->links.push_back({from, to, kind, name});
}

void TraceAssembler::add_link(const LinkEnd& from, const LinkEnd& to, LinkKind kind, StringId name) {
    // Arrows between the parts of a call are created again by each export.
    if (kind == LinkKind::Flow && data_->strings[name] == "next part") return;
    if (from.range != LinkEnd::kNoRange && to.range != LinkEnd::kNoRange) {
        add_link(from.range, to.range, kind, name);
    } else {
        loose_links_.push_back({from, to, kind, name});
    }
}

void TraceAssembler::expect(double fraction) {
    const auto make_room = [&](auto& column) { reserve_expected(column, fraction); };
    const auto make_all = [&](auto&... columns) { (make_room(columns), ...); };
    TraceData& data = *data_;
    make_all(ranges_, data.arguments, data.range_arguments, data.range_details, data.list_items, data.arrays,
             data.array_extents, data.links, data.strings);
    reserve_expected(data.instant_arguments, fraction);
    for_each_vector<ModelTable::Instants>(data, make_room);
    for_each_vector<ModelTable::Counters>(data, make_room);
    for_each_vector<ModelTable::Memory>(data, make_room);
}

void TraceAssembler::add_instant(Row thread, std::int64_t time_ns, std::uint32_t site,
                                 std::span<const Argument> values) {
    if (!values.empty()) {
        data_->instant_arguments.push_back({static_cast<Row>(data_->instant_time_ns.size()),
                                            static_cast<std::uint32_t>(data_->arguments.size()),
                                            static_cast<std::uint32_t>(values.size())});
        data_->arguments.insert(data_->arguments.end(), values.begin(), values.end());
    }
    data_->instant_time_ns.push_back(time_ns);
    data_->instant_site.push_back(site);
    data_->instant_thread.push_back(thread);
}

void TraceAssembler::add_counter(Row thread, std::int64_t time_ns, std::uint32_t site, double value) {
    data_->counter_time_ns.push_back(time_ns);
    data_->counter_site.push_back(site);
    data_->counter_thread.push_back(thread);
    data_->counter_value.push_back(value);
}

ListItems TraceAssembler::add_list(std::span<const Argument> items) {
    const ListItems list{static_cast<std::uint32_t>(data_->list_items.size()),
                         static_cast<std::uint32_t>(items.size())};
    data_->list_items.insert(data_->list_items.end(), items.begin(), items.end());
    return list;
}

Row TraceAssembler::add_array(ArrayInfo info, std::span<const std::int64_t> extents) {
    info.first_extent = static_cast<std::uint32_t>(data_->array_extents.size());
    data_->array_extents.insert(data_->array_extents.end(), extents.begin(), extents.end());
    data_->arrays.push_back(info);
    return static_cast<Row>(data_->arrays.size() - 1);
}

void TraceAssembler::add_problem(std::string code, std::string text, std::uint64_t count) {
    if (count != 0) data_->problems.push_back({std::move(code), std::move(text), count});
}

void TraceAssembler::add_metadata(std::string key, std::string json) {
    data_->metadata.push_back({std::move(key), std::move(json)});
}

void TraceAssembler::set_window(std::int64_t start_ns, std::int64_t end_ns) {
    data_->window.start_ns = start_ns;
    data_->window.end_ns = std::max(start_ns, end_ns);
    has_window_ = true;
}

Trace TraceAssembler::finish() {
    fix_window();
    place_ranges();
    fill_self_times();
    place_values();
    mark_parts(*data_);
    bind_links();
    place_links();
    sort_points();
    for (const TaskInfo& task : tasks_)
        data_->tasks.push_back({data_->threads[lanes_[task.process].thread].process, task.call, task.name});
    sort_tasks(data_->tasks);
    std::uint64_t clamped = 0;
    for (const ThreadInfo& thread : data_->threads) clamped += thread.clamped;
    add_problem("clamped", "Ranges with a negative duration were set to 0.", clamped);
    return Trace(std::shared_ptr<const TraceData>(std::move(data_)));
}

void TraceAssembler::fix_window() {
    if (has_window_) return;
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    for (const Added& range : ranges_) {
        first = std::min(first, range.start_ns);
        last = std::max(last, range.start_ns + range.duration_ns);
    }
    for (const auto* times : {&data_->instant_time_ns, &data_->counter_time_ns, &data_->memory_time_ns}) {
        for (const std::int64_t time : *times) {
            first = std::min(first, time);
            last = std::max(last, time);
        }
    }
    if (first <= last) set_window(first, last);
}

void TraceAssembler::place_ranges() {
    const std::size_t count = ranges_.size();
    row_of_.resize(count);
    for_each_vector<ModelTable::Ranges>(*data_, [&](auto& column) { column.reserve(count); });

    // The ranges lane by lane: a counting sort, then each lane sorted by its times.
    std::vector<std::size_t> first(lanes_.size() + 1, 0);
    for (const Added& range : ranges_) ++first[range.lane + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<RangeId> members(count);
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    for (RangeId id = 0; id < count; ++id) members[next[ranges_[id].lane]++] = id;
    lane_tracks_.resize(lanes_.size());
    for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
        const std::span<RangeId> of_lane(members.data() + first[lane], first[lane + 1] - first[lane]);
        sort_by_time(of_lane);
        lane_tracks_[lane].first = static_cast<std::uint32_t>(data_->tracks.size());
        if (!of_lane.empty()) place_lane(lanes_[lane], of_lane);
        lane_tracks_[lane].count =
            static_cast<std::uint32_t>(data_->tracks.size()) - lane_tracks_[lane].first;
    }
}

void TraceAssembler::sort_by_time(std::span<RangeId> members) const {
    const auto is_before = [&](RangeId a, RangeId b) {
        const Added &left = ranges_[a], &right = ranges_[b];
        if (left.start_ns != right.start_ns) return left.start_ns < right.start_ns;
        if (left.duration_ns != right.duration_ns) return left.duration_ns > right.duration_ns;
        return a < b;
    };
    if (!std::ranges::is_sorted(members, is_before)) std::ranges::sort(members, is_before);
}

namespace {

/// The track of each range of a lane: the lowest one where it crosses nothing.
class TrackChoice {
  public:
    static constexpr std::uint32_t kNone = ~0u;

    struct Place {
        std::uint32_t track;
        std::uint32_t depth;
    };
    /// `parent` is an id given before, and `parent_track` its track. Starts never decrease.
    Place put(std::uint32_t id, std::uint32_t parent, std::uint32_t parent_track, std::int64_t start,
              std::int64_t end) {
        if (parent != kNone) {
            std::vector<Open>& open = open_[parent_track];
            while (open.back().id != parent && open.back().end <= start) open.pop_back();
            if (open.back().id == parent) {
                open.push_back({id, end});
                return {parent_track, static_cast<std::uint32_t>(open.size() - 1)};
            }
        }
        while (!busy_.empty() && busy_.top().first <= start) {
            const std::uint32_t track = busy_.top().second;
            free_.insert(std::ranges::lower_bound(free_, track), track);
            busy_.pop();
        }
        // After its parent's track, so that a parent's row always comes before.
        const auto found = parent == kNone ? free_.begin() : std::ranges::upper_bound(free_, parent_track);
        auto track = static_cast<std::uint32_t>(open_.size());
        if (found == free_.end()) {
            open_.emplace_back();
        } else {
            track = *found;
            free_.erase(found);
        }
        busy_.emplace(end, track);
        open_[track].assign(1, {id, end});
        return {track, 0};
    }
    std::size_t track_count() const { return open_.size(); }

  private:
    struct Open {
        std::uint32_t id;
        std::int64_t end;
    };
    using Busy = std::pair<std::int64_t, std::uint32_t>;  // until when, track
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy_;
    std::vector<std::uint32_t> free_;      ///< tracks where nothing is open, in order
    std::vector<std::vector<Open>> open_;  ///< of each track, outermost first
};

/// Sorts entries of a table by their rows, stable within a row. Linear: there are `rows`.
template <typename Entry>
void sort_by_row(std::vector<Entry>& entries, Row Entry::*row, std::size_t rows) {
    const auto is_before = [&](const Entry& a, const Entry& b) { return a.*row < b.*row; };
    if (std::ranges::is_sorted(entries, is_before)) return;
    std::vector<std::uint32_t> place(rows + 1, 0);
    for (const Entry& entry : entries) ++place[entry.*row + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    std::vector<Entry> sorted(entries.size());
    for (const Entry& entry : entries) sorted[place[entry.*row]++] = entry;
    entries = std::move(sorted);
}

// Several slices of one row become one; all in order of rows.
void sort_slices(std::vector<ArgumentSlice>& slices, std::vector<Argument>& arguments, std::size_t rows) {
    sort_by_row(slices, &ArgumentSlice::row, rows);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
        if (kept == 0 || slices[kept - 1].row != slices[i].row) {
            slices[kept++] = slices[i];
            continue;
        }
        ArgumentSlice& whole = slices[kept - 1];
        if (whole.first + whole.count != slices[i].first) {  // gathers them at the end
            const auto first = static_cast<std::uint32_t>(arguments.size());
            for (std::uint32_t k = 0; k < whole.count; ++k) arguments.push_back(arguments[whole.first + k]);
            for (std::uint32_t k = 0; k < slices[i].count; ++k)
                arguments.push_back(arguments[slices[i].first + k]);
            whole.first = first;
        }
        whole.count += slices[i].count;
    }
    slices.resize(kept);
}

/// Rows in order of (thread, time), or nothing if they are already sorted.
std::vector<Row> thread_time_order(const std::vector<Row>& threads, const std::vector<std::int64_t>& times) {
    std::vector<Row> order(times.size());
    std::iota(order.begin(), order.end(), Row{0});
    const auto is_before = [&](Row a, Row b) {
        if (threads[a] != threads[b]) return threads[a] < threads[b];
        return times[a] != times[b] ? times[a] < times[b] : a < b;
    };
    if (std::ranges::is_sorted(order, is_before)) return {};
    std::ranges::sort(order, is_before);
    return order;
}

template <ModelTable kTable>
void reorder(TraceData& data, const std::vector<Row>& order) {
    for_each_vector<kTable>(data, [&]<class T>(std::vector<T>& column) {
        std::vector<T> sorted;
        sorted.reserve(column.size());
        for (const Row row : order) sorted.push_back(column[row]);
        column = std::move(sorted);
    });
}

}  // namespace

void TraceAssembler::place_lane(const Lane& lane, std::span<const RangeId> members) {
    struct Nested {
        std::uint32_t parent;  ///< index into members
        TrackChoice::Place place;
    };
    const bool is_async = lane.kind == TrackKind::Async;
    std::vector<Nested> nested(members.size());
    std::vector<std::uint32_t> open;  // indices into members, outermost first
    TrackChoice tracks;
    for (std::uint32_t i = 0; i < members.size(); ++i) {
        const Added& range = ranges_[members[i]];
        const std::int64_t end = range.start_ns + range.duration_ns;
        const auto is_over = [&](const Added& other) {
            const std::int64_t other_end = other.start_ns + other.duration_ns;
            return range.start_ns >= other_end || end > other_end;
        };
        while (!open.empty() && (is_async || is_over(ranges_[members[open.back()]]))) open.pop_back();
        const std::uint32_t parent = open.empty() ? TrackChoice::kNone : open.back();
        const std::uint32_t parent_track = open.empty() ? 0 : nested[parent].place.track;
        nested[i] = {parent, tracks.put(i, parent, parent_track, range.start_ns, end)};
        open.push_back(i);
    }
    // Track by track: a parent's row is known when it is needed.
    std::vector<std::uint32_t> order;
    if (tracks.track_count() > 1) {
        order.resize(members.size());
        std::iota(order.begin(), order.end(), 0u);
        std::ranges::stable_sort(order, {}, [&](std::uint32_t a) { return nested[a].place.track; });
    }
    const auto nth = [&](std::size_t i) { return order.empty() ? static_cast<std::uint32_t>(i) : order[i]; };
    for (std::size_t i = 0; i < members.size();) {
        const std::uint32_t track = nested[nth(i)].place.track;
        const auto first = static_cast<Row>(data_->range_start_ns.size());
        for (; i < members.size() && nested[nth(i)].place.track == track; ++i) {
            const Nested& member = nested[nth(i)];
            const bool is_root = member.parent == TrackChoice::kNone;
            add_row(members[nth(i)], is_root ? kNoRow : row_of_[members[member.parent]], member.place.depth,
                    is_async);
        }
        add_track(lane, track, first, static_cast<Row>(data_->range_start_ns.size()) - first);
    }
}

void TraceAssembler::add_track(const Lane& lane, std::size_t number, Row first, Row count) {
    TrackInfo track;
    const bool is_overlap = number != 0 && lane.kind != TrackKind::Async;
    track.kind = is_overlap ? TrackKind::Overlap : lane.kind;
    track.thread = lane.thread;
    track.device = lane.device;
    track.stream = lane.stream;
    track.first_range = first;
    track.range_count = count;
    const StringId own = lane.name != 0 ? lane.name : data_->threads[lane.thread].name;
    std::string name = data_->strings[own];
    if (name.empty()) name = "thread " + std::to_string(data_->threads[lane.thread].id);
    if (lane.kind == TrackKind::Async && lane.name == 0) name += " async";
    if (is_overlap) name += " overlapping";
    const std::size_t shown = is_overlap ? number : number + 1;
    if (shown > 1) name += " " + std::to_string(shown);
    track.name = string(name);
    data_->tracks.push_back(track);
}

void TraceAssembler::add_row(RangeId id, Row parent, std::uint32_t depth, bool is_async) {
    const Added& range = ranges_[id];
    row_of_[id] = static_cast<Row>(data_->range_start_ns.size());
    data_->range_start_ns.push_back(range.start_ns);
    data_->range_duration_ns.push_back(range.duration_ns);
    data_->range_site.push_back(range.site);
    data_->range_parent.push_back(parent);
    data_->range_depth.push_back(depth);
    data_->range_flags.push_back(static_cast<std::uint16_t>(range.flags | (is_async ? kAsync : 0)));
}

void TraceAssembler::fill_self_times() {
    std::vector<Added>().swap(ranges_);  // no longer needed, and large
    data_->range_self_ns = self_times(*data_);
}

void TraceAssembler::place_values() {
    for (ArgumentSlice& slice : data_->range_arguments) slice.row = row_of_[slice.row];
    sort_slices(data_->range_arguments, data_->arguments, row_of_.size());
    for (RangeDetail& detail : data_->range_details) detail.range = row_of_[detail.range];
    sort_by_row(data_->range_details, &RangeDetail::range, row_of_.size());
}

void TraceAssembler::sort_points() {
    TraceData& data = *data_;
    if (const auto order = thread_time_order(data.instant_thread, data.instant_time_ns); !order.empty()) {
        std::vector<Row> place(order.size());
        for (Row row = 0; row < order.size(); ++row) place[order[row]] = row;
        for (ArgumentSlice& slice : data.instant_arguments) slice.row = place[slice.row];
        reorder<ModelTable::Instants>(data, order);
    }
    sort_slices(data.instant_arguments, data.arguments, data.instant_time_ns.size());
    if (const auto order = thread_time_order(data.counter_thread, data.counter_time_ns); !order.empty())
        reorder<ModelTable::Counters>(data, order);
    sort_reports(data);
    sort_samples(data);
}

void add_report(TraceData& data, Row thread, const AllocationReport& report) {
    data.memory_time_ns.push_back(report.time_ns);
    data.memory_thread.push_back(thread);
    data.memory_address.push_back(report.address);
    data.memory_bytes.push_back(report.bytes);
    data.memory_total_allocated.push_back(report.total_allocated);
    data.memory_total_reserved.push_back(report.total_reserved);
    data.memory_device.push_back(report.device);
    data.memory_out_of_memory.push_back(report.out_of_memory ? 1 : 0);
}

void sort_reports(TraceData& data) {
    if (const auto order = thread_time_order(data.memory_thread, data.memory_time_ns); !order.empty())
        reorder<ModelTable::Memory>(data, order);
}

void add_sample(TraceData& data, Row thread, const SampleInfo& sample) {
    data.sample_time_ns.push_back(sample.time_ns);
    data.sample_duration_ns.push_back(sample.duration_ns);
    data.sample_cpu_ns.push_back(sample.cpu_ns);
    data.sample_thread.push_back(thread);
    data.sample_state.push_back(sample.state);
    data.sample_stack.push_back(sample.stack);
    data.sample_range.push_back(sample.range);
}

void sort_samples(TraceData& data) {
    if (const auto order = thread_time_order(data.sample_thread, data.sample_time_ns); !order.empty())
        reorder<ModelTable::Samples>(data, order);
}

Row TraceAssembler::next_at(const TrackInfo& track, std::int64_t time_ns) const {
    const auto begin = data_->range_start_ns.begin() + track.first_range;
    const auto found = std::lower_bound(begin, begin + track.range_count, time_ns);
    return found == begin + track.range_count ? kNoRow
                                              : static_cast<Row>(found - data_->range_start_ns.begin());
}

Row TraceAssembler::bind(const LinkEnd& end) const {
    if (end.range != LinkEnd::kNoRange) return row_of_[end.range];
    const LaneTracks& tracks = lane_tracks_[end.lane];
    Row best = kNoRow;
    for (std::uint32_t i = tracks.first; i < tracks.first + tracks.count; ++i) {
        const TrackInfo& track = data_->tracks[i];
        const Row row = end.is_next ? next_at(track, end.time_ns) : range_open_at(*data_, track, end.time_ns);
        if (row == kNoRow) continue;
        const bool is_better =
            best == kNoRow || (end.is_next ? data_->range_start_ns[row] < data_->range_start_ns[best]
                                           : data_->range_start_ns[row] > data_->range_start_ns[best]);
        if (is_better) best = row;
    }
    return best;
}

void TraceAssembler::bind_links() {
    for (LinkInfo& link : data_->links) {
        link.from = row_of_[link.from];
        link.to = row_of_[link.to];
    }
    std::uint64_t loose = 0;
    for (const LooseLink& link : loose_links_) {
        const Row from = bind(link.from);
        const Row to = bind(link.to);
        if (from == kNoRow || to == kNoRow) {
            ++loose;
        } else {
            data_->links.push_back({from, to, link.kind, link.name});
        }
    }
    if (loose > 0) add_problem("loose_arrow", "Arrows begin or end where there is no range.", loose);
}

void TraceAssembler::place_links() {
    const auto key = [](const LinkInfo& link) {
        return std::tuple(link.from, link.to, link.kind, link.name);
    };
    std::vector<LinkInfo>& links = data_->links;
    std::ranges::sort(links, {}, [&](const LinkInfo& a) { return key(a); });
    const auto is_same = [&](const LinkInfo& a, const LinkInfo& b) { return key(a) == key(b); };
    links.erase(std::unique(links.begin(), links.end(), is_same), links.end());
}

}  // namespace marey
