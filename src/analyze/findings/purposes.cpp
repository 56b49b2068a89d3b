// purposes.cpp: gc.time, imports.time and waits.*: known functions that do not do the program's own work.
#include "analyze/findings/finding_rule.h"

namespace marey {
namespace {

enum class Threads : std::uint8_t {
    All,
    Main,     ///< others may wait for work
    Working,  ///< for at least a fiftieth of the window
};

struct PurposeRule {
    RangePurpose purpose;
    const char* id;
    const char* what;
    Threads threads;
    double least_share;  ///< of the window
    std::int64_t least_ns = 0;
};

constexpr double kWaits = 0.2;
constexpr PurposeRule kPurposeRules[] = {
    {RangePurpose::Collection, "gc.time", "collects garbage", Threads::All, 0.08},
    {RangePurpose::Import, "imports.time", "imports modules", Threads::All, 0.2, 100'000'000},
    {RangePurpose::Lock, "waits.lock", "waits for locks", Threads::Working, kWaits},
    {RangePurpose::Queue, "waits.queue", "waits for queues", Threads::Main, kWaits},
    {RangePurpose::Network, "waits.network", "waits for the network", Threads::Main, kWaits},
    {RangePurpose::Process, "waits.process", "waits for other processes", Threads::Main, kWaits},
    {RangePurpose::Sleep, "waits.sleep", "sleeps", Threads::Main, kWaits},
    {RangePurpose::File, "waits.file", "reads and writes files", Threads::Main, kWaits},
};

std::vector<bool> chosen_threads(const FindingInput& in, Threads which) {
    constexpr double kWorkingShare = 0.02;
    // A process that starts others, such as a launcher of ranks, only waits for them.
    std::vector<bool> has_children(in.trace.processes().size() + 1);
    for (const ProcessInfo& process : in.trace.processes())
        has_children[std::min<std::size_t>(process.parent, has_children.size() - 1)] = true;
    std::vector<bool> chosen;
    for (Row row = 0; row < in.trace.threads().size(); ++row) {
        const bool is_working = in.share(in.facts.busy_ns[row]) >= kWorkingShare;
        const bool is_main = in.facts.is_main[row] && !has_children[in.trace.threads()[row].process];
        chosen.push_back(which == Threads::All || (which == Threads::Main ? is_main : is_working));
    }
    return chosen;
}

}  // namespace

void find_purposes(const FindingInput& in, Findings& findings) {
    if (in.facts.purposes.empty()) return;
    for (const PurposeRule& rule : kPurposeRules) {
        const PurposeSum most = in.facts.most(rule.purpose, chosen_threads(in, rule.threads));
        if (most.time_ns < rule.least_ns || !in.is_much(most.time_ns, rule.least_share)) continue;
        Finding& finding = add_finding(in, findings, rule.id, most.time_ns,
                                       in.thread_text(most.thread) + " " + rule.what + " for " +
                                           in.of_time(most.time_ns) + ", " + times_text(most.count),
                                       in.facts.name(most.parts.front().name));
        set_place(in, finding, most.parts.front().longest);
        for (std::size_t i = 0; i < std::min(most.parts.size(), kMostEvidence); ++i) {
            const PurposeFacts& part = most.parts[i];
            std::string text = in.facts.name(part.name);
            if (part.caller != kNoIndex) text += " in " + in.facts.name(part.caller);
            add_evidence(finding, text, static_cast<std::int64_t>(part.count), part.time_ns);
        }
        if (rule.purpose == RangePurpose::Collection)
            add_evidence(finding, "the longest one", -1, most.longest_ns);
    }
}

}  // namespace marey
