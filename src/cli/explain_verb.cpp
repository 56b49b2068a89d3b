// explain_verb.cpp: marey explain: what stands out in a recording, and what to do about it.
#include <marey/findings.h>
#include <marey/results.h>

#include "cli/finding_line.h"
#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class ExplainVerb final : public Verb {
  public:
    const char* help() const override { return "Say what stands out, largest possible gain first"; }
    const char* details() const override {
        return "Each finding has its evidence, the largest possible gain, how certain it is, what to do, "
               "and\n"
               "the command that shows more. certain: a sum of what was recorded; likely: the gain may be\n"
               "much smaller; possible: there may be a reason that a trace cannot show. If nothing stands\n"
               "out, it says so. docs/guide/explain.md lists the rules and their thresholds. The main table\n"
               "is findings in docs/reference/results.md.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.text(about_, "--for", "NAME", "Only findings that mention NAME (ignoring case)");
        options.text(step_, "--step-name", "PATTERN",
                     "Ranges to use as steps; * matches any text (ProfilerStep#*)");
        output_.declare(options);
    }
    int run() override {
        output_.check();
        const Trace trace = capture_.load();
        std::vector<Finding> findings = [&] {
            const Progress progress("looking for findings");
            return explain(trace, {.about = about_, .step_name = step_});
        }();
        for (Finding& finding : findings) {
            const std::size_t place = finding.command.find("FILE");
            if (place != std::string::npos) finding.command.replace(place, 4, shell_word(capture_.file()));
        }
        const Result result = findings_result(trace, findings);
        return output_.print(result, [&] {
            if (output_.chooses()) return output_.lines(result.table("findings"), standard_output());
            return text(findings);
        });
    }

  private:
    std::string text(const std::vector<Finding>& findings) const {
        if (findings.empty())
            return about_.empty() ? "nothing stands out\n"
                                  : fmt::format("nothing about '{}' stands out\n", printable(about_));
        const std::uint64_t limit = output_.limit.value_or(output_.usual_limit);
        std::string text;
        std::size_t shown = 0;
        for (const Finding& finding : findings) {
            if (limit > 0 && shown == limit) break;
            text += one(++shown, finding);
        }
        if (shown < findings.size())
            text += fmt::format("... and {} (--limit 0 shows all)\n",
                                format_plural(findings.size() - shown, "more finding"));
        return text;
    }

    std::string one(std::size_t number, const Finding& finding) const {
        std::string text = styled(terminal_, finding.is_fault ? Style::Red : Style::Bold,
                                  fmt::format("{}. {}", number, finding_line(finding))) +
                           "\n";
        for (const FindingEvidence& each : finding.evidence) {
            std::string numbers = each.count >= 0 ? format_count(static_cast<std::uint64_t>(each.count)) : "";
            const auto add = [&](const std::string& number_text) {
                numbers += (numbers.empty() ? "" : ", ") + number_text;
            };
            if (each.time_ns >= 0) add(format_duration(each.time_ns));
            if (each.bytes >= 0) add(format_bytes(static_cast<double>(each.bytes)));
            text += "     " + printable(each.text) + (numbers.empty() ? "" : ": " + numbers) + "\n";
        }
        const auto line = [&](const char* title, const std::string& value) {
            text += "   " + styled(terminal_, Style::Dim, fmt::format("{:<5}", title)) + value + "\n";
        };
        line("do", finding.advice);
        line("see", printable(finding.command));
        return text + "\n";
    }

    CaptureArgument capture_;
    std::string about_, step_;
    Terminal terminal_ = standard_output();
    ResultArgument output_{.verb = "explain", .table = "findings", .usual_limit = 10, .row = "finding"};
};

}  // namespace

MAREY_VERB(explain, ExplainVerb)

}  // namespace marey::cli
