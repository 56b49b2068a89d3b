// symbolize_verb.cpp: marey symbolize: names for the native frames of the stacks in a capture.
#include <fmt/format.h>

#include <filesystem>

#include <marey/error.h>
#include <marey/symbolize.h>

#include "cli/capture_argument.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text_format.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

std::string frames_table(const SymbolizedTrace& symbolized, const Terminal& terminal) {
    Table table({{"Place", true, true}, {"Frame", true}});
    for (const NamedFrame& frame : symbolized.frames) {
        std::string place = printable(frame.place);
        for (const std::string& entry : frame.entries) {
            const std::string known = frame.place + ": ";  // not twice in one line
            const bool has_place = entry.compare(0, known.size(), known) == 0;
            table.add({place, printable(has_place ? entry.substr(known.size()) : entry)});
            place.clear();
        }
        if (frame.entries.empty()) table.add({place, "??"}, Style::Dim);
    }
    return table.text(terminal);
}

std::string modules_text(const SymbolizedTrace& symbolized) {
    std::string text;
    for (const NativeModule& module : symbolized.modules) {
        const std::string id = module.build_id.empty() ? "no build id" : "build id " + module.build_id;
        text += fmt::format("{} ({}): {} of {} named", printable(module.path), id, module.named,
                            format_plural(module.frames, "frame"));
        if (!module.file.empty() && module.file != module.path)
            text += fmt::format(", from {}", printable(module.file));
        if (module.file.empty()) {
            text += fmt::format("; missing: {}", printable(module.trouble));
        } else if (!module.trouble.empty()) {
            text += fmt::format("; {}", printable(module.trouble));
        }
        text += "\n";
    }
    return text;
}

class SymbolizeVerb final : public Verb {
  public:
    const char* help() const override { return "Name the native frames of the stacks in a capture"; }
    const char* details() const override {
        return "Ranges carry stacks where the program asked for them (record_function(..., stack=\"both\"), "
               "marey::CallStack).\n"
               "Files are found by their build id (DIR/.build-id/ab/cdef.debug), path or name below each "
               "--debug-dir, then at\n"
               "the path where the program had them, then below /usr/lib/debug. One with another build id is "
               "not used.\n"
               "With -o the trace is written with the names in its stacks; without, they are listed.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.texts(folders_, "--debug-dir", "DIR",
                      "Where programs, libraries or their debug files are (again for more)");
        options.text(output_, "-o,--output", "FILE", "Write the trace with the names, as a saved trace");
    }
    int run() override {
        for (const std::string& folder : folders_) {
            std::error_code ignored;
            if (!std::filesystem::is_directory(folder, ignored)) throw Error(folder + ": is no folder");
        }
        std::error_code ignored;
        if (!output_.empty() && std::filesystem::equivalent(capture_.file, output_, ignored))
            throw Error(output_ + ": is the file to read; -o names another");
        const Trace trace = capture_.load();
        SymbolizedTrace symbolized;
        {
            const Progress progress("naming frames");
            symbolized = symbolize_trace(trace, folders_);
        }
        std::string text;
        if (symbolized.frames.empty()) {
            text = "no native frames\n";
        } else if (output_.empty()) {
            text = frames_table(symbolized, standard_output()) + "\n";
        }
        if (!output_.empty()) {
            symbolized.trace.save(output_);
            text += printable(output_) + "\n";
        }
        write_out(text + modules_text(symbolized));
        return kSuccess;
    }

  private:
    CaptureArgument capture_;
    std::vector<std::string> folders_;
    std::string output_;
};

}  // namespace

std::unique_ptr<Verb> make_symbolize_verb() {
    return std::make_unique<SymbolizeVerb>();
}

}  // namespace marey::cli
