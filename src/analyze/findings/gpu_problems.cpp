// gpu_problems.cpp: gpu.*: the findings of gpu_use(), and the lines of the program that wait for a device.
#include <map>

#include <marey/gpu_use.h>

#include "analyze/findings/finding_rule.h"
#include "analyze/gpu/gpu_host.h"

namespace marey {
namespace {

/// The rules of gpu_use() and those of explain().
constexpr std::pair<std::string_view, std::string_view> kGpuRules[] = {
    {"host_bound", "gpu.starved"},          {"launch_bound", "gpu.launch_bound"},
    {"short_kernels", "gpu.small_kernels"}, {"copies_not_overlapped", "gpu.copies"},
    {"pageable_copies", "gpu.pageable"},    {"small_grids", "gpu.small_grids"},
    {"low_occupancy", "gpu.occupancy"},     {"waits", "gpu.sync"},
};

/// "train.py(17): train_step": the innermost line of the program in the stack of a range, or the line from
/// which its Python function was called; empty: neither was recorded.
std::string line_of(const Trace& trace, Row range) {
    const RangeColumns ranges = trace.ranges();
    for (const Argument& value : trace.range_arguments(range)) {
        const std::string_view key = trace.string(value.key);
        for (const Argument& frame :
             key == "Call stack" ? items_of(trace, value) : std::span<const Argument>()) {
            if (frame.kind == ValueKind::String && is_program_file(trace.string(frame.string)))
                return std::string(trace.string(frame.string));
        }
        if (key != "line" || value.kind != ValueKind::Int) continue;
        Row caller = ranges.parent[range];
        while (caller != kNoRow && trace.sites()[ranges.site[caller]].scope != Scope::PythonFunction)
            caller = ranges.parent[caller];
        if (caller == kNoRow || !is_program_file(trace.string(trace.sites()[ranges.site[caller]].file)))
            continue;
        const PythonName name = parse_python_name(trace.range_name(caller));
        return std::string(name.path) + "(" + std::to_string(value.integer) +
               "): " + std::string(name.function);
    }
    return "";
}

/// The lines from which a thread waits, longest wait first.
void add_lines(const Trace& trace, Row thread, Finding& finding) {
    const RangeColumns ranges = trace.ranges();
    std::map<std::string, GpuWorkTotals> by_line;
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Thread || track.thread != thread) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            if (trace.sites()[ranges.site[row]].scope != Scope::DeviceRuntime ||
                !is_wait_call(trace.range_name(row)))
                continue;
            std::string line;
            for (Row around = row; line.empty() && around != kNoRow; around = ranges.parent[around])
                line = line_of(trace, around);
            if (line.empty()) continue;
            GpuWorkTotals& totals = by_line[line];
            ++totals.count;
            totals.total_ns += ranges.duration_ns[row];
        }
    }
    std::vector<std::pair<std::string, GpuWorkTotals>> lines(by_line.begin(), by_line.end());
    std::ranges::stable_sort(lines, std::greater<>(), [](const auto& line) { return line.second.total_ns; });
    lines.resize(std::min(lines.size(), kMostEvidence));
    for (const auto& [line, totals] : lines)
        add_evidence(finding, "waits at " + line, static_cast<std::int64_t>(totals.count), totals.total_ns);
}

}  // namespace

void find_gpu_problems(const FindingInput& in, Findings& findings) {
    const auto is_device = [](const TrackInfo& track) { return track.kind == TrackKind::Device; };
    if (std::ranges::none_of(in.trace.tracks(), is_device)) return;
    const GpuUse use = gpu_use(in.trace, {.longest_gaps = 1});
    for (const GpuFinding& found : use.findings) {
        if (!in.is_much(found.time_ns, 0)) continue;
        const auto* const rule =
            std::ranges::find(kGpuRules, found.rule, [](const auto& each) { return each.first; });
        Finding& finding = add_finding(in, findings, rule->second, found.time_ns, found.text);
        std::tie(finding.process, finding.thread) = std::tie(found.process, found.thread);
        for (const GpuEvidence& each : found.evidence)
            add_evidence(finding, each.what, each.count == 0 ? -1 : static_cast<std::int64_t>(each.count),
                         each.time_ns);
        if (found.rule == "waits") add_lines(in.trace, found.thread, finding);
        for (const GpuDevice& device : use.devices) {
            if (found.rule != "host_bound" || device.process != found.process ||
                !(device.device == found.device) || device.longest_gaps.empty())
                continue;
            finding.start_ns = device.longest_gaps.front().start_ns;
            finding.duration_ns = device.longest_gaps.front().duration_ns;
        }
    }
}

}  // namespace marey
