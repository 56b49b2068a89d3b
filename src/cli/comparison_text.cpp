// comparison_text.cpp: the whole first, then counts, which are exact, then rows of times.
#include "cli/comparison_text.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <unordered_map>

#include "cli/footer.h"
#include "cli/table.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

constexpr std::size_t kCounts = 15;
constexpr std::size_t kUndecided = 8;   // rows that may be chance
constexpr double kLeastChange = 0.005;  // of the total: smaller differences are added up

std::string count_text(CountKind kind, double count) {
    if (kind == CountKind::CopiedBytes || kind == CountKind::AllocatedBytes) return format_bytes(count);
    const double whole = std::round(count);  // means of equal counts are sums of fractions
    if (std::abs(count - whole) <= 1e-9 * whole) return format_count(static_cast<std::uint64_t>(whole));
    return fmt::format("{:.2f}", count);
}
/// "12", or "12 to 14" if the runs differ.
std::string span_text(CountKind kind, double least, double most) {
    if (most == 0) return "-";
    return count_text(kind, least) + (least == most ? "" : " to " + count_text(kind, most));
}

/// "+4.1%", "-62%", "x12.4".
std::string percent_text(double change) {
    constexpr double kFactor = 9;  // from +900% on
    if (change >= kFactor) return change < 9999 ? fmt::format("x{:.1f}", change + 1) : "x10,000 or more";
    return fmt::format("{:+.{}f}%", change * 100, std::abs(change) < 0.0995 ? 1 : 0);
}

class ComparisonText {
  public:
    ComparisonText(const Comparison& comparison, const ComparisonLayout& layout)
        : comparison_(comparison), layout_(layout) {}

    std::string text() {
        show_sides();
        show_whole();
        show_warnings();
        show_counts();
        show_rows();
        return text_;
    }

  private:
    bool is_single() const { return comparison_.files[0].size() == 1 && comparison_.files[1].size() == 1; }
    bool is_bytes() const {
        return comparison_.options.metric == CompareMetric::Bytes ||
               comparison_.options.metric == CompareMetric::Peak;
    }
    std::string value_text(double value) const {
        if (is_bytes()) return format_bytes(value);
        return comparison_.options.metric == CompareMetric::Calls ? count_text(CountKind::Calls, value)
                                                                  : format_duration(value);
    }
    std::string signed_text(double value) const {
        return (value < 0 ? "-" : "+") + value_text(std::abs(value));
    }

    void fact(std::string_view title, const std::string& value) {
        text_ += layout_.is_markdown ? fmt::format("- **{}**: {}\n", title, value)
                                     : fact_line(title, value, layout_.terminal);
    }
    void section(const std::string& title, const Table& table, const std::string& note) {
        if (layout_.is_markdown) {
            text_ += "\n#### " + title + "\n\n" + table.markdown() + (note.empty() ? "" : "\n" + note + "\n");
        } else {
            text_ += "\n" + styled(layout_.terminal, Style::Bold, title) + "\n" +
                     table.text(layout_.terminal) + (note.empty() ? "" : note + "\n");
        }
    }

    void show_sides() {
        for (int side = 0; side < 2; ++side) {
            const std::vector<std::string>& files = comparison_.files[side];
            std::string text = printable(files.front());
            const bool is_command = files.size() > 1 && files.front() == files.back();
            if (files.size() > 1)
                text += is_command ? fmt::format(", {} runs", files.size())
                                   : fmt::format(" and {} more", files.size() - 1);
            const double window = side == 0 ? comparison_.window.before : comparison_.window.after;
            text += fmt::format(", {}{}{}", format_duration(window), comparison_.per_step ? " a step" : "",
                                files.size() > 1 ? " on average" : "");
            fact(side == 0 ? "old" : "new", text);
        }
    }

    /// "+17.2% (+14.1% to +20.3%), slower"
    static std::string judged_text(const ComparedValue& value) {
        std::string text = percent_text(value.interval->ratio - 1) +
                           fmt::format(" ({} to {})", percent_text(value.interval->low - 1),
                                       percent_text(value.interval->high - 1));
        return text + ", " + verdict_text(value);
    }
    static std::string verdict_text(const ComparedValue& value) {
        std::string text(kVerdictNames[static_cast<std::size_t>(value.verdict)]);
        if (value.verdict != Verdict::CannotTell) return text;
        return text + (value.more_runs ? fmt::format(" (+{} would)", format_plural(*value.more_runs, "run"))
                                       : " (+1,000 runs would not)");
    }

