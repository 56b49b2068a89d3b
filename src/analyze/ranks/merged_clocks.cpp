// merged_clocks.cpp: merges traces of several processes, after fitting the clocks of their hosts.
#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include <marey/host_clocks.h>
#include <marey/merge.h>

#include "analyze/ranks/collective_name.h"
#include "analyze/ranks/matched_collectives.h"
#include "base/text_hash.h"
#include "trace/string_pool.h"
#include "trace/trace_data.h"
#include "trace/trace_join.h"

namespace marey {
namespace {

constexpr std::uint32_t kNoDomain = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kHostsNamed = 3;
constexpr std::int64_t kLargestError = std::int64_t{1} << 56;  // sums of some stay far from overflow

/// Traces on one clock.
struct Domain {
    std::string clock;  ///< as ProcessInfo::clock
    std::string host;
    std::uint32_t fitted = kNoDomain;  ///< index of its clock; kNoDomain: there are no events to fit it from
    std::int64_t start_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
};

class ClockMerge {
  public:
    explicit ClockMerge(std::vector<Trace> traces) : traces_(std::move(traces)) { find_domains(); }

    Trace merge() {
        const bool was_merged =
            std::ranges::any_of(traces_, [](const Trace& trace) { return !trace.host_clocks().empty(); });
        if (domains_.size() < 2 && !was_merged) return merge_on_clocks(std::move(traces_), {});
        if (domains_.size() > 1) {
            read_events();
            fit();
        }
        const std::vector<HostClockRow> rows = clock_rows();
        std::vector<ClockMove> moves = this->moves();
        const std::shared_ptr<TraceData> data =
            changeable_data(merge_on_clocks(std::move(traces_), std::move(moves)));
        put(*data, rows);
        return Trace(data);
    }

  private:
    /// As HostClockInfo.
    struct HostClockRow {
        std::string host, reference, method, evidence;
        std::int64_t offset_ns, error_ns;
        double rate;
    };

    const ProcessInfo* first_named(const Trace& trace) const {
        const auto named = std::ranges::find_if(
            trace.processes(), [](const ProcessInfo& process) { return process.clock != 0; });
        return named == trace.processes().end() ? nullptr : &*named;
    }

    // A trace that was merged before is on the clock of its reference. One that names no clock stays as it
    // is.
    void find_domains() {
        std::map<std::string, std::string, std::less<>> clock_of_host;
        for (const Trace& trace : traces_) {
            for (const ProcessInfo& process : trace.processes()) {
                if (process.clock != 0)
                    clock_of_host.emplace(trace.string(process.host), trace.string(process.clock));
            }
        }
        std::map<std::string, std::uint32_t, std::less<>> numbers;  // by clock
        for (const Trace& trace : traces_) {
            std::string clock, host;
            if (!trace.host_clocks().empty()) {
                host = trace.string(trace.host_clocks().front().reference);
                const auto known = clock_of_host.find(host);
                clock = known != clock_of_host.end() ? known->second : "host " + host;
            } else if (const ProcessInfo* const process = first_named(trace); process != nullptr) {
                host = trace.string(process->host);
                clock = trace.string(process->clock);
            } else {
                domain_of_.push_back(kNoDomain);
                continue;
            }
            const auto next = static_cast<std::uint32_t>(domains_.size());
            const auto [number, is_new] = numbers.try_emplace(clock, next);
            domain_of_.push_back(number->second);
            if (is_new) {
                domains_.push_back({clock, host});
                // Two hosts of one name: nothing says which one a name means.
                const auto [named, is_only] = named_.try_emplace(host, next);
                if (!is_only) named->second = kNoDomain;
            }
            Domain& domain = domains_[number->second];
            domain.start_ns = std::min(domain.start_ns, trace.window().start_ns);
            domain.end_ns = std::max(domain.end_ns, trace.window().end_ns);
        }
    }

    /// The row that a merged trace has for a host; null: none.
    static const HostClockInfo* clock_in(const Trace& trace, std::string_view host) {
        for (const HostClockInfo& clock : trace.host_clocks()) {
            if (trace.string(clock.host) == host) return &clock;
        }
        return nullptr;
    }

    /// The domain of a host that answered a process of a trace; kNoDomain: unknown.
    std::uint32_t domain_of_peer(std::size_t trace, std::string_view peer) const {
        if (clock_in(traces_[trace], peer) != nullptr) return domain_of_[trace];
        const auto named = named_.find(peer);
        return named == named_.end() ? kNoDomain : named->second;
    }

    void read_events() {
        std::map<std::int32_t, int> uses;  // of ranks
        for (std::size_t i = 0; i < traces_.size(); ++i) {
            const Trace& trace = traces_[i];
            first_events_.push_back(static_cast<std::uint32_t>(events_.size()));
            if (domain_of_[i] == kNoDomain) continue;
            for (Row process = 0; process < trace.processes().size(); ++process) {
                read_process(i, process);
                const RankEvents& added = events_.back();
                if (!added.collectives.empty() && ++uses[added.rank] > 1) are_one_job_ = false;
            }
        }
    }

