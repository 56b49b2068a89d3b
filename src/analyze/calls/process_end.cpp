// process_end.cpp: how the process of a trace ended, and what it was doing then.
#include <marey/process_end.h>

#include <algorithm>
#include <charconv>

namespace marey {
namespace {

std::optional<int> number_fact(const Trace& trace, std::string_view key) {
    for (const MetadataInfo& fact : trace.metadata()) {
        if (fact.key != key) continue;
        const std::string& text = fact.json;
        int number = 0;
        if (std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc()) return number;
    }
    return std::nullopt;
}

}  // namespace

std::optional<ProcessEnd> process_end(const Trace& trace) {
    const std::optional<int> exit_code = number_fact(trace, "process_exit_code");
    const std::optional<int> signal = number_fact(trace, "process_exit_signal");
    if (!exit_code && !signal) return std::nullopt;
    return ProcessEnd{exit_code.value_or(0), signal.value_or(0)};
}

std::vector<OpenStack> open_stacks(const Trace& trace) {
    std::vector<OpenStack> stacks;
    const RangeColumns ranges = trace.ranges();
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Thread) continue;
        OpenStack stack{track.thread, {}};
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if ((ranges.flags[row] & kUnfinished) != 0) stack.ranges.push_back(row);
        }
        if (stack.ranges.empty()) continue;
        std::ranges::reverse(stack.ranges);
        stacks.push_back(std::move(stack));
    }
    return stacks;
}

}  // namespace marey
