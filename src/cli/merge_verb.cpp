// merge_verb.cpp: marey merge: writes captures of several processes as one trace.
#include <unistd.h>

#include <marey/merge.h>

#include "cli/output_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class MergeVerb final : public Verb {
  public:
    const char* help() const override { return "Merge captures of several processes into one trace"; }
    const char* details() const override {
        return "FILE may be a folder, which stands for the captures in it. Other verbs merge the captures "
               "of\n"
               "one run by themselves; this verb also merges captures of different runs. Captures of one\n"
               "machine share a clock. The clocks of several machines are fitted, from clock exchanges,\n"
               "messages and collectives, and the output states the largest error. Files that cannot be\n"
               "read are named and left out.";
    }
    void declare(Options& options) override {
        options.required(files_, "FILE", "Marey captures, saved traces, or folders of them");
        output_.declare(options, "File to write");
    }
    int run() override {
        const std::string& path = output_.path;
        if (path.empty()) throw Error("merge: -o FILE is missing");
        output_.check([&] { return capture_paths(files_, false); });
        const MergedCaptures merged = read();
        for (const LeftOutFile& file : merged.left_out)
            print_error(
                fmt::format("marey: left out {}: {}\n", printable(file.path), printable(file.reason)));
        {
            const Progress progress("writing " + path);
            merged.trace.save(path);
        }
        const WindowInfo& window = merged.trace.window();
        write_out(fmt::format("{}: {}, {} in {}, {}\n", printable(path),
                              format_plural(merged.trace.processes().size(), "process"),
                              format_plural(merged.trace.ranges().size(), "range"),
                              format_duration(window.end_ns - window.start_ns), format_file_size(path)));
        if (const std::string hosts = hosts_fact(merged.trace); !hosts.empty())
            write_out(fmt::format("{:<9} {}\n", "clock", hosts));
        for (const ProblemInfo& problem : merged.trace.problems()) {
            if (problem.code.starts_with("clock_"))
                print_error(fmt::format("marey: {}\n", printable(problem.text)));
        }
        return kSuccess;
    }

  private:
    MergedCaptures read() const {
        const std::vector<std::string> paths = capture_paths(files_, false);
        const Progress progress("reading " + format_plural(paths.size(), "capture"));
        return load_merged(paths, {.any_tree = true});
    }

    std::vector<std::string> files_;
    OutputArgument output_;
};

}  // namespace

MAREY_VERB(merge, MergeVerb)

}  // namespace marey::cli
