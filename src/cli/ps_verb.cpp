// ps_verb.cpp: marey ps: the programs that are being recorded.
#include <marey/live.h>
#include <marey/results.h>

#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr std::size_t kLogBytes = std::size_t{64} << 10;  // the time of the last event is in it

class PsVerb final : public Verb {
  public:
    const char* help() const override { return "List the programs that are being recorded"; }
    const char* details() const override {
        return "All processes of this user that write a capture, whoever started them; for root, of all "
               "users.\n"
               "marey now shows what they are doing. The table is now_processes in "
               "docs/reference/results.md.";
    }
    void declare(Options& options) override { output_.declare(options); }
    int run() override {
        output_.check();
        Result result = make_result({}, "now");
        for (const RecordedProcess& process : recorded_processes()) {
            try {
                const Trace trace = load_newest(process.capture, {.log_bytes = kLogBytes});
                result.tables[0].append(now_result(trace, process.capture).tables[0]);
            } catch (const Error& error) {  // it may have ended meanwhile
                print_error(fmt::format("marey: skipped: {}\n", printable(error.what())));
            }
        }
        return output_.print(result, [&] {
            const std::string lines = output_.lines(result.tables[0], standard_output());
            return lines.empty() ? "no program is being recorded\n" : lines;
        });
    }

  private:
    ResultArgument output_{.verb = "ps", .table = "now_processes", .row = "process", .result = "now"};
};

}  // namespace

MAREY_VERB(ps, PsVerb)

}  // namespace marey::cli
