// site_values.h: the journal's values of sites, and the range of a trace that shows each.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

#include "collect/replayed_log.h"

namespace marey {

/// Filled after the nested rows; rows are then queried in ascending order.
class SiteValues {
  public:
    using Parts = std::vector<std::span<const std::byte>>;  ///< payloads, in the journal's stream

    /// Takes the first complete set of each site within the session's window, and finds the site's first
    /// range.
    void choose(const ReplayedLog& state);

    /// The next row that has some; kNoRow: none.
    Row next_row() const noexcept { return at_ < rows_.size() ? rows_[at_].row : kNoRow; }
    /// The values of a row; nothing for a row other than the next one.
    std::span<const std::span<const std::byte>> take(Row row) noexcept {
        return row == next_row() ? std::span<const std::span<const std::byte>>(*rows_[at_++].parts)
                                 : std::span<const std::span<const std::byte>>();
    }
    /// The values of a site that has no nested row: once.
    std::span<const std::span<const std::byte>> take_of_site(std::uint32_t site) noexcept;

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
