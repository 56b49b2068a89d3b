// ask_verb.cpp: marey ask: answers a ready-made question about a trace or a lake, on DuckDB or Spark.
#include "cli/query_options.h"

namespace marey::cli {
namespace {

class AskVerb final : public Verb {
  public:
    const char* help() const override { return "Answer a ready-made question about one or many runs"; }
    const char* details() const override {
        return "A question is a file of SQL that runs unchanged on DuckDB (pip install duckdb pyarrow) and\n"
               "on Spark (pip install \"pyspark[connect]\", and a Java runtime).\n\n"
               "Examples:\n"
               "  marey ask --list\n"
               "  marey ask slow_steps app.marey\n"
               "  marey ask slow_steps lake/ -p top=5\n"
               "  marey ask slow_steps lake/ --engine spark --remote sc://host\n"
               "  marey ask slow_steps --print-sql=trino";
    }
    void declare(Options& options) override {
        options.optional(question_, "QUESTION", "Name of a question, or a file x.sql");
        options.optional(shared_.path, "FILE", "Marey capture, a trace written by another tool, or a lake");
        options.flag(list_, "--list", "List the questions");
        options.texts(parameters_, "-p,--parameter", "NAME=VALUE",
                      "Set a parameter of the question; repeatable");
        options.choice(engine_, "--engine", {"duckdb", "spark"}, "Engine to use (duckdb); spark reads lakes");
        options.text(remote_, "--remote", "URL", "Spark Connect server, such as sc://host (local mode)");
        options.flag_or_text(print_, "--print-sql", "duckdb", "DIALECT",
                             "Print the SQL, translated to a dialect of sqlglot, and stop");
        shared_.declare(options);
    }
    int run() override {
        if (question_.empty() && !list_) throw Error("ask: no question given (see marey ask --list)");
        if (shared_.path.empty() && !list_ && print_.empty())
            throw Error("ask: no capture or lake given (see marey ask --help)");
        if (!remote_.empty() && engine_ != "spark") throw Error("ask: --remote needs --engine spark");
        return shared_.run();
    }

  private:
    std::string question_, engine_, remote_, print_;
    bool list_ = false;
    std::vector<std::string> parameters_;
    QueryOptions shared_;
};

}  // namespace

MAREY_VERB(ask, AskVerb)

}  // namespace marey::cli
