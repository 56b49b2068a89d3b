// matched_collectives.cpp: matches the collectives of ranks, and fits the clocks of their hosts.
#include "analyze/ranks/matched_collectives.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text_hash.h"

namespace marey {
namespace {

struct CollectiveKey {
    std::uint32_t group;
    std::int64_t sequence;
    friend bool operator==(const CollectiveKey&, const CollectiveKey&) noexcept = default;
};
struct CollectiveKeyHash {
    std::size_t operator()(const CollectiveKey& key) const noexcept {
        return mix_hash(mix_hash(0, key.group), static_cast<std::uint64_t>(key.sequence));
    }
};

}  // namespace

MatchedCollectives match_collectives(std::span<const RankEvents> ranks) {
    MatchedCollectives result;
    std::unordered_map<CollectiveKey, std::uint32_t, CollectiveKeyHash> numbers;
    std::vector<std::uint32_t> count;
    for (const RankEvents& rank : ranks) {
        std::vector<std::uint32_t>& own = result.number.emplace_back();
        own.reserve(rank.collectives.size());
        for (const RankCollective& each : rank.collectives) {
            const auto next = static_cast<std::uint32_t>(numbers.size());
            const std::uint32_t number = numbers.try_emplace({each.group, each.sequence}, next).first->second;
            if (number == count.size()) count.push_back(0);
            ++count[number];
            own.push_back(number);
        }
    }
    result.first.assign(count.size() + 1, 0);
    for (std::size_t i = 0; i < count.size(); ++i) result.first[i + 1] = result.first[i] + count[i];
    result.members.resize(result.first.back());
    std::vector<std::uint32_t> next(result.first.begin(), result.first.end() - 1);
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
        for (std::uint32_t i = 0; i < result.number[rank].size(); ++i)
            result.members[next[result.number[rank][i]]++] = {rank, i};
    }
    return result;
}

JobClocks fit_clocks(std::span<const RankEvents> ranks, const MatchedCollectives& collectives,
                     const std::vector<bool>& is_synchronising,
                     const std::function<std::string(std::uint32_t)>& host_name,
                     std::vector<ClockEvidence> more) {
    JobClocks result;
    std::unordered_map<std::uint32_t, std::uint32_t> host_numbers;
    std::vector<WallClock> wall_clocks;
    std::vector<std::string> names;
    for (const RankEvents& rank : ranks) {
        const auto [host, is_new] =
            host_numbers.try_emplace(rank.host, static_cast<std::uint32_t>(host_numbers.size()));
        if (is_new) {
            result.host_names.push_back(rank.host);
            names.push_back(host_name(rank.host));
            wall_clocks.push_back(rank.wall_clock);
        } else if (WallClock& first = wall_clocks[host->second]; rank.wall_clock.at_ns < first.at_ns) {
            first = rank.wall_clock;  // the offset is that of the host's first clock pair
        }
        result.host_of.push_back(host->second);
    }
    const std::size_t hosts = wall_clocks.size();
    std::vector<ClockEvidence> evidence = std::move(more);
    for (ClockEvidence& fact : evidence) {
        fact.earlier_host = result.host_of[fact.earlier_host];
        fact.later_host = result.host_of[fact.later_host];
    }
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        for (const RankExchange& exchange : ranks[i].exchanges) {
            const auto peer = host_numbers.find(exchange.peer);
            if (peer == host_numbers.end() || peer->second == result.host_of[i]) continue;
            // The clocks of all ranks on a host are the same, but each rank's fit has an error.
            const std::int64_t error = ranks[i].error_ns;
            add_clock_exchange(evidence, result.host_of[i], peer->second, exchange.sent_ns - error,
                               exchange.arrived_ns, exchange.answered_ns, exchange.received_ns + error);
        }
    }
    if (hosts > 1) {
        struct HostInterval {
            std::int64_t entered, left, error;
            bool is_present;
        };
        std::vector<HostInterval> stays(hosts);
        for (std::size_t i = 0; i < collectives.size(); ++i) {
            const std::span<const CollectiveMember> members = collectives.of(i);
            const RankCollective& first = ranks[members[0].rank].collectives[members[0].index];
            if (members.size() < 2 || !is_synchronising[first.name]) continue;
            std::ranges::fill(stays, HostInterval{});
            for (const CollectiveMember& member : members) {
                const RankCollective& each = ranks[member.rank].collectives[member.index];
                if (each.is_partial) continue;
                HostInterval& stay = stays[result.host_of[member.rank]];
                const std::int64_t error = ranks[member.rank].error_ns;
                if (!std::exchange(stay.is_present, true)) {
                    stay.entered = each.start_ns;
                    stay.left = each.end_ns;
                }
                stay.entered = std::max(stay.entered, each.start_ns);
                stay.left = std::min(stay.left, each.end_ns);
                stay.error = std::max(stay.error, error);
            }
            // Facts about the first rank's host and each other one: as many as there are hosts, not pairs.
            const std::uint32_t centre = result.host_of[members[0].rank];
            if (!stays[centre].is_present) continue;
            for (std::uint32_t host = 0; host < hosts; ++host) {
                if (host == centre || !stays[host].is_present) continue;
                const std::int64_t error = stays[host].error + stays[centre].error;
                evidence.push_back({host, centre, stays[host].entered, stays[centre].left + error,
                                    ClockEvidenceKind::Collective});
                evidence.push_back({centre, host, stays[centre].entered, stays[host].left + error,
                                    ClockEvidenceKind::Collective});
            }
        }
    }
    result.clocks = fit_host_clocks(wall_clocks, evidence, names);
    return result;
}

}  // namespace marey
