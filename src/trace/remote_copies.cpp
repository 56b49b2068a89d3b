// remote_copies.cpp: finds the originals of ranges that came in event messages.

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "trace/process_links.h"
#include "trace/row_selection.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

// How far a copy may be from its original: one clock is fitted twice, from different readings, which a busy
// machine interrupts; the nearest range of the same name and length is taken. A copy from another host was
// placed in the middle of its call, and may be anywhere in it.
constexpr std::int64_t kFitErrorNs = 1'000'000;
// Once the distance of a copy is known, that of the ranges inside it differs by rounding, and by as much as
// the rates of the two fits do: one part in so many.
constexpr std::int64_t kRoundingNs = 100;
constexpr std::int64_t kRateError = 100;

class RemoteCopies {
  public:
    RemoteCopies(TraceData& data, const std::vector<bool>& tracks) : data_(data), tracks_(tracks) {}

    void replace() {
        if (std::ranges::find(tracks_, true) == tracks_.end()) return;
        for (const LinkInfo& link : data_.links) {
            if (link.kind == LinkKind::Remote) callers_.emplace(link.to, link.from);
        }
        for (std::size_t i = 0; i < tracks_.size(); ++i) {
            if (tracks_[i]) originals_[key_of(data_.tracks[i])];
        }
        for_each_range([&](Row row, auto& originals, bool is_copy) {
            if (!is_copy) originals.emplace_back(data_.range_start_ns[row], row);
        });
        for (auto& [key, rows] : originals_) std::sort(rows.begin(), rows.end());
        for_each_range([&](Row row, const auto& originals, bool is_copy) {
            if (is_copy) match(row, originals);
        });
        if (found_.empty()) return;
        std::vector<Row> removed;
        for (const auto& [copy, original] : found_) removed.push_back(copy);
        const auto redirect = [&](Row& row) {
            if (const auto found = found_.find(row); found != found_.end()) row = found->second;
        };
        for (LinkInfo& link : data_.links) {
            redirect(link.from);
            redirect(link.to);
        }
        remove_ranges(data_, removed);
        RowMask kept(tracks_.size());
        for (std::size_t i = 0; i < kept.size(); ++i)
            kept[i] = !tracks_[i] || data_.tracks[i].range_count != 0;
        keep_tracks(data_, kept);
        sort_links(data_.links);
        data_.range_self_ns = self_times(data_);
    }

  private:
    /// A thread, whatever node its process was given.
    using Key = std::tuple<std::int64_t, std::uint64_t, std::uint64_t, StringId, std::uint32_t>;

    using Starts = std::vector<std::pair<std::int64_t, Row>>;

    Key key_of(const TrackInfo& track) const {
        const ThreadInfo& info = data_.threads[track.thread];
        const ProcessInfo& process = data_.processes[info.process];
        return {process.pid, process.start, process.pid_namespace, process.host, info.id};
    }

    /// The ranges of threads that occur in messages.
    void for_each_range(auto visit) {
        for (std::size_t i = 0; i < data_.tracks.size(); ++i) {
            const TrackInfo& track = data_.tracks[i];
            if (track.kind == TrackKind::Device) continue;
            if (data_.processes[data_.threads[track.thread].process].start == 0) continue;  // not identified
            const auto originals = originals_.find(key_of(track));
            if (originals == originals_.end()) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row)
                visit(row, originals->second, tracks_[i] && (data_.range_flags[row] & kRemote) != 0);
        }
    }

    void match(Row copy, const Starts& originals) {
        std::int64_t expected_ns = data_.range_start_ns[copy];
        std::int64_t error_ns = kFitErrorNs;
        if (const auto around = found_.find(data_.range_parent[copy]); around != found_.end()) {
            expected_ns += data_.range_start_ns[around->second] - data_.range_start_ns[around->first];
            error_ns = kRoundingNs + data_.range_duration_ns[around->second] / kRateError;
        } else if (const auto call = callers_.find(copy); call != callers_.end() && !same_clock(*call)) {
            error_ns = std::max(error_ns, data_.range_duration_ns[call->second]);
        }
        const std::pair<std::int64_t, Row> from{expected_ns - error_ns, 0};
        Row best = kNoRow;
        for (auto at = std::ranges::lower_bound(originals, from);
             at != originals.end() && at->first <= expected_ns + error_ns; ++at) {
            if (!is_same(copy, at->second)) continue;
            if (best == kNoRow ||
                std::abs(at->first - expected_ns) < std::abs(data_.range_start_ns[best] - expected_ns))
                best = at->second;
        }
        if (best != kNoRow) found_.emplace(copy, best);
    }

    bool same_clock(std::pair<Row, Row> link) const { return clock_of(link.first) == clock_of(link.second); }
    StringId clock_of(Row range) const {
        const auto after = std::ranges::upper_bound(data_.tracks, range, {}, &TrackInfo::first_range);
        return data_.processes[data_.threads[std::prev(after)->thread].process].clock;
    }

    /// The name of a copy may have a prefix; a copy that exceeded its caller's session was cut.
    bool is_same(Row copy, Row original) const {
        constexpr std::uint16_t kCut = kBeganBefore | kUnfinished;
        const std::int64_t length_ns = data_.range_duration_ns[original];
        const std::int64_t difference_ns = std::abs(data_.range_duration_ns[copy] - length_ns);
        if ((data_.range_flags[copy] & kCut) == 0 && difference_ns > kRoundingNs + length_ns / kRateError)
            return false;
        const auto name = [&](Row row) -> std::string_view {
            return data_.strings[data_.sites[data_.range_site[row]].name];
        };
        return name(copy).ends_with(name(original));
    }

    TraceData& data_;
    const std::vector<bool>& tracks_;
    std::unordered_map<Row, Row> callers_;  ///< of the ranges that a call led to
    std::map<Key, Starts> originals_;       ///< by start
    std::map<Row, Row> found_;              ///< the originals of copies
};

}  // namespace

void replace_remote_copies(TraceData& data, const std::vector<bool>& tracks) {
    RemoteCopies(data, tracks).replace();
}

}  // namespace marey
