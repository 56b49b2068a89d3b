// ranks.cpp: the ranks of a distributed program: reads them one by one, then compares them.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include <marey/error.h>
#include <marey/ranks.h>

#include "analyze/ranks/collective_name.h"
#include "analyze/ranks/finding_text.h"
#include "analyze/ranks/job_state.h"
#include "analyze/ranks/matched_collectives.h"
#include "analyze/time_percentiles.h"

namespace marey {
namespace {

constexpr double kContradictions = 0.1;  // of all collectives; more of them prove nothing about ranks

constexpr std::size_t kNoStep = std::numeric_limits<std::size_t>::max();

/// The step of a rank that a time lies in.
std::size_t step_at(const RankEvents& rank, std::int64_t ns) {
    const auto after = std::partition_point(rank.steps.begin(), rank.steps.end(),
                                            [&](const RankStep& step) { return step.from_ns <= ns; });
    if (after == rank.steps.begin() || (after - 1)->end_ns <= ns) return kNoStep;
    return static_cast<std::size_t>(after - 1 - rank.steps.begin());
}

class RankComparison {
  public:
    /// `disagreement`: what find_disagreement() has found; its collectives are partial.
    RankComparison(std::span<const RankEvents> ranks, const TextNumbers& texts,
                   const MatchedCollectives& collectives, Disagreement disagreement)
        : ranks_(ranks), texts_(texts), collectives_(collectives), disagreement_(std::move(disagreement)) {
        for (std::uint32_t i = 0; i < texts.size(); ++i)
            is_synchronising_.push_back(is_synchronising(texts.text(i)));
        clocks_ = fit_clocks(ranks, collectives_, is_synchronising_,
                             [this](std::uint32_t host) { return texts_.text(host); });
    }

