// range_groups.h: which group of an average each range belongs to.
#pragma once

#include <functional>
#include <memory>

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

    /// The groups of a track's ranges.
    class OfTrack {
      public:
        OfTrack(const std::uint32_t* of_range, const std::uint32_t* of_site,
                const std::uint32_t* site) noexcept
            : of_range_(of_range), of_site_(of_site), site_(site) {}
        std::uint32_t operator[](Row range) const noexcept {
            return of_range_ != nullptr ? of_range_[range] : of_site_[site_[range]];
        }
        /// Whether all ranges of a site are in one group; then none is merged.
        bool follow_sites() const noexcept { return of_range_ == nullptr; }

      private:
        const std::uint32_t* of_range_;  ///< null: they follow from the sites
        const std::uint32_t* of_site_;
        const std::uint32_t* site_;
    };
    OfTrack of_track(Row track) const noexcept {
        return {of_range_.get(), of_site_.data() + of_site_.size() / classes_ * class_of_track_[track],
                trace_.ranges().site.data()};
    }
    std::uint32_t operator[](Row range) const noexcept {
        return of_track(of_range_ != nullptr || classes_ == 1 ? 0 : trace_.track_of(range))[range];
    }
    /// One more than the largest group. Some groups may have no range, until drop_empty() is called.
    std::uint32_t size() const noexcept { return size_; }
    /// Numbers the groups again, without those for which is_empty(group).
    void drop_empty(const std::function<bool(std::uint32_t)>& is_empty);
    /// Rows of the track table, grouped by node, device and thread.
    const std::vector<Row>& track_order() const noexcept { return order_; }

  private:
    void order_tracks(bool by_thread, bool by_process);
    void assign(const AverageOptions& options);
    void assign_sites(const SiteKeys& keys);
    void assign_each();

    const Trace& trace_;
    std::vector<Row> order_;
    /// Per track: the number of its class (node, device and, if requested, thread). Classes are in the order
    /// of order_.
    std::vector<std::uint32_t> class_of_track_;
    std::uint32_t classes_ = 0;
    std::vector<std::uint8_t> is_repeated_;  ///< per range; empty: none
    /// The groups of the ranges; null: a group consists of the sites with its key, for each class.
    std::unique_ptr<std::uint32_t[]> of_range_;
    std::vector<std::uint32_t> of_site_;  ///< per class and site
    std::uint32_t size_ = 0;
};

}  // namespace marey
