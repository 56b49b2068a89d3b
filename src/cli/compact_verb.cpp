// compact_verb.cpp: marey compact: rewrites a capture in fewer bytes.
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include <marey/export.h>

#include "cli/capture_files.h"
#include "cli/output_argument.h"
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
        output_.declare(options, "Output file (the capture's name with .compact.marey)");
    }
    int run() override {
        std::string& path = output_.path;
        if (is_folder(file_)) {
            if (!path.empty()) throw Error("compact: a lake is rewritten in place: no -o");
            return kRunInPython;
        }
        if (path.empty()) path = without_suffix(file_) + ".compact.marey";
        const std::uint64_t before = file_bytes(file_);
        output_.check([&] { return std::vector{file_}; });
        {
            const Progress progress("writing " + path);
            compact_capture(file_, path);
        }
        const std::uint64_t after = file_bytes(path);
        std::string text =
            fmt::format("{}: {} -> {}", printable(path), format_bytes(before), format_bytes(after));
        const Progress progress("reading " + path);
        const std::uint64_t ranges = Trace::load(path).ranges().size();
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
    OutputArgument output_;
};

}  // namespace

MAREY_VERB(compact, CompactVerb)

}  // namespace marey::cli
