// report_verb.cpp: marey report: where the time went, by name.
#include <algorithm>

#include <marey/export.h>
#include <marey/results.h>
#include <marey/table.h>

#include "cli/call_averages.h"
#include "cli/output_argument.h"
#include "cli/result_argument.h"
#include "cli/sample_text.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::uint64_t kDefaultRowLimit = 40;
constexpr std::size_t kMaxTasks = 10;

/// A table of the asyncio tasks that ran longest; empty if there are no tasks.
std::string task_section(const Trace& trace, const Terminal& terminal) {
    const ResultTable tasks = task_result(trace).tables[0];
    if (tasks.rows == 0) return "";
    std::string text = "\n" + result_lines(tasks.sorted("run_ns").limited(kMaxTasks), terminal);
    if (tasks.rows > kMaxTasks)
        text += "... and " + format_plural(tasks.rows - kMaxTasks, "more task") + "\n";
    return text;
}

class ReportVerb final : public Verb {
  public:
    const char* help() const override { return "Show where the time went, as a table of names"; }
    const char* details() const override { return details_.c_str(); }
    void declare(Options& options) override {
        capture_.declare(options);
        capture_.declare_filter(options);
        options.text(sort_, "--sort", "COLUMN", "Column to sort by, largest first (self)");
        options.flag(ascending_, "--ascending", "Sort the smallest first");
        options.text(columns_, "--columns", "LIST", "Columns to show, separated by commas");
        options.number(limit_, "--limit", "Rows to show (40; 0 shows all)");
        options.old_name("--rows", "--limit");
        options.flag(by_shape_, "--by-shape", "Show one row per name and input shapes");
        options.number(by_stack_, "--by-stack", "Show one row per name and innermost N stack frames");
        options.flag(by_thread_, "--by-thread", "Show one row per name and thread");
        options.choice(
            by_, "--by",
            {"name", "thread", "process", "function", "line", "file", "module", "package", "range", "step"},
            "Group rows by this property of the ranges, or of samples (name)");
        options.flag(samples_, "--samples", "Report the samples (default if there are no ranges)");
        options.flag(by_overload_, "--by-overload", "Show one row per name and overload");
        options.flag(all_, "--all", "Show the functions that only wait, too");
        options.flag(no_imports_, "--no-imports", "Leave out Python imports and everything inside them");
        options.flag(list_, "--list", "Show one row per range");
        options.flag(top_level_, "--top-level", "Show only top-level names (plus device and async rows)");
        options.flag(merge_, "--merge-repeated",
                     "Count a range nested directly in one of the same name once");
        options.flag(any_thread_, "--memory-of-any-thread",
                     "Attribute memory to open ranges of all threads, as PyTorch does");
        options.flag(subtract_, "--subtract-overhead",
                     "Subtract the estimated profiling cost from the times");
        options.text(filter_, "--filter", "TEXT", "Show only names that contain TEXT (ignoring case)");
        options.choice(unit_, "--time-unit", {"s", "ms", "us", "auto"}, "Unit of all times (auto)");
        options.choice(layout_, "--layout", {"plain", "torch"},
                       "Table layout: Marey's own, or PyTorch's with its words (plain)");
        options.choice(format_, "--format", {"table", "csv", "json", "markdown"}, "Output format (table)");
        options.flag(csv_, "--csv", "Same as --format csv");
        options.flag(json_, "--json", "Same as --format json");
        options.flag(html_, "--html", "Write one HTML file with timeline, flame graph and tables");
        output_.declare(options, "File to write with --html (FILE with .html)");
    }
    int run() override {
        if (html_) return write_html();
        if (!output_.path.empty()) throw Error("report: -o needs --html (redirect the other formats)");
        if (no_imports_ && capture_.show_importlib)
            throw Error("report: --no-imports and --show-importlib are mutually exclusive");
        if (csv_ && json_) throw Error("report: --csv and --json are mutually exclusive");
        if (csv_) format_ = "csv";
        if (json_) format_ = "json";
        const TableOptions table = table_options();
        if (!samples_) check(table);
        Trace trace = with_function_names(capture_.load());
        if (format_ == "table") footer_ = footer(trace, standard_output());
        trace = capture_.filtered(std::move(trace), no_imports_);
        if (samples_ || has_only_samples(trace)) return report_samples(trace);
        if (by_ == "range" || by_ == "step")
            throw Error("report: --by " + by_ + " is about samples: add --samples");
        is_sampled_ = is_sampled(trace);
        is_summed_ = is_summed(trace);
        Averages averages = [&] {
            const Progress progress("computing averages");
            return list_ ? list_ranges(trace, average_options(table))
                         : key_averages(trace, average_options(table));
        }();
        if (subtract_) subtract_overhead(averages);
        if (no_imports_) take_imports(averages);
        if (hides_waiting()) waiting_ = waiting_fact(take_waiting(trace, averages), "--all");
        print_missing_notes(trace, averages);
        if (format_ == "csv") {
            write_data(averages_csv(averages, table));
        } else if (format_ == "json") {
            write_data(averages_json(trace, averages, table));
        } else {
            make_printable(averages);
            const bool is_torch = layout_ == "torch";
            if (format_ != "markdown") {
                write_out(text(trace, averages, table));
            } else {
                write_out(is_torch ? averages_markdown(averages, table)
                                   : plain_table(averages, table, Terminal()).markdown());
            }
        }
        return kSuccess;
    }

