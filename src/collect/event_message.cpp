// event_message.cpp: events of a trace as the bytes of a saved trace, for a session in another process.
#include <unordered_set>
#include <vector>

#include <marey/error.h>
#include <marey/remote.h>

#include "trace/row_selection.h"
#include "trace/saved_trace.h"
#include "trace/used_names.h"

namespace marey {
namespace {

/// Later times are rejected, so that sums of two do not overflow.
constexpr std::int64_t kLatestNs = std::int64_t{1} << 60;

/// Clears the values that no row has, so that they do not leave the process.
void clear_unused_values(TraceData& data) {
    RowMask arguments(data.arguments.size());
    RowMask items(data.list_items.size());
    RowMask arrays(data.arrays.size());
    RowMask extents(data.array_extents.size());
    const auto fill = [](RowMask& mask, std::uint32_t first, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) mask[first + i] = true;
    };
    const auto use = [&](const Argument& value) {
        if (value.kind == ValueKind::List) fill(items, value.list.first, value.list.count);
        if (value.kind == ValueKind::Array) arrays[value.array] = true;
    };
    const auto keep = [](auto& rows, const RowMask& mask, auto use_row) {
        for (std::size_t row = rows.size(); row-- != 0;) {
            if (mask[row]) {
                use_row(rows[row]);
            } else {
                rows[row] = {};
            }
        }
    };
    for (const auto* const slices : {&data.range_arguments, &data.instant_arguments}) {
        for (const ArgumentSlice& slice : *slices) fill(arguments, slice.first, slice.count);
    }
    keep(data.arguments, arguments, use);
    keep(data.list_items, items, use);  // backwards: a list's items come before it
    keep(data.arrays, arrays, [&](const ArrayInfo& array) {
        fill(extents, array.first_extent, array.dimensions * (array.has_strides ? 2 : 1));
    });
    keep(data.array_extents, extents, [](std::int64_t) {});
}

Trace selected(const Trace& trace, const EventFilter& filter) {
    const std::shared_ptr<TraceData> data = changeable_data(trace);
    const std::unordered_set<std::string> names(filter.names.begin(), filter.names.end());
    const RowMask sites = rows_where(data->sites, [&](const SiteInfo& site) {
        return filter.scopes.contains(site.scope) &&
               (names.empty() || names.contains(data->strings[site.name]));
    });
    std::vector<Row> removed;
    for (Row row = 0; row < data->range_site.size(); ++row) {
        if (!sites[data->range_site[row]] || (filter.ranges && !filter.ranges(row))) removed.push_back(row);
    }
    remove_ranges(*data, removed);
    keep_tracks(*data, rows_where(data->tracks, [](const TrackInfo& row) { return row.range_count != 0; }));
    const auto is_wanted = [&](std::uint32_t site) { return filter.marks && sites[site]; };
    keep_instants(*data, rows_where(data->instant_site, is_wanted));
    keep_rows<ModelTable::Counters>(*data, rows_where(data->counter_site, is_wanted));
    if (!filter.memory) keep_rows<ModelTable::Memory>(*data, RowMask(data->memory_thread.size()));
    clear_unused_values(*data);
    drop_unused_names(*data, 0);
    return Trace(data);
}

}  // namespace

std::string pack_events(const Trace& trace, const EventFilter& filter) {
    const bool is_whole = filter.scopes.bits() == ScopeSet::all().bits() && filter.names.empty() &&
                          !filter.ranges && filter.marks && filter.memory;
    const std::vector<std::byte> bytes =
        pack_trace((is_whole ? with_own_ranges(trace) : selected(trace, filter)).data());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Trace unpack_events(std::string_view bytes) {
    Trace trace(unpack_trace(std::as_bytes(std::span(bytes)), "event message"));
    if (trace.window().start_ns < -kLatestNs || trace.window().end_ns > kLatestNs)
        throw Error("event message: its window is not a valid time");
    return trace;
}

}  // namespace marey
