// trace_damage.cpp: each check covers one table, in an order in which it may rely on those before it.
#include "trace/trace_damage.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "json/json_scanner.h"

namespace marey {
namespace {

constexpr std::int64_t kMaxTime = std::int64_t{1} << 62;
constexpr std::uint32_t kMaxListLevels = 1024;

bool is_time(std::int64_t ns) noexcept {
    return ns >= -kMaxTime && ns <= kMaxTime;
}

/// The largest value in any range of a growing list.
class RunMaximum {
  public:
    explicit RunMaximum(std::size_t count) : count_(count), nodes_(2 * count) {}
    void set(std::size_t at, std::uint32_t value) {
        for (at += count_; at != 0 && nodes_[at] < value; at /= 2) nodes_[at] = value;
    }
    std::uint32_t of(std::size_t first, std::size_t last) const {
        std::uint32_t most = 0;
        for (first += count_, last += count_; first < last; first /= 2, last /= 2) {
            if (first % 2 != 0) most = std::max(most, nodes_[first++]);
            if (last % 2 != 0) most = std::max(most, nodes_[--last]);
        }
        return most;
    }

  private:
    std::size_t count_;
    std::vector<std::uint32_t> nodes_;
};

class DamageSearch {
  public:
    explicit DamageSearch(const TraceData& data) : data_(data) {}

    const char* find() {
        for (const auto check :
             {&DamageSearch::names, &DamageSearch::window, &DamageSearch::places, &DamageSearch::tracks,
              &DamageSearch::ranges, &DamageSearch::points, &DamageSearch::memory, &DamageSearch::lists,
              &DamageSearch::values, &DamageSearch::details, &DamageSearch::metadata}) {
            if (const char* const damage = (this->*check)(); damage != nullptr) return damage;
        }
        return nullptr;
    }

  private:
    bool is_string(StringId id) const noexcept { return id < data_.strings.size(); }

    const char* names() {
        if (data_.strings.empty() || !data_.strings[0].empty()) return "the first string is not empty";
        if (data_.strings.size() > kNoRow) return "there are too many strings";
        for (const SiteInfo& site : data_.sites) {
            for (const StringId id : {site.name, site.file, site.overload, site.category, site.raw_name}) {
                if (!is_string(id)) return "a site refers to a missing string";
            }
            if (static_cast<unsigned>(site.scope) > 31) return "a site has an invalid scope";
        }
        return nullptr;
    }

    const char* window() {
        if (!is_time(data_.window.start_ns) || !is_time(data_.window.end_ns) ||
            data_.window.end_ns < data_.window.start_ns)
            return "the window is invalid";
        return nullptr;
    }

    const char* places() {
        for (const ProcessInfo& process : data_.processes) {
            if (!is_string(process.name) || !is_string(process.host) || !is_string(process.command_line))
                return "a process refers to a missing string";
            if (!is_time(process.realtime_offset_ns)) return "a process has an invalid clock";
        }
        for (const ThreadInfo& thread : data_.threads) {
            if (thread.process >= data_.processes.size()) return "a thread has no process";
            if (!is_string(thread.name)) return "a thread's name refers to a missing string";
            if (!is_time(thread.birth_ns) || !is_time(thread.death_ns))
                return "a thread's lifetime is invalid";
        }
        return nullptr;
    }

    const char* tracks() {
        std::uint64_t next = 0;
        for (const TrackInfo& track : data_.tracks) {
            if (track.kind > TrackKind::Overlap) return "a track has an unknown kind";
            if (track.thread >= data_.threads.size()) return "a track has no thread";
            if (!is_string(track.name)) return "a track's name refers to a missing string";
            if (track.first_range != next) return "tracks are not contiguous";
            next += track.range_count;
        }
        if (next != data_.range_start_ns.size()) return "some ranges are not on a track";
        return nullptr;
    }

