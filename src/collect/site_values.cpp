// site_values.cpp: selects among the journal's values of sites.
#include "collect/site_values.h"

#include <algorithm>

namespace marey {

void SiteValues::choose(const ReplayedLog& state) {
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

std::span<const std::span<const std::byte>> SiteValues::take_of_site(std::uint32_t site) noexcept {
    const auto found = sites_.find(site);
    if (found == sites_.end() || found->second.first != kNoRow) return {};
    found->second.first = 0;
    return found->second.parts;
}

}  // namespace marey
