// site_values.h: what the journal knows of sites, and with which range of a trace each goes.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

#include "collect/replayed_log.h"

namespace marey {

/// Filled once the nested rows are there; rows are then asked for in ascending order.
class SiteValues {
  public:
    using Parts = std::vector<std::span<const std::byte>>;  ///< payloads; they lie in the journal's stream

    /// Takes the first whole of each site within the session's window, and finds the site's first range.
    void choose(const ReplayedLog& state);

    /// The next row that has some; kNoRow: none.
    Row next_row() const noexcept { return at_ < rows_.size() ? rows_[at_].row : kNoRow; }
    /// Those of a row; nothing for a row that is not the next one.
    std::span<const std::span<const std::byte>> take(Row row) noexcept {
        return row == next_row() ? std::span<const std::span<const std::byte>>(*rows_[at_++].parts)
                                 : std::span<const std::span<const std::byte>>();
    }
    /// Those of a site of which no nested row is: once.
    std::span<const std::span<const std::byte>> take_of_site(std::uint32_t site) noexcept;

  private:
    struct Known {
        std::uint64_t ticks = 0;
        Parts parts;
        Row first = kNoRow;
    };
    struct Placed {
        Row row;
        const Parts* parts;
    };

    std::unordered_map<std::uint32_t, Known> sites_;  ///< by row of Trace::sites()
    std::vector<Placed> rows_;                        ///< by row
    std::size_t at_ = 0;
};

}  // namespace marey
