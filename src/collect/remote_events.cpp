// remote_events.cpp: the traces in event messages: placed in time, cut to the window, linked to their calls.
#include "collect/remote_events.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <marey/error.h>
#include <marey/remote.h>

#include "collect/problem_list.h"
#include "trace/part_flags.h"
#include "trace/row_selection.h"
#include "trace/string_pool.h"
#include "trace/trace_join.h"

namespace marey {

using namespace detail;

namespace {

constexpr std::size_t kMaxPrefixBytes = 1024;  // a recorder allows no more

class RemoteMessages {
  public:
    explicit RemoteMessages(ReplayedLog& state) : state_(state) {}

    void add() {
        for (const JournalMessage& message : state_.journal.messages) {
            try {
                place(unpack_events(
                          {reinterpret_cast<const char*>(message.bytes.data()), message.bytes.size()}),
                      message.record);
            } catch (const Error&) {
                ++damaged_;
            }
        }
        // Messages of one thread continue its track if they are in the order of their times.
        std::stable_sort(placed_.begin(), placed_.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        std::vector<AddedTrace> added;
        for (auto& [start_ns, trace] : placed_) added.push_back(std::move(trace));
        if (!added.empty()) {
            state_.data =
                changeable_data(add_traces(Trace(std::exchange(state_.data, nullptr)), std::move(added)));
            mark_parts(*state_.data);  // the earlier parts of a call may be in another message, or cut off
        }
        add_problems();
    }

  private:
    void place(Trace trace, const RemoteEventsRecord& record) {
        const std::int64_t start_ns = trace.window().start_ns;
        const std::int64_t shift_ns = shift_of(trace.window(), record);
        const std::shared_ptr<TraceData> data = changeable_data(std::move(trace));
        add_exchange(*data, record);
        if (record.node >= 0 && !data->processes.empty()) data->processes[0].node = record.node;
        take_facts(*data, shift_ns);
        cut(*data);
        if (record.prefix < state_.data->strings.size())
            add_prefix(*data, state_.data->strings[record.prefix].substr(0, kMaxPrefixBytes));
        AddedTrace added{.trace = Trace(data), .caller = find_caller(record)};
        if (shift_ns != 0)
            added.move.own = [shift_ns](std::int64_t ns) {
                constexpr std::int64_t kTraceTimes = std::int64_t{1} << 62;  // of any trace
                return std::clamp(ns + shift_ns, -kTraceTimes, kTraceTimes);
            };
        placed_.emplace_back(start_ns + shift_ns, std::move(added));
    }

    // The offset to add to the sender's times. Another host's clock is known only through the call: the
    // request is assumed to take as long as the answer, so both middles are the same moment.
    std::int64_t shift_of(const WindowInfo& window, const RemoteEventsRecord& record) {
        if ((record.head.reserved & kRemoteClockIsOurs) != 0) return 0;
        const std::int64_t end_ns = state_.fit->to_ns(record.call_end);
        if (record.call_start == 0) {
            ++guessed_;
            return end_ns - window.end_ns;
        }
        return std::midpoint(state_.fit->to_ns(record.call_start), end_ns) -
               std::midpoint(window.start_ns, window.end_ns);
    }

    // A call to another host is an exchange: it began before the sender's period and ended after it. A period
    // that is longer than the call began earlier, and proves nothing.
    void add_exchange(const TraceData& sender, const RemoteEventsRecord& record) {
        if ((record.head.reserved & kRemoteClockIsOurs) != 0 || record.call_start == 0) return;
        const std::int64_t sent_ns = state_.fit->to_ns(record.call_start);
        const std::int64_t received_ns = state_.fit->to_ns(record.call_end);
        const std::int64_t arrived_ns = sender.window.start_ns, answered_ns = sender.window.end_ns;
        if (sender.processes.empty() || arrived_ns > answered_ns ||
            answered_ns - arrived_ns > received_ns - sent_ns)
            return;
        state_.data->clock_exchanges.push_back({0, strings_.intern(sender.strings[sender.processes[0].host]),
                                                sent_ns, arrived_ns, answered_ns, received_ns});
    }

    /// The window and the facts about the recording are those of this session.
    void take_facts(TraceData& data, std::int64_t shift_ns) const {
        const TraceData& own = *state_.data;
        data.window = own.window;
        data.window.start_ns -= shift_ns;
        data.window.end_ns -= shift_ns;
        data.window.log_bytes = 0;
        data.clock = own.clock;
        data.clock.pairs = 0;
        data.costs.clear();
        data.host_clocks.clear();
        data.clock_exchanges.clear();
        std::erase_if(data.metadata, [&](const MetadataInfo& fact) {
            return std::any_of(own.metadata.begin(), own.metadata.end(),
                               [&](const MetadataInfo& known) { return known.key == fact.key; });
        });
        std::erase_if(data.problems, [](const ProblemInfo& problem) { return problem.code == "crashed"; });
    }

    /// Leaves out the events outside the window, and marks the ranges that exceed it.
    void cut(TraceData& data) {
        const std::int64_t start_ns = data.window.start_ns, end_ns = data.window.end_ns;
        std::vector<Row> removed;
        for (Row row = 0; row < data.range_start_ns.size(); ++row) {
            const std::int64_t range_end_ns = data.range_start_ns[row] + data.range_duration_ns[row];
            std::uint16_t& flags = data.range_flags[row];
            flags |= kRemote;
            if (data.range_start_ns[row] < start_ns) flags |= kBeganBefore;
            if (range_end_ns < start_ns || data.range_start_ns[row] > end_ns) {
                removed.push_back(row);
            } else if (range_end_ns > end_ns) {
                flags |= kUnfinished;
                data.range_duration_ns[row] = end_ns - data.range_start_ns[row];
            }
        }
        outside_ += removed.size();
        remove_ranges(data, removed);
        keep_tracks(data, rows_where(data.tracks, [](const TrackInfo& row) { return row.range_count != 0; }));
        const auto in_window = [&](const std::vector<std::int64_t>& times) {
            RowMask mask = rows_where(times, [&](std::int64_t ns) { return ns >= start_ns && ns <= end_ns; });
            outside_ += static_cast<std::uint64_t>(std::count(mask.begin(), mask.end(), false));
            return mask;
        };
        keep_instants(data, in_window(data.instant_time_ns));
        keep_rows<ModelTable::Counters>(data, in_window(data.counter_time_ns));
        keep_rows<ModelTable::Memory>(data, in_window(data.memory_time_ns));
    }

    static void add_prefix(TraceData& data, const std::string& prefix) {
        if (prefix.empty()) return;
        StringPool strings(data.strings);
        for (SiteInfo& site : data.sites) site.name = strings.intern(prefix + data.strings[site.name]);
    }

    Row find_caller(const RemoteEventsRecord& record) const {
        if (record.call_start == 0 || record.thread == 0) return kNoRow;
        return find_call(record.thread, state_.fit->to_ns(record.call_start),
                         state_.fit->to_ns(record.call_end));
    }

    // The innermost range of the thread that contains the entire call or, failing that (the answer arrived on
    // another thread), its start. Rows of a track start in order, so each costs one search and a walk
    // upwards.
    Row find_call(std::uint32_t thread, std::int64_t start_ns, std::int64_t end_ns) const {
        const TraceData& data = *state_.data;
        Row best = kNoRow;
        bool best_holds_call = false;
        for (const TrackInfo& track : data.tracks) {
            const ThreadInfo& info = data.threads[track.thread];
            if (info.process != 0 || info.id != thread) continue;
            const auto first = data.range_start_ns.begin() + track.first_range;
            const auto after_start = std::upper_bound(first, first + track.range_count, start_ns);
            if (after_start == first) continue;
            auto row = static_cast<Row>(after_start - data.range_start_ns.begin() - 1);
            Row holds_start = kNoRow;
            for (; row != kNoRow; row = data.range_parent[row]) {
                const std::int64_t row_end_ns = data.range_start_ns[row] + data.range_duration_ns[row];
                if (row_end_ns >= end_ns) break;
                if (holds_start == kNoRow && row_end_ns >= start_ns) holds_start = row;
            }
            const bool is_whole = row != kNoRow;
            if (!is_whole) row = holds_start;
            if (row == kNoRow || is_whole < best_holds_call) continue;
            if (best == kNoRow || is_whole > best_holds_call ||
                data.range_duration_ns[row] < data.range_duration_ns[best]) {
                best = row;
                best_holds_call = is_whole;
            }
        }
        return best;
    }

    void add_problems() {
        ProblemList problems(state_.data->problems);
        if (damaged_ != 0)
            problems.add("remote_damaged", "Messages with events from other processes could not be read.",
                         damaged_);
        if (guessed_ != 0)
            problems.add("remote_clock",
                         "Events from another host arrived without the call that they belong to: their times "
                         "are estimates.",
                         guessed_);
        if (outside_ != 0)
            problems.add("remote_outside",
                         "Events from other processes that lie outside the session's time were left out.",
                         outside_);
    }

    ReplayedLog& state_;
    StringPool strings_{state_.data->strings};                 ///< until the messages are added
    std::vector<std::pair<std::int64_t, AddedTrace>> placed_;  ///< with the starts of their windows
    std::uint64_t damaged_ = 0;
    std::uint64_t guessed_ = 0;
    std::uint64_t outside_ = 0;
};

}  // namespace

void add_remote_events(ReplayedLog& state) {
    if (!state.journal.messages.empty()) RemoteMessages(state).add();
}

}  // namespace marey
