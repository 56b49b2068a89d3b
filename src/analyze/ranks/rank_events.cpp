// rank_events.cpp: reads the steps and collectives of one rank.
#include "analyze/ranks/rank_events.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analyze/gpu/gpu_work.h"
#include "analyze/ranks/collective_name.h"
#include "analyze/ranks/interval_union.h"
#include "analyze/track_place.h"
#include "analyze/tree/step_ranges.h"
#include "json/json_document.h"
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

/// "load_batch" for "train.py(12): load_batch". Parts of files keep their place: "train.py(1): <module>".
std::string_view without_place(std::string_view name) {
    const std::size_t place = name.find("): ");
    if (place == name.npos || name.substr(place + 3).starts_with('<')) return name;
    return name.substr(place + 3);
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
        events_.process_start = process.start;
        events_.tree = texts_.number(trace_.string(process.tree));
        events_.host = texts_.number(trace_.string(process.host));
        events_.wall_clock = wall_clock_of(trace_, process);
        events_.error_ns = trace_.clock().max_error_ns;
        for (const ClockExchangeInfo& each : trace_.clock_exchanges()) {
            if (each.process == process_)
                events_.exchanges.push_back({texts_.number(trace_.string(each.peer)), each.sent_ns,
                                             each.arrived_ns, each.answered_ns, each.received_ns});
        }
        events_.world_size = world_size(trace_);
        read_steps();
        read_end(process);
        read_device();
        for (const TrackInfo& track : trace_.tracks()) {
            if (trace_.threads()[track.thread].process != process_) continue;
            if (place_of(track) != Place::Device) read_track(track);
        }
        if (events_.end != RankEnd::Closed) read_launches();
        finish();
        return std::move(events_);
    }

  private:
    struct SiteProperties {
        CommunicationKind communication;
        bool is_input;
        bool is_operator;
        bool is_step;
    };
    /// The group and number that a range's values give a collective.
    struct CollectiveNumbers {
        Row range;
        std::uint32_t group;
        std::int64_t sequence;
        std::uint32_t operation;  ///< text; kNoText: by the name of the range
    };
    /// A step of the step's thread.
    struct Mark {
        std::int64_t number, start_ns, end_ns;
        bool is_partial;
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
            std::string group, operation;
            for (std::uint32_t i = slice.first; i < slice.first + slice.count; ++i) {
                const Argument& value = data.arguments[i];
                const std::string_view key = trace_.string(value.key);
                if ((key == "Seq" || key == "sequence") && value.kind == ValueKind::Int) {
                    sequence = value.integer;
                } else if (key == "Process Group Name" || key == "group") {
                    group = value.kind == ValueKind::String ? std::string(trace_.string(value.string))
                            : value.kind == ValueKind::Int  ? std::to_string(value.integer)
                                                            : std::string();
                } else if (key == "Collective name" && value.kind == ValueKind::String) {
                    operation = operation_name("nccl:" + std::string(trace_.string(value.string)));
                }
            }
            // Messages between two ranks have numbers of their own.
            if (sequence && !group.empty() && !is_point_to_point(operation))
                given_.push_back({slice.row, texts_.number(group), *sequence,
                                  operation.empty() ? kNoText : texts_.number(operation)});
        }
    }
    /// The numbers of a range or of the nearest range around it; null if there are none.
    const CollectiveNumbers* given(Row range) const {
        for (; range != kNoRow && !given_.empty(); range = ranges_.parent[range]) {
            const auto found =
                std::partition_point(given_.begin(), given_.end(),
                                     [&](const CollectiveNumbers& each) { return each.range < range; });
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
        const auto most = std::ranges::max_element(count);
        if (most == count.end() || *most == 0) return use_main_thread();
        step_thread_ = static_cast<Row>(most - count.begin());
        const WindowInfo& window = trace_.window();
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const Row row = steps[i].row;
            const std::int64_t start = ranges_.start_ns[row], end = start + ranges_.duration_ns[row];
            const bool is_partial = (ranges_.flags[row] & (kBeganBefore | kUnfinished)) != 0 ||
                                    start < window.start_ns || end > window.end_ns;
            if (thread_of[i] == step_thread_) marks_.push_back({steps[i].number, start, end, is_partial});
        }
        std::ranges::sort(marks_, {}, &Mark::start_ns);
        std::int64_t end = std::numeric_limits<std::int64_t>::min();
        std::erase_if(marks_, [&](const Mark& step) {
            return step.start_ns < std::exchange(end, std::max(end, step.end_ns));
        });
        events_.first_step = marks_.front().number;
        for (std::size_t i = 0; i < marks_.size(); ++i) {
            const Mark& mark = marks_[i];
            events_.first_step = std::min(events_.first_step, mark.number);
            events_.last_step = std::max(events_.last_step, mark.number);
            events_.has_cut_step = events_.has_cut_step || mark.is_partial;
            if (mark.is_partial) continue;
            RankStep& step = events_.steps.emplace_back();
            step.number = mark.number;
            const bool follows = i > 0 && marks_[i - 1].number + 1 == mark.number;
            step.from_ns = follows ? marks_[i - 1].end_ns : mark.start_ns;
            step.end_ns = mark.end_ns;
        }
    }

    /// How the process ended, when, and what it was doing then.
    void read_end(const ProcessInfo& process) {
        events_.start_ns = trace_.window().start_ns;
        events_.end_ns = trace_.window().end_ns;
        events_.exit_code = process.exit_code;
        events_.exit_signal = process.exit_signal;
        const bool is_alone = trace_.processes().size() == 1;
        if (!is_alone) read_own_window();
        Row innermost = kNoRow;
        for (const TrackInfo& track : trace_.tracks()) {
            if (track.kind != TrackKind::Thread || track.thread != step_thread_) continue;
            for (Row row = track.first_range + track.range_count; row-- > track.first_range;) {
                if ((ranges_.flags[row] & kUnfinished) == 0) continue;
                const bool is_c_call = trace_.sites()[ranges_.site[row]].scope == Scope::CFunction;
                if (innermost == kNoRow || !is_c_call) innermost = row;
                if (!is_c_call) break;  // the function that made the call says more
            }
        }
        events_.open_name =
            texts_.number(innermost == kNoRow ? "" : without_place(trace_.range_name(innermost)));
        if (innermost != kNoRow) events_.open_ns = events_.end_ns - ranges_.start_ns[innermost];
        const bool was_open = is_alone || innermost != kNoRow;
        if (process.exit_signal > 0 ||
            (process.exit_code < 0 && was_open &&
             (trace_.has_problem("crashed") || (!is_alone && trace_.has_problem("process_ended"))))) {
            events_.end = RankEnd::Died;
        } else if (was_open && trace_.has_problem("running")) {
            events_.end = RankEnd::Running;
        }
    }
    /// In a trace of several processes, ranges that did not end do so with their process.
    void read_own_window() {
        std::int64_t first = std::numeric_limits<std::int64_t>::max(),
                     last = std::numeric_limits<std::int64_t>::min();
        for (const TrackInfo& track : trace_.tracks()) {
            if (trace_.threads()[track.thread].process != process_) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                first = std::min(first, ranges_.start_ns[row]);
                last = std::max(last, ranges_.start_ns[row] + ranges_.duration_ns[row]);
            }
        }
        if (first > last) return;
        events_.start_ns = std::max(events_.start_ns, first);
        events_.end_ns = std::min(events_.end_ns, last);
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
        if (std::ranges::none_of(trace_.tracks(), is_device)) return;
        for (const GpuDeviceWork& device : collect_gpu_work(trace_, {}).devices) {
            if (device.process != process_) continue;
            for (const GpuPiece& piece : device.pieces) {
                if (piece.kind != GpuWorkKind::Kernel) continue;
                has_kernels_ = true;
                const std::uint32_t site = ranges_.site[piece.range];
                if (sites_[site].communication == CommunicationKind::Kernel) {
                    const CollectiveNumbers* const numbers = given(piece.range);
                    add_collective(piece.range, {piece.start_ns, piece.end_ns},
                                   numbers != nullptr ? numbers : given(piece.call),
                                   ranges_.flags[piece.range]);
                    has_collective_kernels_ = true;
                } else {
                    compute_.push_back({piece.start_ns, piece.end_ns});
                    work_.push_back({piece.start_ns, piece.duration_ns(), site});
                }
            }
        }
        if (has_kernels_) compute_ = united(std::move(compute_));
    }

    /// Collectives on a device are recorded when they end. Those that were launched and did not end are open.
    void read_launches() {
        std::set<std::pair<std::uint32_t, std::int64_t>> known;
        for (const RankCollective& each : events_.collectives) {
            if (each.group == kNotNumbered) return;  // its ranges last from entering to leaving a collective
            known.emplace(each.group, each.sequence);
        }
        for (const CollectiveNumbers& launch : given_) {
            const std::uint32_t site = ranges_.site[launch.range];
            const Row track = trace_.track_of(launch.range);
            if (track == kNoRow || sites_[site].communication != CommunicationKind::Call ||
                trace_.threads()[trace_.tracks()[track].thread].process != process_ ||
                !known.emplace(launch.group, launch.sequence).second)
                continue;
            const Interval time{ranges_.start_ns[launch.range], events_.end_ns};
            add_collective(launch.range, time, &launch, kUnfinished);
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
            const SiteProperties& site = sites_[ranges_.site[row]];
            const Interval time{ranges_.start_ns[row], ranges_.start_ns[row] + ranges_.duration_ns[row]};
            bool skips_children = false;
            const CollectiveNumbers* const own = own_numbers(row, site);
            if (site.communication == CommunicationKind::Collective || own != nullptr) {
                if (!has_collective_kernels_)
                    add_collective(row, time, own != nullptr ? own : given(row), ranges_.flags[row]);
                skips_children = true;
            } else if (site.is_input && place_of(track) == Place::Host) {
                if (is_step_track) add_input(time, ranges_.site[row]);
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
    const CollectiveNumbers* own_numbers(Row row, const SiteProperties& site) const {
        if (given_.empty() || site.communication == CommunicationKind::Call) return nullptr;
        const CollectiveNumbers* const numbers = given(row);
        return numbers != nullptr && numbers->range == row ? numbers : nullptr;
    }

    /// Waiting for input is work too, unless a device computed all the while.
    void add_input(const Interval& time, std::uint32_t site) {
        input_.push_back(time);
        const std::int64_t busy = has_kernels_ ? length_between(compute_, time.start_ns, time.end_ns) : 0;
        work_.push_back({time.start_ns, time.end_ns - time.start_ns - busy, site});
    }

    void add_collective(Row range, const Interval& time, const CollectiveNumbers* numbers,
                        std::uint16_t flags) {
        const bool is_partial = (flags & (kBeganBefore | kUnfinished)) != 0;
        if (!is_partial) communication_.push_back(time);
        const std::uint32_t site = ranges_.site[range];
        std::uint32_t operation = numbers != nullptr ? numbers->operation : kNoText;
        if (operation == kNoText) {
            std::uint32_t& known = operation_of_.try_emplace(site, kNoText).first->second;
            if (known == kNoText) known = texts_.number(operation_name(trace_.range_name(range)));
            operation = known;
        }
        if (is_point_to_point(texts_.text(operation))) return;
        RankCollective& added = events_.collectives.emplace_back();
        added.start_ns = time.start_ns;
        added.end_ns = time.end_ns;
        added.name = texts_.number(trace_.range_name(range));
        added.operation = operation;
        added.is_partial = is_partial ? 1 : 0;
        added.is_open = (flags & kUnfinished) != 0 ? 1 : 0;
        added.group = numbers != nullptr ? numbers->group : kNotNumbered;
        added.sequence = numbers != nullptr ? numbers->sequence : 0;
    }

    /// Collectives without a number count from the start of their step, or from the end of the one before.
    void number_by_order() {
        const std::uint32_t not_numbered = texts_.number(kGroupByOrder);
        std::map<std::pair<std::uint32_t, std::int64_t>, std::int64_t> seen;
        auto after = marks_.begin();  // the first step that begins later
        for (RankCollective& each : events_.collectives) {
            while (after != marks_.end() && after->start_ns <= each.start_ns) ++after;
            if (each.group == kNotNumbered) {
                each.group = not_numbered;
                each.sequence =
                    marks_.empty() ? 0
                    : after == marks_.begin()
                        ? place_in_steps(after->number - 1, false)
                        : place_in_steps((after - 1)->number, each.start_ns < (after - 1)->end_ns);
            }
            // Several kernels of one collective have its number.
            const std::int64_t place = seen[{each.group, each.sequence}]++;
            each.sequence =
                static_cast<std::int64_t>((static_cast<std::uint64_t>(each.sequence) << kPlaceBits) +
                                          static_cast<std::uint64_t>(place));
        }
    }

    void finish() {
        std::vector<RankCollective>& all = events_.collectives;
        std::ranges::stable_sort(all, {}, &RankCollective::start_ns);
        number_by_order();
        name_work();
        if (!events_.has_steps()) {
            RankStep& whole = events_.steps.emplace_back();
            whole.from_ns = events_.start_ns;
            whole.end_ns = events_.end_ns;
        }
        const Intervals compute = united(std::move(compute_)),
                        communication = united(std::move(communication_)), input = united(std::move(input_)),
                        both = intersection(compute, communication);
        for (RankStep& each : events_.steps) {
            each.compute_ns = length_between(compute, each.from_ns, each.end_ns);
            each.communication_ns = length_between(communication, each.from_ns, each.end_ns);
            each.overlap_ns = length_between(both, each.from_ns, each.end_ns);
            each.input_ns = length_between(input, each.from_ns, each.end_ns);
        }
    }

    /// Gives each collective the name of the longest work since the one before it began; none if ranges cover
    /// less than half of that time.
    void name_work() {
        std::ranges::stable_sort(work_, {}, &Work::start_ns);
        std::vector<std::int64_t> time(sites_.size(), 0);
        std::vector<std::uint32_t> used;
        const std::uint32_t none = texts_.number("");
        std::vector<std::uint32_t> text_of(sites_.size(), none);
        auto next = work_.begin();
        std::int64_t left_ns = events_.start_ns;  // the end of the collectives before
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
            each.before = (2 * total < each.start_ns - left_ns ? none : best) & kTextBits;
            left_ns = std::max(left_ns, each.end_ns);
        }
    }

    static constexpr std::uint32_t kNotNumbered = ~std::uint32_t{0}, kNoText = ~std::uint32_t{0},
                                   kTextBits = (1u << 30) - 1;

    const Trace& trace_;
    const RangeColumns ranges_;
    const Row process_;
    const RankOptions& options_;
    TextNumbers& texts_;
    std::vector<SiteProperties> sites_;
    std::vector<CollectiveNumbers> given_;  ///< by range
    RankEvents events_;
    Row step_thread_ = kNoRow;
    bool has_kernels_ = false, has_collective_kernels_ = false;
    std::vector<Mark> marks_;                                        ///< by start; without overlaps
    std::unordered_map<std::uint32_t, std::uint32_t> operation_of_;  ///< texts, by site
    Intervals compute_, communication_, input_;
    std::vector<Work> work_;
};

}  // namespace

