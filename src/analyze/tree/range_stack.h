// range_stack.h: the call stack that is recorded with a range or derived from the enclosing ranges.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// Whether ranges of this scope are stack entries for the ranges inside them.
inline bool is_stack_entry(Scope scope) noexcept {
    return scope == Scope::PythonFunction || scope == Scope::CFunction;
}

/// The stack of a range, innermost entry first: the recorded one (keyword value "Call stack": a text with
/// entries separated by ';' or line breaks, or a list of texts), else the names of the enclosing Python and C
/// functions. Work in a backward range has the stack of its forward range, if there is one; work that an
/// engine runs on a separate thread has the functions that were open on the requesting thread at that time.
/// The trace must outlive this.
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

    /// Whether the stack consists of the functions that enclose this range.
    bool is_of_place(Row range) const {
        return source_of(range) == range && (is_called_.empty() || !is_called_[range]) &&
               carried_stack(range).empty();
    }

  private:
    std::vector<std::string_view> carried_stack(Row range) const;
    /// The range whose stack applies; kNoRow: a backward range whose forward range is missing.
    Row source_of(Row range) const noexcept;
    void find_forward_ranges();
    /// Sets the enclosing functions for the outermost ranges of threads that work for another thread.
    void find_callers();
    void lend_callers(const TrackInfo& track);
    Row function_at(const TrackInfo& track, std::int64_t time_ns) const;

    const Trace& trace_;
    StringId key_ = 0;                  ///< "Call stack"; 0: no range has one
    std::vector<Row> function_around_;  ///< per range: the nearest enclosing Python or C function
    std::vector<bool> is_called_;       ///< per range: that function is on another thread; or empty
    std::vector<Row> backward_around_;  ///< per range: the nearest backward range, itself included; or empty
    std::unordered_map<Row, Row>
        forward_of_;  ///< of backward ranges with a forward range; kNoRow: it is missing
};

}  // namespace marey