    void show_whole() {
        const ComparedValue& total = comparison_.total;
        std::string text = fmt::format("{} -> {}", value_text(total.before), value_text(total.after));
        if (comparison_.per_step) text += " a step";
        if (total.before == 0 && total.after == 0) {
            text += "; nothing of it was recorded";
        } else if (total.interval) {
            text += ", " + judged_text(total);
        } else {
            text += ", " + signed_text(total.difference());
            if (total.before > 0)
                text += fmt::format(" ({})", percent_text(total.difference() / total.before));
            if (is_single() && !is_bytes() && comparison_.options.metric != CompareMetric::Calls)
                text += "; one run each, so times may differ by chance";
        }
        fact("total", text);
        const TimeStatistics(&steps)[2] = comparison_.steps;
        if (steps[0].count > 0 && steps[1].count > 0) {
            std::string sides[2];
            for (int side = 0; side < 2; ++side)
                sides[side] =
                    fmt::format("{}, median {} (p90 {})", format_plural(steps[side].count, "step"),
                                format_duration(steps[side].median_ns), format_duration(steps[side].p90_ns));
            fact("steps", sides[0] + " -> " + sides[1]);
        }
        std::string counts;
        for (const ComparedCount& count : comparison_.totals) {
            counts += counts.empty() ? "" : ", ";
            counts += fmt::format("{} ", kCountKindNames[static_cast<std::size_t>(count.kind)]);
            const std::string before = span_text(count.kind, count.old_least, count.old_most);
            const std::string after = span_text(count.kind, count.new_least, count.new_most);
            counts += before == after ? before + " (same)" : before + " -> " + after;
        }
        if (!counts.empty()) fact("counts", counts);
    }

    void show_warnings() {
        const ResultTable warnings = diff_result(comparison_, 0).table("diff_warnings");
        for (std::size_t row = 0; row < warnings.rows; ++row) {
            const std::string line =
                "warning: " + printable(result_text(warnings.cell(row, warnings.column("text"))));
            text_ +=
                layout_.is_markdown ? "- " + line + "\n" : styled(layout_.terminal, Style::Red, line) + "\n";
        }
    }

    /// The name of the node above.
    std::string parent_text(std::uint32_t node) const {
        const std::vector<std::string> path = comparison_.path(node);
        return path.size() < 2 ? "" : printable(path[path.size() - 2]);
    }

    /// Not if it follows from another count.
    static bool is_listed(const ComparedCount& count) {
        return count.causes > 0 || count.match == RowMatch::Guess;
    }

    void show_counts() {
        std::unordered_map<std::uint32_t, std::size_t> inside;
        std::size_t follow = 0;
        for (const ComparedCount& count : comparison_.counts) {
            if (count.inside != kNoNode) ++inside[count.inside];
            if (!is_listed(count) && count.inside == kNoNode) ++follow;
        }
        Table table({{"old"}, {"new"}, {"change"}, {"", true}, {"name", true, true, true}});
        std::size_t shown = 0, hidden = 0;
        for (const ComparedCount& count : comparison_.counts) {
            if (!is_listed(count)) continue;
            if (layout_.rows > 0 && shown >= kCounts) {
                ++hidden;
                continue;
            }
            ++shown;
            add_count(table, count, inside);
        }
        if (shown == 0 && follow == 0) return;
        std::string note;
        if (hidden > 0)
            note = fmt::format("... and {} (--limit 0 shows all)", format_plural(hidden, "more name"));
        if (follow > 0)
            note += fmt::format("{}{} changed only with the calls around them", note.empty() ? "" : "; ",
                                format_plural(follow, note.empty() ? "other name" : "name"));
        const bool varies = std::ranges::any_of(comparison_.totals, &ComparedCount::varies);
        section(fmt::format("counts that differ{}{}", comparison_.per_step ? ", per step" : "",
                            varies ? ", of all runs" : ""),
                table, note);
    }

    void add_count(Table& table, const ComparedCount& count,
                   const std::unordered_map<std::uint32_t, std::size_t>& inside) const {
        const double change = (count.new_least + count.new_most - count.old_least - count.old_most) / 2;
        std::string name = printable(count.name);
        if (count.match == RowMatch::Guess && !count.old_name.empty())
            name += " (guess: was " + printable(count.old_name) + ")";
        if (count.causes > 1) {
            name += fmt::format(", in {} places", format_count(count.causes));
        } else if (const std::string parent = parent_text(count.node); !parent.empty()) {
            name += " in " + parent;
        }
        std::size_t below = 0;
        for (const auto& [node, names] : inside) {
            if (comparison_.path(node).back() == count.name) below += names;
        }
        if (below > 0) name += fmt::format(", with {} inside", format_plural(below, "name"));
        const bool is_new = count.match == RowMatch::New, is_gone = count.match == RowMatch::Gone;
        const std::string by =
            change == 0 ? "" : (change < 0 ? "-" : "+") + count_text(count.kind, std::abs(change));
        table.add({span_text(count.kind, count.old_least, count.old_most),
                   span_text(count.kind, count.new_least, count.new_most),
                   is_new    ? "new"
                   : is_gone ? "gone"
                             : by,
                   count.kind == CountKind::Calls
                       ? ""
                       : std::string(kCountKindNames[static_cast<std::size_t>(count.kind)]),
                   name});
    }

