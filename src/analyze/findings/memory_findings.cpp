// memory_findings.cpp: memory.growth, memory.peak and memory.refused.
#include <map>

#include <marey/memory_use.h>

#include "analyze/averages/site_groups.h"

#include "analyze/findings/finding_rule.h"

namespace marey {
namespace {

std::string path_text(const std::vector<std::string>& path) {
    std::string text;
    for (const std::string& name : path) text += (text.empty() ? "" : " > ") + name;
    return text.empty() ? "outside any range" : text;
}

std::string device_text(const DeviceMemory& device) {
    const std::string type = device_type_name(device.device.type);
    return " on " + (device.device.index < 0 ? type : type + " " + std::to_string(device.device.index));
}

Finding& add_memory_finding(const FindingInput& in, Findings& findings, const char* id,
                            const DeviceMemory& device, std::int64_t bytes, std::string claim) {
    Finding& finding = add_finding(in, findings, id, 0, std::move(claim));
    finding.gain_bytes = bytes;
    finding.process = device.process;
    return finding;
}

/// The holders, where all ProfilerStep#n are one.
std::vector<MemoryHolder> merged_holders(const DeviceMemory& device) {
    std::map<std::vector<std::string>, MemoryHolder> by_path;
    for (const MemoryHolder& holder : device.holders) {
        std::vector<std::string> path;
        for (const std::string& name : holder.path) path.emplace_back(group_name(name));
        MemoryHolder& sum = by_path[path];
        sum.path = path;
        sum.peak_allocations += holder.peak_allocations;
        sum.peak_bytes += holder.peak_bytes;
        sum.kept_allocations += holder.kept_allocations;
        sum.kept_bytes += holder.kept_bytes;
    }
    std::vector<MemoryHolder> merged;
    merged.reserve(by_path.size());
    for (auto& [path, sum] : by_path) merged.push_back(std::move(sum));
    return merged;
}

/// The paths that allocated most of something.
void add_holders(Finding& finding, const DeviceMemory& device, std::int64_t MemoryHolder::*bytes,
                 std::uint64_t MemoryHolder::*count) {
    std::vector<MemoryHolder> holders = merged_holders(device);
    std::erase_if(holders, [&](const MemoryHolder& holder) { return holder.*bytes <= 0; });
    std::ranges::stable_sort(holders, std::greater<>(), bytes);
    holders.resize(std::min(holders.size(), kMostEvidence));
    for (const MemoryHolder& holder : holders)
        add_evidence(finding, "allocated by " + path_text(holder.path),
                     static_cast<std::int64_t>(holder.*count), -1, holder.*bytes);
    if (!holders.empty() && !holders.front().path.empty()) finding.name = holders.front().path.back();
}

void find_refusals(const FindingInput& in, const DeviceMemory& device, Findings& findings) {
    if (device.refusals.empty()) return;
    const OutOfMemoryEvent& first = device.refusals.front();
    const std::int64_t asked = first.asked_bytes;
    Finding& finding = add_memory_finding(
        in, findings, "memory.refused", device, 0,
        "out of memory" + device_text(device) + ": " +
            (asked > 0 ? bytes_text(asked) + " were" : "a request was") + " refused, with " +
            bytes_text(std::max<std::int64_t>(first.allocated, 0)) + " allocated");
    finding.is_fault = true;
    finding.thread = first.thread;
    finding.start_ns = first.time_ns;
    add_evidence(finding, "requested by " + path_text(first.path), std::ssize(device.refusals), -1,
                 std::max<std::int64_t>(asked, -1));
    add_holders(finding, device, &MemoryHolder::peak_bytes, &MemoryHolder::peak_allocations);
}

void find_growth(const FindingInput& in, const DeviceMemory& device, const MemorySeries& series,
                 Findings& findings) {
    constexpr std::size_t kWarmUp = 2, kLeastSteps = 5;
    constexpr double kGrowingSteps = 0.8, kPeakShare = 0.05;
    constexpr std::int64_t kLeastBytes = 1 << 20;
    if (in.whole_steps.size() < kWarmUp + kLeastSteps) return;
    std::vector<std::int64_t> bytes;  // at the end of each step
    for (const StepInfo& step : in.whole_steps) {
        const auto after = std::ranges::upper_bound(series.points, step.start_ns + step.duration_ns, {},
                                                    &MemoryPoint::time_ns);
        bytes.push_back(after == series.points.begin() ? 0 : std::prev(after)->allocated);
    }
    const auto count = static_cast<std::int64_t>(bytes.size() - kWarmUp);
    std::int64_t growing = 0;
    for (std::size_t i = kWarmUp; i < bytes.size(); ++i) growing += bytes[i] > bytes[i - 1] ? 1 : 0;
    const std::int64_t grown = bytes.back() - bytes[kWarmUp - 1];
    if (FindingInput::part(growing, count) < kGrowingSteps || grown < kLeastBytes ||
        FindingInput::part(grown, device.peak_bytes) < kPeakShare)
        return;
    Finding& finding = add_memory_finding(
        in, findings, "memory.growth", device, grown,
        "memory" + device_text(device) + " grows by " + bytes_text(grown / count) + " per step");
    set_place(finding, in.whole_steps.back());
    add_evidence(finding, "steps that left more memory allocated than the one before", growing, -1, grown);
    add_holders(finding, device, &MemoryHolder::kept_bytes, &MemoryHolder::kept_allocations);
}

void find_peak_holder(const FindingInput& in, const DeviceMemory& device, Findings& findings) {
    constexpr double kPeakShare = 0.5;
    constexpr std::int64_t kLeastBytes = 64 << 20;
    const std::vector<MemoryHolder> holders = merged_holders(device);
    if (holders.empty() || device.peak_bytes < kLeastBytes) return;
    const MemoryHolder& most = *std::ranges::max_element(holders, {}, &MemoryHolder::peak_bytes);
    const double share = FindingInput::part(most.peak_bytes, device.peak_bytes);
    if (most.path.empty() || share < kPeakShare) return;
    Finding& finding =
        add_memory_finding(in, findings, "memory.peak", device, most.peak_bytes,
                           most.path.back() + " allocated " + percent_text(share) + " of the memory" +
                               device_text(device) + " at its peak of " + bytes_text(device.peak_bytes));
    finding.start_ns = device.peak_time_ns;
    add_holders(finding, device, &MemoryHolder::peak_bytes, &MemoryHolder::peak_allocations);
}

}  // namespace

void find_memory(const FindingInput& in, Findings& findings) {
    if (in.trace.memory().size() == 0) return;
    const MemoryUse use = memory_use(in.trace);
    const std::vector<MemorySeries> series = memory_series(in.trace);
    for (std::size_t i = 0; i < std::min(use.devices.size(), series.size()); ++i) {
        find_refusals(in, use.devices[i], findings);
        find_growth(in, use.devices[i], series[i], findings);
        find_peak_holder(in, use.devices[i], findings);
    }
}

}  // namespace marey
