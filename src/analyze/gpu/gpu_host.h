// gpu_host.h: thread activity while devices worked or were idle.
#pragma once

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>

#include <marey/gpu_use.h>
#include <marey/trace.h>

#include "analyze/gpu/device_time.h"
#include "analyze/gpu/gpu_work.h"
#include "analyze/name_slots.h"

namespace marey {

/// Whether a host call returns only when devices are done: a synchronization, or a synchronous copy.
inline bool is_wait_call(std::string_view name) noexcept {
    if (name.find("Synchronize") != std::string_view::npos) return true;
    for (const std::string_view copy : {"cudaMemcpy", "cuMemcpy", "hipMemcpy"}) {
        if (name.starts_with(copy)) return name.find("Async") == std::string_view::npos;
    }
    return false;
}

/// Classifies the ranges of threads by their sites.
class HostRanges {
  public:
    explicit HostRanges(const Trace& trace)
        : trace_(trace),
          ranges_(trace.ranges()),
          sites_(trace.sites()),
          clip_(trace),
          names_(trace),
          calls_(trace.threads().size()) {
        for (const SiteInfo& site : sites_) has_functions_ |= site.scope == Scope::PythonFunction;
        for (const TrackInfo& track : trace.tracks()) {
            if (track.kind == TrackKind::Thread && track.range_count > 0 && calls_[track.thread] == nullptr)
                calls_[track.thread] = &track;
        }
    }

    const Trace& trace() const noexcept { return trace_; }
    const RangeColumns& ranges() const noexcept { return ranges_; }
    const NameSlots& names() const noexcept { return names_; }
    std::uint32_t name(Row range) const noexcept { return names_.of_site[ranges_.site[range]]; }
    Scope scope(Row range) const noexcept { return sites_[ranges_.site[range]].scope; }
    std::int64_t clipped_ns(Row range) const noexcept {
        return clip_.duration(ranges_.start_ns[range], ranges_.duration_ns[range]);
    }
    /// The nearest range enclosing a host call (or the call itself) that is not a device API call; kNoRow:
    /// none.
    Row range_around(Row call) const noexcept { return range_around_call(ranges_, sites_, call); }
    /// Like range_around(), but skips Python calls if there is any other range.
    Row marked_range_around(Row call) const noexcept {
        const Row nearest = range_around(call);
        Row range = nearest;
        while (range != kNoRow && (scope(range) == Scope::PythonFunction || scope(range) == Scope::CFunction))
            range = ranges_.parent[range];
        return range != kNoRow ? range : nearest;
    }
    /// The nearest Python function call enclosing a range (or the range itself); kNoRow: none.
    Row function_around(Row range) const noexcept {
        if (!has_functions_) return kNoRow;
        while (range != kNoRow && scope(range) != Scope::PythonFunction) range = ranges_.parent[range];
        return range;
    }
    Row thread(Row range) const noexcept { return trace_.tracks()[trace_.track_of(range)].thread; }
    /// The track with a thread's calls; null if there is none.
    const TrackInfo* calls(Row thread) const noexcept { return calls_[thread]; }

  private:
    const Trace& trace_;
    RangeColumns ranges_;
    std::span<const SiteInfo> sites_;
    WindowClip clip_;
    NameSlots names_;
    bool has_functions_ = false;
    std::vector<const TrackInfo*> calls_;  ///< per thread
};

inline std::string name_text(const NameSlots& names, std::uint32_t slot) {
    return slot == kNoIndex ? std::string() : std::string(names.names[slot]);
}

/// Time by the name of the innermost range and of the enclosing Python function.
class HostTimes {
  public:
    void add(std::uint32_t name, std::uint32_t function, std::int64_t time_ns) {
        times_[std::uint64_t{name} << 32 | function] += time_ns;
    }
    /// Sorted by time, longest first.
    std::vector<GpuHostWork> rows(const NameSlots& names) const {
        std::vector<GpuHostWork> rows;
        for (const auto& [key, time] : times_) {
            rows.push_back({name_text(names, static_cast<std::uint32_t>(key >> 32)),
                            name_text(names, static_cast<std::uint32_t>(key)), time});
        }
        std::ranges::sort(rows, {}, [](const GpuHostWork& work) {
            return std::make_tuple(-work.time_ns, std::string_view(work.name),
                                   std::string_view(work.function));
        });
        return rows;
    }

