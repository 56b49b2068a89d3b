// top_verb.cpp: marey top: where the time of running programs goes, again and again.
#include <chrono>
#include <thread>

#include <marey/live.h>
#include <marey/range_filter.h>
#include <marey/table.h>

#include "cli/call_averages.h"
#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class TopVerb final : public Verb {
  public:
    const char* help() const override { return "Show where the time of running programs goes, like top"; }
    const char* details() const override {
        return "WHAT is as for marey now. The table has the last second (--every) of all processes "
               "together,\n"
               "functions that only wait are in the line below it, and it is renewed until the programs end "
               "or\n"
               "Ctrl-C is pressed. On a pipe, one table follows another.";
    }
    void declare(Options& options) override {
        options.optional(words_, "WHAT", "Processes, captures or folders (everything that is recorded)");
        options.text(every_, "--every", "TIME", "Time between two tables, and the time that each has (1s)");
        options.number(count_, "--count", "Tables to show (until the programs end)");
        options.number(limit_, "--limit", "Rows of a table (15)");
    }
    int run() override {
        const std::int64_t every_ns = parsed_time("--every", every_);
        if (every_ns < kLeastEveryNs) throw Error("top: --every " + every_ + " is less than 50ms");
        const std::vector<std::string> paths = captures_now(words_, "top");
        const Terminal terminal = standard_output();
        for (std::uint64_t shown = 0; !count_ || shown < *count_; ++shown) {
            // First wait: a program that has just begun has no last second yet.
            std::this_thread::sleep_for(std::chrono::nanoseconds(every_ns));
            const std::string text = table_of_last(paths, every_ns, terminal);
            if (text.empty()) {
                if (shown == 0) throw Error("top: no program that is being recorded");
                break;
            }
            write_out(terminal.is_terminal ? "\033[H\033[J" + text : text + "\n");
        }
        return kSuccess;
    }

  private:
    static constexpr std::int64_t kLeastEveryNs = 50'000'000;

    /// Empty: all programs have ended.
    std::string table_of_last(const std::vector<std::string>& paths, std::int64_t last_ns,
                              const Terminal& terminal) const {
        CallSum sum, waiting;
        std::size_t processes = 0, threads = 0;
        std::uint64_t lost = 0;
        for (const std::string& path : paths) {
            Trace trace = load_newest(path, {.log_bytes = 0, .last_ns = last_ns});
            if (!trace.has_problem("running")) continue;
            ++processes;
            for (const ThreadInfo& thread : trace.threads()) {
                threads += thread.os_tid != 0 && thread.death_ns == 0;
                lost += thread.dropped;
            }
            trace = filter_ranges(std::move(trace), {.fold_imports = true});
            Averages averages = key_averages(trace, call_options());
            waiting.add(take_waiting(trace, averages));
            sum.add(averages);
        }
        if (processes == 0) return "";
        for (AverageRow& row : sum.sum().rows) row.name = printable(row.name);
        std::string text = fmt::format(
            "{}, {}: {} ranges/s", format_plural(processes, "process"), format_plural(threads, "thread"),
            format_count(static_cast<std::uint64_t>(static_cast<double>(sum.sum().range_count) * 1e9 /
                                                    static_cast<double>(last_ns))));
        if (lost > 0) text += fmt::format(", {} dropped since the start", format_plural(lost, "record"));
        ResultTable table = averages_for_people(
            sum.sum(), {.sort_by = "self",
                        .row_limit = static_cast<std::int64_t>(limit_.value_or(kRows)),
                        .columns = {"self", "self_cpu_percent", "total", "calls", "average", "name"},
                        .shows = [](const AverageRow& row) { return row.self_cpu_time_total_ns > 0; }});
        text += "\n\n" + result_lines(table, terminal);
        const std::string waits = waiting_fact(waiting.sum(), "");
        return waits.empty() ? text : text + "\nwaiting  " + waits + "\n";
    }

    static constexpr std::uint64_t kRows = 15;

    std::vector<std::string> words_;
    std::string every_ = "1s";
    std::optional<std::uint64_t> count_, limit_;
};

}  // namespace

MAREY_VERB(top, TopVerb)

}  // namespace marey::cli