std::int32_t world_size(const Trace& trace) {
    for (const MetadataInfo& fact : trace.metadata()) {
        if (fact.key != "distributedInfo") continue;
        const JsonDocument document(fact.json);
        const std::int64_t size = document.root()["world_size"].integer().value_or(0);
        return size > 0 && size <= std::numeric_limits<std::int32_t>::max() ? static_cast<std::int32_t>(size)
                                                                            : 0;
    }
    return 0;
}

std::string place_text(std::string_view group, CollectiveNumber number) {
    const std::int64_t of_group = number >> kPlaceBits,
                       place = number & ((std::int64_t{1} << kPlaceBits) - 1);
    if (group != kGroupByOrder) {
        const bool is_number = group.find_first_not_of("0123456789") == group.npos;
        const bool is_world = group == "0" || group == "default_pg";
        return (is_world ? "world" : (is_number ? "group " : "") + std::string(group)) + " #" +
               std::to_string(of_group);
    }
    std::string order = "#" + std::to_string(place);
    if (of_group == 0) return order;
    if (of_group % 2 == 0) return order + " in step " + std::to_string((of_group - 2) / 2);
    return order +
           (of_group < 3 ? " before the first step" : " after step " + std::to_string((of_group - 3) / 2));
}

WallClock wall_clock_of(const Trace& trace, const ProcessInfo& process) {
    constexpr std::int64_t kLargest = std::int64_t{1} << 61;
    WallClock clock{trace.window().start_ns, std::clamp(process.realtime_offset_ns, -kLargest, kLargest),
                    kUnknownClockError};
    // Times that were moved when traces were merged have another error, too.
    const bool is_moved = std::ranges::any_of(trace.host_clocks(), [&](const HostClockInfo& other) {
        return other.host == process.host && other.error_ns != 0;
    });
    if (process.realtime_error_ns > 0 && !is_moved)
        clock.error_ns = std::min(process.realtime_error_ns, kLargest);
    return clock;
}

RankEvents read_rank(const Trace& trace, Row process, std::int32_t rank, const RankOptions& options,
                     TextNumbers& texts) {
    return RankEventReader(trace, process, options, texts).read(rank);
}

}  // namespace marey
