// self_time.cpp: function.self: one function or range takes much of the time itself.
#include "analyze/findings/finding_rule.h"

namespace marey {

void find_self_time(const FindingInput& in, Findings& findings) {
    constexpr double kSelfShare = 0.3;  // of the window, on one thread
    // Threads that use a device, and ranks, mostly wait for each other: other rules look at those.
    const auto has_rank = [](const ProcessInfo& process) { return process.node >= 0; };
    const auto is_device = [](const TrackInfo& track) { return track.kind == TrackKind::Device; };
    if (std::ranges::any_of(in.trace.tracks(), is_device) ||
        std::ranges::count_if(in.trace.processes(), has_rank) > 1)
        return;
    const NameFacts* most = nullptr;
    for (const NameFacts& name : in.facts.names) {
        if (name.calls == 0 || in.facts.purpose_of_site[name.site] != RangePurpose::None) continue;
        const Scope scope = in.trace.sites()[name.site].scope;
        if (scope == Scope::DeviceRuntime || name.self_thread == kNoRow) continue;
        // Other threads often wait for work, here in a function of C.
        if (scope == Scope::PythonFunction && !in.facts.has_c_calls && !in.facts.is_main[name.self_thread])
            continue;
        if (most == nullptr || name.self_ns > most->self_ns) most = &name;
    }
    if (most == nullptr || !in.is_much(most->self_ns, kSelfShare)) return;
    const std::string name = in.facts.name(*most);
    const Scope scope = in.trace.sites()[most->site].scope;
    const bool has_unseen_calls = scope == Scope::PythonFunction && !in.facts.has_c_calls;
    Finding& finding = add_finding(in, findings, "function.self", most->self_ns / 2,
                                   in.of_time(most->self_ns) + " is spent in " + in_words(name) +
                                       (has_unseen_calls ? " and C functions that it calls"
                                                         : " itself, not in calls or ranges inside it") +
                                       "; twice as fast, it would save half of that",
                                   name);
    set_place(in, finding, most->longest);
    add_evidence(finding, name + " itself, on " + in.thread_text(most->self_thread), -1, most->self_ns);
    add_evidence(finding, "its calls, with all inside them", static_cast<std::int64_t>(most->calls),
                 most->total_ns);
    if (in.facts.is_sampled) add_evidence(finding, "times are estimates from samples", -1);
    if (has_unseen_calls) {
        finding.certainty = FindingCertainty::Possible;
        add_evidence(finding,
                     "calls into C were not recorded: their time, also of waiting, counts as its own", -1);
        finding.advice = "Record with marey run --c-calls to see which C functions it calls.";
    } else if (scope == Scope::User || scope == Scope::Step) {
        finding.advice = "Mark ranges inside it to see which part takes the time, or make that work faster.";
    }
}

}  // namespace marey
