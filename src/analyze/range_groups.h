// range_groups.h: which group of an average each range belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <marey/averages.h>
#include <marey/trace.h>

namespace marey {

/// Several sites may have equal keys: name, whether they are annotations and, if wanted, overload. Views live
/// as long as the trace.
struct SiteKeys {
    std::vector<std::uint32_t> of_site;  ///< key
    std::vector<std::uint32_t> name_of_site;
    std::uint32_t size = 0;

    SiteKeys(const Trace& trace, bool by_overload, GroupBy by = GroupBy::Name);
};

/// "ProfilerStep*" for every "ProfilerStep#n"; other names are themselves.
std::string_view group_name(std::string_view name) noexcept;
/// Marked by hand.
bool is_user_annotation(Scope scope) noexcept;
/// The rank or node that the process of a row of the thread table has; -1: none.
std::int32_t node_of_thread(const Trace& trace, Row thread) noexcept;

class RangeGroups {
  public:
    /// Of a range that is not counted: the rest of the number is the group of the range that it is merged
    /// into.
    static constexpr std::uint32_t kMerged = 1u << 31;

    RangeGroups(const Trace& trace, const AverageOptions& options, bool each_range);

    std::uint32_t operator[](Row range) const noexcept { return of_range_[range]; }
    std::uint32_t size() const noexcept { return size_; }
    /// Rows of the track table: those of equal node, device and thread stand together.
    const std::vector<Row>& track_order() const noexcept { return order_; }

  private:
    void order_tracks(bool by_thread);
    void assign(const AverageOptions& options);
    void assign_each();

    const Trace& trace_;
    std::vector<Row> order_;
    std::vector<bool>
        starts_class_;  ///< per place in order_: its node or device, or thread if wanted, is new
    std::vector<std::uint8_t> is_repeated_;  ///< per range; empty: none is
    std::unique_ptr<std::uint32_t[]> of_range_;
    std::uint32_t size_ = 0;
};

}  // namespace marey
