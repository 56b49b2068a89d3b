// chrome_ranges.h: the ranges of a trace and the arrows between them as events of a Chrome trace.
#pragma once

#include <string>
#include <vector>

#include <kymo/modules.h>
#include <kymo/trace.h>

#include "export/chrome_arguments.h"
#include "export/chrome_clock.h"
#include "export/chrome_rows.h"
#include "export/chrome_text.h"
#include "trace/trace_data.h"

namespace kymo {

/// What is the same for all events of a site.
struct ChromeSite {
    /// The numbers of ours that a range gets.
    enum class Kind : std::uint8_t { Plain, Operator, Python, Runtime };

    Stamp head;     ///< {"ph":"X","cat":"...","name":"...",
    Stamp tail;     ///< ,"args":{"at":"file:line"}},\n
    Stamp members;  ///< "at":"file:line" and what else the site knows, or empty
    Kind kind = Kind::Plain;
};

/// Writes every range, and both ends of each arrow right behind the range that it is bound to.
class ChromeRanges {
  public:
    /// All must outlive this.
    ChromeRanges(const Trace& trace, const ChromeRows& rows, ChromeText& out);

    void write();
    /// The last members of the "args" of an event of that site, also of an instant.
    const Stamp& members(std::uint32_t site) const { return host_sites_[site].members; }

  private:
    struct Flow {
        Stamp start;   ///< {"ph":"s","cat":"...","name":"...","id":
        Stamp finish;  ///< the same with "f" and its binding
    };
    static constexpr std::uint32_t kNoLink = ~std::uint32_t{0};

    std::vector<ChromeSite> make_sites(bool on_device);
    void make_flows();
    void index_links();
    void write_track(std::size_t index);
    void write_rest(char* out, Row row, const ChromeSite& site, const TrackInfo& track,
                    const Stamp& row_stamp, std::uint64_t from);
    void append_hierarchy(Row row);
    void write_flows(Row row, const Stamp& row_stamp, std::uint64_t from);
    char* put_flags(char* out, std::uint16_t flags);
    char* put_numbers(char* out, Row row, const ChromeSite& site, const TrackInfo& track);
    void write_flow(const Stamp& start, std::uint32_t link, const Stamp& row_stamp, std::uint64_t from);
    const Flow& flow_of(const LinkInfo& link);
    bool is_valid(const LinkInfo& link) const;
    Row operator_above(Row row) const;
    Row frame_above(Row row) const;
    Row launch_of(Row row) const;
    bool has_links(Row row) const {
        return !incoming_.empty() &&
               (incoming_[row] != kNoLink || (link_ < links_.size() && links_[link_].from == row));
    }
    void seek(Row row);

    const Trace& trace_;
    const ChromeRows& rows_;
    ChromeText& out_;
    const ChromeClock clock_;
    const RangeColumns ranges_;
    const std::span<const SiteInfo> sites_;
    const std::span<const LinkInfo> links_;
    const std::span<const ArgumentSlice> slices_;
    const std::span<const RangeDetail> details_;
    ChromeArguments arguments_;
    const ModuleTable modules_;
    std::vector<ChromeSite> host_sites_;
    std::vector<ChromeSite> device_sites_;  ///< empty where the trace has no tracks of devices
    std::size_t largest_stamps_ = 0;

    // Flows by kind, and of kind Flow by name.
    std::vector<Flow> flows_;
    std::vector<std::pair<StringId, Flow>> named_flows_;
    std::vector<std::uint32_t> incoming_;       ///< of each range: the first link to it; empty without links
    std::vector<std::uint32_t> next_incoming_;  ///< of each link: the next to the same range

    // Where the sparse tables are, as the rows go by.
    std::size_t link_ = 0;
    std::size_t slice_ = 0;
    std::size_t detail_ = 0;
    Row next_sparse_ = kNoRow;  ///< the next row that has values or details
};

}  // namespace kymo