    void read_process(std::size_t index, Row row) {
        const Trace& trace = traces_[index];
        const ProcessInfo& process = trace.processes()[row];
        RankEvents events;
        events.rank = process.node;
        events.error_ns = trace.clock().max_error_ns;
        if (process.node >= 0) events = read_rank(trace, row, process.node, {}, texts_);
        events.host = texts_.number(domains_[domain_of_[index]].clock);
        events.wall_clock = wall_clock_of(trace, process);
        const HostClockInfo* const before = clock_in(trace, trace.string(process.host));
        const bool is_vague = before != nullptr && before->error_ns >= kLargestError;
        events.error_ns = std::clamp<std::int64_t>(events.error_ns, 0, kLargestError);
        if (is_vague) events.collectives.clear();
        if (before != nullptr)
            events.error_ns += std::clamp<std::int64_t>(before->error_ns, 0, kLargestError);
        events.exchanges.clear();
        for (const ClockExchangeInfo& each : trace.clock_exchanges()) {
            if (each.process != row || is_vague) continue;
            const std::uint32_t peer = domain_of_peer(index, trace.string(each.peer));
            if (peer == kNoDomain || peer == domain_of_[index]) continue;
            events.exchanges.push_back({texts_.number(domains_[peer].clock), each.sent_ns, each.arrived_ns,
                                        each.answered_ns, each.received_ns});
        }
        events_.push_back(std::move(events));
    }

    /// Messages between two clocks: received after they were sent.
    std::vector<ClockEvidence> messages() const {
        struct Sent {
            std::uint32_t events;
            std::int64_t time_ns;
        };
        using Key = std::pair<std::uint64_t, std::uint64_t>;
        const auto hash = [](const Key& key) { return mix_hash(mix_hash(0, key.first), key.second); };
        std::unordered_map<Key, Sent, decltype(hash)> sent(16, hash);
        const auto for_each = [&](bool is_received, auto&& use) {
            for (std::size_t i = 0; i < traces_.size(); ++i) {
                if (domain_of_[i] == kNoDomain) continue;
                for (const MessageInfo& message : traces_[i].messages()) {
                    if (message.is_received != is_received) continue;
                    use(message, first_events_[i] + traces_[i].threads()[message.thread].process);
                }
            }
        };
        for_each(false, [&](const MessageInfo& message, std::uint32_t events) {
            sent.try_emplace({message.sender, message.number}, Sent{events, message.time_ns});
        });
        std::vector<ClockEvidence> facts;
        for_each(true, [&](const MessageInfo& message, std::uint32_t events) {
            const auto from = sent.find({message.sender, message.number});
            if (from == sent.end() || events_[from->second.events].host == events_[events].host) return;
            const std::int64_t error = events_[from->second.events].error_ns + events_[events].error_ns;
            facts.push_back({from->second.events, events, from->second.time_ns, message.time_ns + error,
                             ClockEvidenceKind::Message});
        });
        return facts;
    }

    void fit() {
        const std::span<const RankEvents> ranks = are_one_job_ ? std::span(events_) : std::span<RankEvents>();
        std::vector<bool> synchronising;
        for (std::uint32_t i = 0; i < texts_.size(); ++i)
            synchronising.push_back(is_synchronising(texts_.text(i)));
        const auto host_name = [this](std::uint32_t clock) {
            const auto same = [&](const Domain& domain) { return domain.clock == texts_.text(clock); };
            return std::ranges::find_if(domains_, same)->host;
        };
        fitted_ = fit_clocks(events_, match_collectives(ranks), synchronising, host_name, messages());
        for (std::size_t i = 0; i < traces_.size(); ++i) {
            if (domain_of_[i] != kNoDomain && first_events_[i] < events_.size() &&
                !traces_[i].processes().empty())
                domains_[domain_of_[i]].fitted = fitted_.host_of[first_events_[i]];
        }
    }

    const HostClock* clock_of(std::uint32_t domain) const {
        if (domain == kNoDomain || domains_[domain].fitted == kNoDomain) return nullptr;
        return &fitted_.clocks.hosts[domains_[domain].fitted];
    }
    std::int64_t moved(std::uint32_t domain, std::int64_t ns) const {
        const HostClock* const clock = clock_of(domain);
        return clock == nullptr ? ns : clock->to_reference(ns);
    }

