// input_waits.cpp: step.input: the thread of the steps waits for a data loader.
#include "analyze/findings/finding_rule.h"

namespace marey {

void find_input_waits(const FindingInput& in, Findings& findings) {
    constexpr double kInputShare = 0.1;  // of the time from the first step to the last
    if (in.whole_steps.empty()) return;
    std::vector<bool> is_input;
    for (const SiteInfo& site : in.trace.sites()) {
        const std::string_view name = in.trace.string(site.name);
        is_input.push_back(name.find("DataLoader") != name.npos || name.find("dataloader") != name.npos);
    }
    const StepInfo &first = in.whole_steps.front(), &last = in.whole_steps.back();
    const std::int64_t end_ns = last.start_ns + last.duration_ns;
    const RangeColumns ranges = in.trace.ranges();
    std::int64_t input_ns = 0, count = 0, covered_until = first.start_ns;
    Row longest = kNoRow;
    for (const TrackInfo& track : in.trace.tracks()) {
        if (track.kind != TrackKind::Thread || track.thread != first.thread) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::int64_t end = ranges.start_ns[row] + ranges.duration_ns[row];
            if (!is_input[ranges.site[row]] || end > end_ns || ranges.start_ns[row] < covered_until) continue;
            covered_until = end;
            ++count;
            input_ns += ranges.duration_ns[row];
            if (longest == kNoRow || ranges.duration_ns[row] > ranges.duration_ns[longest]) longest = row;
        }
    }
    const double share = FindingInput::part(input_ns, end_ns - first.start_ns);
    if (longest == kNoRow || share < kInputShare || !in.is_much(input_ns, 0)) return;
    std::erase_if(findings, [&](const Finding& finding) {  // the same time, if loading is most of it
        return finding.id == "step.between" && finding.gain_ns < 2 * input_ns;
    });
    const std::string_view name = in.trace.range_name(longest);
    Finding& finding = add_finding(in, findings, "step.input", input_ns,
                                   percent_text(share) + " of the loop's time goes into loading data on " +
                                       in.thread_text(first.thread) + ", which runs the steps",
                                   name);
    set_place(in, finding, longest);
    add_evidence(finding, std::string(name), count, input_ns);
    add_evidence(finding, "steps, and the time from the first to the last", std::ssize(in.whole_steps),
                 end_ns - first.start_ns);
}

}  // namespace marey
