// range_links.h: the arrows between ranges, in both directions, and the parts of suspended calls.
#pragma once

#include <marey/trace.h>

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
    explicit RangeLinks(const Trace& trace);

    /// The arrows that begin or end at a range.
    std::vector<Arrow> of(Row range) const;
    /// The arrows of a range and of the ranges inside it, and from there on along the arrows, at most
    /// `limit`. Sets `is_cut` if there are more.
    std::vector<Arrow> chain(Row range, std::size_t limit, bool& is_cut) const;

  private:
    void add_inside(Row range, std::vector<Row>& rows) const;

    RangeColumns ranges_;
    std::vector<Arrow> by_from_;
    std::vector<Arrow> by_to_;
};

}  // namespace marey::serve
