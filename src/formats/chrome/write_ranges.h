// write_ranges.h: the ranges of a trace and the flows between them as Chrome trace events.
#pragma once

#include <cstdint>
#include <span>

#include <marey/trace.h>

#include "formats/chrome/text.h"
#include "formats/chrome/write_arguments.h"
#include "formats/chrome/write_tables.h"
#include "trace/trace_data.h"

namespace marey {

/// Writes ranges, each followed by the flow events that are bound to it.
class ChromeRanges {
  public:
    /// All arguments must outlive this.
    ChromeRanges(const ChromeTables& tables, ChromeArguments& arguments, ChromeText& out);

    /// Writes the rows [first, end) of a track.
    void write(std::size_t track, Row first, Row end);

  private:
    void write_rest(char* out, Row row, const ChromeSite& site, const TrackInfo& track,
                    const Stamp& row_stamp, std::uint64_t from);
    void append_hierarchy(Row row);
    void write_flows(Row row, const Stamp& row_stamp, std::uint64_t from);
    char* put_flags(char* out, std::uint16_t flags);
    char* put_numbers(char* out, Row row, const ChromeSite& site, const TrackInfo& track);
    void write_flow(const Stamp& start, std::uint32_t link, const Stamp& row_stamp, std::uint64_t from);
    Row operator_above(Row row) const;
    Row frame_above(Row row) const;
    bool has_links(Row row) const {
        return tables_.incoming(row) != ChromeTables::kNoLink ||
               (link_ < links_.size() && links_[link_].from == row);
    }
    void seek(Row row);
    void find_next_sparse();

    const ChromeTables& tables_;
    ChromeArguments& arguments_;
    ChromeText& out_;
    const Trace& trace_;
    const RangeColumns ranges_;
    const std::span<const SiteInfo> sites_;
    const std::span<const LinkInfo> links_;
    const std::span<const ArgumentSlice> slices_;
    const std::span<const RangeDetail> details_;

    // Positions in the sparse tables: the first entries at or after the next row.
    Row next_row_ = 0;
    std::size_t link_ = 0;
    std::size_t slice_ = 0;
    std::size_t detail_ = 0;
    Row next_sparse_ = kNoRow;  ///< the next row with values or details
};

}  // namespace marey
