// trace_damage.cpp: the lengths, references and times of all columns, then, table by table, all
// else that readers rely on.
#include "trace/trace_data.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "json/json_scanner.h"
#include "trace/columns.h"

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

    std::string find() {
        visit_columns([&](const TableInfo& table, const auto&... columns) { (column(table, columns), ...); });
        for (const auto check : {&DamageSearch::strings, &DamageSearch::window, &DamageSearch::tracks,
                                 &DamageSearch::ranges, &DamageSearch::lists, &DamageSearch::values,
                                 &DamageSearch::details, &DamageSearch::samples, &DamageSearch::metadata}) {
            if (!damage_.empty()) break;
            if (const char* const damage = (this->*check)(); damage != nullptr) damage_ = damage;
        }
        return damage_;
    }

  private:
    std::size_t rows_of(Cells cells) const noexcept {
        switch (cells) {
            case Cells::String:
                return data_.strings.size();
            case Cells::Site:
                return data_.sites.size();
            case Cells::Process:
                return data_.processes.size();
            case Cells::Thread:
                return data_.threads.size();
            case Cells::Range:
                return data_.range_start_ns.size();
            case Cells::Instant:
                return data_.instant_time_ns.size();
            case Cells::Stack:
                return data_.stacks.size();
            case Cells::Frame:
                return data_.frames.size();
            default:
                return std::numeric_limits<std::size_t>::max();
        }
    }

    /// Equal lengths, references to rows that exist, times that can be added.
    template <class Rows, class Member>
    void column(const TableInfo& table, const Column<Rows, Member>& column) {
        using Value = typename Column<Rows, Member>::Value;
        if (!damage_.empty()) return;
        const auto& rows = column.in(data_);
        const auto fail = [&](const char* what) {
            damage_ = std::string(table.name) + "." + column.name + " " + what;
        };
        if (std::exchange(table_, table.id) != table.id) row_count_ = rows.size();
        if (rows.size() != row_count_) return fail("differs in length from other columns");
        if constexpr (std::is_same_v<Value, std::uint32_t>) {
            const std::size_t limit = rows_of(column.cells);
            for (const auto& row : rows) {
                const Value number = std::invoke(column.member, row);
                if (number >= limit && !(number == kNoRow && column.null == Null::NoRow))
                    return fail("refers to a missing row");
            }
        } else if constexpr (std::is_same_v<Value, std::int64_t>) {
            if (column.cells != Cells::Time) return;
            for (const auto& row : rows) {
                if (!is_time(std::invoke(column.member, row))) return fail("is not a valid time");
            }
        }
    }

    const char* strings() {
        if (data_.strings.empty() || !data_.strings[0].empty()) return "the first string is not empty";
        if (data_.strings.size() > kNoRow) return "there are too many strings";
        for (const SiteInfo& site : data_.sites) {
            if (static_cast<unsigned>(site.scope) > 31) return "a site has an invalid scope";
        }
        return nullptr;
    }

    const char* window() {
        return data_.window.end_ns < data_.window.start_ns ? "the window is invalid" : nullptr;
    }

    const char* tracks() {
        std::uint64_t next = 0;
        for (const TrackInfo& track : data_.tracks) {
            if (track.kind > TrackKind::Overlap) return "a track has an unknown kind";
            if (track.first_range != next) return "tracks are not contiguous";
            next += track.range_count;
        }
        if (next != data_.range_start_ns.size()) return "some ranges are not on a track";
        return nullptr;
    }

    const char* ranges() {
        std::vector<Row> open;  // the last row of each depth
        for (const TrackInfo& track : data_.tracks) {
            open.clear();
            const Row end = track.first_range + track.range_count;
            for (Row row = track.first_range; row < end; ++row) {
                const std::int64_t start = data_.range_start_ns[row];
                const std::int64_t duration = data_.range_duration_ns[row];
                if (duration < 0 || !is_time(start + duration)) return "a range has invalid times";
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
        if (value.kind == ValueKind::String && value.string >= data_.strings.size())
            return "a value refers to a missing string";
        if (value.kind == ValueKind::Array && value.array >= data_.arrays.size())
            return "a value refers to a missing array";
        if (value.kind != ValueKind::List) return nullptr;
        if (std::uint64_t{value.list.first} + value.list.count > data_.list_items.size())
            return "a list refers to missing items";
        return nullptr;
    }

    const char* slices(const std::vector<ArgumentSlice>& index) const {
        for (std::size_t i = 0; i < index.size(); ++i) {
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
        for (const auto* const index : {&data_.range_arguments, &data_.instant_arguments}) {
            if (const char* const damage = slices(*index); damage != nullptr) return damage;
        }
        for (const ArrayInfo& array : data_.arrays) {
            const std::uint64_t extents = std::uint64_t{array.dimensions} * (array.has_strides ? 2 : 1);
            if (array.first_extent + extents > data_.array_extents.size())
                return "an array refers to missing sizes";
        }
        return nullptr;
    }

    const char* details() {
        Row last = 0;
        for (const RangeDetail& detail : data_.range_details) {
            if (detail.range < last) return "details are not sorted";
            if (detail.part > (kFirstPart | kLastPart | kWholeCall | kTask))
                return "a detail has unknown part flags";
            last = detail.range;
        }
        last = 0;
        for (const LinkInfo& link : data_.links) {
            if (link.from < last) return "links are not sorted";
            if (link.kind < LinkKind::ForwardBackward || link.kind > LinkKind::Flow)
                return "a link has an unknown kind";
            last = link.from;
        }
        return nullptr;
    }

    const char* samples() {
        for (std::size_t i = 0; i < data_.stacks.size(); ++i) {
            const Row outer = data_.stacks[i].outer;
            if (outer != kNoRow && outer >= i) return "a stack is inside itself";
        }
        for (std::size_t i = 0; i < data_.sample_time_ns.size(); ++i) {
            if (data_.sample_state[i] > SampleState::Preempted) return "a sample has an unknown state";
            if (data_.sample_duration_ns[i] < 0 || data_.sample_cpu_ns[i] < 0 ||
                !is_time(data_.sample_duration_ns[i]) || !is_time(data_.sample_cpu_ns[i]))
                return "a sample has an invalid weight";
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
    std::string damage_;
    ModelTable table_{};                  ///< the table of the last column
    std::size_t row_count_ = 0;           ///< of that table
    std::vector<std::uint64_t> reached_;  ///< for each list item: how many items the ones before it reach
};

}  // namespace

std::string find_damage(const TraceData& data) {
    return DamageSearch(data).find();
}

}  // namespace marey
