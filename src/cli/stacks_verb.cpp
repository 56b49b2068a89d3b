// stacks_verb.cpp: marey stacks: folded stacks, for flame graphs.
#include <marey/error.h>
#include <marey/export.h>

#include "cli/capture_argument.h"
#include "cli/footer.h"
#include "cli/progress.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class StacksVerb final : public Verb {
  public:
    const char* help() const override { return "Folded stacks, for flame graphs"; }
    const char* details() const override {
        return "One line per path: its entries joined by ';', a space, a number. Times are nanoseconds, or "
               "microseconds\n"
               "with --torch, which prints what PyTorch's export_stacks does: the Python functions around "
               "each "
               "operator,\n"
               "without its name, equal stacks added up. Device time counts where it was launched.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.choice(options_.metric, "--metric", stack_metrics(), "What to add up");
        options.flag(torch_, "--torch", "Python's stacks, in microseconds");
        options.flag(options_.append_name, "--append-name", "With --torch: the operator's name comes last");
        options.choice(by_, "--by", {"name", "thread"}, "With thread, the first entry is the thread");
        options.text(output_, "-o,--output", "FILE", "Where to (standard output)");
    }
    int run() override {
        if (options_.append_name && !torch_) throw Error("stacks: --append-name goes with --torch");
        options_.by_thread = by_ == "thread";
        if (torch_) {
            options_.frames = StackFrames::Python;
            options_.microseconds = true;
        }
        const Trace trace = capture_.load();
        const bool to_stdout = output_.empty() || output_ == "-";
        std::size_t count = 0;
        if (to_stdout) {
            const std::vector<FoldedStack> stacks = fold_stacks(trace, options_);
            count = stacks.size();
            std::string text;
            for (const FoldedStack& stack : stacks)
                text += stack.stack + " " + std::to_string(stack.value) + "\n";
            write_out(text);
        } else {
            const Progress progress("writing " + output_);
            count = write_stacks(trace, output_, options_);
        }
        if (count == 0)
            print_error("marey: no stacks: no range " + std::string(torch_ ? "with a stack of Python " : "") +
                        "has any " + options_.metric + "\n");
        print_error(problem_lines(trace, standard_error()));
        return kSuccess;
    }

  private:
    CaptureArgument capture_;
    StackOptions options_;
    bool torch_ = false;
    std::string by_ = "name";
    std::string output_;
};

}  // namespace

std::unique_ptr<Verb> make_stacks_verb() {
    return std::make_unique<StacksVerb>();
}

}  // namespace marey::cli
