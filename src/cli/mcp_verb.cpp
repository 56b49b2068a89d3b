// mcp_verb.cpp: marey mcp: answers agents about traces; the Python package speaks the protocol.
#include "cli/capture_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class McpVerb final : public Verb {
  public:
    const char* help() const override { return "Answer the questions of agents about traces (MCP)"; }
    const char* details() const override {
        return "Speaks the Model Context Protocol on standard input and output (pip install \"marey[mcp]\"). "
               "All\n"
               "tools only read, and only these files. docs/guide/agents.md says how agents use them.\n\n"
               "Examples:\n"
               "  claude mcp add marey -- marey mcp app.marey\n"
               "  marey mcp old.marey new.marey --source src/";
    }
    void declare(Options& options) override {
        options.required(files_, "FILE", "Marey captures, traces written by other tools, or lakes");
        options.texts(source_, "--source", "FOLDER", "Show source code that lies in this folder; repeatable");
    }
    int run() override {
        require_files(with_captures_of_processes(files_));
        return kRunInPython;
    }

  private:
    std::vector<std::string> files_, source_;
};

}  // namespace

MAREY_VERB(mcp, McpVerb)

}  // namespace marey::cli
