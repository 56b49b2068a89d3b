// range_stack.h: the call stack that a range carries or stands in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// Whether ranges of this scope are entries of the stacks of what runs in them.
inline bool is_stack_entry(Scope scope) noexcept {
    return scope == Scope::PythonFunction || scope == Scope::CFunction;
}

/// A range's stack, the innermost entry first: the one it carries (keyword value "Call stack": a text with
/// entries between ';' or line breaks, or a list of texts), else the names of the Python and C functions
/// around it. What runs under a backward range has the stack of the forward one, if that is named; what an
/// engine runs on a thread of its own for another one has the functions that were open there then. The trace
/// must outlive this.
class RangeStacks {
  public:
    explicit RangeStacks(const Trace& trace);

    /// Calls visit(std::string_view) for at most `limit` entries.
    template <typename Visit>
    void visit(Row range, std::size_t limit, Visit visit) const {
        range = source_of(range);
        if (range == kNoRow) return;
        const std::vector<std::string_view> carried = carried_stack(range);
        for (std::size_t i = 0; i < std::min(limit, carried.size()); ++i) visit(carried[i]);
        if (!carried.empty()) return;
        Row row = function_around_[range];
        for (std::size_t i = 0; i < limit && row != kNoRow; ++i, row = function_around_[row])
            visit(trace_.range_name(row));
    }

    /// Whether the stack is that of the functions around this very range.
    bool is_of_place(Row range) const {
        return source_of(range) == range && (is_called_.empty() || !is_called_[range]) &&
               carried_stack(range).empty();
    }

  private:
    std::vector<std::string_view> carried_stack(Row range) const;
    /// The range whose stack it is; kNoRow: a backward range whose forward one is not there.
    Row source_of(Row range) const noexcept;
    void find_forward_ranges();
    /// For the outermost ranges of a thread that works for another: the functions open there.
    void find_callers();
    void lend_callers(const TrackInfo& track);
    Row function_at(const TrackInfo& track, std::int64_t time_ns) const;

    const Trace& trace_;
    StringId key_ = 0;                  ///< "Call stack"; 0: no range carries one
    std::vector<Row> function_around_;  ///< per range: the nearest Python or C function around it
    std::vector<bool> is_called_;       ///< per range: that function is of another thread; or empty
    std::vector<Row> backward_around_;  ///< per range: the nearest backward range, itself included; or empty
    std::unordered_map<Row, Row> forward_of_;  ///< of backward ranges that name one; kNoRow: it is not there
};

}  // namespace marey
