// site_values.h: the journal's values of sites, and the range of a trace that shows each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include <marey/trace.h>

#include "collect/replayed_log.h"

namespace marey {

/// Filled after the nested rows; rows are then queried in ascending order.
class SiteValues {
  public:
    using Parts = std::vector<std::span<const std::byte>>;  ///< payloads, in the journal's stream

    /// Takes the first complete set of each site within the session's window, and finds the site's first
    /// range.
    void choose(const ReplayedLog& state) {
        const bool needs_calls =
            state.session == nullptr || (state.session->marks.option_bits & detail::kOptionStacks) != 0;
        if (!needs_calls || state.journal.site_values.empty()) return;
        for (const JournalSiteValues& values : state.journal.site_values) {
            const detail::SiteValuesRecord& record = values.record;
            const std::uint32_t site = state.filter.site_rows.row(record.site);
            if (site == state.filter.site_rows.count() || record.ticks < state.filter.start_ticks ||
                record.ticks > state.filter.stop_ticks)
                continue;
            SiteInput& known = sites_[site];
            if (!known.parts.empty() && record.ticks > known.ticks) continue;
            if (record.ticks < known.ticks) known.parts.clear();
            known.ticks = record.ticks;
            known.parts.push_back(values.payload);
        }
        if (sites_.empty()) return;
        const TraceData& data = *state.data;
        std::vector<SiteInput*> by_site(data.sites.size() + 1, nullptr);
        for (auto& [site, known] : sites_) by_site[site] = &known;
        for (Row row = 0; row < state.nested_rows; ++row) {
            SiteInput* const known = by_site[data.range_site[row]];
            if (known == nullptr) continue;
            if (known->first == kNoRow || data.range_start_ns[row] < data.range_start_ns[known->first])
                known->first = row;
        }
        for (const auto& [site, known] : sites_) {
            if (known.first != kNoRow) rows_.push_back({known.first, &known.parts});
        }
        std::sort(rows_.begin(), rows_.end(), [](const Placed& a, const Placed& b) { return a.row < b.row; });
    }

    /// The next row that has some; kNoRow: none.
    Row next_row() const noexcept { return at_ < rows_.size() ? rows_[at_].row : kNoRow; }
    /// The values of a row; nothing for a row other than the next one.
    std::span<const std::span<const std::byte>> take(Row row) noexcept {
        return row == next_row() ? std::span<const std::span<const std::byte>>(*rows_[at_++].parts)
                                 : std::span<const std::span<const std::byte>>();
    }
    /// The values of a site that has no nested row: once.
    std::span<const std::span<const std::byte>> take_of_site(std::uint32_t site) noexcept {
        const auto found = sites_.find(site);
        if (found == sites_.end() || found->second.first != kNoRow) return {};
        found->second.first = 0;
        return found->second.parts;
    }

  private:
    struct SiteInput {
        std::uint64_t ticks = 0;
        Parts parts;
        Row first = kNoRow;
    };
    struct Placed {
        Row row;
        const Parts* parts;
    };

    std::unordered_map<std::uint32_t, SiteInput> sites_;  ///< by row of Trace::sites()
    std::vector<Placed> rows_;                            ///< by row
    std::size_t at_ = 0;
};

}  // namespace marey
