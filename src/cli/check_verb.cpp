// check_verb.cpp: marey check: whether recordings keep the rules of a file.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <marey/budgets.h>
#include <marey/export.h>

#include "cli/capture_files.h"
#include "cli/check_output.h"
#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr int kBroken = 1, kCannotTell = 3;

class CheckVerb final : public Verb {
  public:
    const char* help() const override { return "Check that recordings keep the rules of a file"; }
    const char* details() const override {
        return "Examples:\n"
               "  marey check run.marey --suggest > marey.budgets\n"
               "  marey check run-*.marey --write-baseline marey.baseline\n"
               "  marey check run-*.marey --baseline marey.baseline --github\n\n"
               "Rules, one on each line (docs/guide/ci.md describes them):\n"
               "  calls  \"aten::copy_\"          <= 12 per step        # exact\n"
               "  launches device 0             <= 410 per step\n"
               "  time   \"train_step\"     p95   <= 120 ms\n"
               "  self   path \"main/load/*\"     <= +10% of baseline\n"
               "  memory peak                   <= 6.5 GiB\n"
               "  findings                      == 0 of gpu.starved, step.outlier\n\n"
               "Several files are several runs of one program. Counts must be right in each run; a time\n"
               "breaks a rule only if the 95% interval over runs is beyond the limit. Exit code 0: kept;\n"
               "1: broken; 2: wrong input; 3: the runs do not tell (with --strict). The main table is\n"
               "check_rules in docs/reference/results.md.";
    }
    void declare(Options& options) override {
        declare_files(options, files_, capture_.from);
        declare_session(options, capture_.session);
        capture_.declare_filter(options);
        options.text(budgets_, "--budgets", "RULES", "File with the rules (marey.budgets)");
        options.text(baseline_, "--baseline", "BASELINE", "Values of earlier runs, made by --write-baseline");
        options.text(write_baseline_, "--write-baseline", "BASELINE",
                     "Write the values of these runs, check nothing");
        options.flag(suggest_, "--suggest", "Print rules that these runs keep, check nothing");
        options.text(step_name_, "--step-name", "PATTERN",
                     "Ranges to use as steps; * matches any text (ProfilerStep#*)");
        options.flag(strict_, "--strict", "Exit with 3 if the runs do not tell whether a rule is kept");
        options.flag(trusts_machine_, "--trust-machine", "Compare times with a baseline of another machine");
        options.text(junit_, "--junit", "XML", "Write the rules as tests of JUnit, too");
        options.flag(github_, "--github", "Annotate a workflow of GitHub, and add to its summary");
        output_.declare(options);
    }

    int run() override {
        output_.check();
        if (suggest_ && !write_baseline_.empty())
            throw Error("check: --suggest and --write-baseline are mutually exclusive");
        const std::vector<std::string> paths = capture_paths(files_, true);
        for (auto path = paths.begin(); path != paths.end(); ++path)
            if (std::find(paths.begin(), path, *path) != path) throw Error(*path + ": is given twice");
        const std::vector<std::vector<std::string>> runs = runs_of(paths);
        std::optional<Trace> first;
        std::vector<BudgetRule> rules;
        if (suggest_) {
            first = load(runs[0]);
            rules = candidate_budgets(*first, step_name_);
        } else {
            rules = parse_budgets(text_of(budgets_, "write rules, or start with --suggest"), budgets_);
        }
        std::optional<Baseline> baseline;
        if (!baseline_.empty())
            baseline = parse_baseline(text_of(baseline_, "--write-baseline makes one"), baseline_);
        BudgetCheck check(rules, step_name_);
        for (const std::vector<std::string>& run : runs) {
            const Trace trace = first ? *std::exchange(first, {}) : load(run);
            const Progress progress("checking " + run.front());
            check.add(trace, run.front());
        }
        if (suggest_) {
            write_out(check.suggestion());
            return kSuccess;
        }
        if (!write_baseline_.empty()) {
            write_file(write_baseline_, baseline_json(check.baseline()));
            print_error(fmt::format("marey: wrote {}: {}, {}\n", printable(write_baseline_),
                                    format_plural(rules.size(), "rule"), format_plural(runs.size(), "run")));
            return kSuccess;
        }
        const BudgetReport report = check.report(baseline ? &*baseline : nullptr, trusts_machine_);
        print(report);
        const BudgetState state = report.state();
        return state == BudgetState::Broken                  ? kBroken
               : state == BudgetState::CannotTell && strict_ ? kCannotTell
                                                             : kSuccess;
    }

  private:
    Trace load(const std::vector<std::string>& files) const {
        CaptureArgument capture = capture_;
        capture.files = files;
        return capture.filtered(capture.load());
    }
    static std::string text_of(const std::string& path, const char* hint) {
        std::ifstream file(path, std::ios::binary);
        struct stat status {};
        if (!file || ::stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode))
            throw Error(path + ": " + std::strerror(file ? EISDIR : errno) + " (" + hint + ")");
        return {std::istreambuf_iterator<char>(file), {}};
    }
    static void write_file(const std::string& path, const std::string& text) {
        (void)output_target(path);  // refuses links of others
        std::ofstream file(path, std::ios::binary);
        if (!(file << text).flush()) throw Error(path + ": " + std::strerror(errno));
    }

    void print(const BudgetReport& report) const {
        const Result result = check_result(report);
        const ResultTable& rules = result.table("check_rules");
        const std::string title = check_title(report) + "\n\n";
        if (!junit_.empty()) write_file(junit_, check_junit(report));
        if (github_) {
            print_error(check_annotations(report));
            append_to_summary(title + result_in_columns(rules, {}).markdown());
        }
        if (output_.markdown && !output_.chooses()) {
            write_out(title + result_in_columns(output_.chosen(rules), {}).markdown());
        } else {
            output_.print(result, [&] { return title + output_.lines(rules, standard_output()); });
        }
    }

    std::vector<std::string> files_;
    CaptureArgument capture_;
    std::string budgets_ = "marey.budgets", baseline_, write_baseline_, step_name_, junit_;
    bool suggest_ = false, strict_ = false, trusts_machine_ = false, github_ = false;
    ResultArgument output_{.verb = "check", .table = "check_rules", .row = "rule"};
};

}  // namespace

MAREY_VERB(check, CheckVerb)

}  // namespace marey::cli
