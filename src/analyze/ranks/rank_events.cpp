// rank_events.cpp: reads the steps and collectives of one rank.
#include "analyze/ranks/rank_events.h"

#include <algorithm>
#include <optional>

#include "analyze/gpu/gpu_work.h"
#include "analyze/ranks/collective_name.h"
#include "analyze/ranks/interval_union.h"
#include "analyze/track_place.h"
#include "analyze/tree/step_ranges.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool contains_in_any_case(std::string_view text, std::string_view part) {
    const auto equal = [](char a, char b) { return lower(a) == lower(b); };
    return !part.empty() &&
           std::search(text.begin(), text.end(), part.begin(), part.end(), equal) != text.end();
}

class RankEventReader {
  public:
    RankEventReader(const Trace& trace, Row process, const RankOptions& options, TextNumbers& texts)
        : trace_(trace), ranges_(trace.ranges()), process_(process), options_(options), texts_(texts) {
        const std::vector<bool> steps = step_sites(trace, options.step_name);
        for (std::size_t i = 0; i < trace.sites().size(); ++i) {
            const SiteInfo& site = trace.sites()[i];
            const std::string_view name = trace.string(site.name);
            const bool is_operator = site.scope == Scope::Function || site.scope == Scope::BackwardFunction;
            sites_.push_back({communication_kind(name), contains_in_any_case(name, options.input_name),
                              is_operator, steps[i]});
        }
        number_collectives();
    }

    RankEvents read(std::int32_t rank) {
        const ProcessInfo& process = trace_.processes()[process_];
        events_.rank = rank;
        events_.pid = process.pid;
        events_.host = texts_.number(trace_.string(process.host));
        events_.wall_clock = wall_clock_of(trace_, process);
        events_.error_ns = trace_.clock().max_error_ns;
        for (const ClockExchangeInfo& each : trace_.clock_exchanges()) {
            if (each.process == process_)
                events_.exchanges.push_back({texts_.number(trace_.string(each.peer)), each.sent_ns,
                                             each.arrived_ns, each.answered_ns, each.received_ns});
        }
        read_steps();
        read_device();
        for (const TrackInfo& track : trace_.tracks()) {
            if (trace_.threads()[track.thread].process != process_) continue;
            if (place_of(track) != Place::Device) read_track(track);
        }
        finish();
        return std::move(events_);
    }

  private:
    struct SiteFacts {
        CommunicationKind communication;
        bool is_input;
        bool is_operator;
        bool is_step;
    };
    /// The group and number that a range's values give a collective.
    struct Given {
        Row range;
        std::uint32_t group;
        std::int64_t sequence;
    };
    struct Work {
        std::int64_t start_ns;
        std::int64_t time_ns;
        std::uint32_t site;
    };

    void number_collectives() {
        const TraceData& data = trace_.data();
        for (const ArgumentSlice& slice : data.range_arguments) {
            std::optional<std::int64_t> sequence;
            std::string group;
            for (std::uint32_t i = slice.first; i < slice.first + slice.count; ++i) {
                const Argument& value = data.arguments[i];
                const std::string_view key = trace_.string(value.key);
                if ((key == "Seq" || key == "sequence") && value.kind == ValueKind::Int) {
                    sequence = value.integer;
                } else if (key == "Process Group Name" || key == "group") {
                    group = value.kind == ValueKind::String ? std::string(trace_.string(value.string))
                            : value.kind == ValueKind::Int  ? std::to_string(value.integer)
                                                            : std::string();
                }
            }
            if (sequence && !group.empty()) given_.push_back({slice.row, texts_.number(group), *sequence});
        }
    }
    /// The numbers of a range or of the nearest range around it; null if there are none.
    const Given* given(Row range) const {
        for (; range != kNoRow && !given_.empty(); range = ranges_.parent[range]) {
            const auto found = std::partition_point(given_.begin(), given_.end(),
                                                    [&](const Given& each) { return each.range < range; });
            if (found != given_.end() && found->range == range) return &*found;
        }
        return nullptr;
    }

