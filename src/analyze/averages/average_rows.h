// average_rows.h: the rows of an average. One pass over the ranges counts the groups; values that only a few
// ranges have are added later.
#pragma once

#include <memory>

#include <marey/averages.h>

#include "analyze/averages/range_groups.h"
#include "analyze/events/event_costs.h"
#include "analyze/memory/range_memory.h"
#include "analyze/tree/range_stack.h"

namespace marey {

/// Builds the rows of an average, one per group, in the order of the groups.
class AverageRowBuilder {
  public:
    /// Computes counts, names and times of all groups. `trace` and `options` must outlive this.
    AverageRowBuilder(const Trace& trace, const AverageOptions& options, bool each_range);

    void add_device_times();
    void add_memory(const RangeMemory& memory);
    void add_flops();
    void add_percentiles();
    void add_overheads();
    std::vector<AverageRow>& rows() noexcept { return rows_; }

  private:
    struct Tally;
    /// Rows of the range table in the order of groups_.track_order(): the first and the one after the last.
    struct RowPart {
        std::uint64_t begin, end;
    };
    struct Overhead {
        double self_ns = 0;
        double total_ns = 0;
    };
    std::vector<RowPart> row_parts() const;
    template <class Visit>
    void visit_rows(RowPart part, Visit visit) const;
    std::vector<Tally> tally() const;
    std::vector<Tally> tally(RowPart part) const;
    void describe(AverageRow& row, const Tally& entry) const;
    static void sum(AverageRow& row, const Tally& entry);
    AverageRow& row_of(Row range) { return rows_[groups_[range] & ~RangeGroups::kMerged]; }
    void add_overhead(Row range, double ns);
    void add_overheads_of(Row track, RangeCosts& costs, std::vector<Overhead>& sums);
    bool is_counted(Row range) const noexcept { return (groups_[range] & RangeGroups::kMerged) == 0; }

    const Trace& trace_;
    const AverageOptions& options_;
    bool each_range_;
    RangeGroups groups_;
    std::unique_ptr<RangeStacks> stacks_;
    std::vector<AverageRow> rows_;
};

}  // namespace marey
