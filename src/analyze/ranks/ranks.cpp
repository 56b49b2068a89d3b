// ranks.cpp: the ranks of a distributed program: reads them one by one, then compares them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/ranks.h>

#include "analyze/ranks/collective_name.h"
#include "analyze/ranks/matched_collectives.h"
#include "analyze/time_ranks.h"

namespace marey {
namespace {

constexpr double kDelayShare = 0.02;      // of the time of all steps
constexpr double kLateSteps = 0.5;        // of a rank's steps
constexpr double kLateCollectives = 0.5;  // of a rank's collectives, where there are no steps
constexpr std::uint64_t kFewestCollectives = 8;
constexpr double kExplained = 0.5;        // of the delay, by more work than on the median rank
constexpr double kImbalanceShare = 0.10;  // of the time of all ranks, spent waiting

std::string percent_text(double share) {
    return std::to_string(std::lround(share * 100)) + "%";
}

std::string time_text(double ns) {
    const bool is_ms = ns >= 1e6;
    const double value = ns / (is_ms ? 1e6 : 1e3);
    const long tenths = std::lround(value * 10);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + (is_ms ? " ms" : " us");
}

std::int64_t total_time(const RankInfo& rank) {
    return rank.step_times.total_ns;
}
/// Own work that is neither computing nor waiting for input: launching, Python, other host code.
std::int64_t other_time(const RankInfo& rank) {
    return total_time(rank) - rank.compute_ns - rank.input_ns - rank.exposed_ns();
}

/// A rank's time per step beyond that of the median rank.
template <class Time>
double excess(const std::vector<RankInfo>& ranks, const RankInfo& rank, Time time) {
    const auto per_step = [&](const RankInfo& each) {
        return static_cast<double>(time(each)) / static_cast<double>(std::max<std::uint64_t>(each.steps, 1));
    };
    std::vector<double> all(ranks.size());
    std::transform(ranks.begin(), ranks.end(), all.begin(), per_step);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(nearest_rank(all.size(), 50));
    std::nth_element(all.begin(), middle, all.end());
    return per_step(rank) - *middle;
}

std::string rank_text(const RankInfo& rank) {
    return "rank " + std::to_string(rank.rank) + " on " + (rank.host.empty() ? "an unknown host" : rank.host);
}

/// Without steps, a report has one that is the whole recording.
bool has_steps(const RankReport& report) {
    return report.steps.size() > 1;
}

bool is_often_late(const RankReport& report, const RankInfo& rank, std::uint64_t late_steps) {
    if (has_steps(report))
        return static_cast<double>(late_steps) >= kLateSteps * static_cast<double>(rank.steps);
    return rank.collectives >= kFewestCollectives &&
           static_cast<double>(rank.times_last) >= kLateCollectives * static_cast<double>(rank.collectives);
}

RankFinding delay_finding(const RankReport& report, const RankInfo& rank, std::uint64_t late, double share) {
    const double per_step =
        static_cast<double>(rank.delayed_ns) / static_cast<double>(std::max<std::uint64_t>(rank.steps, 1));
    struct Cause {
        const char* rule;
        double excess_ns;
        const char* text;
    };
    const Cause causes[] = {
        {"late_input", excess(report.ranks, rank, [](const RankInfo& each) { return each.input_ns; }),
         "it waits for input data "},
        {"slow_kernels", excess(report.ranks, rank, [](const RankInfo& each) { return each.compute_ns; }),
         "its kernels and operators take "},
        {"straggler", excess(report.ranks, rank, other_time), "its other code takes "},
    };
    const Cause& most =
        *std::max_element(std::begin(causes), std::end(causes),
                          [](const Cause& a, const Cause& b) { return a.excess_ns < b.excess_ns; });
    RankFinding finding;
    finding.rank = rank.rank;
    finding.host = rank.host;
    finding.share = share;
    finding.text =
        rank_text(rank) + " keeps the others waiting for " + percent_text(share) + " of the time, " +
        (has_steps(report) ? "in " + std::to_string(late) + " of " + std::to_string(rank.steps) + " steps: "
                           : "last in " + std::to_string(rank.times_last) + " of " +
                                 std::to_string(rank.collectives) + " collectives: ");
    if (most.excess_ns >= kExplained * per_step) {
        finding.rule = most.rule;
        finding.text += most.text + time_text(most.excess_ns) + " longer " +
                        (has_steps(report) ? "per step " : "") + "than the median rank";
    } else {
        finding.rule = "slow_link";
        finding.text +=
            "its own work takes no longer than that of the median rank, but it leaves "
            "collectives late";
    }
    return finding;
}

/// `late_steps`: for each rank, in how many of its steps it kept the others waiting for certain.
std::vector<RankFinding> rank_findings(const RankReport& report, std::span<const std::uint64_t> late_steps) {
    std::vector<RankFinding> findings;
    const double all_steps = report.mean_step_ns * static_cast<double>(report.steps.size());
    if (all_steps <= 0) return findings;
    double waiting = 0, total = 0, explained = 0;
    for (std::size_t i = 0; i < report.ranks.size(); ++i) {
        const RankInfo& rank = report.ranks[i];
        waiting += static_cast<double>(rank.waiting_ns);
        total += static_cast<double>(total_time(rank));
        const double share = static_cast<double>(rank.delayed_ns) / all_steps;
        if (share < kDelayShare || !is_often_late(report, rank, late_steps[i])) continue;
        explained += static_cast<double>(rank.delayed_ns) * static_cast<double>(report.ranks.size() - 1);
        findings.push_back(delay_finding(report, rank, late_steps[i], share));
    }
    std::stable_sort(findings.begin(), findings.end(),
                     [](const RankFinding& a, const RankFinding& b) { return a.share > b.share; });
    const double share = total > 0 ? (waiting - explained) / total : 0;
    if (share >= kImbalanceShare) {
        const auto [least, most] = std::minmax_element(
            report.ranks.begin(), report.ranks.end(), [](const RankInfo& a, const RankInfo& b) {
                return total_time(a) - a.waiting_ns < total_time(b) - b.waiting_ns;
            });
        RankFinding& finding = findings.emplace_back();
        finding.rule = "imbalance";
        finding.share = share;
        finding.text = "ranks wait for each other for " + percent_text(share) +
                       " of the time: their work differs, from " +
                       time_text(static_cast<double>(total_time(*least) - least->waiting_ns) /
                                 static_cast<double>(std::max<std::uint64_t>(least->steps, 1))) +
                       " per step on " + rank_text(*least) + " to " +
                       time_text(static_cast<double>(total_time(*most) - most->waiting_ns) /
                                 static_cast<double>(std::max<std::uint64_t>(most->steps, 1))) +
                       " on " + rank_text(*most);
    }
    return findings;
}

constexpr std::size_t kNoStep = std::numeric_limits<std::size_t>::max();

/// The step of a rank that a time lies in.
std::size_t step_at(const RankEvents& rank, std::int64_t ns) {
    const auto after = std::partition_point(rank.steps.begin(), rank.steps.end(),
                                            [&](const RankStep& step) { return step.start_ns <= ns; });
    if (after == rank.steps.begin() || (after - 1)->end_ns <= ns) return kNoStep;
    return static_cast<std::size_t>(after - 1 - rank.steps.begin());
}

class RankComparison {
  public:
    RankComparison(std::span<const RankEvents> ranks, const TextNumbers& texts)
        : ranks_(ranks), texts_(texts), collectives_(match_collectives(ranks)) {
        for (std::uint32_t i = 0; i < texts.size(); ++i)
            is_synchronising_.push_back(is_synchronising(texts.text(i)));
        clocks_ = fit_clocks(ranks, collectives_, is_synchronising_,
                             [this](std::uint32_t host) { return texts_.text(host); });
    }

