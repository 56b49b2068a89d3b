// stack_of_range.h: the call stack that a range carries or stands in.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <kymo/trace.h>

namespace kymo {

/// A range's stack, the innermost entry first: the one it carries (keyword value "Call stack", entries
/// between
/// ';'), else the names of the Python and C functions around it. What runs under a backward range has the
/// stack of the forward one, if that is named. The trace must outlive this.
class RangeStacks {
  public:
    explicit RangeStacks(const Trace& trace);

    /// Calls visit(std::string_view) for at most `limit` entries.
    template <typename Visit>
    void visit(Row range, std::size_t limit, Visit visit) const {
        range = source_of(range);
        if (range == kNoRow) return;
        if (std::string_view text = carried_stack(range); !text.empty()) {
            for (std::size_t i = 0; i < limit; ++i) {
                const std::size_t end = text.find(';');
                visit(text.substr(0, end));
                if (end == std::string_view::npos) return;
                text.remove_prefix(end + 1);
            }
            return;
        }
        Row row = function_around_[range];
        for (std::size_t i = 0; i < limit && row != kNoRow; ++i, row = function_around_[row])
            visit(trace_.range_name(row));
    }

  private:
    std::string_view carried_stack(Row range) const noexcept;
    /// The range whose stack it is; kNoRow: a backward range whose forward one is not there.
    Row source_of(Row range) const noexcept;
    void find_forward_ranges();

    const Trace& trace_;
    StringId key_ = 0;                  ///< "Call stack"; 0: no range carries one
    std::vector<Row> function_around_;  ///< per range: the nearest Python or C function around it
    std::vector<Row> backward_around_;  ///< per range: the nearest backward range, itself included; or empty
    std::unordered_map<Row, Row> forward_of_;  ///< of backward ranges that name one; kNoRow: it is not there
};

}  // namespace kymo