    RankReport report() {
        for (const RankEvents& rank : ranks_) {
            waiting_.emplace_back(rank.steps.size(), 0);
            delayed_.emplace_back(rank.steps.size(), 0);
            launch_skew_.emplace_back(rank.steps.size(), 0);
            lags_.emplace_back();
            RankInfo& info = report_.ranks.emplace_back();
            info.rank = rank.rank;
            info.host = texts_.text(rank.host);
            info.pid = rank.pid;
            report_.world_size = std::max(report_.world_size, rank.world_size);
            lateness_.has_steps = lateness_.has_steps || rank.has_steps();
        }
        has_absent_ = report_.world_size > static_cast<std::int64_t>(ranks_.size());
        lateness_.ranks.resize(ranks_.size());
        arrivals_.resize(collectives_.size());
        is_complete_.assign(collectives_.size(), false);
        for (std::size_t i = 0; i < collectives_.size(); ++i) add_collective(i);
        limit_to_steps();
        sum_ranks();
        compare_steps();
        walk_critical_path();
        add_findings();
        add_hosts();
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
        std::int64_t latest = kLeast, second = kLeast, shortest = kMost, next = kMost, first_left = kMost;
        std::int64_t largest_error = 0;
        bool is_known = true;
        for (std::uint32_t i = 0; i < members.size(); ++i) {
            const RankCollective& each = part(members[i]);
            const std::int64_t entered = clock(members[i].rank).to_reference(each.start_ns);
            const std::int64_t stay = each.end_ns - each.start_ns;
            first_left = std::min(first_left, clock(members[i].rank).to_reference(each.end_ns));
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
        // Nobody waited for longer than it stayed.
        by_clock.lag_ns = std::min(latest - second, by_clock.last == by_stay.last ? next : shortest);
        by_clock.bound_ns = 2 * largest_error;
        by_stay.lag_ns = next - shortest;
        by_stay.bound_ns = shortest;  // ranks may leave at different times, while the last data are sent
        if (!is_known) return by_stay;
        // The one that stayed shortest entered, at the latest, that much before the last one.
        const CollectiveMember& stayed = members[by_stay.last];
        const std::int64_t between = latest - clock(stayed.rank).to_reference(part(stayed).start_ns);
        by_clock.disagrees = by_stay.disagrees = between > by_clock.bound_ns + shortest;
        by_clock.is_impossible = by_stay.is_impossible = latest - first_left > by_clock.bound_ns;
        return by_clock.bound_ns <= by_stay.bound_ns ? by_clock : by_stay;
    }

    void add_collective(std::size_t number) {
        const std::span<const CollectiveMember> members = collectives_.of(number);
        const auto any = [&](auto is_it) {
            return std::ranges::any_of(members,
                                       [&](const CollectiveMember& member) { return is_it(part(member)); });
        };
        if (any([](const RankCollective& each) { return each.is_open != 0; })) {
            ++report_.unfinished;
            return;
        }
        if (members.size() < 2) {
            ++report_.unmatched;
            return;
        }
        if (any([](const RankCollective& each) { return each.is_partial != 0; })) return;
        is_complete_[number] = true;
        ++report_.collectives;
        for (const CollectiveMember& member : members) ++report_.ranks[member.rank].collectives;
        if (!is_synchronising_[part(members[0]).name]) return;
        const Arrival arrival = arrivals_[number] = arrival_of(members);
        if (arrival.is_impossible) {
            ++report_.unsynchronised;
            is_complete_[number] = false;
            return;
        }
        ++(arrival.disagrees ? report_.disagreeing : report_.agreeing);
        const CollectiveMember& last = members[arrival.last];
        ++report_.ranks[last.rank].times_last;
        // Without steps, the first one shows when ranks were started.
        const bool is_first = !lateness_.has_steps && std::ranges::any_of(members, [](const auto& member) {
            return member.index == 0;
        });
        const RankCollective& of_last = part(last);
        const std::int64_t entered = clock(last.rank).to_reference(of_last.start_ns);
        const std::int64_t stay_of_last = of_last.end_ns - of_last.start_ns;
        const std::int64_t launched = clock(last.rank).to_reference(first_step_ns(last.rank));
        for (const CollectiveMember& member : members) {
            const RankCollective& each = part(member);
            const std::int64_t own = clock(member.rank).to_reference(each.start_ns);
            const std::int64_t stay = each.end_ns - each.start_ns;
            const std::size_t step = step_at(ranks_[member.rank], each.start_ns);
            if (step == kNoStep) continue;
            const std::int64_t most = std::min(stay, ranks_[member.rank].steps[step].end_ns - each.start_ns);
            const std::int64_t waited =
                std::clamp<std::int64_t>(arrival.is_by_clock ? entered - own : stay - stay_of_last, 0,
                                         std::max<std::int64_t>(most, 0));
            waiting_[member.rank][step] += waited;
            launch_skew_[member.rank][step] +=
                is_first ? waited : std::clamp<std::int64_t>(launched - own, 0, waited);
        }
        // If ranks are absent, one of them may have come later than the last one that was given.
        const bool is_proven = !has_absent_ || arrival.lag_ns > stay_of_last;
        const std::size_t step = step_at(ranks_[last.rank], of_last.start_ns);
        if (!arrival.is_certain() || arrival.disagrees || !is_proven || step == kNoStep || is_first) return;
        const std::int64_t lag = std::min(arrival.lag_ns, std::max<std::int64_t>(entered - launched, 0));
        delayed_[last.rank][step] += lag;
        if (!lateness_.has_steps) lags_[last.rank].push_back(lag);
    }

    /// The start of a rank's first step. Others may have waited for it since they were started.
    std::int64_t first_step_ns(std::uint32_t rank) const {
        return ranks_[rank].has_steps() && !ranks_[rank].steps.empty() ? ranks_[rank].steps[0].from_ns
                                                                       : ranks_[rank].start_ns;
    }

    /// Nobody waits, or keeps others waiting, for longer than a step.
    void limit_to_steps() {
        for (std::size_t i = 0; i < ranks_.size(); ++i) {
            for (std::size_t s = 0; s < ranks_[i].steps.size(); ++s) {
                const std::int64_t most = ranks_[i].steps[s].duration_ns();
                waiting_[i][s] = std::min(waiting_[i][s], most);
                delayed_[i][s] = std::min(delayed_[i][s], most);
            }
        }
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
                info.delayed_ns += delayed_[i][s];
                if (delayed_[i][s] > 0) ++lateness_.ranks[i].late_steps;
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
            std::size_t step;
            std::int64_t duration_ns, work_ns;
        };
        std::map<std::int64_t, std::vector<Entry>> by_number;
        for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
            for (std::size_t s = 0; s < ranks_[i].steps.size(); ++s) {
                const RankStep& step = ranks_[i].steps[s];
                const std::int64_t duration = step.duration_ns();
                by_number[step.number].push_back({i, s, duration, duration - waiting_[i][s]});
            }
        }
        std::erase_if(by_number, [](const auto& step) { return step.second.size() < 2; });
        const bool skips_first = by_number.size() > 2;
        double total = 0;
        for (auto& [number, entries] : by_number) {
            std::ranges::sort(entries, {}, &Entry::work_ns);
            RankStepInfo& step = report_.steps.emplace_back();
            step.number = number;
            step.ranks = entries.size();
            step.slowest = ranks_[entries.back().rank].rank;
            step.most_work_ns = entries.back().work_ns;
            step.median_work_ns = entries[nearest_rank(entries.size(), 50)].work_ns;
            double work = 0, time = 0;
            for (const Entry& entry : entries) {
                work += static_cast<double>(entry.work_ns);
                time += static_cast<double>(entry.duration_ns);
                step.duration_ns = std::max(step.duration_ns, entry.duration_ns);
            }
            const double mean = work / static_cast<double>(entries.size());
            step.imbalance = mean > 0 ? static_cast<double>(step.most_work_ns) / mean - 1 : 0;
            total += static_cast<double>(step.duration_ns);
            if (skips_first && report_.steps.size() == 1) continue;
            ++lateness_.steps;
            lateness_.steps_ns += static_cast<double>(step.duration_ns);
            if (time - work >= kImbalanceShare * time) ++lateness_.waiting_steps;
            for (const Entry& entry : entries) {
                RankLateness& rank = lateness_.ranks[entry.rank];
                rank.time_ns += entry.duration_ns;
                rank.waiting_ns += std::max<std::int64_t>(
                    waiting_[entry.rank][entry.step] - launch_skew_[entry.rank][entry.step], 0);
                rank.delayed_ns += delayed_[entry.rank][entry.step];
            }
        }
        if (!lateness_.has_steps) leave_out_launch();
        if (!report_.steps.empty()) report_.mean_step_ns = total / static_cast<double>(report_.steps.size());
    }