    RankReport report() {
        for (const RankEvents& rank : ranks_) {
            waiting_.emplace_back(rank.steps.size(), 0);
            RankInfo& info = report_.ranks.emplace_back();
            info.rank = rank.rank;
            info.host = texts_.text(rank.host);
            info.pid = rank.pid;
        }
        late_steps_.resize(ranks_.size());
        arrivals_.resize(collectives_.size());
        for (std::size_t i = 0; i < collectives_.size(); ++i) add_collective(i);
        sum_ranks();
        compare_steps();
        walk_critical_path();
        find_worst();
        add_hosts();
        report_.findings = rank_findings(report_, late_counts());
        return std::move(report_);
    }

  private:
    const RankCollective& part(const CollectiveMember& member) const {
        return ranks_[member.rank].collectives[member.index];
    }
    const HostClock& clock(std::uint32_t rank) const { return clocks_.clocks.hosts[clocks_.host_of[rank]]; }
    std::int64_t error(const CollectiveMember& member) const {
        const std::int64_t host = clock(member.rank).error_at(part(member).start_ns);
        return host == kUnknownClockError ? host : host + ranks_[member.rank].error_ns;
    }

    Arrival arrival_of(std::span<const CollectiveMember> members) const {
        Arrival by_clock, by_stay;
        constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
        constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
        std::int64_t latest = kLeast, second = kLeast, shortest = kMost, next = kMost;
        std::int64_t largest_error = 0;
        bool is_known = true;
        for (std::uint32_t i = 0; i < members.size(); ++i) {
            const RankCollective& each = part(members[i]);
            const std::int64_t entered = clock(members[i].rank).to_reference(each.start_ns);
            const std::int64_t stay = each.end_ns - each.start_ns;
            const std::int64_t bound = error(members[i]);
            is_known = is_known && bound != kUnknownClockError;
            if (is_known) largest_error = std::max(largest_error, bound);
            if (entered > latest) {
                second = std::exchange(latest, entered);
                by_clock.last = i;
            } else {
                second = std::max(second, entered);
            }
            if (stay < shortest) {
                next = std::exchange(shortest, stay);
                by_stay.last = i;
            } else {
                next = std::min(next, stay);
            }
        }
        by_clock.is_by_clock = true;
        by_clock.lag_ns = latest - second;
        by_clock.bound_ns = 2 * largest_error;
        by_stay.lag_ns = next - shortest;
        by_stay.bound_ns = shortest;  // ranks may leave at different times, while the last data are sent
        if (!is_known) return by_stay;
        // The one that stayed shortest entered, at the latest, that much before the last one.
        const CollectiveMember& stayed = members[by_stay.last];
        const std::int64_t between = latest - clock(stayed.rank).to_reference(part(stayed).start_ns);
        by_clock.disagrees = by_stay.disagrees = between > by_clock.bound_ns + shortest;
        return by_clock.bound_ns <= by_stay.bound_ns ? by_clock : by_stay;
    }

