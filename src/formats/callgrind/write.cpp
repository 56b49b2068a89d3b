// write.cpp: writes callgrind's profile format: the self time of each function, and its calls of others.
#include <map>
#include <utility>

#include <marey/export.h>
#include <marey/samples.h>

#include "base/output_file.h"
#include "base/utf8.h"
#include "formats/formats.h"
#include "formats/merged_functions.h"

namespace marey {
namespace {

/// Names end at the end of their line.
std::string one_line(std::string_view text) {
    std::string line;
    append_utf8(line, text);
    for (char& c : line) {
        if (static_cast<unsigned char>(c) < ' ') c = ' ';
    }
    return line;
}

class CallgrindProfile {
  public:
    CallgrindProfile(const Trace& trace, const std::string& path)
        : trace_(trace), merged_(merge_functions(trace)), file_(path) {}

    void write() {
        add_up();
        file_.write("# callgrind format\nversion: 1\ncreator: marey " MAREY_VERSION "\n");
        if (!trace_.processes().empty()) {
            const ProcessInfo& process = trace_.processes().front();
            file_.write("pid: " + std::to_string(process.pid) + "\n");
            const StringId command = process.command_line != 0 ? process.command_line : process.name;
            file_.write("cmd: " + one_line(trace_.string(command)) + "\n");
        }
        file_.write("positions: line\nevent: ns : Wall time in nanoseconds\nevents: ns\nsummary: " +
                    std::to_string(total_ns_) + "\n");
        auto call = calls_.begin();
        for (std::uint32_t function = 0; function < self_.size(); ++function) {
            if (!is_called_[function]) continue;
            const std::string line = line_of(function);
            file_.write("\nfl=" + file_name(function) + "\nfn=" + function_name(function) + "\n" + line +
                        " " + std::to_string(self_[function]) + "\n");
            for (; call != calls_.end() && call->first.first == function; ++call) {
                const std::uint32_t callee = call->first.second;
                file_.write("cfi=" + file_name(callee) + "\ncfn=" + function_name(callee) +
                            "\ncalls=" + std::to_string(call->second.count) + " " + line_of(callee) + "\n" +
                            line + " " + std::to_string(call->second.total_ns) + "\n");
            }
        }
        file_.commit();
    }

  private:
    struct Calls {
        std::uint64_t count = 0;
        std::int64_t total_ns = 0;
    };

    void add_up() {
        self_.resize(merged_.functions.size());
        is_called_.resize(merged_.functions.size());
        for (const PathTree::Node& node : merged_.ranges.tree.nodes) {
            if (!is_host_call(node)) continue;
            is_called_[node.slot] = true;
            self_[node.slot] += node.self_ns;
            total_ns_ += node.self_ns;
            if (node.parent == kNoRow) continue;
            Calls& calls = calls_[{merged_.ranges.tree.nodes[node.parent].slot, node.slot}];
            calls.count += node.count;
            calls.total_ns += node.total_ns;
        }
    }

    std::string line_of(std::uint32_t function) const {
        return std::to_string(merged_.functions[function].line);
    }
    /// The format's short form: a number, with the name where it occurs first.
    static std::string numbered(std::map<std::string_view, std::uint32_t>& known, std::string_view name) {
        const auto [place, is_new] = known.try_emplace(name, static_cast<std::uint32_t>(known.size() + 1));
        const std::string number = "(" + std::to_string(place->second) + ")";
        return is_new ? number + " " + (name.empty() ? "???" : one_line(name)) : number;
    }
    std::string file_name(std::uint32_t function) {
        return numbered(files_, merged_.functions[function].file);
    }
    /// Functions of one name in several files are different ones.
    std::string function_name(std::uint32_t function) {
        std::string number = "(" + std::to_string(function + 1) + ")";
        if (is_named_.empty()) is_named_.resize(merged_.functions.size());
        if (is_named_[function]) return number;
        is_named_[function] = true;
        const std::string_view name = merged_.functions[function].name;
        return number + " " + (name.empty() ? "???" : one_line(name));
    }

    const Trace& trace_;
    MergedFunctions merged_;
    OutputFile file_;
    std::vector<std::int64_t> self_;  ///< per function
    std::vector<bool> is_called_;     ///< per function: on a thread
    std::vector<bool> is_named_;      ///< per function: its name was written
    std::int64_t total_ns_ = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Calls> calls_;  ///< by caller and callee
    std::map<std::string_view, std::uint32_t> files_;
};

}  // namespace

FileFormat callgrind_format() {
    static constexpr std::string_view kSuffixes[] = {".callgrind", ".callgrind.out"};
    return {"callgrind", "Callgrind profiles, for KCachegrind and callgrind_annotate",
            "threads, GPU work, async ranges", kSuffixes, [](const Trace& trace, const std::string& path) {
                CallgrindProfile(with_sampled_functions(trace), path).write();
            }};
}

}  // namespace marey
