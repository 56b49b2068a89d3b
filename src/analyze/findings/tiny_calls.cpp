// tiny_calls.cpp: calls.tiny: very many very short calls, whose own cost is a large part of their time.
#include "analyze/findings/finding_rule.h"

namespace marey {

void find_tiny_calls(const FindingInput& in, Findings& findings) {
    constexpr double kTinyShare = 0.15;  // of the window, on one thread
    constexpr std::uint64_t kManyCalls = 10'000;
    // An operator checks types and shapes and allocates.
    constexpr std::int64_t kShortNs = 2'000, kShortOperatorNs = 10'000;
    if (in.facts.is_sampled) return;
    std::vector<const NameFacts*> tiny;
    const auto mean_ns = [](const NameFacts& name) {
        return static_cast<double>(name.total_ns) / static_cast<double>(name.calls);
    };
    for (const NameFacts& name : in.facts.names) {
        const Scope scope = in.trace.sites()[name.site].scope;
        if (name.calls >= kManyCalls && scope != Scope::DeviceRuntime &&
            mean_ns(name) < static_cast<double>(scope == Scope::Function ? kShortOperatorNs : kShortNs) &&
            in.facts.purpose_of_site[name.site] == RangePurpose::None &&
            in.is_much(name.thread_total_ns, kTinyShare))
            tiny.push_back(&name);
    }
    if (tiny.empty()) return;
    std::ranges::stable_sort(tiny, std::greater<>(), &NameFacts::thread_total_ns);
    const NameFacts& most = *tiny.front();
    // Making a call takes time too: a caller that does little between its calls spends most of its time on
    // them.
    const Row call = in.trace.ranges().parent[most.longest];
    const NameFacts* caller =
        call == kNoRow ? nullptr : &in.facts.names[in.facts.slots.of_site[in.trace.ranges().site[call]]];
    if (caller != nullptr && (caller == &most || caller->made < kManyCalls ||
                              caller->self_ns > static_cast<std::int64_t>(caller->made) * kShortNs))
        caller = nullptr;
    const std::int64_t gain_ns = most.thread_total_ns + (caller == nullptr ? 0 : caller->self_ns);
    Finding& finding = add_finding(in, findings, "calls.tiny", gain_ns,
                                   in_words(in.facts.name(most)) + " is called " + times_text(most.calls) +
                                       ", for " + time_text(mean_ns(most)) +
                                       (caller == nullptr ? " each: " : " each; with making these calls, ") +
                                       in.of_time(gain_ns),
                                   in.facts.name(most));
    set_place(in, finding, most.longest);
    tiny.resize(std::min(tiny.size(), kMostEvidence));
    for (const NameFacts* const name : tiny)
        add_evidence(finding, in.facts.name(*name) + ", without the cost of recording",
                     static_cast<std::int64_t>(name->calls), name->total_ns);
    if (caller != nullptr)
        add_evidence(finding, in.facts.name(*caller) + std::string(kThatCalls),
                     static_cast<std::int64_t>(caller->made), caller->self_ns);
}

}  // namespace marey
