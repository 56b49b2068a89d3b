// flows.h: turns flow events of a Chrome trace that share an id into links between ranges.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

#include "base/reserve_expected.h"
#include "formats/chrome/findings.h"
#include "trace/trace_assembler.h"

namespace marey {

/// Flow events may come in any order. Those with the same key are processed in time order: a start begins a
/// chain, and a step or an end is linked from the event before it; more ends may follow an end, all linked
/// from the same event. An end that comes before every start of its key belongs to the first start without an
/// end.
class ImportedFlows {
  public:
    enum class Point : std::uint8_t { Start, Step, End };

    ImportedFlows(TraceAssembler& assembler, ChromeFindings& findings)
        : assembler_(assembler), findings_(findings) {}

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
    void finish();

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
    std::uint64_t link_chain(std::vector<std::uint32_t>& members);
    void link_launches();
    void link(const Entry& from, const Entry& to) {
        assembler_.add_link(from.place, to.place, to.kind, to.name);
    }

    void find(const char* rule, std::size_t point) {
        findings_.add(rule, points_[point].name, points_[point].place.time_ns, "(an arrow)");
    }

    TraceAssembler& assembler_;
    ChromeFindings& findings_;
    std::vector<Entry> points_;
    std::vector<Launch> launches_;
    std::vector<std::uint64_t> known_;
};

}  // namespace marey
