// gpu_findings.cpp: rules that find performance problems in a GPU report.
#include <algorithm>
#include <cmath>

#include "analyze/gpu/gpu_tables.h"

namespace marey {
namespace {

constexpr std::uint64_t kManyGaps = 100, kManyKernels = 100, kManyWaits = 10;
constexpr double kStarvedShare = 0.2;            // of the span from a device's first work to its last
constexpr double kExposedCopyShare = 0.1;        // likewise
constexpr double kPageableShare = 0.01;          // likewise
constexpr double kShortKernelShare = 0.5;        // of its kernels
constexpr double kInefficientKernelShare = 0.2;  // of its kernel time
constexpr double kWaitShare = 0.1;               // of the window
constexpr double kIdleAfterShare = 0.05;         // likewise
constexpr std::size_t kMaxRows = 3;              // of evidence by name

double part(std::int64_t of, std::int64_t whole) {
    return whole > 0 ? static_cast<double>(of) / static_cast<double>(whole) : 0;
}
std::string percent(double share) {
    return std::to_string(std::lround(share * 100)) + "%";
}
std::string text_of(const GpuHostWork& work) {
    if (work.name.empty()) return "outside any range";
    return work.function.empty() ? work.name : work.name + " in " + work.function;
}

/// The findings about one device.
class DeviceFindings {
  public:
    DeviceFindings(const GpuDevice& device, std::vector<GpuFinding>& findings)
        : device_(device), findings_(findings) {}

    void find() {
        launch_bound();
        host_bound();
        short_kernels();
        exposed_copies();
        pageable_copies();
        small_grids();
        low_occupancy();
    }

  private:
    GpuFinding& add(const char* rule, double share, std::int64_t time_ns, std::string text) {
        GpuFinding& finding = findings_.emplace_back();
        finding.rule = rule;
        finding.process = device_.process;
        finding.device = device_.device;
        finding.share = share;
        finding.time_ns = time_ns;
        finding.text = std::move(text);
        return finding;
    }
    void add_idle_host(GpuFinding& finding) const {
        for (std::size_t i = 0; i < std::min(kMaxRows, device_.idle_host.size()); ++i)
            finding.evidence.push_back({"thread activity during the gaps: " + text_of(device_.idle_host[i]),
                                        0, device_.idle_host[i].time_ns});
    }

    void launch_bound() {
        const double share = part(device_.starved_short_ns, device_.span_ns());
        if (share < kStarvedShare || device_.starved_short_gaps < kManyGaps) return;
        GpuFinding& finding =
            add("launch_bound", share, device_.starved_short_ns,
                percent(share) +
                    " of the time the device waited for the next launch, in short gaps: launching "
                    "takes longer than the launched work");
        finding.evidence.push_back(
            {"gaps under 100 us with nothing queued", device_.starved_short_gaps, device_.starved_short_ns});
        finding.evidence.push_back({"launch call (median)", 0, device_.launch_calls.median_ns});
        finding.evidence.push_back(
            {"end of launch call to start on the device (median)", 0, device_.queue_after_call.median_ns});
        add_idle_host(finding);
    }

    void host_bound() {
        const double share = part(device_.starved_long_ns, device_.span_ns());
        if (share < kStarvedShare) return;
        GpuFinding& finding = add("host_bound", share, device_.starved_long_ns,
                                  percent(share) +
                                      " of the time the device had nothing queued, in gaps of 100 "
                                      "us or longer: the threads were busy with other work");
        finding.evidence.push_back({"gaps of 100 us or longer with nothing queued", device_.starved_long_gaps,
                                    device_.starved_long_ns});
        add_idle_host(finding);
    }

    void short_kernels() {
        const GpuWorkTotals& kernels = device_.times.kernels;
        const double share = part(static_cast<std::int64_t>(device_.short_kernels.count),
                                  static_cast<std::int64_t>(kernels.count));
        if (kernels.count < kManyKernels || share < kShortKernelShare) return;
        GpuFinding& finding = add("short_kernels", share, device_.short_kernels.total_ns,
                                  percent(share) + " of the kernels take less than 10 us");
        finding.evidence.push_back(
            {"kernels under 10 us", device_.short_kernels.count, device_.short_kernels.total_ns});
        std::vector<GpuLauncher> by_count = device_.functions.empty() ? device_.ranges : device_.functions;
        std::ranges::stable_sort(by_count, std::greater<>(), &GpuLauncher::short_kernels);
        for (std::size_t i = 0; i < std::min(kMaxRows, by_count.size()); ++i) {
            const GpuLauncher& launcher = by_count[i];
            if (launcher.short_kernels == 0) continue;
            finding.evidence.push_back(
                {launcher.name.empty() ? "launched outside any range" : "launched by " + launcher.name,
                 launcher.short_kernels, -1});
        }
    }

