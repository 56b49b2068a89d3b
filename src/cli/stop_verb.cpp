// stop_verb.cpp: marey stop: ends recordings that marey start has begun.
#include "cli/controlled.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class StopVerb final : public Verb {
  public:
    const char* help() const override { return "Stop what marey start has begun"; }
    void declare(Options& options) override { processes_.declare(options); }
    int run() override {
        int code = kSuccess;
        for (const std::int64_t pid : processes_.pids("stop")) {
            try {
                write_out(fmt::format("{}: wrote {}\n", pid, printable(stop_recording(pid))));
            } catch (const Error& error) {
                print_error(fmt::format("marey: stop: {}\n", printable(error.what())));
                code = kFailure;
            }
        }
        return code;
    }

  private:
    ControlledArgument processes_;
};

}  // namespace

MAREY_VERB(stop, StopVerb)

}  // namespace marey::cli
