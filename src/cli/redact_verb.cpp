// redact_verb.cpp: marey redact: writes a capture without what must not be shared.
#include <marey/redact.h>

#include "cli/output_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class RedactVerb final : public Verb {
  public:
    const char* help() const override { return "Write a capture without values, arguments and user names"; }
    const char* details() const override {
        return "Leaves out the values of ranges, command lines, host names, metadata and the names of\n"
               "home folders, so that the file can be mailed. Times, function names, files and lines\n"
               "stay: read 'marey report' of the result before you send it. To not record values and\n"
               "command lines at all, use marey run --no-values --no-command-line.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.flag(keep_values_, "--keep-values", "Keep the values of ranges and instants");
        output_.declare(options, "Output file (FILE with .redacted.marey)");
    }
    int run() override {
        std::string& path = output_.path;
        if (path.empty()) path = without_suffix(capture_.file()) + ".redacted.marey";
        output_.check([&] { return capture_.paths(); });
        Redaction redaction;
        redaction.values = !keep_values_;
        const Trace trace = redact(capture_.load(), redaction);
        {
            const Progress progress("writing " + path);
            trace.save(path);
        }
        print_error(fmt::format("{}: {}\n", printable(path), format_plural(trace.ranges().size(), "range")));
        return kSuccess;
    }

  private:
    CaptureArgument capture_;
    OutputArgument output_;
    bool keep_values_ = false;
};

}  // namespace

MAREY_VERB(redact, RedactVerb)

}  // namespace marey::cli
