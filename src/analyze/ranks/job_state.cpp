// job_state.cpp: what the ranks of a job did last, where they got out of step, and which of
// their runs counts: that of a rank that was started again, not of its child processes.
#include "analyze/ranks/job_state.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "analyze/ranks/collective_name.h"
#include "analyze/ranks/finding_text.h"

namespace marey {
namespace {

constexpr std::size_t kFewestIntervals = 3;

/// The median time from one collective to the next; 0: there are too few.
std::int64_t usual_interval(const std::vector<RankCollective>& collectives) {
    std::vector<std::int64_t> times;
    for (std::size_t i = 1; i < collectives.size(); ++i) {
        if (collectives[i].is_open == 0)
            times.push_back(collectives[i].start_ns - collectives[i - 1].start_ns);
    }
    if (times.size() < kFewestIntervals) return 0;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::nth_element(times.begin(), middle, times.end());
    return std::max<std::int64_t>(*middle, 1);
}

/// "all_gather on rank 1, all_reduce on others": what most ranks do comes last.
template <class Name>
std::string by_ranks_text(std::map<Name, std::vector<std::int32_t>> ranks_by, auto name_text) {
    std::vector<std::pair<Name, std::vector<std::int32_t>>> all(ranks_by.begin(), ranks_by.end());
    std::ranges::stable_sort(all, {}, [](const auto& a) { return a.second.size(); });
    std::string text;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool is_rest = i + 1 == all.size() && all[i].second.size() > 1;
        text += (i == 0 ? "" : ", ") + name_text(all[i].first) + " on " +
                (is_rest ? "others" : ranks_text(all[i].second));
    }
    return text;
}

/// The only rank that differs from all others; -1: there is none.
template <class Name>
std::int32_t odd_rank(const std::map<Name, std::vector<std::int32_t>>& ranks_by) {
    if (ranks_by.size() != 2) return -1;
    const auto &first = ranks_by.begin()->second, &second = std::next(ranks_by.begin())->second;
    if (first.size() == second.size()) return -1;
    const auto& fewer = first.size() < second.size() ? first : second;
    return fewer.size() == 1 ? fewer[0] : -1;
}

/// "5", "5 of group data", "0 of step 3"
std::string number_text(const std::string& group, CollectiveNumber number, bool is_only_group) {
    const std::string place = place_text(group, number);
    const std::size_t mark = place.find('#');
    std::string text = place.substr(mark + 1);
    if (const std::size_t inside = text.find(" in step "); inside != text.npos)
        text.replace(inside, 9, " of step ");
    if (mark > 0 && !is_only_group) text += " of " + place.substr(0, mark - 1);
    return text;
}

/// Whether b began after a had ended, in the same run of `marey run`.
bool is_later(const RankEvents& a, const RankEvents& b, const TextNumbers& texts) {
    const bool is_same_process = a.pid == b.pid && a.process_start == b.process_start;
    return a.tree == b.tree && !texts.text(a.tree).empty() && a.host == b.host && a.end_ns <= b.start_ns &&
           !is_same_process;  // which has replaced its program
}

/// Whether it is a rank's own process. One without any of these may prepare or evaluate something.
bool takes_part(const RankEvents* process) {
    return !process->collectives.empty() || process->has_steps() || process->end == RankEnd::Died ||
           process->exit_code > 0;
}

using Lives = std::vector<const RankEvents*>;

/// The processes of one rank without child processes, oldest first.
Lives lives_of(Lives processes, const TextNumbers& texts) {
    std::ranges::stable_sort(processes, {}, &RankEvents::start_ns);
    const auto weight = [](const RankEvents* each) {
        return std::tuple(!each->collectives.empty(), each->has_steps(), -each->start_ns);
    };
    Lives lives;
    for (const RankEvents* const process : processes) {
        if (lives.empty() || is_later(*lives.back(), *process, texts)) {
            lives.push_back(process);
        } else if (weight(process) > weight(lives.back())) {
            lives.back() = process;
        }
    }
    if (std::ranges::any_of(lives, takes_part)) {
        std::erase_if(lives, [](const RankEvents* life) { return !takes_part(life); });
    } else {
        lives.resize(1);
    }
    return lives;
}

/// "ranks 0, 1 (processes 17, 18)"
std::string run_text(const Lives& run) {
    constexpr std::size_t kPids = 16;
    std::vector<std::int32_t> ranks;
    std::string pids;
    for (const RankEvents* const each : run) {
        ranks.push_back(each->rank);
        if (ranks.size() <= kPids) pids += (pids.empty() ? "" : ", ") + std::to_string(each->pid);
    }
    if (run.size() > kPids) pids += ", ...";
    return ranks_text(ranks) + (run.size() == 1 ? " (process " : " (processes ") + pids + ")";
}

/// Why a run ended; "" if nothing is known.
std::string failure_of(const Lives& run, const TextNumbers& texts) {
    std::vector<RankState> states;
    for (const RankEvents* const each : run) {
        states.push_back(state_of(*each, texts));
        states.back().world_size = 0;  // ranks that were not started again are in no earlier run
    }
    for (const RankFinding& finding : job_findings(states)) return ": " + finding.text;
    return "";
}

}  // namespace

