// gpu_verb.cpp: marey gpu: what devices did, when they were idle, and why.
#include <algorithm>
#include <limits>

#include <marey/gpu_use.h>
#include <marey/results.h>

#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::size_t kLongestGaps = 5;
constexpr std::size_t kHostRows = 3;  // of each gap

std::string share_of(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? format_share(static_cast<double>(part) / static_cast<double>(whole)) : "";
}

std::string range_text(const std::string& name) {
    return name.empty() ? "(in no range)" : printable(name);
}

std::string host_text(const GpuHostWork& work) {
    if (work.name.empty() || work.function.empty()) return range_text(work.name);
    return printable(work.name + " in " + work.function);
}

class GpuVerb final : public Verb {
  public:
    const char* help() const override { return "Show what devices did, when they were idle, and why"; }
    const char* details() const override {
        return "Shows every device that has work in the file. busy: time with any work running; used:\n"
               "its share of the window. gap: time without work; host activity: what the thread did that\n"
               "launched the work after the gap. queue: time from the start of the launching call until\n"
               "its work began. Findings are rules with thresholds, listed in docs/guide/gpu.md. The\n"
               "main table is the one of kernels (gpu_kernels in docs/reference/results.md).";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.number(number_, "--device", "Show only devices with this number");
        output_.declare(options);
        options.old_name("--top", "--limit");
    }
    int run() override {
        output_.check();
        GpuUseOptions options;
        options.longest_gaps = kLongestGaps;
        if (number_) {
            if (*number_ > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
                throw Error(fmt::format("gpu: --device: there is no device {}", *number_));
            options.device = static_cast<std::int32_t>(*number_);
        }
        const Trace trace = capture_.load();
        const GpuUse use = [&] {
            const Progress progress("analysing devices");
            return gpu_use(trace, options);
        }();
        if (use.devices.empty()) {
            print_error(problem_lines(trace, standard_error()));
            throw Error(nothing_text());
        }
        const Result result = gpu_result(trace, use);
        return output_.print(result, [&] {
            terminal_ = standard_output();
            for (const GpuDevice& device : use.devices) show(trace, device);
            show_calls(result.table("gpu_calls"));
            show_waits(trace, use);
            show_findings(trace, use);
            return end_lines(trace, terminal_) + text_ + footer(trace, terminal_);
        });
    }

  private:
    std::string nothing_text() const {
        return (number_ ? fmt::format("gpu: no work on device {} in this file", *number_)
                        : std::string("gpu: no device work in this file")) +
               " (record it with marey run --gpu)";
    }

    void fact(std::string_view title, const std::string& value) {
        text_ += title_line(title, value, terminal_);
    }
    void heading(const std::string& title) { text_ += "\n" + styled(terminal_, Style::Bold, title) + "\n"; }
    /// A table below a heading, if it has rows.
    void show_table(const std::string& title, const ResultTable& table) {
        if (table.rows == 0) return;
        if (!title.empty()) heading(title);
        text_ += output_.lines(table, terminal_);
    }

    void show(const Trace& trace, const GpuDevice& device) {
        const std::int64_t window = device.times.busy_ns + device.times.idle_ns;
        std::string name = device_label(trace, device.process, device.device);
        if (!device.name.empty()) name += ", " + printable(device.name);
        if (device.sm_count > 0)
            name += fmt::format(", {} multiprocessors",
                                format_count(static_cast<std::uint64_t>(device.sm_count)));
        fact("device", name);
        fact("busy", fmt::format("{} of {}, {}; {} between its first and last work",
                                 format_duration(device.times.busy_ns), format_duration(window),
                                 format_share(device.times.utilisation()),
                                 share_of(device.times.busy_ns, device.span_ns())));
        fact("idle",
             fmt::format("{} in {}; {} of that with nothing queued", format_duration(device.times.idle_ns),
                         format_plural(device.times.gaps.count, "gap"),
                         format_duration(device.starved_short_ns + device.starved_long_ns)));
        if (device.copy_busy_ns > 0)
            fact("copying",
                 fmt::format("{}, {} of it while kernels ran", format_duration(device.copy_busy_ns),
                             share_of(device.overlap_ns, device.copy_busy_ns)));
        if (device.most_concurrent > 1)
            fact("concurrency",
                 fmt::format("several kernels at once for {}, at most {}; {} on average while any kernel ran",
                             format_duration(device.concurrent_ns), device.most_concurrent,
                             fmt::format("{:.2f}", static_cast<double>(device.times.kernels.total_ns) /
                                                       static_cast<double>(device.kernel_busy_ns))));
        std::string loose;
        if (device.unlaunched > 0)
            loose = format_plural(device.unlaunched, "piece") + " of work without a launching call";
        if (device.outside > 0)
            loose += (loose.empty() ? "" : ", ") + format_plural(device.outside, "piece") +
                     " of work launched outside any range";
        if (!loose.empty()) fact("unattributed", loose);
        if (device.early > 0)
            fact("clock", fmt::format("{} began before the launching call: the clocks disagree",
                                      format_plural(device.early, "piece") + " of work"));
        text_ += "\n";
        const Result tables = gpu_result(trace, {{device}, {}, {}, {}});
        show_table("", tables.table("gpu_streams"));
        if (device.queue.count > 0) text_ += "\n";
        show_table("", tables.table("gpu_launches"));
        show_table("idle between its first and last work: ranges that the launching threads were in",
                   tables.table("gpu_idle_hosts"));
        show_gaps(trace, device);
        show_table("kernels", tables.table("gpu_kernels"));
        show_table("launched by ranges", tables.table("gpu_ranges"));
        show_table("launched by Python functions", tables.table("gpu_functions"));
        show_table("copies and sets", tables.table("gpu_transfers"));
        text_ += "\n";
    }

    void show_gaps(const Trace& trace, const GpuDevice& device) {
        if (device.longest_gaps.empty()) return;
        heading("longest gaps");
        Table table(
            {{"at"}, {"idle"}, {"", true}, {"thread", true}, {"share"}, {"host activity", true, true}});
        for (const GpuGap& gap : device.longest_gaps) {
            const char* const why = gap.place == GpuGapPlace::BeforeFirst ? "before its first work"
                                    : gap.place == GpuGapPlace::AfterLast ? "after its last work"
                                    : gap.is_starved                      ? "nothing queued"
                                                                          : "";
            const std::string thread = gap.thread == kNoRow ? "" : thread_label(trace, gap.thread);
            const std::size_t rows = std::min(kHostRows, gap.host.size());
            for (std::size_t i = 0; i < std::max<std::size_t>(rows, 1); ++i) {
                const bool is_first = i == 0;
                table.add({is_first ? format_duration(gap.start_ns - trace.window().start_ns) : "",
                           is_first ? format_duration(gap.duration_ns) : "", is_first ? why : "",
                           is_first ? thread : "",
                           i < rows ? share_of(gap.host[i].time_ns, gap.duration_ns) : "",
                           i < rows ? host_text(gap.host[i]) : ""});
            }
        }
        text_ += table.text(terminal_);
    }

    void show_calls(const ResultTable& calls) {
        if (calls.rows > 0) text_ += styled(terminal_, Style::Bold, "device API calls") + "\n";
        show_table("", calls);
    }

    void show_waits(const Trace& trace, const GpuUse& use) {
        const std::int64_t window = trace.window().end_ns - trace.window().start_ns;
        if (!use.calls.empty() && !use.waits.empty()) text_ += "\n";
        for (const GpuWaits& waits : use.waits) {
            fact("waiting", fmt::format("{}: {} in {}, {} of the window; devices idle afterwards for {}",
                                        thread_label(trace, waits.thread), format_duration(waits.time_ns),
                                        format_plural(waits.count, "wait"), share_of(waits.time_ns, window),
                                        format_duration(waits.idle_after_ns)));
        }
        if (!use.calls.empty() || !use.waits.empty()) text_ += "\n";
    }

    void show_findings(const Trace& trace, const GpuUse& use) {
        if (use.devices.empty()) return;
        if (use.findings.empty()) text_ += "no findings\n";
        for (const GpuFinding& finding : use.findings) {
            const std::string where = finding.thread != kNoRow
                                          ? thread_label(trace, finding.thread)
                                          : device_label(trace, finding.process, finding.device);
            text_ +=
                styled(terminal_, Style::Red, finding.rule) + fmt::format(" ({}): {}\n", where, finding.text);
            for (const GpuEvidence& row : finding.evidence) {
                std::string numbers = row.count > 0 ? format_count(row.count) : "";
                if (row.time_ns >= 0) numbers += (numbers.empty() ? "" : ", ") + format_duration(row.time_ns);
                text_ += fmt::format("    {}: {}\n", printable(row.what), numbers);
            }
        }
        text_ += "\n";
    }

    CaptureArgument capture_;
    std::optional<std::uint64_t> number_;
    ResultArgument output_{.verb = "gpu", .table = "gpu_kernels", .usual_limit = 10};
    Terminal terminal_;
    std::string text_;
};

}  // namespace

MAREY_VERB(gpu, GpuVerb)

}  // namespace marey::cli
