// job_findings.cpp: ranks that are absent, that died, and that others wait for in a collective.
#include <marey/process_end.h>
#include <marey/ranks.h>

#include <signal.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "analyze/ranks/finding_text.h"

namespace marey {
namespace {

constexpr std::int64_t kNeverEntered = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kSecond = 1'000'000'000;
// A wait is a hang if it is this many times as long as the time from one collective to the next usually is.
constexpr std::int64_t kUsualTimes = 5;
constexpr std::int64_t kShortestHang = kSecond / 10;
// The end of a process that was killed is known to a second only.
constexpr std::int64_t kEndError = kSecond + kSecond / 2;
constexpr std::size_t kDeathsNamed = 4;

bool is_dead(const RankState& rank) {
    return rank.end == RankEnd::Died || rank.exit_signal > 0 || rank.exit_code > 0;
}
bool is_fault(std::int32_t signal) {
    constexpr int kFaults[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
    return std::ranges::find(kFaults, signal) != std::end(kFaults);
}
/// Launchers end the other ranks by these when one has failed.
bool is_request_to_end(std::int32_t signal) {
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}
bool is_in_collective(const RankState& rank) {
    return std::ranges::any_of(rank.groups, [](const RankGroupState& group) { return !group.open.empty(); });
}

/// "died of SIGSEGV in string_at"
std::string death_text(const RankState& rank) {
    std::string text;
    if (rank.exit_signal > 0) {
        text = "died of " + signal_name(rank.exit_signal);
    } else if (rank.exit_code >= 0) {
        text = "exited with code " + std::to_string(rank.exit_code);
    } else {
        text = "died (its capture has no end)";
    }
    return rank.open_name.empty() ? text : text + " in " + rank.open_name;
}

/// The reason why a rank did not enter a collective. `is_stuck`: it lived on, so it did not die of it.
std::string absence_text(const RankState& rank, bool is_stuck) {
    if (is_dead(rank) && !is_stuck) return "it " + death_text(rank);
    if (rank.end == RankEnd::Closed && !is_dead(rank)) return "its recording has ended";
    if (rank.open_name.empty()) return "in no range";
    return "in " + rank.open_name + " for " + time_text(static_cast<double>(rank.open_ns));
}

class JobFindings {
  public:
    explicit JobFindings(std::span<const RankState> ranks) : ranks_(ranks) {}

    std::vector<RankFinding> find() {
        find_absent();
        const std::vector<RankFinding> hangs = this->hangs();
        find_deaths(!hangs.empty());
        findings_.insert(findings_.end(), hangs.begin(), hangs.end());
        return std::move(findings_);
    }

  private:
    RankFinding finding(const char* rule, const RankState* rank, std::string text) const {
        RankFinding result{.rule = rule, .text = std::move(text)};
        if (rank != nullptr) {
            result.rank = rank->rank;
            result.host = rank->host;
        }
        return result;
    }

    void find_absent() {
        std::int32_t size = 0;
        std::set<std::int32_t> given;
        for (const RankState& rank : ranks_) {
            size = std::max(size, rank.world_size);
            given.insert(rank.rank);
        }
        constexpr std::int32_t kLargest = 1 << 20;  // a damaged number must not take all memory
        for (std::int32_t rank = 0; rank < std::min(size, kLargest); ++rank) {
            if (given.count(rank) == 0) absent_.push_back(rank);
        }
        if (absent_.empty()) return;
        RankFinding& added = findings_.emplace_back(
            finding("absent", nullptr, ranks_text(absent_) + " of " + std::to_string(size) + " not given"));
        if (absent_.size() == 1) added.rank = absent_[0];
    }

    // ---- deaths

    /// When a rank dies, others fail as well or are ended: these are not the cause. Empty: the job was ended.
    std::vector<const RankState*> first_deaths() const {
        std::vector<const RankState*> dead;
        for (const RankState& rank : ranks_) {
            if (is_dead(rank)) dead.push_back(&rank);
        }
        if (dead.empty()) return dead;
        std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = kNeverEntered;
        for (const RankState& rank : ranks_) last = std::max(last, rank.end_ns);
        for (const RankState* const rank : dead) first = std::min(first, rank->end_ns);
        bool is_decided = dead.size() < ranks_.size();
        const auto keep_if = [&](auto is_kept) {
            std::vector<const RankState*> kept;
            std::copy_if(dead.begin(), dead.end(), std::back_inserter(kept), is_kept);
            const bool decides = !kept.empty() && kept.size() < ranks_.size();
            if (decides) dead = std::move(kept);
            is_decided = is_decided || decides;
            return decides;
        };
        if (keep_if([](const RankState* each) { return is_fault(each->exit_signal); }) ||
            keep_if([](const RankState* each) { return each->exit_signal == SIGKILL; }))
            return dead;
        keep_if([](const RankState* each) { return !is_request_to_end(each->exit_signal); });
        if (last - first > kEndError)
            keep_if([&](const RankState* each) { return each->end_ns - first <= kEndError; });
        if (stuck_.empty()) {
            keep_if([](const RankState* each) { return !is_in_collective(*each); });
            // The others fail in the collective that it did not reach.
            keep_if([&](const RankState* each) { return !is_in_collective(*each) && is_behind(*each); });
        }
        const bool has_faults = is_fault(dead[0]->exit_signal);  // of all ranks
        return is_decided || has_faults ? dead : std::vector<const RankState*>();
    }

    /// Whether another rank has entered a later collective of one of its groups.
    bool is_behind(const RankState& rank) const {
        for (const RankState& other : ranks_) {
            for (const RankGroupState& group : other.groups) {
                const auto own = std::ranges::find_if(
                    rank.groups, [&](const auto& each) { return each.group == group.group; });
                if (own != rank.groups.end() && own->entered < group.entered) return true;
            }
        }
        return false;
    }

    void find_deaths(bool is_hang) {
        const std::vector<const RankState*> dead = first_deaths();
        if (dead.empty()) {
            const bool all_died = std::ranges::all_of(ranks_, is_dead);
            if (!all_died || is_hang) return;  // somebody has ended the hang
            const RankState& one = ranks_[0];
            const bool is_same = std::ranges::all_of(ranks_, [&](const RankState& each) {
                return each.exit_signal == one.exit_signal && each.exit_code == one.exit_code;
            });
            findings_.push_back(finding(
                "died", nullptr,
                "all " + std::to_string(ranks_.size()) + " ranks " +
                    (is_same && one.exit_signal > 0 ? "died of " + signal_name(one.exit_signal)
                     : is_same && one.exit_code > 0 ? "exited with code " + std::to_string(one.exit_code)
                                                    : "died (their captures have no end)")));
            return;
        }
        for (std::size_t i = 0; i < std::min(dead.size(), kDeathsNamed); ++i)
            findings_.push_back(finding(
                "died", dead[i], "rank " + std::to_string(dead[i]->rank) + " " + death_text(*dead[i])));
        if (dead.size() <= kDeathsNamed) return;
        std::vector<std::int32_t> more;
        for (std::size_t i = kDeathsNamed; i < dead.size(); ++i) more.push_back(dead[i]->rank);
        findings_.push_back(finding("died", nullptr, ranks_text(more) + " died too"));
    }

    // ---- hangs

    struct Member {
        const RankState* rank;
        const RankGroupState* group;  ///< null: it entered no collective of the group
        std::int64_t entered() const { return group == nullptr ? kNeverEntered : group->entered; }
        const OpenCollective* open(std::int64_t sequence) const {
            if (group == nullptr) return nullptr;
            for (const OpenCollective& each : group->open) {
                if (each.sequence == sequence) return &each;
            }
            return nullptr;
        }
    };

    std::vector<RankFinding> hangs() {
        std::map<std::string, std::vector<Member>> groups;
        for (const RankState& rank : ranks_) {
            for (const RankGroupState& group : rank.groups) groups[group.group].push_back({&rank, &group});
        }
        std::vector<RankFinding> found;
        for (auto& [name, members] : groups) {
            // Ranks that have not entered any collective of the group are known to belong to it only if
            // there is no other group.
            if (groups.size() == 1) {
                for (const RankState& rank : ranks_) {
                    if (rank.groups.empty()) members.push_back({&rank, nullptr});
                }
            }
            if (std::optional<RankFinding> hang = hang_of(members)) found.push_back(std::move(*hang));
        }
        return found;
    }

    std::optional<RankFinding> hang_of(std::vector<Member>& members) {
        std::ranges::sort(members,
                          [](const Member& a, const Member& b) { return a.rank->rank < b.rank->rank; });
        std::int64_t least = std::numeric_limits<std::int64_t>::max();
        for (const Member& member : members) least = std::min(least, member.entered());
        // The first collective that a rank waits in and another one has not entered; otherwise the first that
        // all have entered.
        std::int64_t missed = std::numeric_limits<std::int64_t>::max(), entered = missed;
        for (const Member& member : members) {
            if (member.group == nullptr) continue;
            for (const OpenCollective& each : member.group->open) {
                if (each.sequence > least) {
                    missed = std::min(missed, each.sequence);
                } else if (!each.is_launch) {
                    entered = std::min(entered, each.sequence);
                }
            }
        }
        const std::int64_t sequence = std::min(missed, entered);
        if (sequence == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
        std::vector<std::int32_t> waiting;
        std::vector<const RankState*> missing;
        std::int64_t shortest = std::numeric_limits<std::int64_t>::max(), began = shortest;
        const OpenCollective* collective = nullptr;
        for (const Member& member : members) {
            if (const OpenCollective* const open = member.open(sequence); open != nullptr) {
                waiting.push_back(member.rank->rank);
                shortest = std::min(shortest, open->open_ns);
                began = std::min(began, member.rank->end_ns - open->open_ns);
                collective = open;
            } else if (member.entered() < sequence) {
                missing.push_back(member.rank);
            }
        }
        if (shortest < shortest_hang()) return std::nullopt;
        const std::string where = collective->operation + " " + collective->place + ": ";
        const std::string time = time_text(static_cast<double>(shortest));
        const std::string who =
            ranks_text(waiting) + (waiting.size() == 1 ? " waits " : " wait ") + time + "; ";
        // A rank that lived through half of the wait or more is stuck.
        for (const RankState* const rank : missing) {
            if (rank->end_ns - began >= shortest / 2 && !is_fault(rank->exit_signal))
                stuck_.insert(rank->rank);
        }
        if (!missing.empty())
            return finding("hang", missing.size() == 1 ? missing[0] : nullptr,
                           where + who + missing_text(missing));
        if (waiting.size() < members.size()) return std::nullopt;
        if (!absent_.empty())
            return finding(
                "hang", nullptr,
                where + who + ranks_text(absent_) + (absent_.size() == 1 ? " is" : " are") + " not given");
        return finding(
            "hang", nullptr,
            where + "all " + std::to_string(members.size()) + " ranks have entered it and wait " + time);
    }

    /// "rank 1 is missing, in load_batch for 27.4 s"
    std::string missing_text(const std::vector<const RankState*>& missing) const {
        std::vector<std::int32_t> ranks;
        ranks.reserve(missing.size());
        for (const RankState* const rank : missing) ranks.push_back(rank->rank);
        std::string text = ranks_text(ranks) + (ranks.size() == 1 ? " is missing, " : " are missing, ");
        const RankState& first = *missing[0];
        if (ranks.size() > 1) text += "rank " + std::to_string(first.rank) + " ";
        return text + absence_text(first, stuck_.count(first.rank) != 0);
    }

    std::int64_t shortest_hang() const {
        std::vector<std::int64_t> usual;
        for (const RankState& rank : ranks_) {
            if (rank.usual_ns > 0) usual.push_back(rank.usual_ns);
        }
        if (usual.empty()) return kSecond;
        const auto middle = usual.begin() + static_cast<std::ptrdiff_t>(usual.size() / 2);
        std::nth_element(usual.begin(), middle, usual.end());
        return std::max(kShortestHang, *middle >= std::numeric_limits<std::int64_t>::max() / kUsualTimes
                                           ? *middle
                                           : kUsualTimes * *middle);
    }

    std::span<const RankState> ranks_;
    std::vector<std::int32_t> absent_;
    std::set<std::int32_t> stuck_;  ///< ranks that others wait for in a hang, and that live
    std::vector<RankFinding> findings_;
};

}  // namespace

std::vector<RankFinding> job_findings(std::span<const RankState> ranks) {
    return JobFindings(ranks).find();
}

}  // namespace marey
