// symbolize_verb.cpp: marey symbolize: finds the names of the native frames in a capture's stacks.
#include <filesystem>

#include <marey/symbolize.h>

#include "cli/output_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

std::string frames_table(const SymbolizedTrace& symbolized, const Terminal& terminal) {
    Table table({{"Place", true, true}, {"Frame", true}});
    for (const NamedFrame& frame : symbolized.frames) {
        std::string place = printable(frame.place);
        for (const std::string& entry : frame.entries) {
            const std::string prefix = frame.place + ": ";  // shown in the first column already
            const bool has_place = entry.compare(0, prefix.size(), prefix) == 0;
            table.add({place, printable(has_place ? entry.substr(prefix.size()) : entry)});
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
    const char* help() const override { return "Name the native frames in a capture's stacks"; }
    const char* details() const override {
        return "Ranges have stacks if the program requested them (record_function(..., stack=\"both\"),\n"
               "marey::CallStack). Files are looked up by build id (DIR/.build-id/ab/cdef.debug), path\n"
               "or name below each --debug-dir, then at the path that the program loaded them from, then\n"
               "below /usr/lib/debug. Files with a different build id are not used. With -o, the trace\n"
               "is written with the names in its stacks; otherwise the names are listed.";
    }
    void declare(Options& options) override {
        capture_.declare(options);
        options.texts(folders_, "--debug-dir", "DIR",
                      "Folder with programs, libraries or their debug files; repeatable");
        output_.declare(options, "Write a saved trace with the names to this file");
    }
    int run() override {
        for (const std::string& folder : folders_) {
            std::error_code ignored;
            if (!std::filesystem::is_directory(folder, ignored)) throw Error(folder + ": is not a folder");
        }
        const std::string& path = output_.path;
        output_.check([&] { return capture_.paths(); });
        const Trace trace = capture_.load();
        SymbolizedTrace symbolized;
        {
            const Progress progress("naming frames");
            symbolized = symbolize_trace(trace, folders_);
        }
        std::string text;
        if (symbolized.frames.empty()) {
            text = "no native frames\n";
        } else if (path.empty()) {
            text = frames_table(symbolized, standard_output()) + "\n";
        }
        if (!path.empty()) {
            symbolized.trace.save(path);
            text += printable(path) + "\n";
        }
        write_out(text + modules_text(symbolized));
        return kSuccess;
    }

  private:
    CaptureArgument capture_;
    std::vector<std::string> folders_;
    OutputArgument output_;
};

}  // namespace

MAREY_VERB(symbolize, SymbolizeVerb)

}  // namespace marey::cli
