// diff_verb.cpp: marey diff: what changed between recordings.
#include <algorithm>
#include <cmath>
#include <map>

#include <marey/compare.h>

#include "cli/capture_files.h"
#include "cli/comparison_text.h"
#include "cli/output_argument.h"
#include "cli/recorded_turns.h"
#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

template <std::size_t kCount>
std::vector<std::string> choices_of(const std::string_view (&names)[kCount]) {
    return {std::begin(names), std::end(names)};
}
template <class Number, std::size_t kCount>
Number number_of(const std::string_view (&names)[kCount], const std::string& name) {
    return static_cast<Number>(std::ranges::find(names, name) - std::begin(names));
}

class DiffVerb final : public Verb {
  public:
    const char* help() const override { return "Show what changed between recordings"; }
    const char* details() const override {
        return "Examples:\n"
               "  marey diff old.marey new.marey\n"
               "  marey diff old-*.marey -- new-*.marey\n"
               "  marey diff --runs 10 './old' './new'\n"
               "  marey diff --runs 10 --git main..HEAD --build 'make app' -- ./app input\n\n"
               "Counts are exact. Times of one run on each side may differ by chance; with several runs,\n"
               "each change has a 95% interval over runs and a verdict: slower or faster (more than\n"
               "chance, and more than --effect), same (less than --effect), or cannot tell. FILE may be\n"
               "a folder: each run in it counts. --runs records both commands in turns, with marey run,\n"
               "after one run of each that does not count. Paths are matched by name, then by file and\n"
               "function; a guess is marked as one. The main table is diff_rows in\n"
               "docs/reference/results.md.";
    }
    void declare(Options& options) override {
        options.optional(files_, "FILE", "Old and new recording, or old and new command with --runs");
        declare_from(options, capture_.from);
        declare_session(options, capture_.session);
        capture_.declare_filter(options);
        std::vector<std::string> rows = choices_of(kCompareByNames);
        rows.emplace_back("kernel");
        options.choice(by_, "--by", rows, "What to compare (path)");
        options.choice(metric_, "--metric", choices_of(kCompareMetricNames), "Values to compare (self)");
        options.texts(renames_, "--rename", "OLD=NEW",
                      "Match this old name, function or file with the new one; repeatable");
        options.flag(fold_numbers_, "--fold-numbers", "Treat names that differ only in numbers as one");
        options.text(step_name_, "--step-name", "PATTERN",
                     "Ranges to use as steps; * matches any text (ProfilerStep#*)");
        options.percent(effect_, "--effect", "Smallest change of interest (5)");
        options.flag(in_turns_, "--in-turns", "The files were recorded in turns: old, new, new, old, ...");
        options.number(runs_, "--runs", "Record each side N times, in turns, and compare the runs");
        options.number(warmups_, "--warmups", "With --runs: runs of each side before, not compared (1)");
        options.text(commits_, "--git", "OLD..NEW", "With --runs: record one command in two commits");
        options.text(build_, "--build", "COMMAND", "With --git: shell command that builds a commit");
        options.text(run_options_, "--run-options", "OPTIONS", "With --runs: options of marey run");
        options.text(keep_, "--keep", "FOLDER", "With --runs: keep the captures in this folder");
        output_.declare(options);
        options.text(html_.path, "--html", "FILE",
                     "Write one HTML file: differential flame graph and both timelines");
        options.flag(html_.force, "--force", "Replace the file of --html if it exists");
        options.command(words_);
    }

    int run() override {
        output_.check();
        CompareOptions options = compare_options();
        if (!html_.path.empty()) {
            if (options.by != CompareBy::Path) throw Error("diff: --html shows paths: leave out --by");
            if (output_.is_data()) throw Error("diff: --html excludes --json, --csv and --markdown");
            html_.check([&] {
                std::vector<std::string> inputs = files_;
                inputs.insert(inputs.end(), words_.begin(), words_.end());
                return inputs;
            });
        }
        RunComparison runs(options);
        runs_ ? record(runs) : read(runs);
        if (!html_.path.empty()) {
            const Progress progress("writing " + html_.path);
            write_html_comparison(runs, *first_[0], *first_[1], html_.path);
            print_error(fmt::format("marey: wrote {}: open it in a browser\n", printable(html_.path)));
            return kSuccess;
        }
        const Comparison comparison = [&] {
            const Progress progress("comparing");
            return runs.compare();
        }();
        const std::size_t rows = output_.limit.value_or(output_.usual_limit);
        if (output_.is_data() && (!output_.markdown || output_.chooses()))
            return output_.print(diff_result(comparison), [] { return std::string(); });
        const Terminal terminal = output_.markdown ? Terminal() : standard_output();
        if (output_.chooses()) {
            write_out(output_.lines(diff_result(comparison).table("diff_rows"), terminal));
        } else {
            write_out(comparison_text(comparison, {.rows = rows,
                                                   .shows_all = output_.limit.has_value(),
                                                   .is_markdown = output_.markdown,
                                                   .terminal = terminal}));
        }
        return kSuccess;
    }

