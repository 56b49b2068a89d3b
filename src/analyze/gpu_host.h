// gpu_host.h: what threads did while devices worked or waited.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <marey/gpu_use.h>
#include <marey/trace.h>

#include "analyze/device_time.h"
#include "analyze/name_slots.h"

namespace marey {

/// Whether a host call returns when devices are done: a synchronisation, or a copy that is not asynchronous.
bool is_wait_call(std::string_view name) noexcept;

/// What is known of the ranges of threads by their sites.
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
    /// The nearest range around a host call, or itself, that is no call that drives a device; kNoRow: none.
    Row range_around(Row call) const noexcept { return range_around_call(ranges_, sites_, call); }
    /// The same, and no call of Python either, where there is such a one; else what range_around() says.
    Row marked_range_around(Row call) const noexcept;
    /// The nearest call of a Python function around a range, or itself; kNoRow: none.
    Row function_around(Row range) const noexcept;
    Row thread(Row range) const noexcept { return trace_.tracks()[trace_.track_of(range)].thread; }
    /// The track of a thread's calls; null: it has none.
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

/// Time by the innermost range's name and that of the Python function around it.
class HostTimes {
  public:
    void add(std::uint32_t name, std::uint32_t function, std::int64_t time_ns) {
        times_[std::uint64_t{name} << 32 | function] += time_ns;
    }
    /// The longest first.
    std::vector<GpuHostWork> rows(const NameSlots& names) const;

  private:
    std::unordered_map<std::uint64_t, std::int64_t> times_;
};

struct HostGap {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    // Where it is added to; may be null.
    HostTimes* all = nullptr;
    HostTimes* own = nullptr;
};

/// Adds what a thread did during gaps, which are in order of time and do not overlap: the innermost ranges of
/// its track, and the time in no range. Linear.
void add_host_times(const HostRanges& host, Row thread, std::span<const HostGap> gaps);

/// Adds up launches or waits by a name. Rows: the most time first.
class LauncherTable {
  public:
    explicit LauncherTable(const NameSlots& names) : names_(names), row_of_(names.names.size()) {}
    /// `name` may be kNoIndex: in no range.
    void add(std::uint32_t name, std::int64_t time_ns, bool is_short_kernel = false);
    std::vector<GpuLauncher> rows() const;

  private:
    const NameSlots& names_;
    std::vector<std::uint32_t> row_of_;  ///< by name, from 1; 0: none
    std::uint32_t row_of_no_range_ = 0;  ///< likewise
    std::vector<GpuLauncher> rows_;
};

}  // namespace marey
