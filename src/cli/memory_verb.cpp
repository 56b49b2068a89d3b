// memory_verb.cpp: marey memory: how much memory was held, its peak, and which ranges allocated it.
#include <marey/results.h>

#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class MemoryVerb final : public Verb {
  public:
    const char* help() const override {
        return "Show memory use, its peak, and the ranges that allocated it";
    }
    const char* details() const override {
        return "Shows every device that has allocation reports (record them with marey run --memory). at\n"
               "peak: memory that these ranges had allocated and still held at the peak. taken: all\n"
               "memory that they allocated; total: including the ranges inside them. freed: memory freed\n"
               "in these ranges, wherever it was allocated. kept: allocated in the window and not freed\n"
               "in it. Counts are numbers of allocations. A report belongs to the innermost range that\n"
               "was open on its thread. The main table is memory_holders in docs/reference/results.md.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.choice(by_, "--by", {"path", "name"}, "Show one row per path of names, or per name (path)");
        output_.declare(options);
    }
    int run() override {
        output_.check();
        const Trace trace = capture_.load();
        const MemoryUse use = [&] {
            const Progress progress("following allocations");
            return memory_use(trace, {.by_name = by_ == "name"});
        }();
        if (use.devices.empty()) {
            print_error(problem_lines(trace, standard_error()));
            throw Error(
                "memory: no allocation reports in this file: record PyTorch with marey run --torch --memory, "
                "or call marey.report_allocation");
        }
        return output_.print(memory_result(trace, use), [&] {
            terminal_ = standard_output();
            for (const DeviceMemory& memory : use.devices) show(trace, memory);
            return end_lines(trace, terminal_) + text_ + footer(trace, terminal_);
        });
    }

  private:
    void fact(std::string_view title, const std::string& value) {
        text_ += title_line(title, value, terminal_);
    }

    void show(const Trace& trace, const DeviceMemory& memory) {
        const std::int64_t start_ns = trace.window().start_ns;
        fact("device", device_label(trace, memory.process, memory.device));
        std::string peak = fmt::format("{} at {}", format_bytes(memory.peak_bytes),
                                       format_duration(memory.peak_time_ns - start_ns));
        if (memory.peak_unknown_bytes != 0)
            peak += fmt::format(", {} of it taken before the window or by unknown ranges",
                                format_bytes(memory.peak_unknown_bytes));
        if (memory.peak_reserved > 0)
            peak += fmt::format("; at most {} reserved", format_bytes(memory.peak_reserved));
        fact("peak", peak);
        fact("held", fmt::format("{} at the start, {} at the end", format_bytes(memory.start_bytes),
                                 format_bytes(memory.end_bytes)));
        fact("taken", fmt::format("{} in {}", format_bytes(memory.allocated_bytes),
                                  format_plural(memory.allocations, "allocation")));
        std::string freed =
            fmt::format("{} in {}", format_bytes(memory.freed_bytes), format_plural(memory.frees, "free"));
        if (memory.earlier_frees > 0)
            freed += fmt::format("; {} of them ({}) of memory taken before the window",
                                 format_count(memory.earlier_frees), format_bytes(memory.earlier_bytes));
        if (memory.unseen_frees > 0)
            freed += fmt::format("; {} not reported", format_plural(memory.unseen_frees, "free"));
        fact("freed", freed);
        fact("kept", fmt::format("{} in {}", format_bytes(memory.kept_bytes),
                                 format_plural(memory.kept_allocations, "allocation")));
        const Result tables = memory_result(trace, {{memory}});
        if (const std::string lines = output_.lines(tables.table("memory_refusals"), terminal_);
            !lines.empty())
            text_ += "\n" + styled(terminal_, Style::Bold, "out of memory") + "\n" + lines;
        ResultTable holders = tables.table("memory_holders");
        holders.columns[holders.column("path")].heading = by_;
        const std::string lines = output_.lines(holders, terminal_);
        text_ += (lines.empty() ? "" : "\n" + lines) + "\n";
    }

    CaptureArgument capture_;
    std::string by_ = "path";
    ResultArgument output_{.verb = "memory", .table = "memory_holders", .usual_limit = 20};
    Terminal terminal_;
    std::string text_;
};

}  // namespace

MAREY_VERB(memory, MemoryVerb)

}  // namespace marey::cli
