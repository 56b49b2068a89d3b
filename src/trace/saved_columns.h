// saved_columns.h: the columns of a saved trace. A single list for its writer and its reader; the ids are
// part of the format (docs/formats/capture.md) and never change their meaning.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/column_codec.h"
#include "trace/trace_data.h"

namespace marey {

/// A column of a table: its member in a row, and the best encoding of its numbers.
template <class Member>
struct SavedField {
    std::uint32_t column;
    Member member;
    NumberStyle style;
};
/// The same if the model has the column as a separate vector.
template <class Vector>
struct SavedVector {
    std::uint32_t column;
    Vector& values;
    NumberStyle style;
};

namespace saved {

enum Table : std::uint32_t {
    kStrings = 1,
    kSites,
    kProcesses,
    kThreads,
    kTracks,
    kRanges,
    kInstants,
    kCounters,
    kArguments,
    kListItems,
    kRangeArguments,
    kInstantArguments,
    kArrays,
    kArrayExtents,
    kRangeDetails,
    kLinks,
    kMemory,
    kMetadata,
    kProblems,
    kCosts,
    kClock,
    kWindow,
    kTasks,
};

/// Columns of the range table, see range_codec.h.
enum RangeColumn : std::uint32_t {
    kDepth = 1,
    kParent,
    kSite,
    kFlags,
    kGaps,
    kHeads,
    kDurations,
    kTails,
    kSelf
};

/// Columns of values in addition to those in visit_values: the value itself, for lists their first item; and
/// their length.
inline constexpr std::uint32_t kValue = 6;
inline constexpr std::uint32_t kItemCount = 7;

inline constexpr NumberStyle kPlain{ColumnForm::Varints, false};
inline constexpr NumberStyle kRising{ColumnForm::Varints, true};
inline constexpr NumberStyle kTimes{ColumnForm::Planes, true};
inline constexpr NumberStyle kWide{ColumnForm::Planes, false};

template <class Member>
SavedField<Member> field(std::uint32_t column, Member member, NumberStyle style = kPlain) {
    return {column, member, style};
}
template <class Vector>
SavedVector<Vector> vector(std::uint32_t column, Vector& values, NumberStyle style = kPlain) {
    return {column, values, style};
}

// If this fails: the model has a new field. Give it a column below, and a line in find_difference().
static_assert(sizeof(SiteInfo) == 28 && sizeof(ProcessInfo) == 32 && sizeof(ThreadInfo) == 72);
static_assert(sizeof(TrackInfo) == 40 && sizeof(ArgumentSlice) == 12 && sizeof(Argument) == 16);
static_assert(sizeof(ArrayInfo) == 48 && sizeof(RangeDetail) == 40 && sizeof(LinkInfo) == 16);
static_assert(sizeof(Device) == 8 &&
              sizeof(TraceData) == 39 * sizeof(std::vector<int>) + sizeof(ClockInfo) + sizeof(WindowInfo));

template <class Data, class Visitor>
void visit_window(Data& data, Visitor& visit) {
    using W = WindowInfo;
    visit.row(kWindow, data.window, field(1, &W::session_name), field(2, &W::session_id),
              field(3, &W::start_ns), field(4, &W::end_ns), field(5, &W::finished), field(6, &W::max_bytes),
              field(7, &W::policy), field(8, &W::ceiling_reached), field(9, &W::log_bytes));
}

template <class Values, class Visitor>
void visit_values(Table table, Values& values, Visitor& visit) {
    visit.rows(table, values, field(1, &Argument::key), field(2, &Argument::kind), field(3, &Argument::role),
               field(4, &Argument::truncated), field(5, &Argument::left_out));
}

template <class Data, class Visitor>
void visit_names_and_places(Data& data, Visitor& visit) {
    visit.rows(kSites, data.sites, field(1, &SiteInfo::name, kRising), field(2, &SiteInfo::file),
               field(3, &SiteInfo::line), field(4, &SiteInfo::scope), field(5, &SiteInfo::overload),
               field(6, &SiteInfo::category), field(7, &SiteInfo::raw_name));
    visit.rows(kProcesses, data.processes, field(1, &ProcessInfo::pid), field(2, &ProcessInfo::node),
               field(3, &ProcessInfo::name), field(4, &ProcessInfo::host),
               field(5, &ProcessInfo::command_line), field(6, &ProcessInfo::realtime_offset_ns));
    using T = ThreadInfo;
    visit.rows(kThreads, data.threads, field(1, &T::process), field(2, &T::id, kRising),
               field(3, &T::os_tid, kRising), field(4, &T::name, kRising), field(5, &T::birth_ns, kRising),
               field(6, &T::death_ns), field(7, &T::dropped), field(8, &T::overwritten_chunks),
               field(9, &T::resyncs), field(10, &T::clamped));
    const auto type = [](auto& track) -> auto& {
        return track.device.type;
    };
    const auto index = [](auto& track) -> auto& {
        return track.device.index;
    };
    visit.rows(kTracks, data.tracks, field(1, &TrackInfo::kind), field(2, &TrackInfo::thread, kRising),
               field(3, &TrackInfo::name, kRising), field(4, &TrackInfo::first_range, kRising),
               field(5, &TrackInfo::range_count), field(6, type), field(7, index),
               field(8, &TrackInfo::stream));
}

template <class Data, class Visitor>
void visit_points(Data& data, Visitor& visit) {
    visit.vectors(kInstants, vector(1, data.instant_time_ns, kTimes), vector(2, data.instant_site),
                  vector(3, data.instant_thread, kRising));
    visit.vectors(kCounters, vector(1, data.counter_time_ns, kTimes), vector(2, data.counter_site),
                  vector(3, data.counter_thread, kRising), vector(4, data.counter_value, kWide));
    visit.vectors(kMemory, vector(1, data.memory_time_ns, kTimes), vector(2, data.memory_thread, kRising),
                  vector(3, data.memory_address, kWide), vector(4, data.memory_bytes, kWide),
                  vector(5, data.memory_total_allocated, kTimes),
                  vector(6, data.memory_total_reserved, kTimes), vector(9, data.memory_out_of_memory));
    const auto type = [](auto& device) -> auto& {
        return device.type;
    };
    const auto index = [](auto& device) -> auto& {
        return device.index;
    };
    visit.rows(kMemory, data.memory_device, field(7, type), field(8, index));
}

template <class Data, class Visitor>
void visit_details(Data& data, Visitor& visit) {
    const auto slices = [&](Table table, auto& index) {
        visit.rows(table, index, field(1, &ArgumentSlice::row, kRising),
                   field(2, &ArgumentSlice::first, kRising), field(3, &ArgumentSlice::count));
    };
    slices(kRangeArguments, data.range_arguments);
    slices(kInstantArguments, data.instant_arguments);
    const auto type = [](auto& array) -> auto& {
        return array.device.type;
    };
    const auto index = [](auto& array) -> auto& {
        return array.device.index;
    };
    using A = ArrayInfo;
    visit.rows(kArrays, data.arrays, field(1, &A::dtype), field(2, &A::layout), field(3, &A::is_defined),
               field(4, &A::has_strides), field(5, type), field(6, index),
               field(7, &A::first_extent, kRising), field(8, &A::dimensions), field(9, &A::storage, kWide),
               field(10, &A::storage_id, kWide), field(11, &A::object, kWide), field(12, &A::access));
    visit.vectors(kArrayExtents, vector(1, data.array_extents));
    visit.rows(kRangeDetails, data.range_details, field(1, &RangeDetail::range, kRising),
               field(2, &RangeDetail::sequence, kRising), field(3, &RangeDetail::forward_thread),
               field(4, &RangeDetail::id, kRising), field(5, &RangeDetail::call, kRising),
               field(6, &RangeDetail::part));
    visit.rows(kLinks, data.links, field(1, &LinkInfo::from, kRising), field(2, &LinkInfo::to, kRising),
               field(3, &LinkInfo::kind), field(4, &LinkInfo::name));
    visit.rows(kTasks, data.tasks, field(1, &TaskInfo::process), field(2, &TaskInfo::call, kRising),
               field(3, &TaskInfo::name));
}

template <class Data, class Visitor>
void visit_facts(Data& data, Visitor& visit) {
    visit.rows(kMetadata, data.metadata, field(1, &MetadataInfo::key), field(2, &MetadataInfo::json));
    visit.rows(kProblems, data.problems, field(1, &ProblemInfo::code), field(2, &ProblemInfo::text),
               field(3, &ProblemInfo::count));
    visit.rows(kCosts, data.costs, field(1, &CostInfo::kind), field(2, &CostInfo::ns));
    using C = ClockInfo;
    visit.row(kClock, data.clock, field(1, &C::source), field(2, &C::ticks_per_second), field(3, &C::pairs),
              field(4, &C::max_error_ns), field(5, &C::extrapolated));
}

/// All tables except strings, ranges and the values of arguments, which have their own encodings.
template <class Data, class Visitor>
void visit_tables(Data& data, Visitor& visit) {
    visit_window(data, visit);
    visit_names_and_places(data, visit);
    visit_points(data, visit);
    visit_values(kArguments, data.arguments, visit);
    visit_values(kListItems, data.list_items, visit);
    visit_details(data, visit);
    visit_facts(data, visit);
}

}  // namespace saved

}  // namespace marey