RankState state_of(const RankEvents& rank, const TextNumbers& texts) {
    RankState state{.rank = rank.rank,
                    .world_size = rank.world_size,
                    .host = texts.text(rank.host),
                    .end = rank.end,
                    .exit_code = rank.exit_code,
                    .exit_signal = rank.exit_signal,
                    .end_ns = rank.end_ns,
                    .open_name = texts.text(rank.open_name),
                    .open_ns = rank.open_ns,
                    .usual_ns = usual_interval(rank.collectives)};
    std::map<std::uint32_t, RankGroupState> groups;
    for (const RankCollective& each : rank.collectives) {
        const auto [found, is_new] = groups.try_emplace(each.group);
        RankGroupState& group = found->second;
        group.entered = is_new ? each.sequence : std::max(group.entered, each.sequence);
        if (each.is_open == 0) continue;
        const std::string& name = texts.text(each.group);
        group.open.push_back({texts.text(each.operation), place_text(name, each.sequence), each.sequence,
                              rank.end_ns - each.start_ns,
                              communication_kind(texts.text(each.name)) == CommunicationKind::Call});
    }
    for (auto& [name, group] : groups) {
        group.group = texts.text(name);
        std::ranges::sort(group.open, {}, &OpenCollective::sequence);
        state.groups.push_back(std::move(group));
    }
    return state;
}

Disagreement find_disagreement(std::span<RankEvents> ranks, const MatchedCollectives& collectives,
                               const TextNumbers& texts) {
    const auto part = [&](const CollectiveMember& member) -> const RankCollective& {
        return ranks[member.rank].collectives[member.index];
    };
    // The first disagreement of each group.
    std::map<std::uint32_t, std::pair<CollectiveNumber, std::size_t>> first;
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        const std::span<const CollectiveMember> members = collectives.of(i);
        const RankCollective& one = part(members[0]);
        if (std::ranges::all_of(members, [&](const CollectiveMember& member) {
                return part(member).operation == one.operation;
            }))
            continue;
        const auto [known, is_new] = first.try_emplace(one.group, one.sequence, i);
        if (!is_new && one.sequence < known->second.first) known->second = {one.sequence, i};
    }
    Disagreement result;
    if (first.empty()) return result;
    // The one that rank 0, or the lowest rank in it, entered first.
    const auto started = [&](const auto& group) {
        return part(collectives.of(group.second.second)[0]).start_ns;
    };
    const auto earliest = std::ranges::min_element(
        first, [&](const auto& a, const auto& b) { return started(a) < started(b); });
    std::vector<bool> groups(texts.size());
    for (const RankEvents& rank : ranks) {
        for (const RankCollective& each : rank.collectives) groups[each.group] = true;
    }
    const std::string& group = texts.text(earliest->first);
    // Collectives without numbers that all ranks have left were of several groups.
    const bool all_closed = std::ranges::all_of(
        ranks, [](const RankEvents& rank) { return rank.end == RankEnd::Closed && rank.exit_code <= 0; });
    if (group != kGroupByOrder || !all_closed) {
        std::map<std::string, std::vector<std::int32_t>> ranks_by;
        for (const CollectiveMember& member : collectives.of(earliest->second.second))
            ranks_by[texts.text(part(member).operation)].push_back(ranks[member.rank].rank);
        RankFinding& finding = result.finding.emplace();
        finding.rule = "disagreement";
        finding.rank = odd_rank(ranks_by);
        const bool is_only = std::ranges::count(groups, true) == 1;
        finding.text = "ranks disagree from collective " +
                       number_text(group, earliest->second.first, is_only) +
                       " on: " + by_ranks_text(ranks_by, [](const std::string& name) { return name; });
        for (const RankEvents& rank : ranks) {
            if (rank.rank == finding.rank) finding.host = texts.text(rank.host);
        }
    }
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        const std::span<const CollectiveMember> members = collectives.of(i);
        const auto known = first.find(part(members[0]).group);
        if (known == first.end() || part(members[0]).sequence < known->second.first) continue;
        ++result.collectives;
        for (const CollectiveMember& member : members)
            ranks[member.rank].collectives[member.index].is_partial = 1;
    }
    return result;
}