    void read_steps() {
        const std::vector<StepRange> steps = find_steps(trace_, options_.step_name);
        std::vector<std::size_t> count(trace_.threads().size(), 0);
        std::vector<Row> thread_of;
        for (const StepRange& step : steps) {
            thread_of.push_back(trace_.tracks()[trace_.track_of(step.row)].thread);
            if (trace_.threads()[thread_of.back()].process == process_) ++count[thread_of.back()];
        }
        const auto most = std::max_element(count.begin(), count.end());
        if (most == count.end() || *most == 0) return use_main_thread();
        step_thread_ = static_cast<Row>(most - count.begin());
        const WindowInfo& window = trace_.window();
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const Row row = steps[i].row;
            const std::int64_t start = ranges_.start_ns[row], end = start + ranges_.duration_ns[row];
            const bool is_partial = (ranges_.flags[row] & (kBeganBefore | kUnfinished)) != 0 ||
                                    start < window.start_ns || end > window.end_ns;
            if (thread_of[i] != step_thread_ || is_partial) continue;
            RankStep& step = events_.steps.emplace_back();
            step.number = steps[i].number;
            step.start_ns = start;
            step.end_ns = end;
        }
        std::sort(events_.steps.begin(), events_.steps.end(),
                  [](const RankStep& a, const RankStep& b) { return a.start_ns < b.start_ns; });
        std::int64_t end = std::numeric_limits<std::int64_t>::min();
        std::erase_if(events_.steps, [&](const RankStep& step) {
            if (step.start_ns < end) return true;
            end = step.end_ns;
            return false;
        });
    }

    // Without steps. Other threads often wait for as long as the main thread works.
    void use_main_thread() {
        for (const TrackInfo& track : trace_.tracks()) {
            const ThreadInfo& thread = trace_.threads()[track.thread];
            if (thread.process == process_ && thread.os_tid == trace_.processes()[process_].pid &&
                track.range_count != 0 && place_of(track) == Place::Host)
                step_thread_ = track.thread;
        }
    }

    void read_device() {
        const auto is_device = [](const TrackInfo& track) { return place_of(track) == Place::Device; };
        if (std::none_of(trace_.tracks().begin(), trace_.tracks().end(), is_device)) return;
        for (const GpuDeviceWork& device : collect_gpu_work(trace_, {}).devices) {
            if (device.process != process_) continue;
            for (const GpuPiece& piece : device.pieces) {
                if (piece.kind != GpuWorkKind::Kernel) continue;
                has_kernels_ = true;
                const std::uint32_t site = ranges_.site[piece.range];
                if (sites_[site].communication == CommunicationKind::Kernel) {
                    const Given* const numbers = given(piece.range);
                    add_collective(piece.range, {piece.start_ns, piece.end_ns},
                                   numbers != nullptr ? numbers : given(piece.call));
                    has_collective_kernels_ = true;
                } else {
                    compute_.push_back({piece.start_ns, piece.end_ns});
                    work_.push_back({piece.start_ns, piece.duration_ns(), site});
                }
            }
        }
    }

    void read_track(const TrackInfo& track) {
        const Row end = track.first_range + track.range_count;
        // Ranges deeper than these are part of communication, or of an operator.
        constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
        std::uint32_t communication = kNone, operation = kNone;
        const bool is_step_track = track.thread == step_thread_ || step_thread_ == kNoRow;
        for (Row row = track.first_range; row < end;) {
            const std::uint32_t depth = ranges_.depth[row];
            if (communication != kNone && depth <= communication) communication = kNone;
            if (operation != kNone && depth <= operation) operation = kNone;
            const SiteFacts& site = sites_[ranges_.site[row]];
            const Interval time{ranges_.start_ns[row], ranges_.start_ns[row] + ranges_.duration_ns[row]};
            bool skips_children = false;
            const Given* const own = own_numbers(row, site);
            if (site.communication == CommunicationKind::Collective || own != nullptr) {
                if (!has_collective_kernels_) add_collective(row, time, own != nullptr ? own : given(row));
                skips_children = true;
            } else if (site.is_input && place_of(track) == Place::Host) {
                if (is_step_track) input_.push_back(time);
                skips_children = true;
            } else if (site.communication != CommunicationKind::None) {
                if (communication == kNone) communication = depth;
            } else if (communication == kNone && place_of(track) == Place::Host) {
                if (site.is_operator && operation == kNone) {
                    operation = depth;
                    if (!has_kernels_) compute_.push_back(time);
                }
                if (!has_kernels_ && is_step_track && !site.is_step)
                    work_.push_back({time.start_ns, ranges_.self_ns[row], ranges_.site[row]});
            }
            do {
                ++row;
            } while (skips_children && row < end && ranges_.depth[row] > depth);
        }
    }
    /// A range with the values `group` and `sequence` is a collective, whatever its name is.
    const Given* own_numbers(Row row, const SiteFacts& site) const {
        if (given_.empty() || site.communication == CommunicationKind::Call) return nullptr;
        const Given* const numbers = given(row);
        return numbers != nullptr && numbers->range == row ? numbers : nullptr;
    }

    void add_collective(Row range, const Interval& time, const Given* numbers) {
        communication_.push_back(time);
        RankCollective& added = events_.collectives.emplace_back();
        added.start_ns = time.start_ns;
        added.end_ns = time.end_ns;
        added.name = texts_.number(trace_.range_name(range));
        added.is_partial = (ranges_.flags[range] & (kBeganBefore | kUnfinished)) != 0;
        added.group = numbers != nullptr ? numbers->group : kNotNumbered;
        added.sequence = numbers != nullptr ? numbers->sequence : 0;
    }

    void finish() {
        std::vector<RankCollective>& all = events_.collectives;
        std::stable_sort(all.begin(), all.end(), [](const RankCollective& a, const RankCollective& b) {
            return a.start_ns < b.start_ns;
        });
        // Collectives without a number count from the start of their step.
        const std::uint32_t not_numbered = texts_.number(std::string_view("\0by order", 9));
        std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t> seen;
        auto step = events_.steps.begin();
        for (RankCollective& each : all) {
            while (step != events_.steps.end() && step->end_ns <= each.start_ns) ++step;
            if (each.group == kNotNumbered) {
                const bool is_inside = step != events_.steps.end() && step->start_ns <= each.start_ns;
                each.group = not_numbered;
                each.sequence = is_inside ? step->number : -1;
            }
            // Several kernels of one collective have its number.
            const std::int64_t place = seen[{each.group, each.sequence}]++;
            each.sequence = static_cast<std::int64_t>((static_cast<std::uint64_t>(each.sequence) << 20) +
                                                      static_cast<std::uint64_t>(place));
        }
        name_work();
        if (events_.steps.empty()) {
            RankStep& whole = events_.steps.emplace_back();
            whole.start_ns = trace_.window().start_ns;
            whole.end_ns = trace_.window().end_ns;
        }
        const Intervals compute = united(std::move(compute_)),
                        communication = united(std::move(communication_)), input = united(std::move(input_)),
                        both = intersection(compute, communication);
        for (RankStep& each : events_.steps) {
            each.compute_ns = length_between(compute, each.start_ns, each.end_ns);
            each.communication_ns = length_between(communication, each.start_ns, each.end_ns);
            each.overlap_ns = length_between(both, each.start_ns, each.end_ns);
            each.input_ns = length_between(input, each.start_ns, each.end_ns);
        }
    }

    /// Gives each collective the name of the longest work since the one before it began; none if ranges cover
    /// less than half of that time.
    void name_work() {
        std::stable_sort(work_.begin(), work_.end(),
                         [](const Work& a, const Work& b) { return a.start_ns < b.start_ns; });
        std::vector<std::int64_t> time(sites_.size(), 0);
        std::vector<std::uint32_t> used;
        const std::uint32_t none = texts_.number("");
        std::vector<std::uint32_t> text_of(sites_.size(), none);
        auto next = work_.begin();
        std::int64_t left_ns = trace_.window().start_ns;  // the end of the collectives before
        for (RankCollective& each : events_.collectives) {
            std::uint32_t best = none;
            std::int64_t most = 0, total = 0;
            for (; next != work_.end() && next->start_ns < each.start_ns; ++next) {
                std::int64_t& sum = time[next->site];
                if (sum == 0) used.push_back(next->site);
                sum += next->time_ns;
                total += next->time_ns;
                if (sum <= most) continue;
                most = sum;
                std::uint32_t& text = text_of[next->site];
                if (text == none) text = texts_.number(trace_.string(trace_.sites()[next->site].name));
                best = text;
            }
            for (const std::uint32_t site : used) time[site] = 0;
            used.clear();
            each.before = 2 * total < each.start_ns - left_ns ? none : best;
            left_ns = std::max(left_ns, each.end_ns);
        }
    }

    static constexpr std::uint32_t kNotNumbered = ~std::uint32_t{0};

    const Trace& trace_;
    const RangeColumns ranges_;
    const Row process_;
    const RankOptions& options_;
    TextNumbers& texts_;
    std::vector<SiteFacts> sites_;
    std::vector<Given> given_;  ///< by range
    RankEvents events_;
    Row step_thread_ = kNoRow;
    bool has_kernels_ = false, has_collective_kernels_ = false;
    Intervals compute_, communication_, input_;
    std::vector<Work> work_;
};

}  // namespace

WallClock wall_clock_of(const Trace& trace, const ProcessInfo& process) {
    constexpr std::int64_t kLargest = std::int64_t{1} << 61;
    WallClock clock{trace.window().start_ns, std::clamp(process.realtime_offset_ns, -kLargest, kLargest),
                    kUnknownClockError};
    // Times that were moved when traces were merged have another error, too.
    const bool is_moved = std::any_of(
        trace.host_clocks().begin(), trace.host_clocks().end(),
        [&](const HostClockInfo& other) { return other.host == process.host && other.error_ns != 0; });
    if (process.realtime_error_ns > 0 && !is_moved)
        clock.error_ns = std::min(process.realtime_error_ns, kLargest);
    return clock;
}

RankEvents read_rank(const Trace& trace, Row process, std::int32_t rank, const RankOptions& options,
                     TextNumbers& texts) {
    return RankEventReader(trace, process, options, texts).read(rank);
}

}  // namespace marey
