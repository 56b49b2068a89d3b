// check_output.cpp: checks for CI systems: JUnit's XML, annotations and summaries of GitHub's workflows.
#include "cli/check_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <marey/error.h>

#include "base/environment.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

std::string value_text(const BudgetRule& rule, double value) {
    if (rule.is_time()) return format_duration(value);
    return rule.metric == BudgetMetric::Memory ? format_bytes(value) : fmt::format("{:.10g}", value);
}

/// "measured 13 (in 3 of 10 runs)", on one line.
std::string sentence(const BudgetOutcome& outcome) {
    std::string text = "measured " + value_text(outcome.rule, outcome.value);
    if (const std::optional<RatioInterval>& interval = outcome.time.interval)
        text += fmt::format(", {:.0f}% of the limit (95% interval {:.0f}% to {:.0f}%)", interval->ratio * 100,
                            interval->low * 100, interval->high * 100);
    return text + (outcome.why.empty() ? "" : " (" + outcome.why + ")");
}

/// Printable text with its special characters replaced by what `escape` returns for them; null: it stays.
template <class Escape>
std::string escaped(std::string_view text, Escape escape) {
    std::string result;
    for (const char c : printable(text, "\n")) {
        const char* const other = escape(c);
        other == nullptr ? result += c : result += other;
    }
    return result;
}
/// For attributes and texts of XML 1.0, which cannot have most control characters.
std::string xml(std::string_view text) {
    return escaped(text, [](char c) -> const char* {
        return c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : nullptr;
    });
}
/// For commands of workflows; `is_property` also for the values before their text.
std::string command(std::string_view text, bool is_property) {
    return escaped(text, [=](char c) -> const char* {
        if (c == '%') return "%25";
        if (c == '\n') return "%0A";
        if (is_property && c == ':') return "%3A";
        return is_property && c == ',' ? "%2C" : nullptr;
    });
}

/// The path as the repository has it: relative to the folder of the workflow.
std::string path_in_repository(const std::string& path) {
    const std::string workspace = environment_text("GITHUB_WORKSPACE");
    std::error_code error;
    const std::filesystem::path base =
        workspace.empty() ? std::filesystem::current_path(error) : std::filesystem::path(workspace);
    const std::filesystem::path relative = std::filesystem::path(path).lexically_relative(base);
    return relative.empty() || *relative.begin() == ".." ? path : relative.string();
}

}  // namespace

std::string check_title(const BudgetReport& report) {
    const BudgetState state = report.state();
    const std::size_t count = report.count(state);
    const std::string rules = format_plural(report.outcomes.size(), "rule");
    std::string text = state == BudgetState::Kept     ? "same: " + rules
                       : state == BudgetState::Broken ? fmt::format("broken: {} of {}", count, rules)
                                                      : fmt::format("cannot tell: {} of {}", count, rules);
    text += ", " + format_plural(report.runs, "run");
    if (report.baseline_runs > 0) text += "; baseline of " + format_plural(report.baseline_runs, "run");
    return text;
}

std::string check_junit(const BudgetReport& report) {
    const auto count = [&](BudgetState state) { return report.count(state); };
    const std::string counts =
        fmt::format("tests=\"{}\" failures=\"{}\"", report.outcomes.size(), count(BudgetState::Broken));
    std::string text = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n"
        "  <testsuite name=\"marey check\" {} errors=\"0\" skipped=\"{}\">\n",
        counts, counts, count(BudgetState::CannotTell));
    for (const BudgetOutcome& outcome : report.outcomes) {
        text += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\"", xml(outcome.rule.file),
                            xml(outcome.rule.text));
        if (outcome.state == BudgetState::Kept) {
            text += "/>\n";
            continue;
        }
        const bool is_broken = outcome.state == BudgetState::Broken;
        text += fmt::format("><{0} message=\"{1}\"{2}</testcase>\n", is_broken ? "failure" : "skipped",
                            xml(sentence(outcome)), is_broken ? " type=\"broken\"/>" : "/>");
    }
    return text + "  </testsuite>\n</testsuites>\n";
}

std::string check_annotations(const BudgetReport& report) {
    std::string text;
    for (const BudgetOutcome& outcome : report.outcomes) {
        if (outcome.state == BudgetState::Kept) continue;
        const bool has_place = !outcome.file.empty();
        text += fmt::format(
            "::{} file={},line={},title={}::{}\n", outcome.state == BudgetState::Broken ? "error" : "warning",
            command(path_in_repository(has_place ? outcome.file : outcome.rule.file), true),
            has_place ? outcome.line : outcome.rule.line,
            command(fmt::format("marey: {}", kBudgetStateNames[static_cast<int>(outcome.state)]), true),
            command(outcome.rule.text + "\n" + sentence(outcome), false));
    }
    return text;
}

void append_to_summary(const std::string& markdown) {
    const std::string path = environment_text("GITHUB_STEP_SUMMARY");
    if (path.empty()) return;
    std::ofstream file(path, std::ios::app);
    file << markdown << "\n";
    if (!file.flush()) throw Error(path + ": cannot append the summary");
}

}  // namespace marey::cli
