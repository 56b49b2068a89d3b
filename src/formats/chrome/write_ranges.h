// write_ranges.h: the ranges of a trace and the flows between them as Chrome trace events.
#pragma once

#include <algorithm>

#include <marey/trace.h>

#include "analyze/events/event_categories.h"
#include "analyze/tree/step_ranges.h"
#include "formats/chrome/text.h"
#include "formats/chrome/write_arguments.h"
#include "formats/chrome/write_tables.h"
#include "trace/trace_data.h"

namespace marey {

/// Writes ranges, each followed by the flow events that are bound to it.
class ChromeRanges {
  public:
    /// All arguments must outlive this.
    ChromeRanges(const ChromeTables& tables, ChromeArguments& arguments, ChromeText& out)
        : tables_(tables),
          arguments_(arguments),
          out_(out),
          trace_(tables.trace),
          ranges_(trace_.ranges()),
          sites_(trace_.sites()),
          links_(trace_.links()),
          slices_(trace_.data().range_arguments),
          details_(trace_.range_details()) {
        seek(0);
    }

    /// Writes the rows [first, end) of a track.
    void write(std::size_t index, Row first, Row end) {
        const TrackInfo& track = trace_.tracks()[index];
        const bool on_device = is_of_device(track);
        const std::vector<ChromeSite>& sites = tables_.sites(on_device);
        const bool has_parts = tables_.modules.has_parts();
        const Stamp track_stamp(chrome_row_text(tables_.rows.track[index]));
        // A step that crosses ranges of its thread is among them, as in PyTorch's files: HTA looks for it
        // there.
        const std::vector<bool> is_step =
            track.kind == TrackKind::Async && !on_device ? step_sites(trace_, "") : std::vector<bool>();
        const Stamp thread_stamp(chrome_row_text(tables_.rows.of_thread(track.thread)));
        const std::size_t most = tables_.largest_stamps() +
                                 std::max(track_stamp.size(), thread_stamp.size()) + 2 * kDecimalBytes +
                                 kMaxRestBytes + 2 * Stamp::kBlock;
        // Local copies, so that the compiler can assume that the output does not alias them.
        const ChromeClock clock = tables_.clock;
        const RangeColumns ranges = ranges_;
        if (first != next_row_) seek(first);
        next_row_ = end;
        for (Row row = first; row < end; ++row) {
            const std::uint64_t from = clock.since_base(ranges.start_ns[row]);
            const std::uint64_t to = clock.since_base(ranges.start_ns[row] + ranges.duration_ns[row]);
            const ChromeSite& site = sites[ranges.site[row]];
            const Stamp& row_stamp =
                !is_step.empty() && is_step[ranges.site[row]] ? thread_stamp : track_stamp;
            char* out = out_.room(most);
            out = site.head.put(out);
            out = row_stamp.put(out);
            out = put_micros(out, from);
            out = put_literal(out, ",\"dur\":");
            out = put_micros(out, to - from);
            const bool is_plain = site.kind == ChromeSite::Kind::Plain && !on_device && row != next_sparse_ &&
                                  (ranges.flags[row] & kFlagsShown) == 0 && !has_links(row) && !has_parts;
            if (is_plain) [[likely]] {
                out_.take(site.tail.put(out));
                continue;
            }
            write_rest(out, row, site, track, row_stamp, from);
        }
    }

  private:
    /// Maximum size of the text after a range's duration, without its values and its site's members.
    static constexpr std::size_t kMaxRestBytes = 13 * ChromeArguments::kNumberBytes + 4 * Stamp::kBlock;
    /// Added to correlation ids. HTA stores them in 16 bits if they fit, and then puts row numbers, which do
    /// not fit, into the same column; PyTorch's ids are large enough in practice.
    static constexpr std::int64_t kFirstCorrelation = std::int64_t{1} << 16;
    static constexpr std::uint16_t kFlagsShown = kBeganBefore | kUnfinished | kEndInferred;

