// snapshot_verb.cpp: marey snapshot: writes what a running program has recorded as a capture.
#include <marey/live.h>

#include "cli/capture_files.h"
#include "cli/output_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class SnapshotVerb final : public Verb {
  public:
    const char* help() const override { return "Write what a running program has recorded as a capture"; }
    const char* details() const override {
        return "WHAT is the number of a process, or its capture. The program goes on and takes no part in "
               "this.\n"
               "Ranges that are open are in the capture, unfinished. A program that hangs, and a capture of "
               "one\n"
               "that died, can be read as well.";
    }
    void declare(Options& options) override {
        options.required(what_, "WHAT", "Process or capture");
        options.text(last_, "--last", "TIME", "Only what ended in this time, such as 30s (everything)");
        output_.declare(options, "Output file (the capture's name with .snapshot.marey)");
    }
    int run() override {
        const std::int64_t last_ns = last_.empty() ? 0 : parsed_time("--last", last_);
        const std::vector<std::string> paths = with_captures_of_processes({what_});
        require_files(paths);
        if (paths.size() > 1)
            throw Error("snapshot: process " + what_ + " writes " + paths[0] + " and " + paths[1] +
                        ": choose one of them");
        if (is_folder(paths[0])) throw Error(paths[0] + ": is a folder; choose a capture in it");
        std::string& out = output_.path;
        if (out.empty()) out = without_suffix(paths[0]) + ".snapshot.marey";
        output_.check([&] { return std::vector{paths[0]}; });
        {
            const Progress progress("writing " + out);
            write_snapshot(paths[0], out, {.log_bytes = 0, .last_ns = last_ns});
        }
        const Progress progress("reading " + out);
        const std::uint64_t ranges = Trace::load(out).ranges().size();
        write_out(fmt::format("{}: {}, {}\n", printable(out), format_plural(ranges, "range"),
                              format_file_size(out)));
        return kSuccess;
    }

  private:
    std::string what_, last_;
    OutputArgument output_;
};

}  // namespace

MAREY_VERB(snapshot, SnapshotVerb)

}  // namespace marey::cli