    void exposed_copies() {
        const std::int64_t exposed = device_.copy_busy_ns - device_.overlap_ns;
        const double share = part(exposed, device_.span_ns());
        if (share < kExposedCopyShare) return;
        GpuFinding& finding = add("copies_not_overlapped", share, exposed,
                                  percent(share) + " of the time the device was copying while no kernel ran");
        finding.evidence.push_back({"copies", device_.times.copies.count, device_.copy_busy_ns});
        finding.evidence.push_back({"copies overlapped by kernels", 0, device_.overlap_ns});
        add_transfers(finding, false);
    }

    void pageable_copies() {
        std::int64_t time_ns = 0;
        for (const GpuTransfer& transfer : device_.transfers) {
            if (transfer.is_pageable) time_ns += transfer.time_ns;
        }
        const double share = part(time_ns, device_.span_ns());
        if (share < kPageableShare) return;
        GpuFinding& finding = add("pageable_copies", share, time_ns,
                                  percent(share) +
                                      " of the time was spent in copies of pageable (not "
                                      "pinned) memory, which are slower and block the calling thread");
        add_transfers(finding, true);
    }
    void add_transfers(GpuFinding& finding, bool only_pageable) const {
        for (const GpuTransfer& transfer : device_.transfers) {
            if (transfer.direction == "Memset" || (only_pageable && !transfer.is_pageable)) continue;
            finding.evidence.push_back({transfer.direction + (transfer.is_pageable ? ", pageable" : ""),
                                        transfer.count, transfer.time_ns});
        }
    }

    void small_grids() {
        inefficient_kernels("small_grids", &GpuKernel::small_grid_ns,
                            " of the kernel time was spent in kernels with fewer blocks than the device has "
                            "multiprocessors (" +
                                std::to_string(device_.sm_count) + ")");
    }
    void low_occupancy() {
        inefficient_kernels(
            "low_occupancy", &GpuKernel::low_occupancy_ns,
            " of the kernel time was spent in kernels that can occupy less than a quarter of the "
            "device, because of their registers, shared memory or block count");
    }
    void inefficient_kernels(const char* rule, std::int64_t GpuKernel::*time, const std::string& text) {
        std::vector<const GpuKernel*> inefficient;
        std::int64_t total_ns = 0;
        for (const GpuKernel& kernel : device_.kernels) {
            if (kernel.*time == 0) continue;
            total_ns += kernel.*time;
            inefficient.push_back(&kernel);
        }
        const double share = part(total_ns, device_.times.kernels.total_ns);
        if (inefficient.empty() || share < kInefficientKernelShare) return;
        std::ranges::stable_sort(inefficient,
                                 [&](const GpuKernel* a, const GpuKernel* b) { return a->*time > b->*time; });
        GpuFinding& finding = add(rule, share, total_ns, percent(share) + text);
        for (std::size_t i = 0; i < std::min(kMaxRows, inefficient.size()); ++i)
            finding.evidence.push_back(
                {inefficient[i]->name, inefficient[i]->times.count, inefficient[i]->*time});
    }

    const GpuDevice& device_;
    std::vector<GpuFinding>& findings_;
};

void find_waits(const Trace& trace, const GpuWaits& waits, std::vector<GpuFinding>& findings) {
    const std::int64_t window_ns = trace.window().end_ns - trace.window().start_ns;
    const double share = part(waits.time_ns, window_ns);
    if (share < kWaitShare || waits.count < kManyWaits) return;
    if (part(waits.idle_after_ns, window_ns) < kIdleAfterShare) return;
    GpuFinding& finding = findings.emplace_back();
    finding.rule = "waits";
    finding.process = trace.threads()[waits.thread].process;
    finding.thread = waits.thread;
    finding.share = share;
    finding.time_ns = waits.idle_after_ns;
    finding.text = "a thread spent " + percent(share) +
                   " of the time waiting for devices, which were then idle until its next launch";
    finding.evidence.push_back({"waits", waits.count, waits.time_ns});
    finding.evidence.push_back({"device idle time after the waits", 0, waits.idle_after_ns});
    for (std::size_t i = 0; i < std::min(kMaxRows, waits.callers.size()); ++i)
        finding.evidence.push_back(
            {"waited in " + waits.callers[i].name, waits.callers[i].count, waits.callers[i].time_ns});
}

}  // namespace

std::vector<GpuFinding> gpu_findings(const Trace& trace, const GpuUse& use) {
    std::vector<GpuFinding> findings;
    for (const GpuDevice& device : use.devices) DeviceFindings(device, findings).find();
    for (const GpuWaits& waits : use.waits) find_waits(trace, waits, findings);
    return findings;
}

}  // namespace marey
