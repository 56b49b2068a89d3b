// memory_use.cpp: memory held, peak memory, and the ranges that allocated it.
#include <marey/memory_use.h>

#include <algorithm>
#include <unordered_map>

#include "analyze/memory/live_memory.h"
#include "analyze/memory/range_memory.h"
#include "analyze/name_slots.h"
#include "analyze/tree/path_tree.h"

namespace marey {
namespace {

using Effect = LiveMemory::Effect;

/// Paths of names to ranges. Path 0 is empty. A path has a larger number than its prefixes.
class HolderTree {
  public:
    explicit HolderTree(const Trace& trace) : ranges_(trace.ranges()), slots_(trace) {}

    std::uint32_t of(Row range) {
        climbed_.clear();
        std::uint32_t path = 0;
        for (Row row = range; row != kNoRow && path == 0; row = ranges_.parent[row]) {
            const auto known = of_range_.find(row);
            if (known == of_range_.end()) {
                climbed_.push_back(row);
            } else {
                path = known->second;
            }
        }
        for (auto row = climbed_.rbegin(); row != climbed_.rend(); ++row) {
            const std::uint32_t slot = slots_.of_site[ranges_.site[*row]];
            path = 1 + (path == 0 ? tree_.root(kNoRow, slot, Place::Host) : tree_.child(path - 1, slot));
            of_range_.emplace(*row, path);
        }
        return path;
    }
    std::size_t size() const noexcept { return tree_.nodes.size() + 1; }
    std::uint32_t outer(std::uint32_t path) const noexcept {
        return path == 0 ? 0 : tree_.nodes[path - 1].parent + 1;  // kNoRow + 1 is 0
    }
    std::uint32_t name(std::uint32_t path) const noexcept { return tree_.nodes[path - 1].slot; }
    std::string text(std::uint32_t slot) const { return std::string(slots_.names[slot]); }
    std::vector<std::string> names(std::uint32_t path) const {
        std::vector<std::string> names;
        for (; path != 0; path = outer(path)) names.push_back(text(name(path)));
        std::ranges::reverse(names);
        return names;
    }
    /// Whether an enclosing range has the same name.
    bool is_recursive(std::uint32_t path) const noexcept {
        std::uint32_t up = path;
        do up = outer(up);
        while (up != 0 && name(up) != name(path));
        return up != 0;
    }

  private:
    RangeColumns ranges_;
    NameSlots slots_;
    PathTree tree_;
    std::unordered_map<Row, std::uint32_t> of_range_;
    std::vector<Row> climbed_;
};

void add(std::int64_t& to, std::int64_t bytes) {
    to = wrapping_sum(to, bytes);
}
void subtract(std::int64_t& from, std::int64_t bytes) {
    from = wrapping_difference(from, bytes);
}

void add(MemoryHolder& to, const MemoryHolder& from) {
    to.allocations += from.allocations;
    add(to.allocated_bytes, from.allocated_bytes);
    add(to.freed_bytes, from.freed_bytes);
    to.peak_allocations += from.peak_allocations;
    add(to.peak_bytes, from.peak_bytes);
    to.kept_allocations += from.kept_allocations;
    add(to.kept_bytes, from.kept_bytes);
}

/// Totals of one device's reports.
class DeviceAccount {
  public:
    DeviceAccount(const Trace& trace, const DeviceReports& device, const std::vector<Row>& owner,
                  HolderTree& paths)
        : reports_(trace.memory()), device_(device), owner_(owner), paths_(paths) {
        memory_.process = device.process;
        memory_.device = device.device;
        memory_.has_totals = device.has_totals;
    }

    DeviceMemory finish(bool by_name) {
        const std::vector<MemoryPoint> points = memory_points(reports_, device_);
        find_peak(points);
        follow(points);
        fill_totals();
        memory_.holders = by_name ? folded() : listed();
        std::ranges::stable_sort(memory_.holders, std::greater<>(), [](const MemoryHolder& holder) {
            return std::pair(holder.peak_bytes, holder.allocated_bytes);
        });
        return std::move(memory_);
    }

  private:
    MemoryHolder& holder(std::uint32_t report) {
        const Row owner = owner_[report];
        const std::uint32_t path = owner == kNoRow ? 0 : paths_.of(owner);
        if (path >= holders_.size()) holders_.resize(path + 1);
        return holders_[path];
    }

    void find_peak(const std::vector<MemoryPoint>& points) {
        if (points.empty()) return;
        // The state at the first report that is not a failed allocation.
        const auto first = std::ranges::find_if(
            device_.rows, [&](std::uint32_t row) { return reports_.out_of_memory[row] == 0; });
        memory_.start_bytes = wrapping_difference(points.front().allocated, reports_.bytes[*first]);
        memory_.end_bytes = points.back().allocated;
        memory_.peak_bytes = memory_.start_bytes;
        memory_.peak_time_ns = points.front().time_ns;
        for (std::size_t i = 0; i < points.size(); ++i) {
            memory_.peak_reserved = std::max(memory_.peak_reserved, points[i].reserved);
            if (points[i].allocated <= memory_.peak_bytes) continue;
            memory_.peak_bytes = points[i].allocated;
            memory_.peak_time_ns = points[i].time_ns;
            peak_ = i + 1;
        }
    }

