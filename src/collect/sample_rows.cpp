// sample_rows.cpp: joins the parts of waits, gives samples their stacks and the ranges that they were taken
// in.
#include "collect/sample_rows.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <vector>

namespace marey {
namespace {

/// The rows of the stacks and frames that samples refer to: each once.
class StackRows {
  public:
    StackRows(TraceData& data, FrameTexts& frames) : data_(data), frames_(frames) {}

    /// kNoRow: none of its frames is known.
    Row row_of(std::uint32_t number) {
        const std::vector<detail::StackNode>& nodes = frames_.tables().stacks;
        path_.clear();
        Row row = kNoRow;
        while (number - 1 < nodes.size() && nodes[number - 1].is_complete == 1) {
            if (const auto known = rows_.find(number); known != rows_.end()) {
                row = known->second;
                break;
            }
            path_.push_back(number);
            const std::uint32_t outer = nodes[number - 1].outer;
            number = outer < number ? outer : 0;
        }
        for (auto at = path_.rbegin(); at != path_.rend(); ++at) {
            const std::uint64_t word = frames_.resolved(nodes[*at - 1].frame);
            if (word != FrameTexts::kNoFrame) {
                data_.stacks.push_back({frame_row(word), row});
                row = static_cast<Row>(data_.stacks.size() - 1);
            }
            rows_.emplace(*at, row);
        }
        return row;
    }

  private:
    Row frame_row(std::uint64_t word) {
        const auto [at, is_new] = frame_rows_.try_emplace(word, static_cast<Row>(data_.frames.size()));
        if (is_new) data_.frames.push_back(frames_.frame_of(word));
        return at->second;
    }

    TraceData& data_;
    FrameTexts& frames_;
    std::unordered_map<std::uint32_t, Row> rows_;
    std::unordered_map<std::uint64_t, Row> frame_rows_;
    std::vector<std::uint32_t> path_;
};

/// Finds the innermost range at times that rise.
class RangesAtTimes {
  public:
    /// `track`: of the thread; null: it has no ranges.
    RangesAtTimes(const TraceData& data, const TrackInfo* track)
        : data_(data),
          next_(track != nullptr ? track->first_range : 0),
          end_(track != nullptr ? track->first_range + track->range_count : 0) {}

    Row at(std::int64_t time_ns) {
        for (; next_ < end_ && data_.range_start_ns[next_] <= time_ns; ++next_) innermost_ = next_;
        while (innermost_ != kNoRow &&
               data_.range_start_ns[innermost_] + data_.range_duration_ns[innermost_] < time_ns)
            innermost_ = data_.range_depth[innermost_] != 0 ? data_.range_parent[innermost_] : kNoRow;
        return innermost_;
    }

  private:
    const TraceData& data_;
    Row next_;
    Row end_;
    Row innermost_ = kNoRow;
};

const TrackInfo* track_of(const TraceData& data, Row thread) {
    const auto found = std::ranges::find_if(data.tracks, [&](const TrackInfo& track) {
        return track.kind == TrackKind::Thread && track.thread == thread;
    });
    return found != data.tracks.end() ? &*found : nullptr;
}

bool is_wait(const SampleRow& row) {
    return row.state == static_cast<std::uint8_t>(SampleState::Waiting);
}

}  // namespace

void fill_samples(ReplayedLog& state, const std::map<std::uint32_t, Row>& thread_rows, StringPool& strings,
                  FrameTexts& frames) {
    TraceData& data = *state.data;
    StackRows stacks(data, frames);
    SamplingInfo sampling;
    std::uint64_t cpu_ns = 0;
    for (const ThreadReplay& replay : state.replays) {
        if (replay.samples.empty()) continue;
        const Row thread = thread_rows.at(replay.thread);
        RangesAtTimes ranges(data, track_of(data, thread));
        const SampleRow* before = nullptr;
        for (const SampleRow& row : replay.samples) {
            const std::int64_t start_ns = state.fit->to_ns(row.start);
            const std::int64_t end_ns = std::max(start_ns, state.fit->to_ns(row.end));
            const bool is_part = before != nullptr && is_wait(row) && is_wait(*before) &&
                                 before->end == row.start && before->stack == row.stack;
            before = &row;
            if (is_part) {
                data.sample_duration_ns.back() = end_ns - data.sample_time_ns.back();
                continue;
            }
            SampleInfo sample{.time_ns = start_ns,
                              .duration_ns = is_wait(row) ? end_ns - start_ns : 0,
                              .cpu_ns = static_cast<std::int64_t>(row.cpu_ns),
                              .state = static_cast<SampleState>(row.state),
                              .stack = stacks.row_of(row.stack),
                              .range = ranges.at(start_ns)};
            add_sample(data, thread, sample);
            if (is_wait(row)) continue;
            ++sampling.samples;
            cpu_ns += row.cpu_ns;
        }
    }
    if (!state.journal.sampling || !state.filter.needs_samples) return;
    const detail::SamplingRecord& record = *state.journal.sampling;
    const bool is_perf = record.clock == static_cast<std::uint32_t>(detail::SamplingClock::PerfEvent);
    sampling.clock = strings.intern(is_perf ? "perf_event" : "cpu_clock");
    sampling.rate_asked = record.rate;
    if (cpu_ns != 0)
        sampling.rate_reached = static_cast<double>(sampling.samples) * 1e9 / static_cast<double>(cpu_ns);
    sampling.torn = record.torn;
    sampling.cut = record.cut;
    sampling.lost = record.lost;
    data.sampling.push_back(sampling);
}

}  // namespace marey