    /// Writes the "args" of a range, the end of its event, and the flow events bound to it. `out` has space
    /// for `most` bytes.
    void write_rest(char* out, Row row, const ChromeSite& site, const TrackInfo& track,
                    const Stamp& row_stamp, std::uint64_t from) {
        out = put_literal(out, ",\"args\":{");
        arguments_.begin();
        const bool is_sparse = row == next_sparse_;
        if (is_sparse && slice_ < slices_.size() && slices_[slice_].row == row) {
            out_.take(out);
            arguments_.append_values(
                {trace_.data().arguments.data() + slices_[slice_].first, slices_[slice_].count});
            out = out_.room(tables_.largest_stamps() + kMaxRestBytes + Stamp::kBlock);
        }
        if (tables_.modules.has_parts() && site.kind != ChromeSite::Kind::Python && !is_of_device(track)) {
            out_.take(out);
            append_hierarchy(row);
            out = out_.room(tables_.largest_stamps() + kMaxRestBytes + Stamp::kBlock);
        }
        out = put_numbers(out, row, site, track);
        const bool has_detail = is_sparse && detail_ < details_.size() && details_[detail_].range == row;
        if (has_detail) out = arguments_.put_detail(out, details_[detail_]);
        if (tables_.is_torch && site.kind == ChromeSite::Kind::Operator &&
            !(has_detail && details_[detail_].id != 0))
            out = arguments_.put_number(out, ChromeKey::RecordFunctionId, 0);
        if (const Stamp* const kernel = tables_.kernel_members(row))
            out = arguments_.put_rendered(out, *kernel);
        if ((ranges_.flags[row] & kFlagsShown) != 0) out = put_flags(out, ranges_.flags[row]);
        out = arguments_.put_rendered(out, site.members);
        out_.take(put_literal(out, "}},\n"));
        if (has_links(row)) write_flows(row, row_stamp, from);
        if (!is_sparse) return;
        while (slice_ < slices_.size() && slices_[slice_].row == row) ++slice_;
        while (detail_ < details_.size() && details_[detail_].range == row) ++detail_;
        find_next_sparse();
    }
    /// Writes the modules in which the range ran.
    void append_hierarchy(Row row) {
        std::string member;
        const std::string hierarchy = tables_.modules.hierarchy(row);
        if (hierarchy.empty()) return;
        append_json_member(member, "Module Hierarchy", hierarchy);
        arguments_.append_rendered(Stamp(std::move(member)));
    }
    void write_flows(Row row, const Stamp& row_stamp, std::uint64_t from) {
        for (std::uint32_t i = tables_.incoming(row); i != ChromeTables::kNoLink;
             i = tables_.next_incoming(i))
            write_flow(tables_.flow_of(links_[i]).finish, i, row_stamp, from);
        for (; link_ < links_.size() && links_[link_].from == row; ++link_) {
            if (tables_.is_valid(links_[link_]))
                write_flow(tables_.flow_of(links_[link_]).start, static_cast<std::uint32_t>(link_), row_stamp,
                           from);
        }
    }
    char* put_flags(char* out, std::uint16_t flags) {
        static const Stamp kBegan("\"began_before\":true"), kOpen("\"finished\":false"),
            kInferred("\"end_inferred\":true");
        if ((flags & kBeganBefore) != 0) out = arguments_.put_rendered(out, kBegan);
        if ((flags & kUnfinished) != 0) out = arguments_.put_rendered(out, kOpen);
        if ((flags & kEndInferred) != 0) out = arguments_.put_rendered(out, kInferred);
        return out;
    }
    /// Writes the ids by which tools match events. The id of a range is its row, counted from the trace's
    /// first id, or from 1 for numbers that are compared only within a trace.
    char* put_numbers(char* out, Row row, const ChromeSite& site, const TrackInfo& track) {
        Row launch = kNoRow;
        if (is_of_device(track)) {
            launch = tables_.launch_of(row);
            if (track.device.index >= 0)
                out = arguments_.put_number(out, ChromeKey::DeviceNumber, track.device.index);
            if (track.stream >= 0) out = arguments_.put_number(out, ChromeKey::Stream, track.stream);
        } else if (site.kind == ChromeSite::Kind::Operator) {
            out = arguments_.put_number(out, ChromeKey::ExternalId, tables_.first_id + row);
            out = arguments_.put_number(out, ChromeKey::EventIndex, row);
        } else if (site.kind == ChromeSite::Kind::Python) {
            const Row parent = frame_above(row);
            out = arguments_.put_number(out, ChromeKey::PythonId, std::int64_t{row} + 1);
            if (parent != kNoRow)
                out = arguments_.put_number(out, ChromeKey::PythonParent, std::int64_t{parent} + 1);
            out = arguments_.put_number(out, ChromeKey::PythonThread, track.thread);
            if (tables_.is_torch) out = arguments_.put_number(out, ChromeKey::EventIndex, row);
        } else if (site.kind == ChromeSite::Kind::Runtime) {
            launch = row;
        }
        if (launch == kNoRow) return out;
        const Row caller = tables_.has_operator_ids ? operator_above(launch) : kNoRow;
        if (caller != kNoRow)
            out = arguments_.put_number(out, ChromeKey::ExternalId, tables_.first_id + caller);
        return arguments_.put_number(out, ChromeKey::Correlation,
                                     kFirstCorrelation + tables_.first_id + launch);
    }
    void write_flow(const Stamp& start, std::uint32_t link, const Stamp& row_stamp, std::uint64_t from) {
        char* out = out_.room(start.size() + row_stamp.size() + 2 * kDecimalBytes + 8 + Stamp::kBlock);
        out = start.put(out);
        out = put_decimal(out, tables_.flow_id(link));
        *out++ = ',';
        out = row_stamp.put(out);
        out = put_micros(out, from);
        out_.take(put_literal(out, "},\n"));
    }
    Row operator_above(Row row) const {
        for (row = ranges_.parent[row]; row != kNoRow; row = ranges_.parent[row]) {
            if (is_operator(sites_[ranges_.site[row]].scope)) return row;
        }
        return kNoRow;
    }
    Row frame_above(Row row) const {
        for (row = ranges_.parent[row]; row != kNoRow; row = ranges_.parent[row]) {
            if (is_python_frame(sites_[ranges_.site[row]].scope)) return row;
        }
        return kNoRow;
    }
    bool has_links(Row row) const {
        return tables_.incoming(row) != ChromeTables::kNoLink ||
               (link_ < links_.size() && links_[link_].from == row);
    }
    /// Moves the positions in the sparse tables to the first entries at or after `row`.
    void seek(Row row) {
        slice_ = std::ranges::lower_bound(slices_, row, {}, &ArgumentSlice::row) - slices_.begin();
        detail_ = std::ranges::lower_bound(details_, row, {}, &RangeDetail::range) - details_.begin();
        link_ = std::ranges::lower_bound(links_, row, {}, &LinkInfo::from) - links_.begin();
        find_next_sparse();
    }
    void find_next_sparse() {
        next_sparse_ = std::min(slice_ < slices_.size() ? slices_[slice_].row : kNoRow,
                                detail_ < details_.size() ? details_[detail_].range : kNoRow);
    }

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
