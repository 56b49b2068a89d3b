// lines_verb.cpp: marey lines: a source file with the time of each line beside it.
#include <algorithm>
#include <fstream>
#include <map>

#include <marey/results.h>

#include "cli/result_argument.h"
#include "cli/sample_text.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::size_t kLinesShown = 20;

class LinesVerb final : public Verb {
  public:
    const char* help() const override { return "Show the time of each line of a source file"; }
    const char* details() const override {
        return "Without SOURCE: the lines with the most self time. SOURCE is the end of a path, such as\n"
               "server.py or net/server.py. self: CPU time of the line itself; total: with that of the\n"
               "functions that it called; waiting: in it, or in these. The times are estimates from\n"
               "samples (marey run --sample). Native code needs debug information (-g).";
    }
    void declare(Options& options) override {
        declare_file(options, capture_.files.emplace_back(), capture_.from);
        options.optional(source_, "SOURCE", "Source file to show (the hottest lines of all files)");
        declare_session(options, capture_.session);
        options.flag(capture_.is_alone, "--alone", "Show only FILE, not the other processes of its run");
        output_.declare(options);
    }
    int run() override {
        output_.check();
        const Trace trace = with_function_names(capture_.load());
        if (trace.samples().size() == 0)
            throw Error(capture_.file() + ": has no samples (marey run --sample records them)");
        SampleReport report = sample_report(trace, {.by = SampleGroup::Line});
        if (!source_.empty()) keep_source(report);
        return output_.print(sample_result(trace, report), [&] {
            const Terminal terminal = standard_output();
            const std::string text = source_.empty() || output_.chooses() ? rows_text(trace, report, terminal)
                                                                          : source_text(report, terminal);
            return text + "\n" + sample_facts(trace, report, terminal);
        });
    }

  private:
    /// Keeps the rows of the one file whose path ends with the source.
    void keep_source(SampleReport& report) {
        std::map<std::string, std::int64_t> files;
        for (const SampledRow& row : report.rows) {
            const bool is_wanted = row.file == source_ || row.file.ends_with("/" + source_);
            if (is_wanted && row.line != 0) files[row.file] += row.self_ns + row.waiting_ns;
        }
        if (files.empty()) throw Error("lines: no sample is in a line of '" + source_ + "'");
        if (files.size() > 1) {
            std::string names;
            for (const auto& [name, time_ns] : files) names += "\n  " + name;
            throw Error("lines: '" + source_ + "' is the end of several paths:" + names);
        }
        path_ = files.begin()->first;
        std::erase_if(report.rows, [&](const SampledRow& row) { return row.file != path_ || row.line == 0; });
    }

    std::string rows_text(const Trace& trace, const SampleReport& report, const Terminal& terminal) const {
        if (output_.chooses()) return output_.lines(sample_result(trace, report).table("sampled"), terminal);
        return sample_rows_text(trace, report, "line", output_.limit.value_or(kLinesShown), terminal);
    }

    std::string source_text(const SampleReport& report, const Terminal& terminal) const {
        std::map<std::uint32_t, const SampledRow*> rows;
        std::int64_t most_ns = 0;
        for (const SampledRow& row : report.rows) {
            rows.emplace(row.line, &row);
            most_ns = std::max(most_ns, row.self_ns);
        }
        std::ifstream file(path_);
        if (!file && std::ifstream(source_)) file.open(source_);
        std::vector<std::string> lines;
        for (std::string line; std::getline(file, line);) lines.push_back(line);
        if (lines.empty())
            print_error(fmt::format("marey: {}: cannot be read here: only its lines with samples are shown\n",
                                    printable(path_)));
        Table table({{"self"}, {"total"}, {"waiting"}, {"line"}, {printable(path_), true, true}});
        const std::uint32_t last =
            std::max(static_cast<std::uint32_t>(lines.size()), rows.empty() ? 0 : rows.rbegin()->first);
        const auto time = [](std::int64_t ns) { return ns == 0 ? "" : "~" + format_duration(ns); };
        for (auto next = rows.begin(); const std::uint32_t number : numbers(last, lines.empty(), rows)) {
            const std::string text = number <= lines.size() ? printable(lines[number - 1], "\t") : "";
            while (next != rows.end() && next->first < number) ++next;
            if (next == rows.end() || next->first != number) {
                table.add({"", "", "", std::to_string(number), without_tabs(text)}, Style::Dim);
                continue;
            }
            const SampledRow& row = *next->second;
            table.add({time(row.self_ns), time(row.total_ns), time(row.waiting_ns), std::to_string(number),
                       without_tabs(text)},
                      row.self_ns * 2 >= most_ns && most_ns > 0 ? Style::Red : Style::Plain);
        }
        return table.text(terminal);
    }

    /// The lines to show: all of them, or those with samples.
    static std::vector<std::uint32_t> numbers(std::uint32_t last, bool has_no_text, const auto& rows) {
        std::vector<std::uint32_t> numbers;
        for (const auto& [line, row] : rows) {
            if (has_no_text) numbers.push_back(line);
        }
        for (std::uint32_t line = 1; !has_no_text && line <= last; ++line) numbers.push_back(line);
        return numbers;
    }
    static std::string without_tabs(std::string_view text) {
        std::string spaces;
        for (const char c : text) spaces += c == '\t' ? std::string(4, ' ') : std::string(1, c);
        return spaces;
    }

    CaptureArgument capture_;
    std::string source_, path_;
    ResultArgument output_{.verb = "lines", .table = "sampled", .row = "line", .result = "sampled"};
};

}  // namespace

MAREY_VERB(lines, LinesVerb)

}  // namespace marey::cli
