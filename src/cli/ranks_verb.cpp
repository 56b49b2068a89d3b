// ranks_verb.cpp: marey ranks: compares the ranks of a distributed program.
#include <algorithm>

#include <marey/results.h>

#include "cli/capture_argument.h"
#include "cli/capture_files.h"
#include "cli/finding_line.h"
#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::size_t kSteps = 5;
constexpr std::size_t kCriticalParts = 8;

class RanksVerb final : public Verb {
  public:
    const char* help() const override { return "Compare the ranks of a distributed program"; }
    const char* details() const override {
        return "FILE: the captures or traces of all ranks, the file of a run, or a folder. Findings that\n"
               "something is wrong come first: a hang, a rank that died or is absent, ranks that\n"
               "disagree. Times of ranks are means per step. compute: kernels, or operators without a GPU. "
               "exposed: collectives while\n"
               "nothing was computed. waiting: in collectives, before the last rank entered. last:\n"
               "collectives that this rank entered last. delayed: time for which only this rank kept the\n"
               "others waiting. critical: its part of the critical path. Findings are rules with\n"
               "thresholds, listed in docs/guide/ranks.md. The main table is ranks in "
               "docs/reference/results.md.";
    }
    void declare(Options& options) override {
        declare_files(options, files_, from_);
        options.text(step_, "--step-name", "PATTERN",
                     "Ranges to use as steps; * matches any text (ProfilerStep#*)");
        options.old_name("--name", "--step-name");
        options.text(input_, "--input", "TEXT",
                     "Ranges whose name contains TEXT wait for input (dataloader)");
        output_.declare(options);
    }
    int run() override {
        output_.check();
        const RankFiles files = [&] {
            std::vector<std::string> paths = with_captures_of_processes(files_);
            require_files(paths);
            // While a program runs, each of its processes has a capture.
            if (paths.size() == 1 && from_.empty() && !is_folder(paths[0]))
                paths = captures_of_tree(paths[0]);
            const Progress progress("reading " + format_plural(paths.size(), "file"));
            try {
                return read_ranks(paths, {.step_name = step_, .input_name = input_}, from_);
            } catch (const Error& error) {
                throw Error("ranks: " + std::string(error.what()));
            }
        }();
        for (const RankFileError& file : files.left_out) {
            if (file.has_no_rank && files_.size() == 1) continue;  // the launcher of a run has none
            print_error(
                fmt::format("marey: ranks: left out {}: {}\n", printable(file.path), printable(file.text)));
        }
        const Result result = rank_result(files.report);
        terminal_ = standard_output();
        return output_.print(result, [&] { return text(files.report, result); });
    }

  private:
    std::string heading(const std::string& title) const {
        return "\n" + styled(terminal_, Style::Bold, title) + "\n";
    }

    std::string text(const RankReport& report, const Result& result) const {
        const std::string faults = rank_findings(report, true, terminal_);
        const std::string findings = rank_findings(report, false, terminal_);
        std::string text = faults + (faults.empty() ? "" : "\n") + rank_table(result.table("ranks")) +
                           step_table(result.table("rank_steps")) +
                           critical_table(result.table("rank_critical_path"));
        if (report.worst_rank >= 0) {
            text +=
                fmt::format("\nIf rank {} were as fast as the median, a step would take {} instead of {}.\n",
                            report.worst_rank, format_duration(report.step_without_worst_ns),
                            format_duration(report.mean_step_ns));
        }
        text += (findings.empty() ? "" : heading("Findings") + findings) + "\n" + collectives_line(report) +
                clock_line(report);
        for (const ProblemInfo& problem : report.problems) {
            text += styled(terminal_, Style::Red, fmt::format("{:<9} ", "problem")) +
                    fmt::format("{} ({}, {})\n", printable(problem.text), problem.code,
                                format_count(problem.count));
        }
        return text;
    }

    /// All ranks, or those that delayed the others most and their neighbours in the list.
    std::string rank_table(const ResultTable& ranks) const {
        const std::uint64_t limit = output_.limit.value_or(output_.usual_limit);
        const bool is_cut = output_.sort.empty() && limit > 0 && limit < ranks.rows;
        if (!is_cut) return output_.lines(ranks, terminal_);
        return output_.lines(ranks.sorted("delayed_ns").limited(limit), terminal_) +
               fmt::format("... and {} that delayed the others less (--limit 0 lists all)\n",
                           format_plural(ranks.rows - limit, "more rank"));
    }

    std::string step_table(const ResultTable& steps) const {
        if (steps.rows == 0) return "";
        return heading(fmt::format("Least balanced of {}", format_plural(steps.rows, "step"))) +
               result_lines(steps.sorted("imbalance").limited(kSteps), terminal_);
    }

    std::string critical_table(const ResultTable& parts) const {
        if (parts.rows == 0) return "";
        return heading("Critical path over ranks") + result_lines(parts.limited(kCriticalParts), terminal_);
    }

    std::string line(std::string_view title, const std::string& value) const {
        return styled(terminal_, Style::Dim, fmt::format("{:<12} ", title)) + value + "\n";
    }
    std::string collectives_line(const RankReport& report) const {
        std::string text = format_count(report.collectives) + " matched";
        if (report.unmatched > 0)
            text += fmt::format(", {} recorded by one rank only", format_count(report.unmatched));
        if (report.unfinished > 0) text += fmt::format(", {} not finished", format_count(report.unfinished));
        if (report.mismatched > 0)
            text += fmt::format(", {} after the ranks disagree", format_count(report.mismatched));
        if (report.disagreeing > 0)
            text += fmt::format("; in {} the clocks and the lengths of stay disagree about who came last",
                                format_count(report.disagreeing));
        return line("collectives", text);
    }
    std::string clock_line(const RankReport& report) const {
        if (report.hosts.size() < 2) return line("clock", "one host");
        HostsAgreement agreement{.hosts = report.hosts.size(),
                                 .reference = report.hosts[report.reference_host].name};
        for (std::size_t i = 0; i < report.hosts.size(); ++i) {
            const RankHost& host = report.hosts[i];
            if (i != report.reference_host)
                agreement.add(host.name, host.clock.error_ns, evidence_text(host.clock));
        }
        return line("clock", hosts_fact(agreement));
    }

    std::vector<std::string> files_;
    std::string from_;
    std::string step_;
    std::string input_ = "dataloader";
    ResultArgument output_{.verb = "ranks", .table = "ranks", .usual_limit = 16, .row = "rank"};
    Terminal terminal_{};
};

}  // namespace

MAREY_VERB(ranks, RanksVerb)

}  // namespace marey::cli