    const char* ranges() {
        const std::size_t count = data_.range_start_ns.size();
        if (data_.range_duration_ns.size() != count || data_.range_self_ns.size() != count ||
            data_.range_site.size() != count || data_.range_parent.size() != count ||
            data_.range_depth.size() != count || data_.range_flags.size() != count)
            return "columns of ranges differ in length";
        std::vector<Row> open;  // the last row of each depth
        for (const TrackInfo& track : data_.tracks) {
            open.clear();
            const Row end = track.first_range + track.range_count;
            for (Row row = track.first_range; row < end; ++row) {
                if (data_.range_site[row] >= data_.sites.size()) return "a range has no site";
                const std::int64_t start = data_.range_start_ns[row];
                const std::int64_t duration = data_.range_duration_ns[row];
                if (duration < 0 || !is_time(start) || duration > kMaxTime || !is_time(start + duration) ||
                    !is_time(data_.range_self_ns[row]))
                    return "a range has invalid times";
                const std::uint32_t depth = data_.range_depth[row];
                if (depth > open.size()) return "a range's depth exceeds its predecessor's by more than one";
                const Row parent = data_.range_parent[row];
                if (depth != 0 ? parent != open[depth - 1] : parent != kNoRow && parent >= row)
                    return "a range has an invalid parent";
                open.resize(depth);
                open.push_back(row);
            }
        }
        return nullptr;
    }

    const char* point(std::size_t rows, const std::vector<std::uint32_t>& sites,
                      const std::vector<Row>& threads, const std::vector<std::int64_t>& times) const {
        if (sites.size() != rows || threads.size() != rows)
            return "columns of instants or counters differ in length";
        for (std::size_t row = 0; row < rows; ++row) {
            if (sites[row] >= data_.sites.size()) return "an instant or counter has no site";
            if (threads[row] >= data_.threads.size()) return "an instant or counter has no thread";
            if (!is_time(times[row])) return "an instant or counter has an invalid time";
        }
        return nullptr;
    }

    const char* points() {
        const char* damage = point(data_.instant_time_ns.size(), data_.instant_site, data_.instant_thread,
                                   data_.instant_time_ns);
        if (damage == nullptr)
            damage = point(data_.counter_time_ns.size(), data_.counter_site, data_.counter_thread,
                           data_.counter_time_ns);
        if (damage == nullptr && data_.counter_value.size() != data_.counter_time_ns.size())
            damage = "columns of counters differ in length";
        return damage;
    }

    const char* memory() {
        const std::size_t rows = data_.memory_time_ns.size();
        if (data_.memory_thread.size() != rows || data_.memory_address.size() != rows ||
            data_.memory_bytes.size() != rows || data_.memory_total_allocated.size() != rows ||
            data_.memory_total_reserved.size() != rows || data_.memory_device.size() != rows ||
            data_.memory_out_of_memory.size() != rows)
            return "columns of allocation reports differ in length";
        for (std::size_t row = 0; row < rows; ++row) {
            if (data_.memory_thread[row] >= data_.threads.size()) return "an allocation report has no thread";
            if (!is_time(data_.memory_time_ns[row])) return "an allocation report has an invalid time";
        }
        return nullptr;
    }

    // Items of a list come before the list itself if that is an item: so none contains itself. The number of
    // levels and of items, with inner ones counted as often as they are reached, is limited.
    const char* lists() {
        const std::vector<Argument>& items = data_.list_items;
        const auto is_list = [](const Argument& item) { return item.kind == ValueKind::List; };
        const bool are_nested = std::any_of(items.begin(), items.end(), is_list);
        RunMaximum levels(are_nested ? items.size() : 0);
        reached_.assign(items.size() + 1, 0);
        for (std::size_t at = 0; at < items.size(); ++at) {
            std::uint64_t reached = 1;
            if (is_list(items[at])) {
                const ListItems list = items[at].list;
                if (std::uint64_t{list.first} + list.count > at) return "a list comes before its items";
                reached += reached_[list.first + list.count] - reached_[list.first];
                const std::uint32_t level = 1 + levels.of(list.first, list.first + list.count);
                if (level >= kMaxListLevels || reached > items.size()) return "lists are nested too deeply";
                levels.set(at, level);
            }
            reached_[at + 1] = reached_[at] + reached;
            if (const char* const damage = value(items[at]); damage != nullptr) return damage;
        }
        return nullptr;
    }

