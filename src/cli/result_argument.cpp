// result_argument.cpp: the options of every verb that prints a result, and a result's tables as text in
// columns.
#include "cli/result_argument.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <marey/error.h>
#include <marey/results.h>

#include "cli/text_format.h"

namespace marey::cli {
namespace {

constexpr std::size_t kWide = 140;  // columns of a terminal

std::string number_text(double number, ResultUnit unit, std::int64_t start_ns, std::string_view time_unit) {
    switch (unit) {
        case ResultUnit::Duration:
            return format_duration(number, time_unit);
        case ResultUnit::Time:
            return format_duration(number - static_cast<double>(start_ns));
        case ResultUnit::Bytes:
            return format_bytes(number);
        case ResultUnit::Count:
            return (number < 0 ? "-" : "") + format_count(static_cast<std::uint64_t>(std::abs(number)));
        case ResultUnit::Share:
            return format_share(number);
        case ResultUnit::Change:
            return fmt::format("{:+.1f}%", number * 100);
        case ResultUnit::Flops:
            return fmt::format("{:.3g}", number);
        default:
            return fmt::format("{:.2f}", number);
    }
}

/// "54x2" for 54, 2, 1: the last ones are 1 if they are absent.
std::string sizes_text(std::span<const std::int64_t> sizes) {
    while (sizes.size() > 1 && sizes.back() == 1) sizes = sizes.first(sizes.size() - 1);
    return fmt::format("{}", fmt::join(sizes, "x"));
}

bool has_value(const ResultTable& table, std::size_t column) {
    const std::vector<bool>& nulls = table.values[column].nulls;
    return std::ranges::find(nulls, false) != nulls.end();
}

bool is_shown(const ResultTable& table, std::size_t column, const Terminal& terminal) {
    const bool is_wide = terminal.width == 0 || terminal.width >= kWide;  // otherwise names have the space
    switch (table.columns[column].shown) {
        case ResultShown::No:
            return false;
        case ResultShown::Used:
            return has_value(table, column);
        case ResultShown::Wide:
            return is_wide && has_value(table, column);
        default:
            return true;
    }
}

/// The value of a cell for people.
std::string cell_text(const ResultTable& table, std::size_t row, std::size_t column,
                      std::string_view time_unit) {
    const ResultColumn& info = table.columns[column];
    const ResultCell cell = table.cell(row, column);
    if (cell.index() == 0) return info.absent;
    const auto* const whole = std::get_if<std::int64_t>(&cell);
    if (whole != nullptr && info.unit == ResultUnit::None) return std::to_string(*whole);
    const auto* const real = std::get_if<double>(&cell);
    if (whole != nullptr || real != nullptr) {
        const double number = real != nullptr ? *real : static_cast<double>(*whole);
        const std::string sign = !info.is_signed ? "" : number < 0 ? "-" : number > 0 ? "+" : "";
        return (info.is_estimate ? "~" : sign) +
               number_text(info.is_signed ? std::abs(number) : number, info.unit, table.start_ns, time_unit);
    }
    if (const auto* const truth = std::get_if<bool>(&cell)) return *truth ? "yes" : "";
    if (const auto* const sizes = std::get_if<std::span<const std::int64_t>>(&cell))
        return sizes_text(*sizes);
    if (const auto* const path = std::get_if<std::span<const std::string>>(&cell)) {
        std::string text;
        for (const std::string& name : *path) text += (text.empty() ? "" : " > ") + printable(name);
        return text.empty() ? info.absent : text;
    }
    return printable(std::get<std::string_view>(cell));
}

}  // namespace

Table result_in_columns(const ResultTable& table, const Terminal& terminal, const ResultLayout& layout) {
    std::vector<std::size_t> places;
    for (const std::string& key : layout.keys) places.push_back(table.column(key));
    for (std::size_t i = 0; layout.keys.empty() && i < table.columns.size(); ++i) {
        if (is_shown(table, i, terminal)) places.push_back(i);
    }
    std::vector<Table::Column> columns;
    for (const std::size_t place : places) {
        const ResultColumn& column = table.columns[place];
        const bool is_number = column.type == ResultType::Integer || column.type == ResultType::Real ||
                               column.type == ResultType::Integers;
        const bool is_name = column.shown == ResultShown::Name || column.shown == ResultShown::Call;
        columns.push_back({column.heading, !is_number, is_name, column.shown == ResultShown::Call});
    }
    Table lines(std::move(columns));
    const std::size_t shown = layout.limit == 0 ? table.rows : std::min(layout.limit, table.rows);
    for (std::size_t row = 0; row < shown; ++row) {
        std::vector<std::string> cells;
        cells.reserve(places.size());
        for (const std::size_t place : places)
            cells.push_back(cell_text(table, row, place, layout.time_unit));
        lines.add(std::move(cells));
        if (layout.below.empty()) continue;
        const ResultCell below = table.cell(row, table.column(layout.below));
        for (const std::string& entry : std::get<std::span<const std::string>>(below)) {
            std::vector<std::string> line(places.size());
            line.back() = "  at " + printable(entry);
            lines.add(std::move(line), Style::Dim);
        }
    }
    return lines;
}

std::string result_lines(const ResultTable& table, const Terminal& terminal, const ResultLayout& layout) {
    if (table.rows == 0) return "";
    std::string text = result_in_columns(table, terminal, layout).text(terminal);
    if (layout.limit > 0 && layout.limit < table.rows)
        text += fmt::format("... and {} (--limit 0 shows all)\n",
                            format_plural(table.rows - layout.limit, "more " + layout.row));
    return text;
}

void ResultArgument::declare(Options& options) {
    options.flag(json, "--json", "Print every table as JSON, in nanoseconds and bytes");
    options.flag(csv, "--csv", "Print the main table as CSV");
    options.flag(markdown, "--markdown", "Print the main table as Markdown");
    options.text(columns, "--columns", "LIST", "Columns of the main table, separated by commas");
    options.text(sort, "--sort", "COLUMN", "Column to sort the main table by, largest first");
    options.flag(ascending, "--ascending", "Sort the smallest first");
    options.number(limit, "--limit",
                   fmt::format("Number of {}{} to show ({})", row, row.ends_with('s') ? "es" : "s",
                               usual_limit == 0 ? "all" : fmt::format("{}; 0 shows all", usual_limit)));
}

void ResultArgument::check() const {
    if (csv && json) throw Error(verb + ": --csv and --json are mutually exclusive");
    if (markdown && (csv || json)) throw Error(verb + ": --markdown cannot be combined with --csv or --json");
    if (!chooses()) return;
    const Result empty = make_result({}, result.empty() ? verb : result);
    try {
        (void)sorted(empty.table(table)).with_columns(split(columns, ','));
    } catch (const Error& error) {
        throw Error(verb + ": " + error.what());
    }
}

ResultTable ResultArgument::sorted(const ResultTable& main) const {
    return sort.empty() ? main : main.sorted(sort, ascending);
}

ResultTable ResultArgument::chosen(const ResultTable& main) const {
    const ResultTable rows = sorted(main).limited(limit.value_or(0));
    return columns.empty() ? rows : rows.with_columns(split(columns, ','));
}

void ResultArgument::write(Result found) const {
    for (ResultTable& each : found.tables) {
        if (each.name != table) continue;
        each = chosen(each);
        if (csv) return write_data(result_csv(each));
        if (markdown) return write_out(result_in_columns(each, {}, {.keys = split(columns, ',')}).markdown());
    }
    write_data(result_json(found));
}

std::string ResultArgument::lines(const ResultTable& of, const Terminal& terminal) const {
    ResultLayout layout{.limit = limit.value_or(usual_limit), .row = row};
    if (of.name != table) return result_lines(of, terminal, layout);
    layout.keys = split(columns, ',');
    return result_lines(sorted(of), terminal, layout);
}

}  // namespace marey::cli
