// range_groups.h: which group of an average each range belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <marey/averages.h>
#include <marey/trace.h>

namespace marey {

/// Several sites may have equal keys: name, annotation or not and (if requested) overload. The views are
/// valid as long as the trace.
struct SiteKeys {
    std::vector<std::uint32_t> of_site;  ///< key
    std::vector<std::uint32_t> name_of_site;
    std::uint32_t size = 0;

    SiteKeys(const Trace& trace, bool by_overload, GroupBy by = GroupBy::Name);
};

/// Whether the user marked the range.
bool is_user_annotation(Scope scope) noexcept;
/// The rank or node of the process of a thread (a row of the thread table); -1: none.
std::int32_t node_of_thread(const Trace& trace, Row thread) noexcept;

class RangeGroups {
  public:
    /// Flag for a range that is not counted; the other bits are the group of the range into which it is
    /// merged.
    static constexpr std::uint32_t kMerged = 1u << 31;

    RangeGroups(const Trace& trace, const AverageOptions& options, bool each_range);

    std::uint32_t operator[](Row range) const noexcept { return of_range_[range]; }
    std::uint32_t size() const noexcept { return size_; }
    /// Rows of the track table, grouped by node, device and thread.
    const std::vector<Row>& track_order() const noexcept { return order_; }

  private:
    void order_tracks(bool by_thread, bool by_process);
    void assign(const AverageOptions& options);
    void assign_each();

    const Trace& trace_;
    std::vector<Row> order_;
    std::vector<bool>
        starts_class_;  ///< per position in order_: node, device or (if requested) thread changes
    std::vector<std::uint8_t> is_repeated_;  ///< per range; empty: none
    std::unique_ptr<std::uint32_t[]> of_range_;
    std::uint32_t size_ = 0;
};

}  // namespace marey
