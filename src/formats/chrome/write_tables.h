// write_tables.h: data shared by the events of a Chrome trace: site texts, flow texts and flow targets.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <marey/modules.h>
#include <marey/trace.h>

#include "formats/chrome/text.h"
#include "formats/chrome/write_clock.h"
#include "formats/chrome/write_rows.h"

namespace marey {

/// The texts that all events of a site share.
struct ChromeSite {
    /// Determines which generated numbers a range gets.
    enum class Kind : std::uint8_t { Plain, Operator, Python, Runtime };

    Stamp head;     ///< {"ph":"X","cat":"...","name":"...",
    Stamp tail;     ///< ,"args":{"at":"file:line"}},\n
    Stamp members;  ///< "at":"file:line" and other properties of the site, or empty
    Kind kind = Kind::Plain;
};

/// The start and finish event of a flow, up to its id.
struct ChromeFlow {
    Stamp start;   ///< {"ph":"s","cat":"...","name":"...","id":
    Stamp finish;  ///< the same with "f" and its binding point
};

/// Built once per trace, then read-only and safe to use from any number of threads.
class ChromeTables {
  public:
    static constexpr std::uint32_t kNoLink = ~std::uint32_t{0};

    /// `trace` must outlive this.
    explicit ChromeTables(const Trace& trace);

    const Trace& trace;
    /// Whether PyTorch operators are in it: then times and ids follow PyTorch's conventions, on which tools
    /// rely.
    const bool is_torch;
    /// Whether calls and device work carry the id of their operator; PyTorch has an option against it.
    const bool has_operator_ids;
    const std::int64_t first_id;  ///< the id of the first range
    const ChromeClock clock;
    const ChromeRows rows;
    const ModuleTable modules;

    const std::vector<ChromeSite>& sites(bool on_device) const {
        return on_device ? device_sites_ : host_sites_;
    }
    /// The maximum combined size of head and tail over all sites.
    std::size_t largest_stamps() const noexcept { return largest_stamps_; }

    const ChromeFlow& flow_of(const LinkInfo& link) const {
        if (link.kind == LinkKind::Flow && link.name != 0) return named_flows_.find(link.name)->second;
        const auto kind = static_cast<std::size_t>(link.kind);
        return flows_[kind < flows_.size() ? kind : 0];
    }
    bool is_valid(const LinkInfo& link) const noexcept {
        return link.from < range_count_ && link.to < range_count_;
    }
    /// Iterates over the valid links to a range: incoming(row), then next_incoming() of the result, until
    /// kNoLink.
    std::uint32_t incoming(Row row) const noexcept { return incoming_.empty() ? kNoLink : incoming_[row]; }
    std::uint32_t next_incoming(std::uint32_t link) const noexcept { return next_incoming_[link]; }
    /// The number of a link among the flows of its kind, from 1. Forward passes are linked to backward passes
    /// in the order of the latter, as in PyTorch.
    std::uint64_t flow_id(std::uint32_t link) const noexcept {
        return flow_ids_.empty() || flow_ids_[link] == 0 ? std::uint64_t{link} + 1 : flow_ids_[link];
    }
    /// The range that launched this one; kNoRow: unknown.
    Row launch_of(Row row) const noexcept {
        for (std::uint32_t i = incoming(row); i != kNoLink; i = next_incoming_[i]) {
            if (links_[i].kind == LinkKind::Launch) return links_[i].from;
        }
        return kNoRow;
    }

    /// Members that follow from a kernel's shape and its device; null: none.
    const Stamp* kernel_members(Row row) const noexcept {
        return kernel_of_.empty() || kernel_of_[row] == 0 ? nullptr : &kernel_members_[kernel_of_[row] - 1];
    }

  private:
    void estimate_kernels();
    std::vector<ChromeSite> make_sites(bool on_device);
    void make_flows();
    void index_links();
    void number_backward_flows();

    const std::size_t range_count_;
    const std::span<const LinkInfo> links_;
    std::vector<ChromeSite> host_sites_;
    std::vector<ChromeSite> device_sites_;  ///< empty if the trace has no device tracks
    std::size_t largest_stamps_ = 0;
    std::vector<ChromeFlow> flows_;  ///< by kind
    std::unordered_map<StringId, ChromeFlow> named_flows_;
    std::vector<std::uint32_t> incoming_;  ///< per range: the first link to it; empty if there are no links
    std::vector<std::uint32_t> next_incoming_;  ///< per link: the next link to the same range
    std::vector<std::uint32_t> kernel_of_;      ///< per range: 1 + index in kernel_members_; may be empty
    std::vector<Stamp> kernel_members_;
    std::vector<std::uint32_t> flow_ids_;  ///< per link, 0: its number + 1; empty if all are 0
};

}  // namespace marey