  private:
    CompareOptions compare_options() const {
        CompareOptions options;
        const bool is_kernel = by_ == "kernel";
        options.by = is_kernel ? CompareBy::Name : number_of<CompareBy>(kCompareByNames, by_);
        options.metric = number_of<CompareMetric>(kCompareMetricNames, is_kernel ? "gpu" : metric_);
        options.step_name = step_name_;
        options.fold_numbers = fold_numbers_;
        options.effect = effect_ / 100;
        options.in_turns = in_turns_ || runs_.has_value();
        for (const std::string& rename : renames_) {
            const std::size_t mark = rename.find('=');
            if (mark == 0 || mark == rename.npos)
                throw Error("diff: --rename: expected OLD=NEW, got '" + rename + "'");
            options.renames.emplace_back(rename.substr(0, mark), rename.substr(mark + 1));
        }
        if (!runs_ && (!commits_.empty() || !build_.empty() || !keep_.empty() || !run_options_.empty()))
            throw Error("diff: --git, --build, --keep and --run-options need --runs");
        return options;
    }

    void record(RunComparison& comparison) {
        TurnOptions turns{.commits = commits_,
                          .build = build_,
                          .words = words_,
                          .runs = *runs_,
                          .warmups = warmups_.value_or(1),
                          .options = split(run_options_, ' '),
                          .keep = keep_};
        if (*runs_ == 0) throw Error("diff: --runs must be at least 1");
        if (commits_.empty()) {
            if (files_.size() != 2 || !words_.empty())
                throw Error(
                    "diff: --runs expects two commands, each as one word: marey diff --runs 10 './old' "
                    "'./new'");
            std::ranges::copy(files_, turns.commands);
        } else if (!files_.empty() || words_.empty()) {
            throw Error("diff: --git expects one command after --");
        }
        const RecordedTurns recorded(turns);
        for (std::uint64_t i = 0; i < *runs_; ++i) {
            for (int side = 0; side < 2; ++side) {
                const std::string& file = recorded.captures(side)[i];
                add(comparison, side, {file}, recorded.label(side));
            }
        }
    }

    void read(RunComparison& comparison) {
        std::vector<std::string> sides[2] = {files_, words_};
        if (words_.empty()) {
            if (files_.size() != 2)
                throw Error(
                    "diff: expected two files, or several on each side of --: marey diff OLD... -- NEW...");
            sides[0] = {files_[0]};
            sides[1] = {files_[1]};
        }
        for (const std::vector<std::string>& files : sides) require_files(with_captures_of_processes(files));
        for (int side = 0; side < 2; ++side) {
            for (const std::string& file : sides[side]) {
                if (!is_folder(file)) {
                    add(comparison, side, {file}, file);
                    continue;
                }
                std::vector<std::string> inside = captures_beside(file.ends_with('/') ? file : file + "/");
                if (inside.empty()) throw Error(file + ": contains no captures (*.marey)");
                std::ranges::sort(inside);
                for (const std::vector<std::string>& run : runs_of(inside))
                    add(comparison, side, run, run.front());
            }
        }
    }

    void add(RunComparison& comparison, int side, const std::vector<std::string>& files,
             const std::string& name) {
        CaptureArgument capture = capture_;
        capture.files = files;
        const Trace trace = capture.filtered(capture.load());
        const Progress progress("comparing " + name);
        comparison.add(trace, static_cast<CompareSide>(side), name);
        if (!html_.path.empty() && !first_[side]) first_[side] = trace;
    }

    std::vector<std::string> files_, words_, renames_;
    CaptureArgument capture_;
    std::string by_ = "path", metric_ = "self", step_name_, commits_, build_, run_options_, keep_;
    bool fold_numbers_ = false, in_turns_ = false;
    double effect_ = 5;
    std::optional<std::uint64_t> runs_, warmups_;
    OutputArgument html_;
    std::optional<Trace> first_[2];  ///< by side, for --html
    ResultArgument output_{.verb = "diff", .table = "diff_rows", .usual_limit = 20};
};

}  // namespace

MAREY_VERB(diff, DiffVerb)

}  // namespace marey::cli
