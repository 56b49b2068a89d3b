// process_links.cpp: parents, and arrows between processes; the ranges of event messages that the
// trace has twice.
#include "trace/process_links.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/process_text.h"
#include "trace/row_selection.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

class ProcessLinks {
  public:
    explicit ProcessLinks(TraceData& data) : data_(data) {
        tracks_of_.resize(data.processes.size());
        for (Row track = 0; track < data.tracks.size(); ++track) {
            if (data.tracks[track].kind == TrackKind::Thread && data.tracks[track].range_count != 0)
                tracks_of_[process_of(data.tracks[track])].push_back(track);
        }
        births_.assign(data.processes.size(), kNever);
        for (const ThreadInfo& thread : data.threads) {
            if (thread.birth_ns != 0)
                births_[thread.process] = std::min(births_[thread.process], thread.birth_ns);
        }
    }

    void connect() {
        const std::vector<Row> found = find_parents();
        for (const LinkInfo& link : data_.links) {
            if (link.kind == LinkKind::Flow) known_.emplace(std::tuple(link.from, link.to, link.name), true);
        }
        for (const Row child : found) link_start(child);
        link_messages();
        if (!added_.empty()) {
            data_.links.insert(data_.links.end(), added_.begin(), added_.end());
            sort_links(data_.links);
        }
    }

  private:
    Row process_of(const TrackInfo& track) const { return data_.threads[track.thread].process; }
    std::string_view boot_of(const ProcessInfo& process) const {
        const std::string_view clock = data_.strings[process.clock];
        return clock.substr(0, clock.find('/'));
    }
    std::string key_of(const ProcessInfo& process) const {
        return std::string(boot_of(process)) + " " +
               ancestor_text(process.pid, process.start, process.pid_namespace);
    }

    /// The last one of these programs, which ran in one process, that began before `child`; kNoRow: none.
    Row last_before(const std::vector<Row>& programs, Row child) const {
        Row last = kNoRow;
        for (const Row row : programs) {
            if (row == child || births_[row] > births_[child]) continue;
            if (births_[row] == births_[child] && row > child) continue;
            if (last == kNoRow || births_[row] >= births_[last]) last = row;
        }
        return last;
    }

    /// Returns the processes whose parents were found.
    std::vector<Row> find_parents() {
        std::unordered_map<std::string, std::vector<Row>> programs;  // by process
        for (Row row = 0; row < data_.processes.size(); ++row) {
            if (data_.processes[row].start != 0) programs[key_of(data_.processes[row])].push_back(row);
        }
        std::vector<Row> found;
        for (Row row = 0; row < data_.processes.size(); ++row) {
            ProcessInfo& process = data_.processes[row];
            if (process.start == 0 || process.parent != kNoRow) continue;
            if (const Row before = last_before(programs[key_of(process)], row); before != kNoRow) {
                process.parent = before;
                process.origin = ProcessOrigin::Exec;
            } else {
                process.parent = nearest_ancestor(process, row, programs);
            }
            if (process.parent != kNoRow) found.push_back(row);
        }
        return found;
    }

    Row nearest_ancestor(const ProcessInfo& process, Row row,
                         const std::unordered_map<std::string, std::vector<Row>>& programs) const {
        const std::string boot = std::string(boot_of(process)) + " ";
        std::string_view rest = data_.strings[process.ancestors];
        while (!rest.empty()) {
            const std::string_view ancestor = rest.substr(0, rest.find(' '));
            rest.remove_prefix(std::min(ancestor.size() + 1, rest.size()));
            const auto known = programs.find(boot + std::string(ancestor));
            if (known == programs.end()) continue;
            const Row parent = last_before(known->second, row);
            if (parent != kNoRow) return parent;
        }
        return kNoRow;
    }

    std::int64_t last_end(const TrackInfo& track) const {
        Row row = track.first_range + track.range_count - 1;
        while (data_.range_depth[row] != 0) row = data_.range_parent[row];
        return data_.range_start_ns[row] + data_.range_duration_ns[row];
    }

