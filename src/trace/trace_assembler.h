// trace_assembler.h: builds a trace from events in any order, for importers and event lists.
#pragma once

#include <unordered_map>

#include <marey/trace.h>

#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {

/// A place for ranges: the calls of a thread, the queue of a device, or ranges that only span time.
struct Lane {
    Row thread = 0;  ///< row of the thread table
    TrackKind kind = TrackKind::Thread;
    Device device{};
    std::int64_t stream = -1;
    StringId name = 0;  ///< 0: the thread's
};

/// Takes events in any order, nests the ranges of each lane by their times, and returns the finished trace.
///
/// Nesting, as PyTorch does it: in order of (start, longer first, order of adding), a range is the child of
/// the nearest one before it that contains it completely, and ranges that it outlasts get no more children:
/// [0,2], [1,2], [1,3] has one edge, [1,2] under [1,3]. A range that would cross others on its track goes,
/// with the ranges inside it, to another track of its lane (TrackKind::Overlap) and keeps its parent. Ranges
/// of async lanes have no parents; those that overlap go to several async tracks.
class TraceAssembler {
  public:
    /// Returned by add_range: its number in order of adding. Details, values and links refer to ranges by it.
    using RangeId = std::uint32_t;

    TraceAssembler();

    StringId string(std::string_view text) { return strings_.intern(text); }
    /// Valid until the next string.
    const std::string& text(StringId id) const { return data_->strings[id]; }
    /// The name of an imported event: demangled, with the symbol beside it if it is a C++ symbol. Each
    /// distinct name is checked once.
    SiteInfo named(std::string_view name);
    /// A row of the site table; equal sites share one.
    std::uint32_t site(const SiteInfo& info);
    Row add_process(const ProcessInfo& info);
    Row add_thread(const ThreadInfo& info);
    std::uint32_t add_lane(const Lane& lane);

    /// Times in nanoseconds; a negative duration becomes 0 and is counted as the thread's `clamped`
    /// and in the problem of that name.
    /// Throws marey::Error when there are more ranges than a trace can hold (2^32 - 1).
    RangeId add_range(std::uint32_t lane, std::int64_t start_ns, std::int64_t duration_ns, std::uint32_t site,
                      std::uint16_t flags = 0);
    void add_flags(RangeId range, std::uint16_t flags) {
        ranges_[range].flags |= static_cast<std::uint8_t>(flags);
    }
    /// Values, links and details may be given in any order and before their ranges. Values of several calls
    /// for one range are appended.
    void add_values(RangeId range, std::span<const Argument> values);
    void add_detail(RangeId range, std::int64_t sequence, std::uint32_t forward_thread, std::uint64_t id,
                    std::uint64_t call = 0, std::uint32_t part = 0);
    void add_detail(RangeId range, const RangeDetail& detail) {
        add_detail(range, detail.sequence, detail.forward_thread, detail.id, detail.call, detail.part);
    }
    /// Makes a range a sum of calls; it must have the flag kSampled.
    void add_calls(RangeId range, std::uint64_t calls);
    /// An arrow that is given twice is added once.
    void add_link(RangeId from, RangeId to, LinkKind kind, StringId name = 0);

    /// One end of an arrow whose range is identified by time and place.
    struct LinkEnd {
        static constexpr RangeId kNoRange = ~RangeId{0};
        RangeId range = kNoRange;  ///< this one, or else ...
        std::uint32_t lane = 0;
        std::int64_t time_ns = 0;  ///< ... the innermost range of the lane that is open then, or ...
        bool is_next = false;      ///< ... the first one that starts then or later
    };
    /// An arrow with an end that has no range is counted in the problem "loose_arrow".
    void add_link(const LinkEnd& from, const LinkEnd& to, LinkKind kind, StringId name = 0);

    void add_instant(Row thread, std::int64_t time_ns, std::uint32_t site,
                     std::span<const Argument> values = {});
    void add_counter(Row thread, std::int64_t time_ns, std::uint32_t site, double value);
    void add_memory(Row thread, const AllocationReport& report) { add_report(*data_, thread, report); }

    /// Stores items for a list's ListItems to refer to; likewise an array with its extents (sizes, then
    /// strides if it has them). The info's own first_extent is set here.
    ListItems add_list(std::span<const Argument> items);
    Row add_array(ArrayInfo info, std::span<const std::int64_t> extents);

    /// Which part of the events was added, 0 to 1: memory for the rest is reserved at once, so that it need
    /// not be moved later.
    void expect(double fraction);

    /// Adds nothing if `count` is 0.
    void add_problem(std::string code, std::string text, std::uint64_t count = 1);
    /// A task whose track would be this lane: its process is that of the lane's thread.
    void add_task(std::uint32_t lane, std::uint64_t call, StringId name) {
        tasks_.push_back({lane, call, name});
    }
    StringId name_of_site(std::uint32_t site) const { return data_->sites[site].name; }
    void add_metadata(std::string key, std::string json);
    /// Without it the window contains everything that was added.
    void set_window(std::int64_t start_ns, std::int64_t end_ns);

    // For values that come late or change: valid until finish().
    ProcessInfo& process(Row row) { return data_->processes[row]; }
    ThreadInfo& thread(Row row) { return data_->threads[row]; }
    Lane& lane(std::uint32_t index) { return lanes_[index]; }
    WindowInfo& window() { return data_->window; }
    ClockInfo& clock() { return data_->clock; }
    std::size_t range_count() const noexcept { return ranges_.size(); }

    /// Ends the assembly; the assembler is empty afterwards and may not be used again.
    Trace finish();
    /// After finish(): the row of a range.
    Row row_of(RangeId range) const { return row_of_[range]; }

  private:
    struct Added {
        std::int64_t start_ns;
        std::int64_t duration_ns;
        std::uint32_t site;
        std::uint32_t lane : 24;
        std::uint32_t flags : 8;
    };
    static constexpr std::uint32_t kMaxLanes = (1u << 24) - 1;
    struct LooseLink {
        LinkEnd from, to;
        LinkKind kind;
        StringId name;
    };
    struct LaneTracks {
        std::uint32_t first, count;
    };
    struct SiteHash {
        std::size_t operator()(const SiteInfo& site) const noexcept;
    };

    void fix_window();
    void place_ranges();
    void sort_by_time(std::span<RangeId> members) const;
    void place_lane(const Lane& lane, std::span<const RangeId> members);
    void add_track(const Lane& lane, std::size_t number, Row first, Row count);
    void add_row(RangeId id, Row parent, std::uint32_t depth, bool is_async);
    void fill_self_times();
    void place_values();
    void bind_links();
    Row bind(const LinkEnd& end) const;
    Row next_at(const TrackInfo& track, std::int64_t time_ns) const;
    void place_links();
    void sort_points();

    std::shared_ptr<TraceData> data_;
    StringPool strings_;
    std::unordered_map<SiteInfo, std::uint32_t, SiteHash> sites_;
    std::unordered_map<StringId, StringId> readable_;  ///< for each name that looked like a symbol
    std::vector<Lane> lanes_;
    std::vector<Added> ranges_;
    std::vector<Row> row_of_;  ///< of each range
    std::vector<LooseLink> loose_links_;
    std::vector<LaneTracks> lane_tracks_;
    bool has_window_ = false;
    std::vector<TaskInfo> tasks_;  ///< `process`: a lane
};

}  // namespace marey