    void add_collective(std::size_t number) {
        const std::span<const CollectiveMember> members = collectives_.of(number);
        if (members.size() < 2) {
            ++report_.unmatched;
            return;
        }
        ++report_.collectives;
        for (const CollectiveMember& member : members) ++report_.ranks[member.rank].collectives;
        if (!is_synchronising_[part(members[0]).name]) return;
        const Arrival arrival = arrivals_[number] = arrival_of(members);
        ++(arrival.disagrees ? report_.disagreeing : report_.agreeing);
        const CollectiveMember& last = members[arrival.last];
        ++report_.ranks[last.rank].times_last;
        const RankCollective& of_last = part(last);
        const std::int64_t entered = clock(last.rank).to_reference(of_last.start_ns);
        for (const CollectiveMember& member : members) {
            const RankCollective& each = part(member);
            const std::int64_t stay = each.end_ns - each.start_ns;
            const std::int64_t waited = arrival.is_by_clock
                                            ? entered - clock(member.rank).to_reference(each.start_ns)
                                            : stay - (of_last.end_ns - of_last.start_ns);
            const std::size_t step = step_at(ranks_[member.rank], each.start_ns);
            if (step != kNoStep) waiting_[member.rank][step] += std::clamp<std::int64_t>(waited, 0, stay);
        }
        if (!arrival.is_certain()) return;
        const std::size_t step = step_at(ranks_[last.rank], of_last.start_ns);
        if (step == kNoStep) return;
        report_.ranks[last.rank].delayed_ns += arrival.lag_ns;
        std::vector<std::size_t>& late = late_steps_[last.rank];
        if (late.empty() || late.back() != step) late.push_back(step);
    }

    void sum_ranks() {
        for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
            RankInfo& info = report_.ranks[i];
            std::vector<std::int64_t> times;
            for (std::size_t s = 0; s < ranks_[i].steps.size(); ++s) {
                const RankStep& step = ranks_[i].steps[s];
                times.push_back(step.duration_ns());
                info.compute_ns += step.compute_ns;
                info.communication_ns += step.communication_ns;
                info.overlap_ns += step.overlap_ns;
                info.input_ns += step.input_ns;
                info.waiting_ns += waiting_[i][s];
            }
            info.steps = times.size();
            info.step_times = time_statistics(std::move(times));
            const std::int64_t of_host = clock(i).error_ns;
            info.clock_error_ns = of_host == kUnknownClockError ? of_host : of_host + ranks_[i].error_ns;
        }
    }