    /// The first range that a process began itself: a forked process also has those of its parent.
    Row first_range(Row process) const {
        Row first = kNoRow;
        for (const Row index : tracks_of_[process]) {
            const TrackInfo& track = data_.tracks[index];
            const Row end = track.first_range + track.range_count;
            Row row = track.first_range;
            while (row < end && (data_.range_flags[row] & kBeganBefore) != 0) ++row;
            if (row < end && (first == kNoRow || data_.range_start_ns[row] < data_.range_start_ns[first]))
                first = row;
        }
        return first;
    }

    /// Where the parent started the child: on the thread that forked; otherwise on the first of its threads
    /// that had a range open.
    Row starting_range(const ProcessInfo& child, Row row) const {
        const bool is_forked = child.origin == ProcessOrigin::Fork && child.fork_ns != 0;
        const std::int64_t time_ns = is_forked ? child.fork_ns : births_[row];
        Row best = kNoRow;
        for (const Row index : tracks_of_[child.parent]) {
            const TrackInfo& track = data_.tracks[index];
            const std::uint32_t thread = data_.threads[track.thread].id;
            if (is_forked && child.fork_thread != 0 && thread != child.fork_thread) continue;
            // A program that was replaced ends with the ranges in which it did that.
            const bool is_replaced = child.origin == ProcessOrigin::Exec;
            best = range_open_at(data_, track, is_replaced ? std::min(time_ns, last_end(track)) : time_ns);
            if (best != kNoRow) break;
        }
        return best;
    }

    void link_start(Row row) {
        const Row from = starting_range(data_.processes[row], row);
        const Row to = first_range(row);
        if (from != kNoRow && to != kNoRow) add_link(from, to, "spawn");
    }

    void link_messages() {
        std::map<std::pair<std::uint64_t, std::uint64_t>, Row> sent;
        for (const MessageInfo& message : data_.messages) {
            if (!message.is_received && message.range != kNoRow)
                sent.emplace(std::pair(message.sender, message.number), message.range);
        }
        for (const MessageInfo& message : data_.messages) {
            if (!message.is_received || message.range == kNoRow) continue;
            const auto found = sent.find({message.sender, message.number});
            if (found != sent.end() && found->second != message.range)
                add_link(found->second, message.range, "message");
        }
    }

    void add_link(Row from, Row to, std::string_view name) {
        StringId& id = name == "spawn" ? spawn_ : message_;
        if (id == 0) id = StringPool(data_.strings).intern(name);
        if (known_.try_emplace(std::tuple(from, to, id), true).second)
            added_.push_back({from, to, LinkKind::Flow, id});
    }

    TraceData& data_;
    std::vector<std::vector<Row>> tracks_of_;  ///< by process: its threads' tracks, the first thread first
    std::vector<std::int64_t> births_;         ///< by process: its first sign of life
    std::map<std::tuple<Row, Row, StringId>, bool> known_;
    std::vector<LinkInfo> added_;
    StringId spawn_ = 0;
    StringId message_ = 0;
};

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

Row range_open_at(const TraceData& data, const TrackInfo& track, std::int64_t time_ns) {
    const auto starts = data.range_start_ns.begin();
    const auto first = starts + track.first_range;
    const auto after = std::upper_bound(first, first + track.range_count, time_ns);
    if (after == first) return kNoRow;
    Row row = static_cast<Row>(after - starts) - 1;
    while (data.range_start_ns[row] + data.range_duration_ns[row] < time_ns) {
        if (data.range_depth[row] == 0) return kNoRow;
        row = data.range_parent[row];
    }
    return row;
}

void sort_links(std::vector<LinkInfo>& links) {
    std::ranges::stable_sort(links, {}, &LinkInfo::from);
}

void connect_processes(TraceData& data) {
    ProcessLinks(data).connect();
}

void replace_remote_copies(TraceData& data, const std::vector<bool>& tracks) {
    RemoteCopies(data, tracks).replace();
}

}  // namespace marey