    std::string row_name(const ComparedRow& row, bool has_namesake) const {
        std::string name = printable(row.name);
        if (row.match == RowMatch::Guess && !row.old_name.empty())
            return name + " (guess: was " + printable(row.old_name) + ")";
        if (row.match == RowMatch::New || row.match == RowMatch::Gone)
            name += row.match == RowMatch::New ? " (new)" : " (gone)";
        const std::string parent = parent_text(row.node != kNoNode ? row.node : row.old_node);
        if (has_namesake && !parent.empty()) name += " in " + parent;
        if (row.match != RowMatch::Moved) return name;
        const std::string before = parent_text(row.old_node);
        return before == parent || before.empty() ? name + " (moved)" : name + " (moved from " + before + ")";
    }

    std::string calls_text(const ComparedRow& row) const {
        const auto text = [](double calls) { return count_text(CountKind::Calls, calls); };
        if (row.old_calls == row.new_calls) return text(row.new_calls);
        return text(row.old_calls) + " -> " + text(row.new_calls);
    }

    /// The rows, where a path that is new or gone has the times of all paths inside it.
    std::vector<ComparedRow> with_insides() const {
        std::vector<ComparedRow> rows;
        std::unordered_map<std::uint32_t, ComparedValue> inside;
        for (const ComparedRow& row : comparison_.rows) {
            if (row.inside == kNoNode) {
                rows.push_back(row);
                continue;
            }
            inside[row.inside].before += row.value.before;
            inside[row.inside].after += row.value.after;
        }
        for (ComparedRow& row : rows) {
            const auto found = inside.find(row.node != kNoNode ? row.node : row.old_node);
            if (found == inside.end()) continue;
            row.value.before += found->second.before;
            row.value.after += found->second.after;
            row.name += ", with all inside";
        }
        std::ranges::stable_sort(rows, [](const ComparedRow& a, const ComparedRow& b) {
            if (is_decided(a.value) != is_decided(b.value)) return is_decided(a.value);
            return std::abs(a.value.difference()) > std::abs(b.value.difference());
        });
        return rows;
    }
    static bool is_decided(const ComparedValue& value) {
        return value.verdict == Verdict::Slower || value.verdict == Verdict::Faster;
    }

    void show_rows() {
        const double whole = std::max(comparison_.total.before, comparison_.total.after);
        std::vector<ComparedRow> rows;
        double rest = 0;
        std::size_t hidden = 0, undecided = 0;
        std::map<std::string, int> names;
        for (const ComparedRow& row : with_insides()) {
            // With several runs, small rows are not tested, and their differences may be chance.
            const bool is_small = std::abs(row.value.difference()) < kLeastChange * whole ||
                                  (!is_single() && row.value.verdict == Verdict::Untested &&
                                   row.value.before > 0 && row.value.after > 0);
            undecided += !is_decided(row.value);
            const bool is_rest = is_small || (!is_single() && undecided > kUndecided);
            if ((layout_.rows > 0 && rows.size() >= layout_.rows) ||
                (is_rest && !is_decided(row.value) && !layout_.shows_all)) {
                if (row.value.difference() != 0) ++hidden;
                rest += row.value.difference();
                continue;
            }
            rows.push_back(row);
            ++names[row.name];
        }
        const bool has_intervals = !is_single();
        std::vector<Table::Column> columns{{"change"}, {"old"}, {"new"}, {"%"}};
        if (has_intervals) columns.insert(columns.end(), {{"95% interval"}, {"verdict", true}});
        columns.insert(columns.end(), {{"calls"}, {"name", true, true, true}});
        Table table(std::move(columns));
        for (const ComparedRow& row : rows) {
            const ComparedValue& value = row.value;
            const double change = value.interval     ? value.interval->ratio - 1
                                  : value.before > 0 ? value.difference() / value.before
                                                     : 0;
            std::vector<std::string> cells{signed_text(value.difference()), value_text(value.before),
                                           value_text(value.after),
                                           value.before > 0 && value.after > 0 ? percent_text(change) : ""};
            if (has_intervals) {
                cells.push_back(value.interval ? percent_text(value.interval->low - 1) + " .. " +
                                                     percent_text(value.interval->high - 1)
                                               : "");
                cells.push_back(verdict_text(value));
            }
            cells.push_back(calls_text(row));
            cells.push_back(row_name(row, names[row.name] > 1));
            table.add(std::move(cells), value.verdict == Verdict::Slower ? Style::Red : Style::Plain);
        }
        std::string note;
        if (hidden > 0)
            note = fmt::format("{} in {} (--limit 0 shows all)", signed_text(rest),
                               format_plural(hidden, rows.empty() ? "row" : "more row"));
        if (rows.empty() && hidden == 0) return;
        static constexpr const char* kTitles[] = {
            "self time", "total time", "calls", "allocated bytes", "bytes held at the peak", "device time"};
        section(fmt::format("{} by {}{}", kTitles[static_cast<std::size_t>(comparison_.options.metric)],
                            kCompareByNames[static_cast<std::size_t>(comparison_.options.by)],
                            comparison_.per_step ? ", per step" : ""),
                table, note);
    }

    const Comparison& comparison_;
    const ComparisonLayout& layout_;
    std::string text_;
};

}  // namespace

std::string comparison_text(const Comparison& comparison, const ComparisonLayout& layout) {
    return ComparisonText(comparison, layout).text();
}

}  // namespace marey::cli
