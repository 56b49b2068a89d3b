// range_stack.h: the call stack that is recorded with a range or derived from the enclosing ranges.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <marey/trace.h>

#include "trace/torch_names.h"

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
    explicit RangeStacks(const Trace& trace) : trace_(trace) {
        for (StringId id = 1; id < trace.string_count() && key_ == 0; ++id) {
            if (trace.string(id) == "Call stack") key_ = id;
        }
        const RangeColumns ranges = trace.ranges();
        const std::span<const SiteInfo> sites = trace.sites();
        bool has_backward = false;
        for (const SiteInfo& site : sites) has_backward |= site.scope == Scope::BackwardFunction;
        function_around_.resize(ranges.size(), kNoRow);
        backward_around_.resize(has_backward ? ranges.size() : 0, kNoRow);
        find_callers();
        for (Row row = 0; row < ranges.size(); ++row) {
            const Row parent = ranges.parent[row];
            if (parent != kNoRow) {
                const bool is_function = is_stack_entry(sites[ranges.site[parent]].scope);
                function_around_[row] = is_function ? parent : function_around_[parent];
                if (!is_called_.empty()) is_called_[row] = !is_function && is_called_[parent];
            }
            if (!has_backward) continue;
            if (sites[ranges.site[row]].scope == Scope::BackwardFunction) {
                backward_around_[row] = row;
            } else if (parent != kNoRow) {
                backward_around_[row] = backward_around_[parent];
            }
        }
        if (has_backward) find_forward_ranges();
    }

    /// Calls visit(std::string_view) for at most `limit` entries.
    void visit(Row range, std::size_t limit, auto visit) const {
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
    static void add_entries(std::string_view text, std::vector<std::string_view>& entries) {
        while (!text.empty()) {
            const std::size_t end = std::min(text.find_first_of(";\n"), text.size());
            std::string_view entry = text.substr(0, end);
            while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
            if (!entry.empty()) entries.push_back(entry);
            text.remove_prefix(std::min(end + 1, text.size()));
        }
    }

    std::vector<std::string_view> carried_stack(Row range) const {
        if (key_ == 0) return {};
        std::vector<std::string_view> entries;
        for (const Argument& value : trace_.range_arguments(range)) {
            if (!entries.empty()) break;
            if (value.key != key_ || value.role != ArgumentRole::Keyword) continue;
            if (value.kind == ValueKind::String) add_entries(trace_.string(value.string), entries);
            for (const Argument& item : items_of(trace_, value)) {
                if (item.kind == ValueKind::String) entries.push_back(trace_.string(item.string));
            }
        }
        return entries;
    }
    /// The range whose stack applies; kNoRow: a backward range whose forward range is missing.
    Row source_of(Row range) const noexcept {
        if (backward_around_.empty() || backward_around_[range] == kNoRow) return range;
        const auto found = forward_of_.find(backward_around_[range]);
        return found == forward_of_.end() ? range : found->second;
    }
    void find_forward_ranges() {
        const RangeColumns ranges = trace_.ranges();
        using Key = std::tuple<Row, std::uint32_t, std::int64_t>;  // process, logical thread id, sequence
        const auto thread_of = [&](Row range) -> const ThreadInfo& {
            return trace_.threads()[trace_.tracks()[trace_.track_of(range)].thread];
        };
        std::map<Key, Row> first;
        for (const RangeDetail& detail : trace_.range_details()) {
            if (detail.sequence < 0 || backward_around_[detail.range] != kNoRow) continue;
            const ThreadInfo& thread = thread_of(detail.range);
            Row& known =
                first.try_emplace({thread.process, thread.id, detail.sequence}, detail.range).first->second;
            if (ranges.start_ns[detail.range] < ranges.start_ns[known]) known = detail.range;
        }
        for (const RangeDetail& detail : trace_.range_details()) {
            if (backward_around_[detail.range] != detail.range) continue;
            if (detail.sequence < 0 || detail.forward_thread == 0) continue;
            const auto found =
                first.find({thread_of(detail.range).process, detail.forward_thread, detail.sequence});
            forward_of_[detail.range] = found == first.end() ? kNoRow : found->second;
        }
    }
    /// Sets the enclosing functions for the outermost ranges of threads that work for another thread.
    void find_callers() {
        const RangeColumns ranges = trace_.ranges();
        using Key = std::pair<Row, std::uint32_t>;  // process, logical thread id
        std::map<Key, const TrackInfo*> tracks;
        for (const TrackInfo& track : trace_.tracks()) {
            if (track.kind != TrackKind::Thread || track.device.type != DeviceType::Cpu) continue;
            const ThreadInfo& thread = trace_.threads()[track.thread];
            tracks.try_emplace({thread.process, thread.id}, &track);
        }
        for (const RangeDetail& detail : trace_.range_details()) {
            if (detail.forward_thread == 0 || ranges.parent[detail.range] != kNoRow) continue;
            const TrackInfo& own = trace_.tracks()[trace_.track_of(detail.range)];
            const auto found = tracks.find({trace_.threads()[own.thread].process, detail.forward_thread});
            if (found == tracks.end() || found->second == &own) continue;
            const Row caller = function_at(*found->second, ranges.start_ns[detail.range]);
            if (caller == kNoRow) continue;
            if (is_called_.empty()) is_called_.resize(ranges.size());
            function_around_[detail.range] = caller;
            is_called_[detail.range] = true;
        }
        if (is_called_.empty()) return;
        for (const TrackInfo& track : trace_.tracks()) lend_callers(track);
    }
    // Gradient accumulation names no thread: it runs for the same thread as the engine's previous work.
    void lend_callers(const TrackInfo& track) {
        const RangeColumns ranges = trace_.ranges();
        Row caller = kNoRow;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if (ranges.parent[row] != kNoRow) continue;
            if (is_called_[row]) {
                caller = function_around_[row];
            } else if (caller != kNoRow && is_engine_range(trace_.range_name(row)) &&
                       ranges.start_ns[caller] + ranges.duration_ns[caller] >= ranges.start_ns[row]) {
                function_around_[row] = caller;
                is_called_[row] = true;
            }
        }
    }
    Row function_at(const TrackInfo& track, std::int64_t time_ns) const {
        const RangeColumns ranges = trace_.ranges();
        const auto begin = ranges.start_ns.begin() + track.first_range;
        const auto after = std::upper_bound(begin, begin + track.range_count, time_ns);
        if (after == begin) return kNoRow;
        Row row = track.first_range + static_cast<Row>(after - begin) - 1;
        while (row != kNoRow && (ranges.start_ns[row] + ranges.duration_ns[row] < time_ns ||
                                 !is_stack_entry(trace_.sites()[ranges.site[row]].scope)))
            row = ranges.parent[row];
        return row;
    }

    const Trace& trace_;
    StringId key_ = 0;                  ///< "Call stack"; 0: no range has one
    std::vector<Row> function_around_;  ///< per range: the nearest enclosing Python or C function
    std::vector<bool> is_called_;       ///< per range: that function is on another thread; or empty
    std::vector<Row> backward_around_;  ///< per range: the nearest backward range, itself included; or empty
    std::unordered_map<Row, Row>
        forward_of_;  ///< of backward ranges with a forward range; kNoRow: it is missing
};

}  // namespace marey
