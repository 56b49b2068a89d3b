// chrome_flows.h: the arrows of a Chrome trace: points with one id become links between ranges.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

#include "base/reserve_expected.h"
#include "trace/trace_assembler.h"

namespace marey {

/// Points come in any order. Of those with one key, in order of their times: a start begins a chain, a step
/// and an end get an arrow from the point before; after an end more ends may follow, all from the same point.
/// An end that comes before every start of its key is given to the first start that has no end.
class ImportedFlows {
  public:
    enum class Point : std::uint8_t { Start, Step, End };

    explicit ImportedFlows(TraceAssembler& assembler) : assembler_(assembler) {}

    void add(std::uint64_t key, Point point, const TraceAssembler::LinkEnd& place, LinkKind kind,
             StringId name) {
        points_.push_back({key, place, point, kind, name});
    }
    /// A range that launched others, or was launched, with the number that both have.
    void add_launch(std::uint64_t correlation, TraceAssembler::RangeId range, bool is_device) {
        launches_.push_back({correlation, range, is_device});
    }
    /// An arrow of the file's own with that number: no link must be made up from it.
    void has_arrow(std::uint64_t correlation) { known_.push_back(correlation); }

    /// As TraceAssembler's.
    void expect(double fraction) {
        reserve_expected(points_, fraction);
        reserve_expected(launches_, fraction);
        reserve_expected(known_, fraction);
    }
    /// Makes the links. Points that belong to nothing are counted as "loose_flow".
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
    /// Members have one key. Gives how many of them belong to nothing.
    std::uint64_t link_chain(std::vector<std::uint32_t>& members);
    void link_launches();
    void link(const Entry& from, const Entry& to) {
        assembler_.add_link(from.place, to.place, to.kind, to.name);
    }

    TraceAssembler& assembler_;
    std::vector<Entry> points_;
    std::vector<Launch> launches_;
    std::vector<std::uint64_t> known_;
};

}  // namespace marey