std::optional<RankFinding> unequal_steps(std::span<const RankEvents> ranks) {
    std::map<std::int64_t, std::vector<std::int32_t>> ranks_by;
    bool has_cut_step = false;
    for (const RankEvents& rank : ranks) {
        if (!rank.has_steps() || rank.end != RankEnd::Closed || rank.first_step != ranks[0].first_step)
            return std::nullopt;
        ranks_by[rank.last_step - rank.first_step + 1].push_back(rank.rank);
        has_cut_step = has_cut_step || rank.has_cut_step;
    }
    if (ranks_by.size() < 2) return std::nullopt;
    // A recording that stops in the middle of steps may stop in different ones.
    if (has_cut_step && ranks_by.rbegin()->first - ranks_by.begin()->first < 2) return std::nullopt;
    return RankFinding{
        .rule = "unequal_steps",
        .rank = odd_rank(ranks_by),
        .text = "ranks took different numbers of steps: " +
                by_ranks_text(ranks_by, [](std::int64_t count) { return std::to_string(count); })};
}

bool are_of_two_jobs(const RankEvents& a, const RankEvents& b, const TextNumbers& texts) {
    return !a.collectives.empty() && !b.collectives.empty() && !is_later(a, b, texts) &&
           !is_later(b, a, texts);
}

RankLives find_last_lives(std::vector<RankEvents>& processes, const TextNumbers& texts) {
    std::map<std::int32_t, Lives> by_rank;
    for (const RankEvents& process : processes) by_rank[process.rank].push_back(&process);
    RankLives result;
    std::map<std::size_t, Lives, std::greater<>> earlier;  // by the number of runs that followed
    std::set<const RankEvents*> last;
    for (auto& [rank, own] : by_rank) {
        own = lives_of(std::move(own), texts);
        for (std::size_t i = 0; i + 1 < own.size(); ++i) earlier[own.size() - 1 - i].push_back(own[i]);
        last.insert(own.back());
    }
    for (const auto& [following, run] : earlier) {
        Lives compared;
        for (const RankEvents* const each : run) compared.push_back(by_rank[each->rank].back());
        RankFinding& finding = result.restarts.emplace_back();
        finding.rule = "restarted";
        if (run.size() == 1) finding.rank = run[0]->rank;
        finding.text =
            run_text(run) + " ran before" + failure_of(run, texts) + "; compared: " + run_text(compared);
    }
    // Their addresses are those of before, so they are sorted by index.
    std::vector<std::size_t> order(processes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t i) {
            return std::pair(!last.contains(&processes[i]), processes[i].rank);
        };
        return key(a) < key(b);
    });
    std::vector<RankEvents> sorted;
    sorted.reserve(processes.size());
    for (const std::size_t i : order) sorted.push_back(std::move(processes[i]));
    processes = std::move(sorted);
    result.ranks = by_rank.size();
    return result;
}

}  // namespace marey
