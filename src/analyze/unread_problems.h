// unread_problems.h: the problems of a trace that mean that something is missing in it.
#pragma once

#include <algorithm>
#include <string_view>

namespace marey {

/// Problem codes of readers for parts of a file that are truncated, missing or damaged and were not read. All
/// other codes are remarks: events dropped by a session's size limit or policy, corrected values, and valid
/// data of kinds that Marey does not show.
inline constexpr std::string_view kUnreadProblems[] = {
    // captures
    "truncated", "damaged_chunk", "unknown_records", "damaged_values", "damaged_memory", "unknown_site",
    "remote_damaged", "names_lost",
    // Chrome JSON, Perfetto protobuf
    "cut_short", "malformed_event", "unread_series", "damaged", "damaged_packets", "lost_packets",
    "stateless_events", "missing_names",
    // device profiler databases
    "unsettled", "unknown_name"};

/// Whether ranges are missing for this reason: they were not read, or not recorded.
inline bool is_loss(std::string_view code) noexcept {
    constexpr std::string_view kUnrecorded[] = {
        "dropped",      "dropped_in_handler",   "overwritten",        "size_limit_reached",
        "no_space",     "descriptor_closed",    "not_recorded",       "left_out",
        "unread_spans", "python_calls_missing", "python_calls_ended", "python_c_calls_missing"};
    const auto has = [&](const auto& codes) { return std::ranges::find(codes, code) != std::end(codes); };
    return has(kUnreadProblems) || has(kUnrecorded);
}

}  // namespace marey
