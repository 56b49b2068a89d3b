// row_selection.h: removes rows from the tables of a trace, and renumbers the references to the others.
#pragma once

#include <cstddef>
#include <vector>

#include "trace/columns.h"
#include "trace/trace_data.h"

namespace marey {

using RowMask = std::vector<bool>;

RowMask rows_where(const auto& rows, auto condition) {
    RowMask mask(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) mask[i] = condition(rows[i]);
    return mask;
}

/// Removes the rows that are not in the mask. References to the table are left for renumber_rows().
template <ModelTable kTable>
void keep_rows(TraceData& data, const RowMask& mask) {
    for_each_vector<kTable>(data, [&](auto& rows) {
        std::size_t end = 0;
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (mask[i]) rows[end++] = rows[i];
        }
        rows.resize(end);
    });
}

/// Gives the references of a kind the numbers that their rows have after keep_rows(); kNoRow if removed.
inline void renumber_rows(TraceData& data, Cells cells, const RowMask& kept) {
    std::vector<Row> numbers(kept.size(), kNoRow);
    Row next = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        if (kept[i]) numbers[i] = next++;
    }
    for_each_reference(data, cells, [&](std::uint32_t& number) {
        if (number != kNoRow) number = numbers[number];
    });
}

/// Keeps some instants, with their values.
inline void keep_instants(TraceData& data, const RowMask& mask) {
    keep_rows<ModelTable::InstantArguments>(
        data, rows_where(data.instant_arguments, [&](const ArgumentSlice& row) { return mask[row.row]; }));
    keep_rows<ModelTable::Instants>(data, mask);
    renumber_rows(data, Cells::Instant, mask);
}

/// Keeps some tracks; the ranges of the others have been removed.
inline void keep_tracks(TraceData& data, const RowMask& mask) {
    keep_rows<ModelTable::Tracks>(data, mask);
    Row next = 0;
    for (TrackInfo& track : data.tracks) {
        track.first_range = next;
        next += track.range_count;
    }
}

/// Removes ranges, given by their sorted rows. The ranges inside them become children of the range around
/// them, which gets their self times; the values of removed ranges are lost, and arrows from and to them
/// begin and end at the range around them.
void remove_ranges(TraceData& data, const std::vector<Row>& rows);

}  // namespace marey
