// validate_verb.cpp: marey validate: checks that a file keeps the rules that tools rely on.
#include <marey/validate.h>

#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr int kViolations = 1;

class ValidateVerb final : public Verb {
  public:
    const char* help() const override { return "Check a trace of any format: nesting, arrows, ids, JSON"; }
    const char* details() const override {
        return "The exit code is 0 if nothing was found and 1 otherwise.";
    }
    void declare(Options& options) override {
        declare_file(options, file_, from_);
        options.flag(json_, "--json", "Print the violations as JSON");
        options.flag(rules_, "--rules", "List every rule with its number of violations too");
    }
    int run() override {
        std::vector<Violation> violations;
        {
            const Progress progress("checking " + file_);
            violations = validate_file(file_, from_);
        }
        if (json_) {
            write_data(violations_json(violations, file_));
        } else {
            show(violations);
        }
        return violations.empty() ? kSuccess : kViolations;
    }

  private:
    void show(const std::vector<Violation>& violations) {
        const Terminal terminal = standard_output();
        std::string text;
        if (rules_) {
            for (const ValidationRule& rule : validation_rules()) {
                std::uint64_t count = 0;
                for (const Violation& violation : violations) {
                    if (violation.rule == rule.name) count = violation.count;
                }
                text += fmt::format("{:<24}{:>10}  {}\n", rule.name, format_count(count), rule.text);
            }
            text += "\n";
        }
        for (const Violation& violation : violations) {
            text += styled(terminal, Style::Red, violation.rule) +
                    fmt::format(": {}; first: {}\n", format_plural(violation.count, "violation"),
                                printable(violation.example));
        }
        if (violations.empty()) text += fmt::format("{}: no violations\n", printable(file_));
        write_out(text);
    }

    std::string file_;
    std::string from_;
    bool json_ = false;
    bool rules_ = false;
};

}  // namespace

MAREY_VERB(validate, ValidateVerb)

}  // namespace marey::cli