    void compare_steps() {
        struct Entry {
            std::uint32_t rank;
            std::int64_t duration_ns, work_ns;
        };
        std::map<std::int64_t, std::vector<Entry>> by_number;
        for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
            for (std::size_t s = 0; s < ranks_[i].steps.size(); ++s) {
                const RankStep& step = ranks_[i].steps[s];
                const std::int64_t duration = step.duration_ns();
                by_number[step.number].push_back(
                    {i, duration, std::max<std::int64_t>(duration - waiting_[i][s], 0)});
            }
        }
        double total = 0;
        for (auto& [number, entries] : by_number) {
            if (entries.size() < 2) continue;
            std::sort(entries.begin(), entries.end(),
                      [](const Entry& a, const Entry& b) { return a.work_ns < b.work_ns; });
            RankStepInfo& step = report_.steps.emplace_back();
            step.number = number;
            step.ranks = entries.size();
            step.slowest = ranks_[entries.back().rank].rank;
            step.most_work_ns = entries.back().work_ns;
            step.median_work_ns = entries[nearest_rank(entries.size(), 50)].work_ns;
            double sum = 0;
            for (const Entry& entry : entries) {
                sum += static_cast<double>(entry.work_ns);
                step.duration_ns = std::max(step.duration_ns, entry.duration_ns);
            }
            const double mean = sum / static_cast<double>(entries.size());
            step.imbalance = mean > 0 ? static_cast<double>(step.most_work_ns) / mean - 1 : 0;
            total += static_cast<double>(step.duration_ns);
        }
        if (!report_.steps.empty()) report_.mean_step_ns = total / static_cast<double>(report_.steps.size());
    }

    /// From the collective that ended last back to the first: each began when its last rank entered it, and
    /// that rank worked since it had left the collective before.
    void walk_critical_path() {
        std::map<std::tuple<std::uint32_t, std::uint32_t, bool>, CriticalPart> parts;
        const auto add = [&](std::uint32_t rank, std::uint32_t name, bool is_collective, std::int64_t ns) {
            CriticalPart& each = parts[{rank, name, is_collective}];
            ++each.count;
            each.time_ns += std::max<std::int64_t>(ns, 0);
            report_.ranks[rank].critical_ns += std::max<std::int64_t>(ns, 0);
        };
        CollectiveMember at{0, 0};
        std::int64_t latest = std::numeric_limits<std::int64_t>::min();
        for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
            if (ranks_[i].collectives.empty()) continue;
            const auto index = static_cast<std::uint32_t>(ranks_[i].collectives.size() - 1);
            const std::int64_t end = clock(i).to_reference(ranks_[i].collectives[index].end_ns);
            if (end > latest) latest = end, at = {i, index};
        }
        if (latest == std::numeric_limits<std::int64_t>::min()) return;
        for (;;) {
            const RankCollective& left = part(at);
            const std::int64_t end = clock(at.rank).to_reference(left.end_ns);
            const std::uint32_t number = collectives_.number[at.rank][at.index];
            const std::span<const CollectiveMember> members = collectives_.of(number);
            const std::uint32_t name = left.name;
            if (members.size() > 1 && is_synchronising_[name]) at = members[arrivals_[number].last];
            const RankCollective& entered = part(at);
            const std::int64_t start = clock(at.rank).to_reference(entered.start_ns);
            add(at.rank, name, true, end - start);
            std::uint32_t before = at.index;
            const std::vector<RankCollective>& own = ranks_[at.rank].collectives;
            while (before > 0 && own[before - 1].end_ns > entered.start_ns) --before;
            if (before == 0) break;
            add(at.rank, entered.before, false, entered.start_ns - own[before - 1].end_ns);
            at.index = before - 1;
        }
        for (auto& [key, each] : parts) {
            each.rank = ranks_[std::get<0>(key)].rank;
            each.name = texts_.text(std::get<1>(key));
            each.is_collective = std::get<2>(key);
            report_.critical_path.push_back(std::move(each));
        }
        std::stable_sort(report_.critical_path.begin(), report_.critical_path.end(),
                         [](const CriticalPart& a, const CriticalPart& b) { return a.time_ns > b.time_ns; });
    }

    void find_worst() {
        report_.step_without_worst_ns = report_.mean_step_ns;
        const auto worst = std::max_element(
            report_.ranks.begin(), report_.ranks.end(),
            [](const RankInfo& a, const RankInfo& b) { return a.delayed_ns < b.delayed_ns; });
        if (worst->delayed_ns == 0 || report_.steps.empty()) return;
        report_.worst_rank = worst->rank;
        report_.step_without_worst_ns -=
            static_cast<double>(worst->delayed_ns) / static_cast<double>(report_.steps.size());
    }

    void add_hosts() {
        report_.reference_host = clocks_.clocks.reference;
        for (std::size_t i = 0; i < clocks_.host_names.size(); ++i)
            report_.hosts.push_back({texts_.text(clocks_.host_names[i]), clocks_.clocks.hosts[i]});
        report_.problems = clocks_.clocks.problems;
        if (report_.unmatched > 0)
            report_.problems.push_back({"collective_unmatched",
                                        "Collectives that only one of the given ranks recorded.",
                                        report_.unmatched});
    }

    std::vector<std::uint64_t> late_counts() const {
        std::vector<std::uint64_t> counts;
        for (std::vector<std::size_t> late : late_steps_) {
            std::sort(late.begin(), late.end());
            counts.push_back(
                static_cast<std::uint64_t>(std::unique(late.begin(), late.end()) - late.begin()));
        }
        return counts;
    }

    std::span<const RankEvents> ranks_;
    const TextNumbers& texts_;
    const MatchedCollectives collectives_;
    std::vector<bool> is_synchronising_;  ///< by text
    JobClocks clocks_;
    RankReport report_;
    std::vector<Arrival> arrivals_;                   ///< by collective
    std::vector<std::vector<std::int64_t>> waiting_;  ///< by rank and step
    std::vector<std::vector<std::size_t>> late_steps_;
};

}  // namespace