    /// Without steps: what comes before the end of the first collective does not count, and collectives take
    /// the place of steps.
    void leave_out_launch() {
        double slowest = 0;
        for (std::size_t i = 0; i < ranks_.size(); ++i) {
            RankLateness& rank = lateness_.ranks[i];
            if (!ranks_[i].collectives.empty()) {
                const std::int64_t met = ranks_[i].collectives[0].end_ns - ranks_[i].start_ns;
                rank.time_ns = std::max<std::int64_t>(rank.time_ns - std::max<std::int64_t>(met, 0), 0);
            }
            slowest = std::max(slowest, static_cast<double>(rank.time_ns));
            // One long pause does not make a rank late.
            const double usual =
                static_cast<double>(rank.delayed_ns) /
                static_cast<double>(std::max<std::uint64_t>(report_.ranks[i].collectives, 1));
            rank.late_collectives = static_cast<std::uint64_t>(std::ranges::count_if(
                lags_[i], [&](std::int64_t lag) { return static_cast<double>(lag) >= usual / 2; }));
        }
        lateness_.steps_ns = std::min(lateness_.steps_ns, slowest);
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
        // The index of a rank's last collective before `end` that is complete and was left until `limit_ns`.
        const auto last_complete = [&](std::uint32_t rank, std::uint32_t end, std::int64_t limit_ns) {
            const std::vector<RankCollective>& own = ranks_[rank].collectives;
            while (end > 0 &&
                   (own[end - 1].end_ns > limit_ns || !is_complete_[collectives_.number[rank][end - 1]]))
                --end;
            return end;
        };
        constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
        CollectiveMember at{0, 0};
        std::int64_t latest = std::numeric_limits<std::int64_t>::min();
        for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
            const auto count = static_cast<std::uint32_t>(ranks_[i].collectives.size());
            const std::uint32_t last = last_complete(i, count, kNoLimit);
            if (last == 0) continue;
            const std::int64_t end = clock(i).to_reference(ranks_[i].collectives[last - 1].end_ns);
            if (end > latest) latest = end, at = {i, last - 1};
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
            const std::uint32_t before = last_complete(at.rank, at.index, entered.start_ns);
            if (before == 0) break;
            add(at.rank, entered.before, false,
                entered.start_ns - ranks_[at.rank].collectives[before - 1].end_ns);
            at.index = before - 1;
        }
        for (auto& [key, each] : parts) {
            each.rank = ranks_[std::get<0>(key)].rank;
            each.name = texts_.text(std::get<1>(key));
            each.is_collective = std::get<2>(key);
            report_.critical_path.push_back(std::move(each));
        }
        std::ranges::stable_sort(report_.critical_path, std::greater<>(), &CriticalPart::time_ns);
    }