  private:
    int report_samples(const Trace& trace) const {
        if (trace.samples().size() == 0)
            throw Error(capture_.file() + ": has no samples (marey run --sample records them)");
        const auto* const by = std::ranges::find(kSampleGroupNames, by_ == "name" ? "function" : by_);
        if (by == std::end(kSampleGroupNames))
            throw Error("report: --by " + by_ + " is about ranges, not samples");
        SampleReport report =
            sample_report(trace, {.by = static_cast<SampleGroup>(by - std::begin(kSampleGroupNames))});
        std::erase_if(report.rows,
                      [&](const SampledRow& row) { return !contains_ignoring_case(row.name, filter_); });
        ResultArgument output{
            .verb = "report", .table = "sampled", .usual_limit = kDefaultRowLimit, .result = "sampled"};
        output.columns = columns_;
        output.sort = sort_ == "self" ? "" : sort_;
        output.ascending = ascending_;
        output.limit = limit_;
        output.json = format_ == "json";
        output.csv = format_ == "csv";
        output.markdown = format_ == "markdown";
        output.check();
        const Result result = sample_result(trace, report);
        return output.print(result, [&] {
            const Terminal terminal = standard_output();
            const std::string rows =
                output.chooses()
                    ? output.lines(result.table("sampled"), terminal)
                    : sample_rows_text(trace, report, *by, limit_.value_or(kDefaultRowLimit), terminal);
            return end_lines(trace, terminal) + (rows.empty() ? "no rows\n" : rows) + "\n" +
                   sample_facts(trace, report, terminal) + footer_;
        });
    }

    int write_html() {
        std::string& path = output_.path;
        if (path.empty()) path = without_suffix(capture_.file()) + ".html";
        output_.check([&] { return capture_.paths(); });
        const Trace trace = capture_.filtered(capture_.load());
        {
            const Progress progress("writing " + path);
            write_html_report(trace, path, capture_.file());
        }
        print_error(fmt::format("marey: wrote {}: open it in a browser\n", printable(path)));
        return kSuccess;
    }

    TableOptions table_options() const {
        TableOptions options{
            .sort_by = sort_,
            .ascending = ascending_,
            .columns = split(columns_, ','),
            .shows = [this](const AverageRow& row) { return contains_ignoring_case(row.name, filter_); }};
        const bool is_for_people = format_ == "table" || format_ == "markdown";
        const std::uint64_t limit = limit_.value_or(is_for_people ? kDefaultRowLimit : 0);
        options.row_limit = limit == 0 ? -1 : static_cast<std::int64_t>(limit);
        options.top_level_events_only = top_level_;
        options.time_unit = unit_;
        return options;
    }

    /// Waiting functions have a line below a table of functions, unless somebody asks for them.
    bool hides_waiting() const {
        const bool are_functions = by_ == "name" || by_ == "function" || by_ == "line" || by_ == "thread";
        return are_functions && !all_ && !list_ && filter_.empty() && layout_ == "plain" &&
               format_ == "table";
    }

    /// Reports wrong columns before a large file is read.
    static void check(const TableOptions& options) {
        try {
            for (const std::string& key : options.columns) table_column_key(key);
            if (!options.sort_by.empty()) table_column_key(options.sort_by, "sort key");
        } catch (const Error& error) {
            throw Error(std::string("report: ") + error.what());
        }
    }

    /// Prints a note for each option that had no effect; the output alone would not show it.
    void print_missing_notes(const Trace& trace, const Averages& averages) const {
        if (subtract_ && trace.costs().empty())
            print_error("marey: the trace has no recording costs: nothing was subtracted\n");
        const bool has_stacks =
            std::ranges::any_of(averages.rows, [](const AverageRow& row) { return !row.stack.empty(); });
        if (by_stack_.value_or(0) > 0 && !has_stacks)
            print_error("marey: no range has a call stack: --by-stack has no effect\n");
    }

    AverageOptions average_options(const TableOptions& table) const {
        AverageOptions options{
            .group_by = group_by(),
            .by_thread = by_thread_ || by_ == "thread",
            .by_input_shape = by_shape_,
            .by_overload = by_overload_,
            .stack_entries = static_cast<std::uint32_t>(std::min<std::uint64_t>(by_stack_.value_or(0), 1000)),
            .merge_repeated = merge_,
            .memory_of_any_thread = any_thread_,
            .flops = true,
            .covered = true};
        const bool is_data = format_ == "csv" || format_ == "json";
        const auto is_shown = [&](std::string_view key) {
            return table.sort_by == key || std::ranges::find(table.columns, key) != table.columns.end();
        };
        const bool shows_all = is_data && table.columns.empty();
        options.percentiles = shows_all || is_shown("p50") || is_shown("p90") || is_shown("p99");
        options.nesting = shows_all || subtract_ || is_shown("covered") || is_shown("overhead") ||
                          is_shown("self_overhead");
        return options;
    }

