// tiny_calls.cpp: calls.tiny: very many very short calls, whose own cost is a large part of their time.
#include "analyze/findings/finding_rule.h"

namespace marey {
namespace {

constexpr std::uint64_t kManyCalls = 10'000;
constexpr std::int64_t kShortNs = 2'000;

double mean_ns(const NameFacts& name) {
    return static_cast<double>(name.total_ns) / static_cast<double>(name.calls);
}

bool is_tiny(const FindingInput& in, const NameFacts& name) {
    constexpr std::int64_t kShortOperatorNs = 10'000;  // it checks types and shapes, and allocates
    const Scope scope = in.trace.sites()[name.site].scope;
    return name.calls >= kManyCalls && scope != Scope::DeviceRuntime &&
           mean_ns(name) < static_cast<double>(scope == Scope::Function ? kShortOperatorNs : kShortNs) &&
           in.facts.purpose_of_site[name.site] == RangePurpose::None;
}

/// The caller, if it does little between its calls: then it spends most of its time on making them.
const NameFacts* busy_caller(const FindingInput& in, const NameFacts& name) {
    const Row call = in.trace.ranges().parent[name.longest];
    if (call == kNoRow) return nullptr;
    const NameFacts& caller = in.facts.names[in.facts.slots.of_site[in.trace.ranges().site[call]]];
    const bool is_busy = &caller != &name && caller.made >= kManyCalls &&
                         caller.self_ns <= static_cast<std::int64_t>(caller.made) * kShortNs;
    return is_busy ? &caller : nullptr;
}

}  // namespace

void find_tiny_calls(const FindingInput& in, Findings& findings) {
    constexpr double kTinyShare = 0.15;  // of the window, on one thread
    if (in.facts.is_sampled) return;
    const NameFacts *most = nullptr, *caller = nullptr;
    std::int64_t gain_ns = 0;
    for (const NameFacts& name : in.facts.names) {
        if (!is_tiny(in, name)) continue;
        const NameFacts* const busy = busy_caller(in, name);
        const std::int64_t time_ns = name.thread_total_ns + (busy == nullptr ? 0 : busy->self_ns);
        if (time_ns > gain_ns) std::tie(most, caller, gain_ns) = std::tuple(&name, busy, time_ns);
    }
    if (most == nullptr || !in.is_much(gain_ns, kTinyShare)) return;
    const std::string name = in.facts.name(*most);
    Finding& finding = add_finding(
        in, findings, "calls.tiny", gain_ns,
        in_words(name) + " is called " + times_text(most->calls) + ", for " + time_text(mean_ns(*most)) +
            (caller == nullptr ? " each: " : " each; with making these calls, ") + in.of_time(gain_ns),
        name);
    set_place(in, finding, most->longest);
    add_evidence(finding, name + ", without the cost of recording", static_cast<std::int64_t>(most->calls),
                 most->total_ns);
    if (caller != nullptr)
        add_evidence(finding, in.facts.name(*caller) + std::string(kThatCalls),
                     static_cast<std::int64_t>(caller->made), caller->self_ns);
}

}  // namespace marey
