// range_links.h: the arrows between ranges, in both directions, and the parts of suspended calls.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <marey/trace.h>

#include "base/enum_names.h"

namespace marey::serve {

/// One arrow. `kind` is the name of its kind: "launch", "part", ...
struct Arrow {
    Row from = kNoRow;
    Row to = kNoRow;
    const char* kind = "";
    StringId name = 0;
    friend bool operator==(const Arrow& a, const Arrow& b) noexcept {
        return a.from == b.from && a.to == b.to;
    }
};

/// The links of a trace, sorted both ways. Links to rows that do not exist are left out.
class RangeLinks {
  public:
    explicit RangeLinks(const Trace& trace) : ranges_(trace.ranges()) {
        const std::size_t rows = ranges_.size();
        for (const LinkInfo& link : trace.links()) {
            if (link.from < rows && link.to < rows)
                by_from_.push_back({link.from, link.to, link_kind_name(link.kind), link.name});
        }
        add_parts(trace, by_from_);
        std::ranges::stable_sort(by_from_, {}, &Arrow::from);
        by_to_ = by_from_;
        std::ranges::stable_sort(by_to_, {}, &Arrow::to);
    }

    /// The arrows that begin or end at a range.
    std::vector<Arrow> of(Row range) const {
        std::vector<Arrow> found(std::ranges::lower_bound(by_from_, range, {}, &Arrow::from),
                                 std::ranges::upper_bound(by_from_, range, {}, &Arrow::from));
        found.insert(found.end(), std::ranges::lower_bound(by_to_, range, {}, &Arrow::to),
                     std::ranges::upper_bound(by_to_, range, {}, &Arrow::to));
        return found;
    }
    /// The arrows of a range and of the ranges inside it, and from there on along the arrows, at most
    /// `limit`. Sets `is_cut` if there are more.
    std::vector<Arrow> chain(Row range, std::size_t limit, bool& is_cut) const {
        std::vector<Row> open{range};
        add_inside(range, open);
        std::set<Row> seen(open.begin(), open.end());
        std::set<std::pair<Row, Row>> known;
        std::vector<Arrow> arrows;
        is_cut = false;
        for (std::size_t i = 0; i < open.size(); ++i) {
            for (const Arrow& arrow : of(open[i])) {
                if (!known.emplace(arrow.from, arrow.to).second) continue;
                if (arrows.size() == limit) {
                    is_cut = true;
                    return arrows;
                }
                arrows.push_back(arrow);
                for (const Row end : {arrow.from, arrow.to}) {
                    if (seen.insert(end).second) open.push_back(end);
                }
            }
        }
        return arrows;
    }

  private:
    static constexpr Row kMostInside = 100'000;  ///< rows inside a range whose arrows are looked for

    static const char* link_kind_name(LinkKind kind) noexcept {
        static constexpr const char* kNames[] = {"flow", "forward_backward", "launch", "remote", "flow"};
        return name_at(kNames, kind, "flow");
    }

    /// Arrows from each part of a suspended call to the next one.
    static void add_parts(const Trace& trace, std::vector<Arrow>& arrows) {
        std::map<std::pair<Row, std::uint64_t>, std::vector<Row>> calls;
        for (const RangeDetail& detail : trace.range_details()) {
            if (detail.call == 0) continue;
            const Row process = trace.threads()[trace.tracks()[trace.track_of(detail.range)].thread].process;
            calls[{process, detail.call}].push_back(detail.range);
        }
        const RangeColumns ranges = trace.ranges();
        for (auto& [call, parts] : calls) {
            std::ranges::sort(parts, {}, [&](Row a) { return std::pair(ranges.start_ns[a], a); });
            for (std::size_t i = 1; i < parts.size(); ++i)
                arrows.push_back({parts[i - 1], parts[i], "part", 0});
        }
    }

    /// Adds the ends of arrows that begin or end inside a range. In pre-order the ranges inside it follow it.
    void add_inside(Row range, std::vector<Row>& rows) const {
        const std::uint32_t depth = ranges_.depth[range];
        Row end = range + 1;
        while (end < ranges_.size() && end - range < kMostInside && ranges_.depth[end] > depth) ++end;
        for (auto at = std::ranges::lower_bound(by_from_, range + 1, {}, &Arrow::from);
             at != by_from_.end() && at->from < end; ++at)
            rows.push_back(at->from);
        for (auto at = std::ranges::lower_bound(by_to_, range + 1, {}, &Arrow::to);
             at != by_to_.end() && at->to < end; ++at)
            rows.push_back(at->to);
    }

    RangeColumns ranges_;
    std::vector<Arrow> by_from_;
    std::vector<Arrow> by_to_;
};

}  // namespace marey::serve
