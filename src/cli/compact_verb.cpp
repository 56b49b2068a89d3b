// compact_verb.cpp: marey compact: rewrites a capture in fewer bytes.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include <marey/error.h>
#include <marey/export.h>

#include "cli/capture_argument.h"
#include "cli/capture_files.h"
#include "cli/progress.h"
#include "cli/python_program.h"
#include "cli/terminal.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

std::uint64_t file_bytes(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) throw Error(path + ": " + std::strerror(errno));
    return static_cast<std::uint64_t>(info.st_size);
}

class CompactVerb final : public Verb {
  public:
    const char* help() const override {
        return "Rewrite a capture, or a lake of many small runs, more compactly";
    }
    const char* details() const override {
        return "A capture is written in fewer bytes, and a lake (marey export --to parquet) in fewer files: "
               "one\n"
               "for each table and day instead of one for each table and capture. Nothing is lost.";
    }
    void declare(Options& options) override {
        options.required(file_, "FILE", "Marey capture, or a lake");
        options.text(output_, "-o,--output", "FILE", "Output file (the capture's name with .compact.marey)");
    }
    int run() override {
        if (is_folder(file_)) {
            if (!output_.empty()) throw Error("compact: a lake is rewritten in place: no -o");
            become_sql_command({"compact", "--", file_});
        }
        if (output_.empty()) output_ = without_suffix(file_) + ".compact.marey";
        const std::uint64_t before = file_bytes(file_);
        {
            const Progress progress("writing " + output_);
            compact_capture(file_, output_);
        }
        const std::uint64_t after = file_bytes(output_);
        std::string text =
            fmt::format("{}: {} -> {}", printable(output_), format_bytes(before), format_bytes(after));
        const Progress progress("reading " + output_);
        const std::uint64_t ranges = Trace::load(output_).ranges().size();
        if (ranges > 0) {
            text += fmt::format(", {:.2f} bytes per range ({})",
                                static_cast<double>(after) / static_cast<double>(ranges),
                                format_plural(ranges, "range"));
        }
        write_out(text + "\n");
        return kSuccess;
    }

  private:
    std::string file_;
    std::string output_;
};

}  // namespace

std::unique_ptr<Verb> make_compact_verb() {
    return std::make_unique<CompactVerb>();
}

}  // namespace marey::cli
