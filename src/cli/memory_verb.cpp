// memory_verb.cpp: marey memory: how much memory was held, its peak, and which ranges allocated it.
#include <fmt/format.h>

#include <algorithm>

#include <marey/analyze.h>
#include <marey/error.h>
#include <marey/export.h>

#include "cli/capture_argument.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::uint64_t kDefaultHolderLimit = 20;

std::string bytes_text(std::int64_t bytes) {
    const auto size = static_cast<std::uint64_t>(bytes);
    return bytes < 0 ? "-" + format_bytes(0 - size) : format_bytes(size);
}

std::string path_text(const std::vector<std::string>& path) {
    if (path.empty()) return "(outside any range)";
    std::string text;
    for (const std::string& name : path) text += (text.empty() ? "" : " > ") + printable(name);
    return text;
}

std::string device_text(const Trace& trace, const DeviceMemory& memory) {
    std::string text = device_type_name(memory.device.type);
    if (memory.device.index >= 0) text += fmt::format(" {}", memory.device.index);
    if (trace.processes().size() > 1 && memory.process < trace.processes().size())
        text += fmt::format(" of process {}", trace.processes()[memory.process].pid);
    return text;
}

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
               "in it. Counts are numbers of allocations; --sort count sorts by taken count. A report\n"
               "belongs to the innermost range that was open on its thread.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.choice(by_, "--by", {"path", "name"}, "Show one row per path of names, or per name (path)");
        options.choice(sort_, "--sort", {"peak", "taken", "total", "kept", "count"},
                       "Column to sort by, largest first (peak)");
        options.number(limit_, "--limit", "Rows to show per device (20; 0 shows all)");
        options.flag(json_, "--json", "Print every row as JSON, in bytes and nanoseconds");
    }
    int run() override {
        const Trace trace = capture_.load();
        MemoryUse use = [&] {
            const Progress progress("following allocations");
            return memory_use(trace, {.by_name = by_ == "name"});
        }();
        if (use.devices.empty()) {
            print_error(problem_lines(trace, standard_error()));
            throw Error(
                "memory: no allocation reports in this file: record PyTorch with marey run --torch --memory, "
                "or call marey.report_allocation");
        }
        for (DeviceMemory& memory : use.devices) sort(memory);
        if (json_) {
            write_data(memory_use_json(trace, use));
            return kSuccess;
        }
        terminal_ = standard_output();
        for (const DeviceMemory& memory : use.devices) show(trace, memory);
        write_out(end_lines(trace, terminal_) + text_ + footer(trace, terminal_));
        return kSuccess;
    }

  private:
    void sort(DeviceMemory& memory) const {
        auto key = [&](const MemoryHolder& holder) {
            if (sort_ == "taken") return holder.allocated_bytes;
            if (sort_ == "total") return holder.total_allocated_bytes;
            if (sort_ == "kept") return holder.kept_bytes;
            if (sort_ == "count") return static_cast<std::int64_t>(holder.allocations);
            return holder.peak_bytes;
        };
        std::stable_sort(memory.holders.begin(), memory.holders.end(),
                         [&](const MemoryHolder& a, const MemoryHolder& b) { return key(a) > key(b); });
    }

    void fact(std::string_view title, const std::string& value) {
        text_ += styled(terminal_, Style::Bold, fmt::format("{:<13}", title)) + value + "\n";
    }

    void show(const Trace& trace, const DeviceMemory& memory) {
        auto since_start = [&](std::int64_t time_ns) {
            return format_duration(static_cast<double>(time_ns - trace.window().start_ns));
        };
        fact("device", device_text(trace, memory));
        std::string peak =
            fmt::format("{} at {}", bytes_text(memory.peak_bytes), since_start(memory.peak_time_ns));
        if (memory.peak_unknown_bytes != 0)
            peak += fmt::format(", {} of it taken before the window or by unknown ranges",
                                bytes_text(memory.peak_unknown_bytes));
        if (memory.peak_reserved > 0)
            peak += fmt::format("; at most {} reserved", bytes_text(memory.peak_reserved));
        fact("peak", peak);
        fact("held", fmt::format("{} at the start, {} at the end", bytes_text(memory.start_bytes),
                                 bytes_text(memory.end_bytes)));
        fact("taken", fmt::format("{} in {}", bytes_text(memory.allocated_bytes),
                                  format_plural(memory.allocations, "allocation")));
        std::string freed =
            fmt::format("{} in {}", bytes_text(memory.freed_bytes), format_plural(memory.frees, "free"));
        if (memory.earlier_frees > 0)
            freed += fmt::format("; {} of them ({}) of memory taken before the window",
                                 format_count(memory.earlier_frees), bytes_text(memory.earlier_bytes));
        if (memory.unseen_frees > 0)
            freed += fmt::format("; {} not reported", format_plural(memory.unseen_frees, "free"));
        fact("freed", freed);
        fact("kept", fmt::format("{} in {}", bytes_text(memory.kept_bytes),
                                 format_plural(memory.kept_allocations, "allocation")));
        show_refusals(trace, memory);
        show_holders(memory);
    }

    void show_refusals(const Trace& trace, const DeviceMemory& memory) {
        const std::uint64_t limit = limit_.value_or(kDefaultHolderLimit);
        std::size_t shown = 0;
        for (const OutOfMemoryEvent& event : memory.refusals) {
            if (limit > 0 && shown++ == limit) {
                fact("out of memory",
                     fmt::format(" ... and {} more", format_count(memory.refusals.size() - limit)));
                break;
            }
            std::string text =
                fmt::format(" at {}: {} requested, {} held",
                            format_duration(static_cast<double>(event.time_ns - trace.window().start_ns)),
                            bytes_text(event.asked_bytes), bytes_text(event.allocated));
            if (event.reserved > 0) text += fmt::format(", {} reserved", bytes_text(event.reserved));
            fact("out of memory", text + ", in " + path_text(event.path));
        }
    }

    void show_holders(const DeviceMemory& memory) {
        Table table({{by_, true, true},
                     {"at peak"},
                     {"peak count"},
                     {"taken"},
                     {"taken count"},
                     {"total"},
                     {"freed"},
                     {"kept"},
                     {"kept count"}});
        const std::uint64_t limit = limit_.value_or(kDefaultHolderLimit);
        std::size_t shown = 0;
        for (const MemoryHolder& holder : memory.holders) {
            if (limit > 0 && shown == limit) break;
            ++shown;
            table.add({path_text(holder.path), bytes_text(holder.peak_bytes),
                       format_count(holder.peak_allocations), bytes_text(holder.allocated_bytes),
                       format_count(holder.allocations), bytes_text(holder.total_allocated_bytes),
                       bytes_text(holder.freed_bytes), bytes_text(holder.kept_bytes),
                       format_count(holder.kept_allocations)});
        }
        if (shown > 0) text_ += "\n" + table.text(terminal_);
        if (shown < memory.holders.size())
            text_ += fmt::format("... and {} (--limit 0 shows all)\n",
                                 format_plural(memory.holders.size() - shown, "more row"));
        text_ += "\n";
    }

    CaptureArgument capture_;
    std::string by_ = "path";
    std::string sort_ = "peak";
    std::optional<std::uint64_t> limit_;
    bool json_ = false;
    Terminal terminal_;
    std::string text_;
};

}  // namespace

std::unique_ptr<Verb> make_memory_verb() {
    return std::make_unique<MemoryVerb>();
}

}  // namespace marey::cli