struct RankReader::State {
    RankOptions options;
    TextNumbers texts;
    std::vector<RankEvents> ranks;
};

RankReader::RankReader(RankOptions options) : state_(std::make_unique<State>()) {
    state_->options = std::move(options);
}
RankReader::~RankReader() = default;
RankReader::RankReader(RankReader&&) noexcept = default;
RankReader& RankReader::operator=(RankReader&&) noexcept = default;

void RankReader::add(const Trace& trace) {
    bool has_rank = false;
    for (Row process = 0; process < trace.processes().size(); ++process) {
        const std::int32_t rank = trace.processes()[process].node;
        if (rank < 0) continue;
        has_rank = true;
        RankEvents events = read_rank(trace, process, rank, state_->options, state_->texts);
        const auto known = std::find_if(state_->ranks.begin(), state_->ranks.end(),
                                        [&](const RankEvents& other) { return other.rank == rank; });
        if (known == state_->ranks.end()) {
            state_->ranks.push_back(std::move(events));
        } else if (known->collectives.empty()) {
            if (known->steps.empty() || !events.collectives.empty()) *known = std::move(events);
        } else if (!events.collectives.empty()) {
            throw Error("rank " + std::to_string(rank) + " is in two of the given traces (processes " +
                        std::to_string(known->pid) + " and " + std::to_string(events.pid) + ")");
        }  // otherwise: a child process, such as a data loader's worker, has its parent's rank
    }
    if (!has_rank) throw Error("no process has a rank (record with marey.torch, or set the variable RANK)");
}

RankReport RankReader::report() const {
    std::vector<RankEvents>& ranks = state_->ranks;
    if (ranks.size() < 2) throw Error("at least two ranks are needed, got " + std::to_string(ranks.size()));
    std::sort(ranks.begin(), ranks.end(),
              [](const RankEvents& a, const RankEvents& b) { return a.rank < b.rank; });
    return RankComparison(ranks, state_->texts).report();
}

RankFiles read_ranks(std::span<const std::string> paths, const RankOptions& options,
                     const std::string& format) {
    namespace fs = std::filesystem;
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code error;
        if (!fs::is_directory(path, error)) {
            files.push_back(path);
            continue;
        }
        const std::size_t first = files.size();
        for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
            if (entry->path().extension() == ".marey") files.push_back(entry->path().string());
        }
        if (error) throw Error(path + ": " + error.message());
        if (files.size() == first) throw Error(path + ": no captures (*.marey) in this folder");
        std::sort(files.begin() + static_cast<std::ptrdiff_t>(first), files.end());
    }
    RankFiles result;
    RankReader reader(options);
    for (const std::string& file : files) {
        try {
            reader.add(open_trace(file, format));
        } catch (const Error& error) {
            const std::string_view text = error.what();
            const bool is_named = text.starts_with(file + ": ");
            result.left_out.push_back({file, std::string(is_named ? text.substr(file.size() + 2) : text)});
        }
    }
    try {
        result.report = reader.report();
    } catch (const Error& error) {
        if (result.left_out.empty()) throw;
        const RankFileError& first = result.left_out.front();
        throw Error(std::string(error.what()) + "; " + first.path + ": " + first.text);
    }
    return result;
}

RankReport rank_report(std::span<const Trace> traces, const RankOptions& options) {
    RankReader reader(options);
    for (const Trace& trace : traces) reader.add(trace);
    return reader.report();
}

}  // namespace marey
