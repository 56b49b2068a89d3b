// sql_verb.cpp: marey sql: runs SQL over a trace or a lake, on DuckDB in the Python package.
#include "cli/query_options.h"

namespace marey::cli {
namespace {

class SqlVerb final : public Verb {
  public:
    const char* help() const override { return "Run SQL over a capture or a lake of runs"; }
    const char* details() const override {
        return "Without a query, opens a prompt. Runs on DuckDB (pip install duckdb pyarrow), which has no\n"
               "access to files and the network here. A lake is a folder written by\n"
               "marey export --to parquet. docs/guide/sql.md describes tables and functions.\n\n"
               "Examples:\n"
               "  marey sql app.marey \"select name, count(*) n from ranges group by all order by n desc\"\n"
               "  marey sql app.marey --tables\n"
               "  marey sql lake/ -f query.sql --format csv -o result.csv";
    }
    void declare(Options& options) override {
        options.required(shared_.path, "FILE", "Marey capture, a trace written by another tool, or a lake");
        options.optional(query_, "QUERY", "SQL to run; several statements are separated by ;");
        options.text(file_, "-f,--file", "FILE", "Read the SQL from a file (-: standard input)");
        options.flag(tables_, "--tables", "List the tables and their columns");
        shared_.declare(options);
    }
    int run() override {
        if (!query_.empty() && !file_.empty()) throw Error("sql: QUERY and --file are mutually exclusive");
        return shared_.run();
    }

  private:
    std::string query_, file_;
    bool tables_ = false;
    QueryOptions shared_;
};

}  // namespace

MAREY_VERB(sql, SqlVerb)

}  // namespace marey::cli
