// session_filter.h: a session's options in the terms of the replay: its window, scopes, threads and values.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "collect/site_rows.h"

namespace marey {

/// Which values a session requested. Facts of ranges (sequence, forward thread, id) are always kept.
struct RequestedValues {
    bool keywords = true;
    bool shapes = true;    ///< arrays, inputs and outputs
    bool concrete = true;  ///< the values of inputs and outputs that are not arrays; only with `shapes`
};

/// The work of replaying a byte of the log; scanning it is 1. Only for progress reports.
inline constexpr std::uint64_t kReplayWork = 4;

/// Filled by the builder before the replay, then only read (by all replaying threads).
struct SessionFilter {
    std::uint64_t start_ticks = 0;
    std::uint64_t stop_ticks = std::numeric_limits<std::uint64_t>::max();
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    bool stopped = false;  ///< the session's stop is in the journal

    RequestedValues values;
    bool needs_memory = true;
    bool needs_samples = true;
    std::uint32_t device_types = ~0u;       ///< devices whose work is needed, a bit each by DeviceType
    std::uint32_t device_activities = ~0u;  ///< which part of it: DeviceActivities
    bool filters_sites = false;
    std::vector<bool> included_sites;  ///< by row of the site; only with filters_sites
    SiteRows site_rows;

    /// PyTorch operators were recorded: as in PyTorch, ranges that never ended end with the range around
    /// them.
    bool has_torch = false;

    bool filters_contexts = false;               ///< a session of one thread and its tasks
    std::uint32_t thread = 0;                    ///< that thread
    std::unordered_set<std::uint64_t> contexts;  ///< the contexts that list the session

    /// Calls that open ranges are parts of: by thread and start, the call and its PartRecordFlags.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::pair<std::uint64_t, std::uint8_t>> open_parts;

    std::atomic<std::uint64_t>* progress = nullptr;  ///< counts the work that is done; may be null
    void report(std::uint64_t work) const noexcept {
        if (progress != nullptr) progress->fetch_add(work, std::memory_order_relaxed);
    }

    bool includes_site(std::uint32_t site) const noexcept {
        return !filters_sites || included_sites[site_rows.row(site)];
    }
    bool intersects(std::uint64_t start, std::uint64_t end) const noexcept {
        return (end >= start_ticks) & (start <= stop_ticks);
    }
};

}  // namespace marey
