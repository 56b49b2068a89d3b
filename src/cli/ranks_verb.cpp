// ranks_verb.cpp: marey ranks: compares the ranks of a distributed program.
#include <fmt/format.h>

#include <algorithm>

#include <marey/error.h>
#include <marey/export.h>
#include <marey/ranks.h>

#include "cli/capture_argument.h"
#include "cli/capture_files.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::uint64_t kDefaultRows = 16;
constexpr std::size_t kSteps = 5;
constexpr std::size_t kCriticalParts = 8;

std::string rank_time(double ns) {
    return format_duration(ns);
}

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
               "thresholds, listed in docs/guide/ranks.md. --json prints everything, in nanoseconds.";
    }
    void declare(Options& options) override {
        declare_files(options, files_, from_);
        options.text(step_, "--name", "PATTERN",
                     "Ranges to use as steps; * matches any text (ProfilerStep#*)");
        options.text(input_, "--input", "TEXT",
                     "Ranges whose name contains TEXT wait for input (dataloader)");
        options.number(limit_, "--limit", "Ranks to list (16; 0 lists all)");
        options.flag(json_, "--json", "Print JSON");
    }
    int run() override {
        const RankFiles files = [&] {
            require_files(files_);
            // While a program runs, each of its processes has a capture.
            const std::vector<std::string> paths =
                files_.size() == 1 && from_.empty() && !is_folder(files_[0]) ? captures_of_tree(files_[0])
                                                                             : files_;
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
        if (json_) {
            write_data(rank_report_json(files.report));
        } else {
            terminal_ = standard_output();
            write_out(text(files.report));
        }
        return kSuccess;
    }

  private:
    std::string heading(const std::string& title) const {
        return "\n" + styled(terminal_, Style::Bold, title) + "\n";
    }

    std::string text(const RankReport& report) const {
        std::string text = faults(report) + rank_table(report) + step_table(report) + critical_table(report);
        if (report.worst_rank >= 0) {
            text += fmt::format(
                "\nIf rank {} were as fast as the median, a step would take {} instead of {}.\n",
                report.worst_rank, rank_time(report.step_without_worst_ns), rank_time(report.mean_step_ns));
        }
        text += findings(report) + "\n" + collectives_line(report) + clock_line(report);
        for (const ProblemInfo& problem : report.problems) {
            text += styled(terminal_, Style::Red, fmt::format("{:<9} ", "problem")) +
                    fmt::format("{} ({}, {})\n", printable(problem.text), problem.code,
                                format_count(problem.count));
        }
        return text;
    }

    /// All ranks, or those that delayed the others most and their neighbours in the list.
    std::string rank_table(const RankReport& report) const {
        std::vector<const RankInfo*> shown;
        for (const RankInfo& rank : report.ranks) shown.push_back(&rank);
        const std::uint64_t limit = limit_.value_or(kDefaultRows);
        const bool is_cut = limit > 0 && shown.size() > limit;
        if (is_cut) {
            std::stable_sort(shown.begin(), shown.end(), [](const RankInfo* a, const RankInfo* b) {
                return a->delayed_ns > b->delayed_ns;
            });
            shown.resize(limit);
        }
        Table table({{"rank"},
                     {"host", true, true},
                     {"steps"},
                     {"step"},
                     {"compute"},
                     {"input"},
                     {"communication"},
                     {"exposed"},
                     {"waiting"},
                     {"last"},
                     {"delayed"},
                     {"critical"}});
        for (const RankInfo* const rank : shown) {
            const auto per_step = [&](std::int64_t ns) {
                return rank_time(static_cast<double>(ns) /
                                 static_cast<double>(std::max<std::uint64_t>(rank->steps, 1)));
            };
            table.add(
                {std::to_string(rank->rank), printable(rank->host), format_count(rank->steps),
                 rank_time(rank->step_times.mean_ns), per_step(rank->compute_ns), per_step(rank->input_ns),
                 per_step(rank->communication_ns), per_step(rank->exposed_ns()), per_step(rank->waiting_ns),
                 format_count(rank->times_last), per_step(rank->delayed_ns), per_step(rank->critical_ns)});
        }
        std::string text = table.text(terminal_);
        if (is_cut)
            text += fmt::format("... and {} that delayed the others less (--limit 0 lists all)\n",
                                format_plural(report.ranks.size() - limit, "more rank"));
        return text;
    }

    std::string step_table(const RankReport& report) const {
        if (report.steps.empty()) return "";
        std::vector<const RankStepInfo*> shown;
        for (const RankStepInfo& step : report.steps) shown.push_back(&step);
        std::stable_sort(shown.begin(), shown.end(), [](const RankStepInfo* a, const RankStepInfo* b) {
            return a->imbalance > b->imbalance;
        });
        shown.resize(std::min(shown.size(), kSteps));
        Table table(
            {{"step"}, {"ranks"}, {"duration"}, {"most work"}, {"on rank"}, {"median"}, {"imbalance"}});
        for (const RankStepInfo* const step : shown) {
            table.add({std::to_string(step->number), format_count(step->ranks),
                       rank_time(static_cast<double>(step->duration_ns)),
                       rank_time(static_cast<double>(step->most_work_ns)), std::to_string(step->slowest),
                       rank_time(static_cast<double>(step->median_work_ns)), format_share(step->imbalance)});
        }
        return heading(fmt::format("Least balanced of {}", format_plural(report.steps.size(), "step"))) +
               table.text(terminal_);
    }

    std::string critical_table(const RankReport& report) const {
        if (report.critical_path.empty()) return "";
        double total = 0;
        for (const CriticalPart& part : report.critical_path) total += static_cast<double>(part.time_ns);
        Table table({{"time"}, {"share"}, {"count"}, {"rank"}, {"name", true, true}});
        const std::size_t shown = std::min(report.critical_path.size(), kCriticalParts);
        for (std::size_t i = 0; i < shown; ++i) {
            const CriticalPart& part = report.critical_path[i];
            const auto time = static_cast<double>(part.time_ns);
            table.add({rank_time(time), format_share(total > 0 ? time / total : 0), format_count(part.count),
                       std::to_string(part.rank),
                       part.name.empty()    ? "(in no range)"
                       : part.is_collective ? printable(part.name) + " (collective)"
                                            : printable(part.name)});
        }
        return heading("Critical path over ranks") + table.text(terminal_);
    }

    std::string finding_line(const RankFinding& finding) const {
        return styled(terminal_, Style::Red, finding.rule) + ": " + printable(finding.text) + "\n";
    }
    /// The findings that something is wrong with the job.
    std::string faults(const RankReport& report) const {
        std::string text;
        for (const RankFinding& finding : report.findings) {
            if (finding.share == 0) text += finding_line(finding);
        }
        return text.empty() ? "" : text + "\n";
    }
    std::string findings(const RankReport& report) const {
        std::string text;
        for (const RankFinding& finding : report.findings) {
            if (finding.share != 0) text += finding_line(finding);
        }
        return text.empty() ? "" : heading("Findings") + text;
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
        HostsAgreement agreement;
        agreement.hosts = report.hosts.size();
        agreement.reference = report.hosts[report.reference_host].name;
        agreement.worst_ns = -1;
        agreement.best_ns = kUnknownClockError;
        for (std::size_t i = 0; i < report.hosts.size(); ++i) {
            if (i == report.reference_host) continue;
            const RankHost& host = report.hosts[i];
            agreement.best_ns = std::min(agreement.best_ns, host.clock.error_ns);
            if (host.clock.error_ns <= agreement.worst_ns) continue;
            agreement.worst_ns = host.clock.error_ns;
            agreement.worst = host.name;
            agreement.evidence = evidence_text(host.clock);
        }
        return line("clock", hosts_fact(agreement));
    }

    std::vector<std::string> files_;
    std::string from_;
    std::string step_;
    std::string input_ = "dataloader";
    std::optional<std::uint64_t> limit_;
    bool json_ = false;
    Terminal terminal_{};
};

}  // namespace

std::unique_ptr<Verb> make_ranks_verb() {
    return std::make_unique<RanksVerb>();
}

}  // namespace marey::cli
