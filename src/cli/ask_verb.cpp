// ask_verb.cpp: marey ask: answers a ready-made question about a trace or a lake, on DuckDB or Spark.
#include <marey/error.h>

#include "cli/python_program.h"
#include "cli/query_options.h"
#include "cli/verb.h"

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
        options.optional(path_, "FILE", "Marey capture, a trace written by another tool, or a lake");
        options.flag(list_, "--list", "List the questions");
        options.texts(parameters_, "-p,--parameter", "NAME=VALUE",
                      "Set a parameter of the question; repeatable");
        options.choice(engine_, "--engine", {"duckdb", "spark"}, "Engine to use (duckdb); spark reads lakes");
        options.text(remote_, "--remote", "URL", "Spark Connect server, such as sc://host (local mode)");
        options.flag_or_text(print_, "--print-sql", "duckdb", "DIALECT",
                             "Print the SQL, translated to a dialect of sqlglot, and stop");
        query_options_.declare(options);
    }
    int run() override {
        if (question_.empty() && !list_) throw Error("ask: no question given (see marey ask --list)");
        if (path_.empty() && !list_ && print_.empty())
            throw Error("ask: no capture or lake given (see marey ask --help)");
        if (!remote_.empty() && engine_ != "spark") throw Error("ask: --remote needs --engine spark");
        std::vector<std::string> words{"ask"};
        if (list_) words.emplace_back("--list");
        for (const std::string& parameter : parameters_) append_option(words, "--parameter", parameter);
        append_option(words, "--engine", engine_);
        append_option(words, "--remote", remote_);
        append_option(words, "--print-sql", print_);
        query_options_.append_to(words, path_);
        words.insert(words.end(), {"--", question_, path_});
        become_sql_command(words);
    }

  private:
    std::string question_, path_;
    bool list_ = false;
    std::vector<std::string> parameters_;
    std::string engine_, remote_, print_;
    QueryOptions query_options_;
};

}  // namespace

std::unique_ptr<Verb> make_ask_verb() {
    return std::make_unique<AskVerb>();
}

}  // namespace marey::cli
