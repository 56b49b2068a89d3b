// stacks_verb.cpp: marey stacks: folded stacks, for flame graphs.
#include <marey/export.h>
#include <marey/results.h>

#include "cli/output_argument.h"
#include "cli/result_argument.h"
#include "cli/sample_text.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class StacksVerb final : public Verb {
  public:
    const char* help() const override { return "Print folded stacks, for flame graphs"; }
    const char* details() const override {
        return "Prints one line per path: its entries joined by ';', a space, and a number. Times are in\n"
               "nanoseconds. --torch prints the output of PyTorch's export_stacks, in microseconds: the\n"
               "Python functions around each operator, without the operator's name, with equal stacks\n"
               "added up. Device time counts where the work was launched.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        capture_.declare_filter(options);
        options.choice(options_.metric, "--metric", stack_metrics(), "Value to add up (self_cpu_time_total)");
        options.flag(torch_, "--torch", "Print Python stacks, in microseconds, as PyTorch does");
        options.flag(options_.append_name, "--append-name", "With --torch: append the operator's name");
        options.flag(options_.with_waits, "--waits", "Of samples: include waits outside ranges");
        options.choice(by_, "--by", {"name", "thread"},
                       "With thread: make the thread the first entry (name)");
        output_.declare(options, "Output file (standard output)");
        result_.declare(options);
    }
    int run() override {
        if (options_.append_name && !torch_) throw Error("stacks: --append-name requires --torch");
        options_.by_thread = by_ == "thread";
        if (torch_) {
            capture_.show_importlib = true;
            options_.frames = StackFrames::Python;
            options_.microseconds = true;
        }
        result_.check();
        const bool is_shaped = result_.is_data() || result_.chooses() || result_.limit;
        if (is_shaped && !output_.is_standard_output())
            throw Error("stacks: -o writes every stack as text: redirect the output instead");
        output_.check([&] { return capture_.paths(); });
        const Trace trace = capture_.filtered(with_function_names(capture_.load()));
        std::size_t count = 0;
        if (output_.is_standard_output()) {
            const Result result = stack_result(fold_stacks(trace, options_));
            count = result.tables[0].rows;
            result_.is_data() ? result_.write(result) : write_data(folded(result_.chosen(result.tables[0])));
        } else {
            const Progress progress("writing " + output_.path);
            count = write_stacks(trace, output_.path, options_);
        }
        if (count == 0)
            print_error("marey: no stacks: no range " + std::string(torch_ ? "with a Python stack " : "") +
                        "has any " + options_.metric + "\n");
        print_error(end_lines(trace, standard_error()));
        print_error(problem_lines(trace, standard_error()));
        return kSuccess;
    }

  private:
    static std::string folded(const ResultTable& stacks) {
        std::string text;
        for (std::size_t row = 0; row < stacks.rows; ++row) {
            for (std::size_t i = 0; i < stacks.columns.size(); ++i)
                text += (i == 0 ? "" : " ") + result_text(stacks.cell(row, i));
            text += "\n";
        }
        return text;
    }

    CaptureArgument capture_;
    StackOptions options_;
    bool torch_ = false;
    std::string by_ = "name";
    OutputArgument output_;
    ResultArgument result_{.verb = "stacks", .table = "stacks", .row = "stack"};
};

}  // namespace

MAREY_VERB(stacks, StacksVerb)

}  // namespace marey::cli