  private:
    std::unordered_map<std::uint64_t, std::int64_t> times_;
};

struct HostGap {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    // Receives the times; may be null.
    HostTimes* all = nullptr;
    HostTimes* own = nullptr;
};

/// Walks a thread's ranges and a device's gaps in parallel.
class HostWalk {
  public:
    explicit HostWalk(std::span<const HostGap> gaps) : gaps_(gaps) {}

    void enter(std::int64_t start_ns, std::int64_t end_ns, std::uint32_t name, bool is_function) {
        advance(start_ns);
        const std::uint32_t around = open_.empty() ? kNoIndex : open_.back().function;
        open_.push_back({end_ns, name, around, is_function ? name : around});
    }
    void leave() {
        advance(open_.back().end_ns);
        open_.pop_back();
    }
    void advance(std::int64_t time_ns) {
        while (next_ < gaps_.size() && gaps_[next_].start_ns < time_ns) {
            const HostGap& gap = gaps_[next_];
            const std::int64_t from = std::max(now_ns_, gap.start_ns), to = std::min(time_ns, gap.end_ns);
            if (to > from) add(gap, to - from);
            if (gap.end_ns > time_ns) break;
            ++next_;
        }
        now_ns_ = std::max(now_ns_, time_ns);
    }
    std::size_t depth() const noexcept { return open_.size(); }
    bool is_done() const noexcept { return next_ == gaps_.size(); }

  private:
    /// A range that is open while a track is walked.
    struct OpenRange {
        std::int64_t end_ns;
        std::uint32_t name;
        std::uint32_t function_around;
        std::uint32_t function;  ///< Python function for ranges inside: this range, or the inherited one
    };

    void add(const HostGap& gap, std::int64_t time_ns) {
        const std::uint32_t name = open_.empty() ? kNoIndex : open_.back().name;
        const std::uint32_t function = open_.empty() ? kNoIndex : open_.back().function_around;
        for (HostTimes* const times : {gap.all, gap.own}) {
            if (times != nullptr) times->add(name, function, time_ns);
        }
    }

    std::span<const HostGap> gaps_;
    std::size_t next_ = 0;
    std::int64_t now_ns_ = std::numeric_limits<std::int64_t>::min();
    std::vector<OpenRange> open_;
};

/// Adds a thread's activity during gaps, which are sorted and do not overlap: the innermost ranges of its
/// track, and the time outside any range. Linear time.
inline void add_host_times(const HostRanges& host, Row thread, std::span<const HostGap> gaps) {
    if (gaps.empty()) return;
    HostWalk walk(gaps);
    if (const TrackInfo* track = host.calls(thread)) {
        const RangeColumns& ranges = host.ranges();
        const Row end = track->first_range + track->range_count;
        for (Row row = track->first_range; row < end && !walk.is_done(); ++row) {
            while (walk.depth() > ranges.depth[row]) walk.leave();
            const std::int64_t start = ranges.start_ns[row];
            walk.enter(start, start + ranges.duration_ns[row], host.name(row),
                       host.scope(row) == Scope::PythonFunction);
        }
        while (walk.depth() > 0) walk.leave();
    }
    walk.advance(gaps.back().end_ns);
}

/// Sums launches or waits by name. Rows are sorted by time, longest first.
class LauncherTable {
  public:
    explicit LauncherTable(const NameSlots& names) : names_(names), row_of_(names.names.size()) {}
    /// `name` may be kNoIndex: outside any range.
    void add(std::uint32_t name, std::int64_t time_ns, bool is_short_kernel = false) {
        std::uint32_t& place = name == kNoIndex ? row_of_no_range_ : row_of_[name];
        if (place == 0) {
            rows_.emplace_back().name = name_text(names_, name);
            place = static_cast<std::uint32_t>(rows_.size());
        }
        GpuLauncher& row = rows_[place - 1];
        ++row.count;
        row.time_ns += time_ns;
        if (is_short_kernel) ++row.short_kernels;
    }
    std::vector<GpuLauncher> rows() const {
        std::vector<GpuLauncher> rows = rows_;
        std::ranges::sort(rows, {}, [](const GpuLauncher& row) {
            return std::pair(-row.time_ns, std::string_view(row.name));
        });
        return rows;
    }

  private:
    const NameSlots& names_;
    std::vector<std::uint32_t> row_of_;  ///< by name, from 1; 0: none
    std::uint32_t row_of_no_range_ = 0;  ///< likewise, for launches outside any range
    std::vector<GpuLauncher> rows_;
};

}  // namespace marey
