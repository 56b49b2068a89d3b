// view_verb.cpp: marey view: shows traces in the browser.
#include <limits>

#include <marey/error.h>

#include "cli/browser.h"
#include "cli/capture_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class ViewVerb final : public Verb {
  public:
    const char* help() const override { return "Show traces in the browser: timeline, flame graph, tables"; }
    const char* details() const override {
        return "Prints the address of the page, opens it, and serves it until Ctrl-C. The server listens on\n"
               "the loopback interface only, and the address contains a secret. On a remote machine, use\n"
               "--no-browser and the ssh command that is printed. With two files, the page shows both, one\n"
               "above the other. The page shows source files only from the working directory and --source.";
    }
    void declare(Options& options) override {
        declare_files(options, files_, from_);
        options.number(port_, "--port", "Port to listen on (any free port)");
        options.flag(no_browser_, "--no-browser", "Do not open a browser");
        options.flag(no_cache_, "--no-cache", "Read a large file again instead of keeping a copy of it");
        options.texts(sources_, "--source", "DIR", "Show source files below DIR too; repeatable");
    }
    int run() override {
        if (files_.size() > 2) throw Error("view: expected one or two files");
        if (port_.value_or(0) > std::numeric_limits<std::uint16_t>::max())
            throw Error("view: invalid port " + std::to_string(*port_) + ": expected 1 to 65535");
        std::vector<ViewSource> traces;
        for (const std::string& file : files_) traces.push_back(file_source(file, from_, !no_cache_));
        ViewOptions options;
        options.port = static_cast<std::uint16_t>(port_.value_or(0));
        options.source_dirs = sources_;
        show_in_browser(std::move(traces), options, !no_browser_);
        return kSuccess;
    }

  private:
    std::vector<std::string> files_;
    std::string from_;
    std::optional<std::uint64_t> port_;
    bool no_browser_ = false;
    bool no_cache_ = false;
    std::vector<std::string> sources_;
};

}  // namespace

std::unique_ptr<Verb> make_view_verb() {
    return std::make_unique<ViewVerb>();
}

}  // namespace marey::cli
