// flows.h: turns flow events of a Chrome trace that share an id into links between ranges.
#pragma once

#include <algorithm>
#include <utility>

#include <marey/trace.h>

#include "base/reserve_expected.h"
#include "formats/chrome/violations.h"
#include "trace/trace_assembler.h"

namespace marey {

/// Flow events may come in any order. Those with the same key are processed in time order: a start begins a
/// chain, and a step or an end is linked from the event before it; more ends may follow an end, all linked
/// from the same event. An end that comes before every start of its key belongs to the first start without an
/// end.
class ImportedFlows {
  public:
    enum class Point : std::uint8_t { Start, Step, End };

    ImportedFlows(TraceAssembler& assembler, ChromeViolations& violations)
        : assembler_(assembler), violations_(violations) {}

    void add(std::uint64_t key, Point point, const TraceAssembler::LinkEnd& place, LinkKind kind,
             StringId name) {
        points_.push_back({key, place, point, kind, name});
    }
    /// Adds a range that launched device work, or was launched, with their common correlation id.
    void add_launch(std::uint64_t correlation, TraceAssembler::RangeId range, bool is_device) {
        launches_.push_back({correlation, range, is_device});
    }
    /// The file has a flow with this correlation id, so no link is generated for it.
    void add_known_flow(std::uint64_t correlation) { known_.push_back(correlation); }

    /// See TraceAssembler::expect().
    void expect(double fraction) {
        reserve_expected(points_, fraction);
        reserve_expected(launches_, fraction);
        reserve_expected(known_, fraction);
    }
    /// Creates the links. Flow events without a match are counted as "loose_flow".
    void finish() {
        // Flow events are chained by key in a hash table: most keys have two events, close to each other in
        // the file.
        std::size_t size = 64;
        while (size < 2 * points_.size()) size *= 2;
        constexpr std::uint32_t kFree = ~std::uint32_t{0};
        struct Chain {
            std::uint32_t first, last;
        };
        std::vector<Chain> chains(points_.empty() ? 0 : size, Chain{kFree, kFree});
        std::vector<std::uint32_t> next(points_.size(), kFree);
        for (std::uint32_t i = 0; i < points_.size(); ++i) {
            std::size_t slot = points_[i].key & (size - 1);
            while (chains[slot].first != kFree && points_[chains[slot].first].key != points_[i].key)
                slot = (slot + 1) & (size - 1);
            Chain& chain = chains[slot];
            if (chain.first == kFree) {
                chain.first = i;
            } else {
                next[chain.last] = i;
            }
            chain.last = i;
        }
        std::uint64_t unmatched = 0;
        std::vector<std::uint32_t> members;
        for (std::uint32_t i = 0; i < points_.size(); ++i) {
            std::size_t slot = points_[i].key & (size - 1);
            while (points_[chains[slot].first].key != points_[i].key) slot = (slot + 1) & (size - 1);
            if (chains[slot].first != i) continue;  // already handled with the first event of this key
            members.clear();
            for (std::uint32_t member = i; member != kFree; member = next[member]) members.push_back(member);
            unmatched += link_chain(members);
        }
        assembler_.add_problem("loose_flow", "flow events without a matching flow event were skipped",
                               unmatched);
        std::vector<Entry>().swap(points_);
        link_launches();
    }

  private:
    struct Entry {
        std::uint64_t key;
        TraceAssembler::LinkEnd place;
        Point point;
        LinkKind kind;
        StringId name;
    };
    struct Launch {
        std::uint64_t correlation;
        TraceAssembler::RangeId range;
        bool is_device;
    };
    /// Links the members, which share a key. Returns the number of members without a match.
    std::uint64_t link_chain(std::vector<std::uint32_t>& members) {
        const auto is_before = [&](std::uint32_t left, std::uint32_t right) {
            const Entry &a = points_[left], &b = points_[right];
            if (a.place.time_ns != b.place.time_ns) return a.place.time_ns < b.place.time_ns;
            return a.point < b.point;
        };
        if (!std::ranges::is_sorted(members, is_before)) std::ranges::stable_sort(members, is_before);
        std::vector<std::size_t> early;  // ends before any start
        const Entry* last = nullptr;     // source of the next link
        bool last_is_used = true;
        std::vector<std::size_t> unused;  // starts without an end
        std::size_t last_start = 0;
        std::uint64_t unmatched = 0;
        bool has_start = false;
        for (const std::uint32_t i : members) {
            const Entry& entry = points_[i];
            if (entry.point == Point::Start) {
                if (std::exchange(has_start, true)) find("flow_id_repeated", i);
                if (!last_is_used) unused.push_back(last_start);
                last = &entry;
                last_start = i;
                last_is_used = false;
            } else if (last == nullptr) {
                early.push_back(i);
            } else {
                link(*last, entry);
                last_is_used = true;
                if (entry.point == Point::Step) last = &entry;
            }
        }
        if (!last_is_used) unused.push_back(last_start);
        for (std::size_t i = 0; i < std::max(early.size(), unused.size()); ++i) {
            if (i < early.size() && i < unused.size()) {
                link(points_[unused[i]], points_[early[i]]);
                const bool is_launch = points_[early[i]].kind == LinkKind::Launch;
                find(is_launch ? "kernel_before_launch" : "flow_backwards", early[i]);
            } else {
                ++unmatched;
                find(i < early.size() ? "flow_without_start" : "flow_without_end",
                     i < early.size() ? early[i] : unused[i]);
            }
        }
        return unmatched;
    }
    void link_launches() {
        std::ranges::sort(known_);
        std::ranges::stable_sort(launches_, [](const Launch& a, const Launch& b) {
            return a.correlation != b.correlation ? a.correlation < b.correlation : a.is_device < b.is_device;
        });
        for (std::size_t first = 0; first < launches_.size();) {
            std::size_t end = first + 1;
            while (end < launches_.size() && launches_[end].correlation == launches_[first].correlation)
                ++end;
            const bool is_known =
                std::binary_search(known_.begin(), known_.end(), launches_[first].correlation);
            if (!launches_[first].is_device && !is_known) {
                for (std::size_t i = first + 1; i < end; ++i) {
                    if (launches_[i].is_device)
                        assembler_.add_link(launches_[first].range, launches_[i].range, LinkKind::Launch);
                }
            }
            first = end;
        }
        std::vector<Launch>().swap(launches_);
    }
    void link(const Entry& from, const Entry& to) {
        assembler_.add_link(from.place, to.place, to.kind, to.name);
    }

    void find(const char* rule, std::size_t point) {
        violations_.add(rule, points_[point].name, points_[point].place.time_ns, "(an arrow)");
    }

    TraceAssembler& assembler_;
    ChromeViolations& violations_;
    std::vector<Entry> points_;
    std::vector<Launch> launches_;
    std::vector<std::uint64_t> known_;
};

}  // namespace marey