    void add_findings() {
        report_.step_without_worst_ns = report_.mean_step_ns;
        std::vector<RankState> states;
        for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
            states.push_back(state_of(ranks_[i], texts_));
            states.back().end_ns = clock(i).to_reference(ranks_[i].end_ns);
        }
        report_.findings = job_findings(states);
        if (disagreement_.finding) {
            std::erase_if(report_.findings, [](const RankFinding& each) { return each.rule == "hang"; });
            report_.findings.push_back(*disagreement_.finding);
        }
        const bool is_whole = std::ranges::all_of(
            report_.findings, [](const RankFinding& each) { return each.rule == "absent"; });
        // Slow steps before a job hung or crashed do not explain it.
        if (!is_whole || disagreement_.collectives > 0) return;
        if (std::optional<RankFinding> unequal = unequal_steps(ranks_))
            report_.findings.push_back(std::move(*unequal));
        const std::uint64_t contradictions = report_.disagreeing + report_.unsynchronised;
        if (static_cast<double>(contradictions) >
            kContradictions * static_cast<double>(contradictions + report_.agreeing))
            return;
        const std::vector<RankFinding> slow = rank_findings(report_, lateness_);
        report_.findings.insert(report_.findings.end(), slow.begin(), slow.end());
        find_worst();
    }

    void find_worst() {
        const auto worst = std::ranges::max_element(lateness_.ranks, {}, &RankLateness::delayed_ns);
        const auto delayed = static_cast<double>(worst->delayed_ns);
        if (lateness_.steps == 0 || delayed < kDelayShare * lateness_.steps_ns || delayed <= 0) return;
        report_.worst_rank = ranks_[static_cast<std::size_t>(worst - lateness_.ranks.begin())].rank;
        report_.step_without_worst_ns =
            std::max(report_.mean_step_ns - delayed / static_cast<double>(lateness_.steps), 0.0);
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
        if (report_.unsynchronised > 0)
            report_.problems.push_back(
                {"collective_not_synchronised",
                 "Collectives that a rank left before another one entered: the ranks did "
                 "not wait for each other, or they are of different runs.",
                 report_.unsynchronised});
        report_.mismatched = disagreement_.collectives;
    }

    std::span<const RankEvents> ranks_;
    const TextNumbers& texts_;
    const MatchedCollectives& collectives_;
    const Disagreement disagreement_;
    std::vector<bool> is_synchronising_;  ///< by text
    JobClocks clocks_;
    RankReport report_;
    std::vector<Arrival> arrivals_;                   ///< by collective
    std::vector<bool> is_complete_;                   ///< by collective: it counts
    std::vector<std::vector<std::int64_t>> waiting_;  ///< by rank and step
    std::vector<std::vector<std::int64_t>> delayed_;  ///< likewise
    std::vector<std::vector<std::int64_t>>
        launch_skew_;                              ///< the part of waiting_ that is due to different starts
    std::vector<std::vector<std::int64_t>> lags_;  ///< by rank, if there are no steps
    JobLateness lateness_;
    bool has_absent_ = false;
};

}  // namespace

struct RankReader::State {
    RankOptions options;
    TextNumbers texts;
    std::vector<RankEvents> processes;  ///< that have a rank
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
        for (const RankEvents& known : state_->processes) {
            if (known.rank == rank && are_of_two_jobs(known, events, state_->texts))
                throw Error("rank " + std::to_string(rank) + " is in two of the given traces (processes " +
                            std::to_string(known.pid) + " and " + std::to_string(events.pid) + ")");
        }
        state_->processes.push_back(std::move(events));
    }
    if (!has_rank) throw Error(std::string(kNoRankText));
}

RankReport RankReader::report() const {
    const RankLives lives = find_last_lives(state_->processes, state_->texts);
    const auto ranks = std::span(state_->processes).first(lives.ranks);
    if (ranks.size() < 2) {
        const bool is_known = !ranks.empty() && ranks[0].world_size > 1;
        throw Error("at least two ranks are needed, got " + std::to_string(ranks.size()) +
                    (is_known ? " of " + std::to_string(ranks[0].world_size) : ""));
    }
    const MatchedCollectives collectives = match_collectives(ranks);
    Disagreement disagreement = find_disagreement(ranks, collectives, state_->texts);
    RankReport report = RankComparison(ranks, state_->texts, collectives, std::move(disagreement)).report();
    report.findings.insert(report.findings.begin(), lives.restarts.begin(), lives.restarts.end());
    return report;
}

RankReport rank_report(std::span<const Trace> traces, const RankOptions& options) {
    RankReader reader(options);
    for (const Trace& trace : traces) reader.add(trace);
    return reader.report();
}

}  // namespace marey
