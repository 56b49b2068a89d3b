// program_names.cpp: finds the script in the command line of a Python interpreter.
#include "trace/program_names.h"

#include <algorithm>

#include <marey/merge.h>

namespace marey {
namespace {

std::string_view file_name(std::string_view path) {
    return path.substr(path.find_last_of('/') + 1);
}

/// The command line's words. A script whose path contains blanks is cut, because nothing records where words
/// end.
std::vector<std::string_view> split_words(std::string_view text) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        if (end > at) words.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

/// Reads the interpreter's options as it does. Empty: it runs no script or module.
std::string_view program_in(const std::vector<std::string_view>& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (!word.starts_with('-')) return file_name(word);
        if (word == "-") return "";
        if (word.starts_with("--")) continue;
        const std::size_t option = word.find_first_of("cmWX");
        if (option == word.npos) continue;
        if (word[option] == 'c') return "";
        const std::string_view rest = word.substr(option + 1);
        if (word[option] == 'm') return !rest.empty() ? rest : i + 1 < words.size() ? words[i + 1] : "";
        if (rest.empty()) ++i;  // -W and -X have a value
    }
    return "";
}

std::optional<std::string> python_program(std::string_view executable, std::string_view command_line) {
    if (!executable.starts_with("python")) return std::nullopt;
    const std::string_view program = program_in(split_words(command_line));
    return std::string(program.empty() ? executable : program);
}

}  // namespace

std::optional<std::string> python_program(const Trace& trace, const ProcessInfo& process) {
    return python_program(file_name(trace.string(process.name)), trace.string(process.command_line));
}

std::string program_name(const Trace& trace, const ProcessInfo& process) {
    return program_name(trace.string(process.name), trace.string(process.command_line));
}

std::string program_name(std::string_view executable, std::string_view command_line) {
    const std::string_view file = file_name(executable);
    return python_program(file, command_line).value_or(std::string(file));
}

std::string process_label(const Trace& trace, const ProcessInfo& process) {
    std::string label = process.node >= 0 ? "rank " + std::to_string(process.node) + ": " : "";
    label += program_name(trace, process);
    return label + (label.empty() ? "(" : " (") + std::to_string(process.pid) + ")";
}

std::string shown_thread_name(const Trace& trace, const ThreadInfo& thread) {
    std::string name(trace.string(thread.name));
    if (thread.process >= trace.processes().size()) return name;
    const ProcessInfo& process = trace.processes()[thread.process];
    const std::optional<std::string> program = python_program(trace, process);
    if (!program || thread.os_tid == 0 || thread.os_tid != process.pid) return name;
    // The system names a main thread after the file that was executed, cut to 15 bytes.
    constexpr std::size_t kSystemNameLength = 15;
    const std::vector<std::string_view> words = split_words(trace.string(process.command_line));
    const std::string_view started = words.empty() ? std::string_view() : file_name(words.front());
    for (const std::string_view file :
         {std::string_view(*program), started, file_name(trace.string(process.name))}) {
        if (name.empty() || name == file.substr(0, kSystemNameLength)) return "MainThread";
    }
    return name;
}

}  // namespace marey
