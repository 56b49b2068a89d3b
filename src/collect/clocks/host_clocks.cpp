// host_clocks.cpp: the clocks of several hosts: a fit per pair of hosts, and paths to the reference.
#include <marey/host_clocks.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <queue>
#include <utility>

#include "collect/clocks/pair_clock.h"

namespace marey {
namespace {

constexpr std::uint32_t kNoHost = ~std::uint32_t{0};

std::int64_t sum_of_errors(std::int64_t a, std::int64_t b) {
    return a == kUnknownClockError || b >= kUnknownClockError - a ? kUnknownClockError : a + b;
}

/// The error of a time that was moved by a line whose rate is at most kMaxClockRate.
std::int64_t moved_error(std::int64_t error) {
    return error == kUnknownClockError ? error : sum_of_errors(error, error / 1000 + 1);
}

std::int64_t largest_error(const std::vector<ClockKnot>& knots) {
    std::int64_t largest = 0;
    for (const ClockKnot& knot : knots) largest = std::max(largest, knot.error_ns);
    return largest;
}

/// The same relation as seen from the other host.
HostClock inverse(const HostClock& clock) {
    HostClock result = clock;
    for (ClockKnot& knot : result.knots)
        knot = {knot.at_ns + knot.offset_ns, -knot.offset_ns, moved_error(knot.error_ns)};
    result.first_rate = -clock.first_rate / (1 + clock.first_rate);
    result.last_rate = -clock.last_rate / (1 + clock.last_rate);
    result.error_ns = largest_error(result.knots);
    return result;
}

/// From a host to its neighbour and from there to the reference.
HostClock composed(const HostClock& first, const HostClock& second) {
    HostClock result = first;
    std::vector<std::int64_t> times;
    for (const ClockKnot& knot : first.knots) times.push_back(knot.at_ns);
    for (const ClockKnot& knot : second.knots) {
        std::int64_t at = knot.at_ns - first.knots.front().offset_ns;
        for (int i = 0; i < 3; ++i) at = knot.at_ns - (first.to_reference(at) - at);
        times.push_back(at);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    result.knots.clear();
    for (const std::int64_t at : times) {
        const std::int64_t between = first.to_reference(at);
        result.knots.push_back({at, second.to_reference(between) - at,
                                sum_of_errors(moved_error(first.error_at(at)), second.error_at(between))});
    }
    result.first_rate = first.first_rate + second.first_rate;
    result.last_rate = first.last_rate + second.last_rate;
    result.first_growth = first.first_growth + second.first_growth;
    result.last_growth = first.last_growth + second.last_growth;
    result.error_ns = largest_error(result.knots);
    if (second.error_ns > first.error_ns) result.method = second.method;
    return result;
}

double mean_rate(const HostClock& clock) {
    const ClockKnot &first = clock.knots.front(), &last = clock.knots.back();
    if (last.at_ns <= first.at_ns) return clock.first_rate;
    return static_cast<double>(last.offset_ns - first.offset_ns) /
           static_cast<double>(last.at_ns - first.at_ns);
}

struct Edge {
    std::uint32_t to;
    HostClock clock;  ///< from the host that has the edge to `to`
};
using Edges = std::vector<std::vector<Edge>>;

/// The host with the most neighbours; of several the one with the smallest errors.
std::uint32_t choose_reference(const Edges& edges) {
    std::uint32_t best = 0;
    double best_error = 0;
    for (std::uint32_t host = 0; host < edges.size(); ++host) {
        double error = 0;
        for (const Edge& edge : edges[host]) error += static_cast<double>(edge.clock.error_ns);
        const std::size_t count = edges[host].size(), most = edges[best].size();
        if (host != 0 && (count < most || (count == most && error >= best_error))) continue;
        best = host;
        best_error = error;
    }
    return best;
}

void add_edge(Edges& edges, std::uint32_t first, std::uint32_t second, HostClock forward) {
    if (forward.knots.empty()) return;
    HostClock backward = inverse(forward);
    edges[first].push_back({second, std::move(forward)});
    edges[second].push_back({first, std::move(backward)});
}

void add_walls(PairClock& clock, std::span<const WallClock> walls, std::uint32_t first,
               std::uint32_t second) {
    std::vector<ClockEvidence> facts;
    add_wall_clocks(facts, first, walls[first], second, walls[second]);
    for (const ClockEvidence& fact : facts) clock.add(fact, fact.earlier_host == first);
}

/// Facts that contradict each other.
struct Contradictions {
    std::uint64_t facts = 0;
    std::size_t pairs = 0;
    std::string text;  ///< about the first pairs of hosts
};

Edges fit_pairs(std::span<const WallClock> walls, std::span<const ClockEvidence> evidence,
                std::span<const std::string> names, Contradictions& contradictions) {
    constexpr std::size_t kPairsNamed = 3;
    const std::size_t hosts = walls.size();
    const auto name = [&](std::uint32_t host) {
        return host < names.size() ? names[host] : "host " + std::to_string(host);
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, PairClock> pairs;
    for (const ClockEvidence& fact : evidence) {
        if (fact.earlier_host >= hosts || fact.later_host >= hosts || fact.earlier_host == fact.later_host)
            continue;
        const auto [low, high] = std::minmax(fact.earlier_host, fact.later_host);
        pairs[{low, high}].add(fact, fact.earlier_host == low);
    }
    Edges edges(hosts);
    for (auto& [pair, clock] : pairs) {
        add_walls(clock, walls, pair.first, pair.second);
        add_edge(edges, pair.first, pair.second, clock.fit());
        if (clock.contradictions() == 0) continue;
        contradictions.facts += clock.contradictions();
        if (++contradictions.pairs <= kPairsNamed)
            contradictions.text += (contradictions.text.empty() ? "" : "; ") +
                                   clock.contradiction_text(name(pair.first), name(pair.second));
        if (contradictions.pairs == kPairsNamed + 1) contradictions.text += "; and other hosts";
    }
    return edges;
}

/// The next host on the path with the smallest error to the reference, for each host.
std::vector<const Edge*> shortest_paths(const Edges& edges, std::uint32_t reference,
                                        std::vector<std::uint32_t>& order) {
    std::vector<std::int64_t> error(edges.size(), kUnknownClockError);
    std::vector<const Edge*> next(edges.size(), nullptr);
    std::vector<bool> done(edges.size(), false);
    using Entry = std::pair<std::int64_t, std::uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    error[reference] = 0;
    queue.push({0, reference});
    while (!queue.empty()) {
        const std::uint32_t host = queue.top().second;
        queue.pop();
        if (done[host]) continue;
        done[host] = true;
        order.push_back(host);
        for (const Edge& edge : edges[host]) {
            const std::int64_t reached = sum_of_errors(error[host], edge.clock.error_ns);
            if (done[edge.to] || reached >= error[edge.to]) continue;
            error[edge.to] = reached;
            const auto back = std::find_if(edges[edge.to].begin(), edges[edge.to].end(),
                                           [&](const Edge& other) { return other.to == host; });
            next[edge.to] = &*back;
            queue.push({reached, edge.to});
        }
    }
    return next;
}

/// Relates hosts without a path to the others by the wall clocks with the smallest errors, and returns as
/// shortest_paths() does.
std::vector<const Edge*> connected_paths(Edges& edges, std::span<const WallClock> walls,
                                         std::uint32_t reference, std::vector<std::uint32_t>& order) {
    for (;;) {
        order.clear();
        std::vector<const Edge*> next = shortest_paths(edges, reference, order);
        std::uint32_t best[2] = {kNoHost, kNoHost};  // with a path, and without
        for (std::uint32_t host = 0; host < walls.size(); ++host) {
            std::uint32_t& known = best[next[host] == nullptr && host != reference ? 1 : 0];
            if (walls[host].error_ns != kUnknownClockError &&
                (known == kNoHost || walls[host].error_ns < walls[known].error_ns))
                known = host;
        }
        if (best[0] == kNoHost || best[1] == kNoHost) return next;
        PairClock clock;
        add_walls(clock, walls, best[0], best[1]);
        HostClock fitted = clock.fit();
        if (fitted.knots.empty()) return next;
        add_edge(edges, best[0], best[1], std::move(fitted));
    }
}

const ClockKnot& knot_after(const std::vector<ClockKnot>& knots, std::int64_t ns) {
    return *std::upper_bound(knots.begin(), knots.end(), ns,
                             [](std::int64_t at, const ClockKnot& knot) { return at < knot.at_ns; });
}

std::int64_t rounded(double ns) {
    constexpr double kLimit = 4e18;
    return std::llround(std::clamp(ns, -kLimit, kLimit));
}

}  // namespace

void add_clock_exchange(std::vector<ClockEvidence>& evidence, std::uint32_t asking, std::uint32_t answering,
                        std::int64_t sent_ns, std::int64_t arrived_ns, std::int64_t answered_ns,
                        std::int64_t received_ns) {
    evidence.push_back({asking, answering, sent_ns, arrived_ns, ClockEvidenceKind::Exchange});
    evidence.push_back({answering, asking, answered_ns, received_ns, ClockEvidenceKind::Exchange});
}

void add_wall_clocks(std::vector<ClockEvidence>& evidence, std::uint32_t first, const WallClock& of_first,
                     std::uint32_t second, const WallClock& of_second) {
    if (of_first.error_ns == kUnknownClockError || of_second.error_ns == kUnknownClockError) return;
    const std::int64_t error = sum_of_errors(of_first.error_ns, of_second.error_ns);
    if (error == kUnknownClockError) return;
    // Read at one time on the first clock; `other` is the same instant on the second, give or take `error`.
    const std::int64_t at = of_first.at_ns;
    const std::int64_t other = at + (of_first.offset_ns - of_second.offset_ns);
    evidence.push_back({first, second, at, other + error, ClockEvidenceKind::WallClock});
    evidence.push_back({second, first, other - error, at, ClockEvidenceKind::WallClock});
}

std::int64_t HostClock::to_reference(std::int64_t ns) const noexcept {
    const ClockKnot &first = knots.front(), &last = knots.back();
    if (ns <= first.at_ns)
        return ns + first.offset_ns + rounded(first_rate * static_cast<double>(ns - first.at_ns));
    if (ns >= last.at_ns)
        return ns + last.offset_ns + rounded(last_rate * static_cast<double>(ns - last.at_ns));
    const ClockKnot& after = knot_after(knots, ns);
    const ClockKnot& before = *(&after - 1);
    const double part =
        static_cast<double>(ns - before.at_ns) / static_cast<double>(after.at_ns - before.at_ns);
    return ns + before.offset_ns + rounded(part * static_cast<double>(after.offset_ns - before.offset_ns));
}

std::int64_t HostClock::error_at(std::int64_t ns) const noexcept {
    const ClockKnot &first = knots.front(), &last = knots.back();
    const auto grown = [&](const ClockKnot& knot, double growth) {
        const double distance = std::abs(static_cast<double>(ns) - static_cast<double>(knot.at_ns));
        return sum_of_errors(knot.error_ns, rounded(std::ceil(growth * distance)));
    };
    if (ns <= first.at_ns) return grown(first, first_growth);
    if (ns >= last.at_ns) return grown(last, last_growth);
    const ClockKnot& after = knot_after(knots, ns);
    return std::max((&after - 1)->error_ns, after.error_ns);
}

std::string evidence_text(const HostClock& clock) {
    // With the facts of one of them.
    constexpr std::pair<const char*, std::uint64_t> kKinds[] = {
        {"exchange", 2}, {"message", 1}, {"collective", 2}, {"wall clock", 2}};
    std::string text;
    for (std::size_t i = 0; i < kClockEvidenceKinds; ++i) {
        const std::uint64_t count = clock.evidence[i] / kKinds[i].second;
        if (count == 0) continue;
        text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + kKinds[i].first;
        if (count != 1) text += "s";
    }
    return text;
}

HostClocks fit_host_clocks(std::span<const WallClock> wall_clocks, std::span<const ClockEvidence> evidence,
                           std::span<const std::string> names) {
    HostClocks result;
    const std::size_t hosts = wall_clocks.size();
    result.hosts.resize(hosts);
    if (hosts == 0) return result;
    Contradictions contradictions;
    Edges edges = fit_pairs(wall_clocks, evidence, names, contradictions);
    result.reference = choose_reference(edges);
    std::vector<std::uint32_t> order;
    const std::vector<const Edge*> next = connected_paths(edges, wall_clocks, result.reference, order);

    std::uint64_t unknown = 0;
    for (std::uint32_t host = 0; host < hosts; ++host) {  // hosts without a path
        HostClock& clock = result.hosts[host];
        clock.method = "none";
        clock.reference = result.reference;
        const WallClock &own = wall_clocks[host], &other = wall_clocks[result.reference];
        clock.knots = {{own.at_ns, own.offset_ns - other.offset_ns, kUnknownClockError}};
        clock.error_ns = kUnknownClockError;
        unknown += next[host] == nullptr && host != result.reference;
    }
    HostClock& reference = result.hosts[result.reference];
    reference.method = "reference";
    reference.knots = {{wall_clocks[result.reference].at_ns, 0, 0}};
    reference.error_ns = 0;
    for (const std::uint32_t host : order) {
        if (next[host] == nullptr) continue;
        HostClock& clock = result.hosts[host];
        clock = next[host]->to == result.reference
                    ? next[host]->clock
                    : composed(next[host]->clock, result.hosts[next[host]->to]);
        clock.reference = result.reference;
        clock.rate = mean_rate(clock);
    }
    if (contradictions.facts > 0)
        result.problems.push_back({"clock_contradiction",
                                   "Facts about the clocks of hosts contradict others and were left out: " +
                                       contradictions.text + ".",
                                   contradictions.facts});
    if (unknown > 0)
        result.problems.push_back(
            {"clock_unknown",
             "Hosts without any exchange, message or collective with the others are placed by their wall "
             "clocks, with an unknown error.",
             unknown});
    return result;
}

}  // namespace marey
