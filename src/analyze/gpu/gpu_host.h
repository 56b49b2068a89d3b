// gpu_host.h: thread activity while devices worked or were idle.
#pragma once

#include <unordered_map>

#include <marey/gpu_use.h>
#include <marey/trace.h>

#include "analyze/gpu/device_time.h"
#include "analyze/name_slots.h"

namespace marey {

/// Whether a host call returns only when devices are done: a synchronization, or a synchronous copy.
bool is_wait_call(std::string_view name) noexcept;

/// Classifies the ranges of threads by their sites.
class HostRanges {
  public:
    explicit HostRanges(const Trace& trace);

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
    Row marked_range_around(Row call) const noexcept;
    /// The nearest Python function call enclosing a range (or the range itself); kNoRow: none.
    Row function_around(Row range) const noexcept;
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

/// Time by the name of the innermost range and of the enclosing Python function.
class HostTimes {
  public:
    void add(std::uint32_t name, std::uint32_t function, std::int64_t time_ns) {
        times_[std::uint64_t{name} << 32 | function] += time_ns;
    }
    /// Sorted by time, longest first.
    std::vector<GpuHostWork> rows(const NameSlots& names) const;

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

/// Adds a thread's activity during gaps, which are sorted and do not overlap: the innermost ranges of its
/// track, and the time outside any range. Linear time.
void add_host_times(const HostRanges& host, Row thread, std::span<const HostGap> gaps);

/// Sums launches or waits by name. Rows are sorted by time, longest first.
class LauncherTable {
  public:
    explicit LauncherTable(const NameSlots& names) : names_(names), row_of_(names.names.size()) {}
    /// `name` may be kNoIndex: outside any range.
    void add(std::uint32_t name, std::int64_t time_ns, bool is_short_kernel = false);
    std::vector<GpuLauncher> rows() const;

  private:
    const NameSlots& names_;
    std::vector<std::uint32_t> row_of_;  ///< by name, from 1; 0: none
    std::uint32_t row_of_no_range_ = 0;  ///< likewise, for launches outside any range
    std::vector<GpuLauncher> rows_;
};

}  // namespace marey