    std::vector<ClockMove> moves() const {
        std::vector<ClockMove> moves(traces_.size());
        for (std::size_t i = 0; i < traces_.size(); ++i) {
            const std::uint32_t domain = domain_of_[i];
            const HostClock* const clock = clock_of(domain);
            if (clock == nullptr) continue;
            if (clock->method != "reference")
                moves[i].own = [clock](std::int64_t ns) { return clock->to_reference(ns); };
            std::map<std::string, std::uint32_t, std::less<>> inside;  // hosts of a trace that was merged
            for (const HostClockInfo& row : traces_[i].host_clocks())
                inside.emplace(traces_[i].string(row.host), domain);
            moves[i].peer = [this, inside = std::move(inside)](std::string_view peer, std::int64_t ns) {
                if (const auto own = inside.find(peer); own != inside.end()) return moved(own->second, ns);
                const auto named = named_.find(peer);
                return named == named_.end() ? ns : moved(named->second, ns);
            };
        }
        return moves;
    }

    static std::int64_t sum_of_errors(std::int64_t a, std::int64_t b) {
        return a >= kUnknownClockError - b ? kUnknownClockError : a + b;
    }

    /// The clocks of all hosts, those of traces that were merged before too.
    std::vector<HostClockRow> clock_rows() const {
        std::vector<HostClockRow> rows;
        const std::string& reference = domains_[reference_domain()].host;
        for (std::uint32_t i = 0; i < domains_.size(); ++i) {
            const Domain& domain = domains_[i];
            HostClockRow row{domain.host, reference, "reference", "", 0, 0, 0};
            if (const HostClock* const clock = clock_of(i); clock != nullptr) {
                row.method = clock->method;
                row.evidence = evidence_text(*clock);
                row.offset_ns = clock->to_reference(domain.start_ns) - domain.start_ns;
                row.error_ns = std::max(
                    {clock->error_ns, clock->error_at(domain.start_ns), clock->error_at(domain.end_ns)});
                row.rate = clock->rate;
            }
            rows.push_back(std::move(row));
        }
        for (std::size_t i = 0; i < traces_.size(); ++i) {
            const Trace& trace = traces_[i];
            for (const HostClockInfo& clock : trace.host_clocks()) {
                const std::string host(trace.string(clock.host));
                const auto same = [&](const HostClockRow& row) { return row.host == host; };
                if (std::ranges::any_of(rows, same)) continue;
                const HostClockRow& own = rows[domain_of_[i]];
                rows.push_back({host, reference,
                                std::string(own.error_ns > clock.error_ns ? std::string_view(own.method)
                                                                          : trace.string(clock.method)),
                                std::string(trace.string(clock.evidence)), clock.offset_ns + own.offset_ns,
                                sum_of_errors(clock.error_ns, own.error_ns), clock.rate + own.rate});
            }
        }
        return rows;
    }

    std::uint32_t reference_domain() const {
        for (std::uint32_t i = 0; i < domains_.size(); ++i) {
            if (domains_[i].fitted == fitted_.clocks.reference) return i;
        }
        return 0;
    }

    void put(TraceData& data, const std::vector<HostClockRow>& rows) const {
        StringPool strings(data.strings);
        data.host_clocks.clear();
        std::string unknown;
        std::size_t count = 0;
        for (const HostClockRow& row : rows) {
            data.host_clocks.push_back({strings.intern(row.host), strings.intern(row.reference),
                                        strings.intern(row.method), strings.intern(row.evidence),
                                        row.offset_ns, row.rate, row.error_ns});
            if (row.method != "none") continue;
            if (++count <= kHostsNamed) unknown += (unknown.empty() ? "" : ", ") + row.host;
        }
        std::erase_if(data.problems,
                      [](const ProblemInfo& problem) { return problem.code == "clock_unknown"; });
        for (const ProblemInfo& problem : fitted_.clocks.problems) {
            if (problem.code != "clock_unknown") data.problems.push_back(problem);
        }
        if (count > kHostsNamed) unknown += " and others";
        if (count > 0)
            data.problems.push_back({"clock_unknown",
                                     "No exchange, message or collective relates these hosts to the others, "
                                     "so they are placed by "
                                     "their wall clocks, with an unknown error: " +
                                         unknown + ".",
                                     count});
    }

    std::vector<Trace> traces_;
    std::vector<Domain> domains_;
    std::vector<std::uint32_t> domain_of_;                     ///< by trace
    std::map<std::string, std::uint32_t, std::less<>> named_;  ///< domains by the names of their hosts
    TextNumbers texts_;
    std::vector<RankEvents> events_;           ///< of every process on a clock
    std::vector<std::uint32_t> first_events_;  ///< by trace
    bool are_one_job_ = true;                  ///< no rank is there twice
    JobClocks fitted_;
};

}  // namespace

Trace merge_traces(std::vector<Trace> traces) {
    if (traces.empty()) return Trace();
    return traces.size() == 1 ? std::move(traces[0]) : ClockMerge(std::move(traces)).merge();
}

}  // namespace marey