    GroupBy group_by() const {
        const auto* const found = std::ranges::find(kGroupNames, by_);
        return found == std::end(kGroupNames) ? GroupBy::Name
                                              : static_cast<GroupBy>(found - std::begin(kGroupNames));
    }

    Table plain_table(Averages averages, const TableOptions& options, const Terminal& terminal) const {
        const bool are_functions = by_ == "name" && are_host_calls(averages);
        ResultTable table = averages_for_people(std::move(averages), options);
        ResultLayout layout{.time_unit = unit_};
        for (ResultColumn& column : table.columns) {
            if (column.key == "name")
                column.heading = are_functions ? "function" : by_ == "thread" ? "name" : by_;
            if (column.key == "count" && is_sampled_ && !is_summed_) column.heading = "ranges";
            column.is_estimate = is_sampled_ && column.unit == ResultUnit::Duration &&
                                 !(is_summed_ && column.key == "self_cpu_time_total");
            if (column.type == ResultType::Texts) layout.below = column.key;
        }
        return result_in_columns(table, terminal, layout);
    }

    static bool is_shown(const AverageRow& row, const TableOptions& options) {
        return options.shows(row) && (row.is_top_level || !options.top_level_events_only);
    }

    static void make_printable(Averages& averages) {
        for (AverageRow& row : averages.rows) {
            row.name = printable(row.name);
            if (row.async_count == std::max(row.count, row.range_count)) row.name += " (async)";
            if (row.unfinished > 0) row.name += fmt::format(" ({} unfinished)", format_count(row.unfinished));
            row.overload = printable(row.overload);
            row.thread_name = printable(row.thread_name);
            for (std::string& entry : row.stack) entry = printable(entry);
        }
    }

    std::string text(const Trace& trace, const Averages& averages, const TableOptions& options) const {
        const Terminal terminal = standard_output();
        std::string text;
        const auto found = static_cast<std::size_t>(std::ranges::count_if(
            averages.rows, [&](const AverageRow& row) { return is_shown(row, options); }));
        if (found == 0) {
            text = averages.range_count == 0 ? "no ranges\n"
                                             : fmt::format("no name contains '{}'\n", printable(filter_));
        } else if (layout_ == "torch") {
            TableOptions fitted = options;
            fitted.width = terminal.width;
            fitted.trims = terminal.is_terminal;
            fitted.title_style = [&](std::string_view titles) {
                return styled(terminal, Style::Bold, titles);
            };
            text = averages_table(averages, fitted);
        } else {
            text = plain_table(averages, options, terminal).text(terminal);
        }
        if (options.row_limit >= 0 && found > static_cast<std::size_t>(options.row_limit)) {
            text +=
                fmt::format("... and {} (--limit 0 shows all)\n",
                            format_plural(found - static_cast<std::size_t>(options.row_limit), "more row"));
        }
        return end_lines(trace, terminal) + text + task_section(trace, terminal) + "\n" +
               (trace.samples().size() == 0 ? "" : sample_section(trace, terminal) + "\n") +
               fact_line("waiting", waiting_, terminal) + (no_imports_ ? "" : imports_line(trace, terminal)) +
               footer_;
    }

    static std::string column_help() {
        std::string text =
            "--by groups by name, by name and thread, by process, or by the function, line of definition,\n"
            "file, module or package of calls.\n"
            "Columns for --columns and --sort (a device name can replace \"device\": cuda_time_total):\n";
        for (const TableColumn& column : table_columns())
            text += fmt::format("  {:<26}{}\n", column.key, column.description);
        return text +
               "Times are wall times: waiting and preemption count as the range's own time. In the plain\n"
               "layout, total counts recursive calls once, and per call is total / calls. PyTorch's\n"
               "layout and the keys call wall time on the host \"CPU time\".\n"
               "Ranges are clipped to the session's window. Percentages are shares of the self time of\n"
               "all ranges. csv and json use nanoseconds and bytes, and contain every row unless --limit\n"
               "is given.";
    }

    const std::string details_ = column_help();
    CaptureArgument capture_;
    std::string footer_, waiting_;
    bool is_sampled_ = false;
    bool is_summed_ = false;
    std::string sort_ = "self";
    bool ascending_ = false;
    std::string columns_;
    std::optional<std::uint64_t> limit_;
    bool by_shape_ = false;
    std::optional<std::uint64_t> by_stack_;
    bool by_thread_ = false;
    std::string by_ = "name";
    bool by_overload_ = false;
    bool list_ = false;
    bool all_ = false;
    bool no_imports_ = false;
    bool top_level_ = false;
    bool samples_ = false;
    bool merge_ = false;  // recursion is common, and recursive calls count
    bool any_thread_ = false;
    bool subtract_ = false;
    std::string filter_;
    std::string unit_ = "auto";
    std::string layout_ = "plain";
    std::string format_ = "table";
    bool csv_ = false;
    bool json_ = false;
    bool html_ = false;
    OutputArgument output_;
};

}  // namespace

MAREY_VERB(report, ReportVerb)

}  // namespace marey::cli
