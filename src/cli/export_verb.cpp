// export_verb.cpp: marey export: writes a capture in the format of another tool.
#include <sys/stat.h>

#include <csignal>

#include <marey/export.h>

#include "cli/output_argument.h"
#include "cli/sample_text.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

constexpr const char* kParquet = "parquet";  // written by the Python package

std::string format_list() {
    std::string text;
    for (const FileFormat& format : file_formats()) {
        if (format.write == nullptr) continue;
        text += fmt::format("  {:<11}{:<18}{}\n", format.name, format.suffixes.front(), format.description);
    }
    return text;
}

class ExportVerb final : public Verb {
  public:
    const char* help() const override { return "Write a capture in the format of another tool"; }
    const char* details() const override {
        static const std::string text =
            format_list() +
            "\nIf the output name ends in .gz, the file is compressed; -o - writes to standard output.\n"
            "See marey stacks for more ways to fold stacks.\n\n"
            "--to parquet adds all given captures as one run to the lake in the folder -o, for marey\n"
            "sql, marey ask and other engines (pip install duckdb pyarrow); exporting a run again\n"
            "replaces it.";
        return text.c_str();
    }
    void declare(Options& options) override {
        capture_.declare(options);
        capture_.declare_filter(options);
        std::vector<std::string> names;
        for (const FileFormat& format : file_formats()) {
            if (format.write != nullptr) names.emplace_back(format.name);
        }
        names.emplace_back(kParquet);
        options.choice(format_, "--to", names, "Output format (from the output's suffix, otherwise chrome)");
        std::vector<std::string> tables;
        for (const std::string_view table : table_names()) tables.emplace_back(table);
        options.choice(table_, "--table", tables, "Table to write as csv (ranges)");
        options.text(min_duration_, "--min-duration", "TIME",
                     "Leave out shorter spans in otlp, such as 1ms (0)");
        output_.declare(options, "Output file (the capture's name with the format's suffix)");
        options.text(run_, "--run", "ID", "Name of the run for parquet (start, program and a hash)");
    }
    int run() override {
        if (format_ == kParquet) {
            check_lake();
            return kRunInPython;
        }
        if (!run_.empty()) throw Error("--run: only supported for parquet");
        std::string& path = output_.path;
        const bool to_stdout = path == "-";
        if (format_.empty() && output_.is_standard_output()) format_ = table_.empty() ? "chrome" : "csv";
        const FileFormat& format = export_format(format_, path);
        if (!table_.empty() && format.name != "csv")
            throw Error("--table: only supported for csv, not for " + std::string(format.name));
        if (!min_duration_.empty() && format.name != "otlp")
            throw Error("--min-duration: only supported for otlp, not for " + std::string(format.name));
        if (path.empty()) {
            path = without_suffix(capture_.file());
            if (!table_.empty()) path += "." + table_;
            path += format.suffixes.front();
        }
        output_.check([&] { return capture_.paths(); });
        if (to_stdout && standard_output().is_terminal)
            throw Error(
                "export: standard output is a terminal, and the file may contain control characters; "
                "name a file with -o or redirect the output");
        if (to_stdout) std::signal(SIGPIPE, SIG_DFL);  // end quietly when the reader closes the pipe
        if (format.name == "marey") capture_.show_importlib = true;  // it keeps the whole trace
        const Trace trace = capture_.filtered(with_function_names(capture_.load()));
        std::string written = table_.empty() || table_ == "ranges"
                                  ? format_plural(trace.ranges().size(), "range")
                                  : "table " + table_;
        {
            const Progress progress("writing " + path);
            const std::string target = to_stdout ? "/dev/stdout" : path;
            if (!table_.empty()) {
                write_csv(trace, target, table_);
            } else if (format.name == "chrome") {
                write_chrome_json(trace, target, ChromeStyle::Viewer);
            } else if (format.name == "otlp") {
                written = format_plural(write_spans(trace, target), "span");
            } else if (format.name == "pprof") {
                if (const std::uint32_t depth = write_pprof(trace, target); depth != 0)
                    print_error(
                        fmt::format("marey: stacks are cut after {}: deeper calls count for the last "
                                    "one\n",
                                    format_plural(depth, "level")));
            } else {
                format.write(trace, target);
            }
        }
        struct stat info {};
        if (!to_stdout && ::stat(path.c_str(), &info) == 0) {
            print_error(fmt::format("{}: {}{}\n", printable(path), written,
                                    S_ISREG(info.st_mode) ? ", " + format_bytes(info.st_size) : ""));
        }
        print_error(problem_lines(trace, standard_error()));
        return kSuccess;
    }

  private:
    /// Returns the number of spans, and says why there is none.
    std::uint64_t write_spans(const Trace& trace, const std::string& target) const {
        const bool has_limit = !min_duration_.empty();
        const std::uint64_t spans =
            write_otlp(trace, target, has_limit ? parsed_time("--min-duration", min_duration_) : 0);
        if (spans == 0 && trace.ranges().size() > 0)
            print_error(fmt::format(
                "marey: no spans: OTLP has the ranges that the program marks, steps and ranges of other "
                "processes, not calls{}\n",
                has_limit ? ", and --min-duration leaves out short ones" : ""));
        return spans;
    }

    /// Throws marey::Error for options that a lake does not have.
    void check_lake() const {
        if (output_.path.empty()) throw Error("export: name the lake's folder with -o");
        if (!table_.empty() || !capture_.exclude.empty() || !capture_.begin.empty() ||
            !capture_.end.empty() || capture_.process || capture_.rank)
            throw Error(
                "export: parquet has all processes, tables and ranges: no --process, --rank, --table, "
                "--exclude, --begin or --end");
    }

    CaptureArgument capture_;
    std::string run_;
    std::string format_;
    std::string table_;
    std::string min_duration_;
    OutputArgument output_;
};

}  // namespace

MAREY_VERB(export, ExportVerb)

}  // namespace marey::cli
