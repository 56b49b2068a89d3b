// rank_lives.cpp: tells the runs of a rank that was started again from its child processes.

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "analyze/ranks/finding_text.h"
#include "analyze/ranks/job_state.h"

namespace marey {
namespace {

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
