// report_verb.cpp: kymo report: where the time went, by name.
#include <fmt/format.h>

#include <algorithm>

#include <kymo/analyze.h>
#include <kymo/error.h>
#include <kymo/export.h>

#include "cli/capture_argument.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/summary_order.h"
#include "cli/table.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace kymo::cli {
namespace {

constexpr std::uint64_t kUsualLimit = 40;

class ReportVerb final : public Verb {
  public:
    const char* help() const override { return "Where the time went: a table of all names"; }
    const char* details() const override {
        return "self: time in ranges of that name and in no range inside them. total: time in them, "
               "recursion counted\n"
               "once. Percentages are of the time that ranges cover, over all threads. average, min, p50, "
               "p99 and max\n"
               "are of single ranges. Ranges are clipped to the session's window. --csv and --json give\n"
               "nanoseconds, and every row unless --limit is given.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.choice(sort_, "--sort", summary_keys(), "The column to sort by; the largest first");
        options.flag(ascending_, "--ascending", "The smallest first");
        options.number(limit_, "--limit", "Rows to show (40; 0 shows all)");
        options.choice(by_, "--by", {"name", "thread"}, "One row per name, or per name and thread");
        options.text(filter_, "--filter", "TEXT", "Only names that hold TEXT (upper and lower case alike)");
        options.flag(csv_, "--csv", "Comma-separated values");
        options.flag(json_, "--json", "JSON");
    }
    int run() override {
        if (csv_ && json_) throw Error("report: --csv and --json exclude each other");
        const Trace trace = capture_.load();
        Summary summary = [&] {
            const Progress progress("summing up");
            return summarize(trace, {.by_thread = by_ == "thread", .percentiles = true});
        }();
        std::erase_if(summary.rows,
                      [&](const SummaryRow& row) { return !contains_ignoring_case(row.name, filter_); });
        sort_summary(summary, sort_, ascending_);
        const std::uint64_t limit = limit_.value_or(csv_ || json_ ? 0 : kUsualLimit);
        const std::size_t found = summary.rows.size();
        if (limit > 0 && found > limit) summary.rows.resize(limit);
        if (csv_) {
            write_out(summary_csv(trace, summary));
        } else if (json_) {
            write_out(summary_json(trace, summary));
        } else {
            write_out(table(trace, summary, found));
        }
        return kSuccess;
    }

  private:
    std::string table(const Trace& trace, const Summary& summary, std::size_t found) const {
        const Terminal terminal = standard_output();
        std::string text;
        if (summary.rows.empty()) {
            text = summary.range_count == 0 ? "no ranges\n"
                                            : fmt::format("no name holds '{}'\n", printable(filter_));
        } else {
            text = rows(trace, summary).text(terminal);
        }
        if (found > summary.rows.size()) {
            text += fmt::format("... and {} (--limit 0 shows all)\n",
                                format_plural(found - summary.rows.size(), "more row"));
        }
        return text + "\n" + footer(trace, terminal);
    }

    static Table rows(const Trace& trace, const Summary& summary) {
        std::vector<Table::Column> columns = {{"name", true, true}};
        if (summary.by_thread) columns.push_back({"thread", true});
        for (const char* title :
             {"self", "self %", "total", "total %", "average", "min", "p50", "p99", "max", "count"})
            columns.push_back({title});
        Table table(std::move(columns));
        const double recorded = std::max(1.0, static_cast<double>(summary.recorded_ns));
        for (const SummaryRow& row : summary.rows) {
            auto time = [](std::int64_t ns) { return format_duration(static_cast<double>(ns)); };
            const bool is_async = row.async == row.count;
            auto share = [&](std::int64_t ns) {
                return is_async ? "" : format_share(static_cast<double>(ns) / recorded);
            };
            std::vector<std::string> cells = {printable(row.name)};
            if (is_async) cells[0] += " (async)";
            if (row.unfinished > 0) cells[0] += fmt::format(" ({} unfinished)", format_count(row.unfinished));
            if (summary.by_thread) cells.push_back(thread_label(trace, row.thread));
            for (std::string cell :
                 {is_async ? "" : time(row.self_ns), share(row.self_ns), time(row.total_ns),
                  share(row.total_ns), format_duration(row.average_ns()), time(row.min_ns), time(row.p50_ns),
                  time(row.p99_ns), time(row.max_ns), format_count(row.count)})
                cells.push_back(std::move(cell));
            table.add(std::move(cells));
        }
        return table;
    }

    CaptureArgument capture_;
    std::string sort_ = "self";
    bool ascending_ = false;
    std::optional<std::uint64_t> limit_;
    std::string by_ = "name";
    std::string filter_;
    bool csv_ = false;
    bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_report_verb() {
    return std::make_unique<ReportVerb>();
}

}  // namespace kymo::cli