    const char* value(const Argument& value) const {
        if (value.kind > ValueKind::Array || value.left_out > ValueKind::Array ||
            value.role > ArgumentRole::Site)
            return "a value has an unknown kind";
        if (!is_string(value.key) || (value.kind == ValueKind::String && !is_string(value.string)))
            return "a value refers to a missing string";
        if (value.kind == ValueKind::Array && value.array >= data_.arrays.size())
            return "a value refers to a missing array";
        if (value.kind != ValueKind::List) return nullptr;
        if (std::uint64_t{value.list.first} + value.list.count > data_.list_items.size())
            return "a list refers to missing items";
        return nullptr;
    }

    const char* slices(const std::vector<ArgumentSlice>& index, std::size_t rows) const {
        for (std::size_t i = 0; i < index.size(); ++i) {
            if (index[i].row >= rows) return "values belong to a missing row";
            if (i != 0 && index[i].row <= index[i - 1].row) return "values are not sorted by row";
            if (std::uint64_t{index[i].first} + index[i].count > data_.arguments.size())
                return "a row refers to missing values";
        }
        return nullptr;
    }

    const char* values() {
        for (const Argument& argument : data_.arguments) {
            if (const char* const damage = value(argument); damage != nullptr) return damage;
            if (argument.kind != ValueKind::List) continue;
            const ListItems list = argument.list;
            if (reached_[list.first + list.count] - reached_[list.first] > data_.list_items.size())
                return "lists are nested too deeply";
        }
        if (const char* const damage = slices(data_.range_arguments, data_.range_start_ns.size());
            damage != nullptr)
            return damage;
        if (const char* const damage = slices(data_.instant_arguments, data_.instant_time_ns.size());
            damage != nullptr)
            return damage;
        for (const ArrayInfo& array : data_.arrays) {
            const std::uint64_t extents = std::uint64_t{array.dimensions} * (array.has_strides ? 2 : 1);
            if (array.first_extent + extents > data_.array_extents.size())
                return "an array refers to missing sizes";
        }
        return nullptr;
    }

    const char* details() {
        const std::size_t ranges = data_.range_start_ns.size();
        Row last = 0;
        for (const RangeDetail& detail : data_.range_details) {
            if (detail.range >= ranges) return "a detail has no range";
            if (detail.range < last) return "details are not sorted";
            if (detail.part > (kFirstPart | kLastPart | kWholeCall | kTask))
                return "a detail has unknown part flags";
            last = detail.range;
        }
        for (const TaskInfo& task : data_.tasks) {
            if (task.process >= data_.processes.size()) return "a task has no process";
            if (!is_string(task.name)) return "a task's name refers to a missing string";
        }
        last = 0;
        for (const LinkInfo& link : data_.links) {
            if (link.from >= ranges || link.to >= ranges) return "a link refers to a missing range";
            if (link.from < last) return "links are not sorted";
            if (link.kind < LinkKind::ForwardBackward || link.kind > LinkKind::Flow)
                return "a link has an unknown kind";
            if (!is_string(link.name)) return "a link's name refers to a missing string";
            last = link.from;
        }
        return nullptr;
    }

    const char* metadata() {
        for (const MetadataInfo& fact : data_.metadata) {
            if (!is_json(fact.json)) return "metadata is not valid JSON";
        }
        return nullptr;
    }

    const TraceData& data_;
    std::vector<std::uint64_t> reached_;  ///< for each list item: how many items the ones before it reach
};

}  // namespace

std::string find_damage(const TraceData& data) {
    const char* const damage = DamageSearch(data).find();
    return damage == nullptr ? std::string() : damage;
}

}  // namespace marey