    void follow(const std::vector<MemoryPoint>& points) {
        LiveMemory live(reports_);
        std::size_t passed = 0;  // reports that are not failed allocations
        memory_.peak_unknown_bytes = memory_.peak_bytes;
        for (const std::uint32_t row : device_.rows) {
            if (reports_.out_of_memory[row] != 0) {
                refuse(row, passed == 0 ? memory_.start_bytes : points[passed - 1].allocated);
                continue;
            }
            const LiveMemory::Change change = live.follow(row);
            count(row, change);
            if (++passed != peak_) continue;
            for (const auto& [address, report] : live.live()) {
                MemoryHolder& of = holder(report);
                ++of.peak_allocations;
                add(of.peak_bytes, reports_.bytes[report]);
                subtract(memory_.peak_unknown_bytes, reports_.bytes[report]);
            }
        }
        for (const auto& [address, report] : live.live()) {
            MemoryHolder& of = holder(report);
            ++of.kept_allocations;
            add(of.kept_bytes, reports_.bytes[report]);
            ++memory_.kept_allocations;
            add(memory_.kept_bytes, reports_.bytes[report]);
        }
    }

    void count(std::uint32_t row, const LiveMemory::Change& change) {
        const std::int64_t bytes = reports_.bytes[row];
        if (change.effect == Effect::None) return;
        MemoryHolder& of = holder(row);
        if (change.effect == Effect::Taken) {
            ++of.allocations;
            add(of.allocated_bytes, bytes);
            ++memory_.allocations;
            add(memory_.allocated_bytes, bytes);
            if (change.hides_free) ++memory_.unseen_frees;
            return;
        }
        subtract(of.freed_bytes, bytes);
        ++memory_.frees;
        subtract(memory_.freed_bytes, bytes);
        if (change.effect != Effect::Earlier) return;
        ++memory_.earlier_frees;
        subtract(memory_.earlier_bytes, bytes);
    }

    void refuse(std::uint32_t row, std::int64_t level) {
        OutOfMemoryEvent& event = memory_.refusals.emplace_back();
        event.time_ns = reports_.time_ns[row];
        event.thread = reports_.thread[row];
        event.asked_bytes = reports_.bytes[row];
        event.allocated = device_.has_totals ? reports_.total_allocated[row] : level;
        event.reserved = reports_.total_reserved[row];
        if (owner_[row] != kNoRow) event.path = paths_.names(paths_.of(owner_[row]));
    }

    void fill_totals() {
        holders_.resize(paths_.size());
        for (std::uint32_t path = static_cast<std::uint32_t>(holders_.size()); path-- > 0;) {
            MemoryHolder& of = holders_[path];
            add(of.total_allocated_bytes, of.allocated_bytes);
            const std::uint32_t outer = paths_.outer(path);
            if (path == 0 || outer == 0) continue;  // allocations outside any range count only for themselves
            add(holders_[outer].total_allocated_bytes, of.total_allocated_bytes);
        }
    }

    static bool is_empty(const MemoryHolder& of) {
        return of.allocations == 0 && of.total_allocated_bytes == 0 && of.freed_bytes == 0;
    }

    std::vector<MemoryHolder> listed() {
        std::vector<MemoryHolder> all;
        for (std::uint32_t path = 0; path < holders_.size(); ++path) {
            if (is_empty(holders_[path])) continue;
            all.push_back(std::move(holders_[path]));
            all.back().path = paths_.names(path);
        }
        return all;
    }

    std::vector<MemoryHolder> folded() {
        std::vector<MemoryHolder> all;
        std::unordered_map<std::uint32_t, std::size_t> of_name;
        for (std::uint32_t path = 0; path < holders_.size(); ++path) {
            if (is_empty(holders_[path])) continue;
            const std::uint32_t key = path == 0 ? kNoRow : paths_.name(path);
            const auto [entry, fresh] = of_name.try_emplace(key, all.size());
            if (fresh) {
                all.emplace_back();
                if (path != 0) all.back().path = {paths_.text(key)};
            }
            MemoryHolder& of = all[entry->second];
            add(of, holders_[path]);
            if (!paths_.is_recursive(path))
                add(of.total_allocated_bytes, holders_[path].total_allocated_bytes);
        }
        return all;
    }

    MemoryColumns reports_;
    const DeviceReports& device_;
    const std::vector<Row>& owner_;
    HolderTree& paths_;
    std::size_t peak_ = 0;  ///< reports up to the peak; 0: the peak is at the start
    DeviceMemory memory_;
    std::vector<MemoryHolder> holders_;  ///< by path
};

}  // namespace

MemoryUse memory_use(const Trace& trace, const MemoryUseOptions& options) {
    MemoryUse use;
    if (trace.memory().size() == 0) return use;
    const std::vector<Row> owner = range_memory(trace).owner;
    HolderTree paths(trace);
    for (const DeviceReports& device : reports_by_device(trace))
        use.devices.push_back(DeviceAccount(trace, device, owner, paths).finish(options.by_name));
    return use;
}

}  // namespace marey
