// gpu_verb.cpp: marey gpu: what devices did, when they were idle, and why.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include <marey/error.h>
#include <marey/export.h>
#include <marey/gpu_use.h>

#include "cli/capture_argument.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::uint64_t kDefaultTop = 10;
constexpr std::size_t kLongestGaps = 5;
constexpr std::size_t kHostRows = 3;  // of each gap
constexpr std::size_t kWide = 140;    // columns of a terminal

std::string gpu_time(std::int64_t ns) {
    return format_duration(static_cast<double>(ns));
}

std::string share_of(std::int64_t part, std::int64_t whole) {
    return whole > 0 ? format_share(static_cast<double>(part) / static_cast<double>(whole)) : "";
}

std::string triple_text(const std::int64_t (&triple)[3]) {
    if (triple[0] < 0) return "";
    std::string text = format_count(static_cast<std::uint64_t>(triple[0]));
    if (triple[1] > 1 || triple[2] > 1) text += fmt::format("x{}", triple[1]);
    if (triple[2] > 1) text += fmt::format("x{}", triple[2]);
    return text;
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
               "its work began. Findings are rules with thresholds, listed in docs/guide/gpu.md. --json\n"
               "prints everything, in nanoseconds; --csv prints the kernels.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.number(number_, "--device", "Show only devices with this number");
        options.number(top_, "--top", "Rows to show of each table (10; 0 shows all)");
        options.flag(json_, "--json", "Print every row as JSON");
        options.flag(csv_, "--csv", "Print every kernel as CSV");
    }
    int run() override {
        if (csv_ && json_) throw Error("gpu: --csv and --json are mutually exclusive");
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
        if (json_ || csv_) {
            write_data(json_ ? gpu_use_json(trace, use) : gpu_kernels_csv(trace, use));
            return kSuccess;
        }
        terminal_ = standard_output();
        for (const GpuDevice& device : use.devices) show(trace, device);
        show_calls(use);
        show_waits(trace, use);
        show_findings(trace, use);
        write_out(end_lines(trace, terminal_) + text_ + footer(trace, terminal_));
        return kSuccess;
    }

  private:
    std::string nothing_text() const {
        return (number_ ? fmt::format("gpu: no work on device {} in this file", *number_)
                        : std::string("gpu: no device work in this file")) +
               " (record it with marey run --gpu)";
    }

    void fact(std::string_view title, const std::string& value) {
        text_ += styled(terminal_, Style::Bold, fmt::format("{:<13}", title)) + value + "\n";
    }
    void heading(const std::string& title) { text_ += "\n" + styled(terminal_, Style::Bold, title) + "\n"; }
    /// The number of rows to show, out of `rows`.
    std::size_t shown(std::size_t rows) const {
        const std::uint64_t top = top_.value_or(kDefaultTop);
        return top == 0 ? rows : std::min<std::size_t>(rows, top);
    }
    void finish(const Table& table, std::size_t rows) {
        text_ += table.text(terminal_);
        if (shown(rows) < rows)
            text_ += fmt::format("... and {} (--top 0 shows all)\n",
                                 format_plural(rows - shown(rows), "more row"));
    }

    static std::string device_text(const Trace& trace, Row process, const Device& device) {
        std::string text = device_type_name(device.type);
        if (device.index >= 0) text += fmt::format(" {}", device.index);
        if (trace.processes().size() > 1 && process < trace.processes().size())
            text += fmt::format(" of process {}", trace.processes()[process].pid);
        return text;
    }

    void show(const Trace& trace, const GpuDevice& device) {
        const std::int64_t window = device.times.busy_ns + device.times.idle_ns;
        std::string name = device_text(trace, device.process, device.device);
        if (!device.name.empty()) name += ", " + printable(device.name);
        if (device.sm_count > 0)
            name += fmt::format(", {} multiprocessors",
                                format_count(static_cast<std::uint64_t>(device.sm_count)));
        fact("device", name);
        fact("busy",
             fmt::format("{} of {}, {}; {} between its first and last work", gpu_time(device.times.busy_ns),
                         gpu_time(window), format_share(device.times.utilisation()),
                         share_of(device.times.busy_ns, device.span_ns())));
        fact("idle", fmt::format("{} in {}; {} of that with nothing queued", gpu_time(device.times.idle_ns),
                                 format_plural(device.times.gaps.count, "gap"),
                                 gpu_time(device.starved_short_ns + device.starved_long_ns)));
        if (device.copy_busy_ns > 0)
            fact("copying", fmt::format("{}, {} of it while kernels ran", gpu_time(device.copy_busy_ns),
                                        share_of(device.overlap_ns, device.copy_busy_ns)));
        if (device.most_concurrent > 1)
            fact("concurrency",
                 fmt::format("several kernels at once for {}, at most {}; {} on average while any kernel ran",
                             gpu_time(device.concurrent_ns), device.most_concurrent,
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
        show_streams(device);
        show_queue(device);
        show_gaps(trace, device);
        show_kernels(device);
        show_launchers("launched by ranges", "range", device.ranges, device);
        show_launchers("launched by Python functions", "function", device.functions, device);
        show_transfers(device);
        text_ += "\n";
    }

    void show_streams(const GpuDevice& device) {
        Table table({{"stream", true},
                     {"busy"},
                     {"used"},
                     {"kernels"},
                     {"time"},
                     {"copies"},
                     {"time"},
                     {"sets"},
                     {"gaps"},
                     {"longest"},
                     {"name", true, true}});
        text_ += "\n";
        for (std::size_t i = 0; i < shown(device.streams.size()); ++i) {
            const GpuStream& stream = device.streams[i];
            const GpuTimes& times = stream.times;
            table.add({stream.stream < 0 ? "-" : std::to_string(stream.stream), gpu_time(times.busy_ns),
                       format_share(times.utilisation()), format_count(times.kernels.count),
                       gpu_time(times.kernels.total_ns), format_count(times.copies.count),
                       gpu_time(times.copies.total_ns), format_count(times.sets.count),
                       format_count(times.gaps.count), gpu_time(times.gaps.max_ns), printable(stream.name)});
        }
        finish(table, device.streams.size());
    }

    void show_queue(const GpuDevice& device) {
        if (device.queue.count == 0) return;
        Table table(
            {{"launches", true}, {"count"}, {"mean"}, {"min"}, {"median"}, {"p90"}, {"p99"}, {"max"}});
        const auto add = [&](const char* title, const TimeStatistics& of) {
            table.add({title, format_count(of.count), format_duration(of.mean_ns), gpu_time(of.min_ns),
                       gpu_time(of.median_ns), gpu_time(of.p90_ns), gpu_time(of.p99_ns),
                       gpu_time(of.max_ns)});
        };
        add("queue, from the call's start", device.queue);
        add("queue, from the call's end", device.queue_after_call);
        add("the launching call", device.launch_calls);
        text_ += "\n" + table.text(terminal_);
    }

    void show_gaps(const Trace& trace, const GpuDevice& device) {
        if (!device.idle_host.empty()) {
            heading("idle between its first and last work: ranges that the launching threads were in");
            Table table({{"time"}, {"share"}, {"range", true, true}});
            std::int64_t total = 0;
            for (const GpuHostWork& work : device.idle_host) total += work.time_ns;
            for (std::size_t i = 0; i < shown(device.idle_host.size()); ++i) {
                const GpuHostWork& work = device.idle_host[i];
                table.add({gpu_time(work.time_ns), share_of(work.time_ns, total), host_text(work)});
            }
            finish(table, device.idle_host.size());
        }
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
                table.add({is_first ? gpu_time(gap.start_ns - trace.window().start_ns) : "",
                           is_first ? gpu_time(gap.duration_ns) : "", is_first ? why : "",
                           is_first ? thread : "",
                           i < rows ? share_of(gap.host[i].time_ns, gap.duration_ns) : "",
                           i < rows ? host_text(gap.host[i]) : ""});
            }
        }
        text_ += table.text(terminal_);
    }

    void show_kernels(const GpuDevice& device) {
        if (device.kernels.empty()) return;
        heading("kernels");
        const bool has_estimates =
            std::any_of(device.kernels.begin(), device.kernels.end(),
                        [](const GpuKernel& kernel) { return kernel.occupancy.blocks_per_sm.has_value(); });
        // On a narrow terminal, leave the space to the names.
        const bool is_wide = terminal_.width == 0 || terminal_.width >= kWide;
        std::vector<Table::Column> columns = {{"time"}, {"share"}, {"count"}, {"mean"}};
        if (is_wide) columns.insert(columns.end(), {{"min"}, {"max"}});
        columns.insert(columns.end(), {{"queue"}, {"grid"}, {"block"}, {"regs"}});
        if (has_estimates && is_wide) columns.push_back({"blocks/SM"});
        if (has_estimates) columns.push_back({"occupancy"});
        columns.push_back({"kernel", true, true});
        Table table(std::move(columns));
        for (std::size_t i = 0; i < shown(device.kernels.size()); ++i) {
            const GpuKernel& kernel = device.kernels[i];
            const GpuOccupancy& estimate = kernel.occupancy;
            std::vector<std::string> cells = {gpu_time(kernel.times.total_ns), format_share(kernel.share),
                                              format_count(kernel.times.count),
                                              format_duration(kernel.times.mean_ns)};
            if (is_wide)
                cells.insert(cells.end(), {gpu_time(kernel.times.min_ns), gpu_time(kernel.times.max_ns)});
            cells.insert(cells.end(),
                         {kernel.queued > 0 ? format_duration(kernel.mean_queue_ns) : "",
                          triple_text(kernel.shape.grid), triple_text(kernel.shape.block),
                          kernel.shape.registers >= 0 ? std::to_string(kernel.shape.registers) : ""});
            if (has_estimates && is_wide)
                cells.push_back(estimate.blocks_per_sm ? fmt::format("{:.2f}", *estimate.blocks_per_sm) : "");
            if (has_estimates) cells.push_back(estimate.occupancy ? format_share(*estimate.occupancy) : "");
            cells.push_back(printable(kernel.name));
            table.add(std::move(cells));
        }
        finish(table, device.kernels.size());
    }

    void show_launchers(const char* title, const char* column, const std::vector<GpuLauncher>& rows,
                        const GpuDevice& device) {
        if (rows.empty()) return;
        heading(title);
        const GpuTimes& times = device.times;
        const std::int64_t total =
            times.kernels.total_ns + times.copies.total_ns + times.sets.total_ns + times.others.total_ns;
        Table table({{"time"}, {"share"}, {"launched"}, {column, true, true, true}});
        for (std::size_t i = 0; i < shown(rows.size()); ++i)
            table.add({gpu_time(rows[i].time_ns), share_of(rows[i].time_ns, total),
                       format_count(rows[i].count), range_text(rows[i].name)});
        finish(table, rows.size());
    }

    void show_transfers(const GpuDevice& device) {
        if (device.transfers.empty()) return;
        heading("copies and sets");
        Table table({{"direction", true}, {"count"}, {"bytes"}, {"time"}, {"GB/s"}});
        for (const GpuTransfer& row : device.transfers) {
            table.add(
                {printable(row.direction) + (row.is_pageable ? ", pageable" : ""), format_count(row.count),
                 row.sized > 0 ? format_bytes(static_cast<std::uint64_t>(row.bytes)) : "",
                 gpu_time(row.time_ns), row.sized_ns > 0 ? fmt::format("{:.2f}", row.bytes_per_ns()) : ""});
        }
        text_ += table.text(terminal_);
    }

    void show_calls(const GpuUse& use) {
        if (use.calls.empty()) return;
        text_ += styled(terminal_, Style::Bold, "device API calls") + "\n";
        Table table({{"time"}, {"count"}, {"mean"}, {"median"}, {"p99"}, {"max"}, {"call", true, true}});
        for (std::size_t i = 0; i < shown(use.calls.size()); ++i) {
            const GpuCall& call = use.calls[i];
            table.add({gpu_time(call.times.total_ns), format_count(call.times.count),
                       format_duration(call.times.mean_ns), gpu_time(call.times.median_ns),
                       gpu_time(call.times.p99_ns), gpu_time(call.times.max_ns), printable(call.name)});
        }
        finish(table, use.calls.size());
    }

    void show_waits(const Trace& trace, const GpuUse& use) {
        const std::int64_t window = trace.window().end_ns - trace.window().start_ns;
        if (!use.calls.empty() && !use.waits.empty()) text_ += "\n";
        for (const GpuWaits& waits : use.waits) {
            fact("waiting", fmt::format("{}: {} in {}, {} of the window; devices idle afterwards for {}",
                                        thread_label(trace, waits.thread), gpu_time(waits.time_ns),
                                        format_plural(waits.count, "wait"), share_of(waits.time_ns, window),
                                        gpu_time(waits.idle_after_ns)));
        }
        if (!use.calls.empty() || !use.waits.empty()) text_ += "\n";
    }

    void show_findings(const Trace& trace, const GpuUse& use) {
        if (use.devices.empty()) return;
        if (use.findings.empty()) text_ += "no findings\n";
        for (const GpuFinding& finding : use.findings) {
            const std::string where = finding.thread != kNoRow
                                          ? thread_label(trace, finding.thread)
                                          : device_text(trace, finding.process, finding.device);
            text_ +=
                styled(terminal_, Style::Red, finding.rule) + fmt::format(" ({}): {}\n", where, finding.text);
            for (const GpuEvidence& row : finding.evidence) {
                std::string numbers = row.count > 0 ? format_count(row.count) : "";
                if (row.time_ns >= 0) numbers += (numbers.empty() ? "" : ", ") + gpu_time(row.time_ns);
                text_ += fmt::format("    {}: {}\n", printable(row.what), numbers);
            }
        }
        text_ += "\n";
    }

    CaptureArgument capture_;
    std::optional<std::uint64_t> number_;
    std::optional<std::uint64_t> top_;
    bool json_ = false;
    bool csv_ = false;
    Terminal terminal_;
    std::string text_;
};

}  // namespace

std::unique_ptr<Verb> make_gpu_verb() {
    return std::make_unique<GpuVerb>();
}

}  // namespace marey::cli
