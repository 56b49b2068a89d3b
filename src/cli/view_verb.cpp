// view_verb.cpp: marey view: shows traces in the browser.
#include <limits>

#include "cli/browser.h"
#include "cli/capture_files.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class ViewVerb final : public Verb {
  public:
    const char* help() const override { return "Show traces in the browser: timeline, flame graph, tables"; }
    const char* details() const override {
        return "Prints the address of the page, opens it, and serves it until Ctrl-C. The server listens on\n"
               "the loopback interface only, and the address contains a secret. On a remote machine, use\n"
               "--no-browser and the ssh command that is printed. With files of two runs, the page shows "
               "both,\n"
               "one above the other. The page shows source files only from the working directory and "
               "--source.";
    }
    void declare(Options& options) override {
        declare_files(options, files_, from_);
        options.flag(is_alone_, "--alone", "Show only FILE, not the other processes of its run");
        options.number(port_, "--port", "Port to listen on (any free port)");
        options.flag(no_browser_, "--no-browser", "Do not open a browser");
        options.flag(no_cache_, "--no-cache", "Read a large file again instead of keeping a copy of it");
        options.texts(sources_, "--source", "DIR", "Show source files below DIR too; repeatable");
    }
    int run() override {
        if (port_.value_or(0) > std::numeric_limits<std::uint16_t>::max())
            throw Error("view: invalid port " + std::to_string(*port_) + ": expected 1 to 65535");
        std::vector<ViewSource> traces = sources();
        if (traces.size() > 2)
            throw Error("view: expected captures of one or two runs, got " + std::to_string(traces.size()) +
                        " (to see more on one timeline, merge them first: marey merge -o all.marey FILES)");
        ViewOptions options{.port = static_cast<std::uint16_t>(port_.value_or(0)), .source_dirs = sources_};
        show_in_browser(std::move(traces), options, !no_browser_);
        return kSuccess;
    }

  private:
    /// One for each run, in the order given; files that name no run are traces of their own.
    std::vector<ViewSource> sources() const {
        std::vector<ViewSource> traces;
        if (!from_.empty()) {
            for (const std::string& file : files_) traces.push_back(file_source(file, from_, !no_cache_));
            return traces;
        }
        for (const std::vector<std::string>& run : runs_of(capture_paths(files_, is_alone_)))
            traces.push_back(run.size() == 1 ? file_source(run[0], "", !no_cache_) : merged_source(run));
        return traces;
    }

    std::vector<std::string> files_;
    bool is_alone_ = false;
    std::string from_;
    std::optional<std::uint64_t> port_;
    bool no_browser_ = false;
    bool no_cache_ = false;
    std::vector<std::string> sources_;
};

}  // namespace

MAREY_VERB(view, ViewVerb)

}  // namespace marey::cli
