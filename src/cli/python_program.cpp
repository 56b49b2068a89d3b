// python_program.cpp: recognizes Python programs and builds the commands that run them.
#include "cli/python_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <marey/error.h>

#include "base/environment.h"
#include "cli/child_process.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
}

bool is_script(const std::string& word) {
    return word.ends_with(".py") || word.ends_with(".pyw") || word.ends_with(".pyz");
}

std::string without_slashes(std::string text) {
    while (text.size() > 1 && text.ends_with('/')) text.pop_back();
    return text;
}

}  // namespace

bool is_python_program(const std::vector<std::string>& words) {
    const std::string& first = words.at(0);
    return first.starts_with('-') || is_script(first) || is_file(fs::path(first) / "__main__.py");
}

std::vector<std::string> python_command(const std::vector<std::string>& words) {
    // Set by the package's start script (python/marey/launch/command.py).
    const std::string python = environment_text("MAREY_PYTHON");
    std::vector<std::string> command{python.empty() ? "python3" : python};
    for (std::string& option : split(environment_text("MAREY_PYTHON_OPTIONS"), '\n'))
        command.push_back(std::move(option));
    command.insert(command.end(), words.begin(), words.end());
    return command;
}

std::string python_program_name(const std::vector<std::string>& words) {
    const std::string& first = words.at(0);
    if (first.starts_with("-m")) {
        const std::string module = first.size() > 2 ? first.substr(2) : words.size() > 1 ? words[1] : "";
        return module.empty() || module.find('/') != std::string::npos ? "python" : module;
    }
    if (first.starts_with("-c")) return "command";
    if (first == "-") return "stdin";
    if (first.starts_with('-')) return "python";
    std::string name(base_name(without_slashes(first)));
    if (name == "." || name == ".." || name.empty()) return "program";
    if (is_script(name)) name.erase(name.rfind('.'));
    return name.empty() ? "program" : name;
}

std::string python_start_folder() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    const fs::path folder = program.parent_path();
    // As set by the package, then next to the installed command, then in the build folder.
    for (const fs::path& package :
         {fs::path(environment_text("MAREY_PACKAGE")), folder.parent_path(), folder / "python" / "marey"}) {
        if (!package.empty() && is_file(package / "launch" / "_start" / "sitecustomize.py"))
            return fs::absolute(package / "launch" / "_start", error).lexically_normal().string();
    }
    return "";
}

void exec_sql_command(const std::vector<std::string>& words) {
    const std::string start = python_start_folder();
    if (start.empty())
        throw Error(words.at(0) +
                    ": needs the Python package (install it: 'pip install .[sql]' in a clone of Marey)");
    // -P: do not import modules from the current folder, where files of others may be.
    std::vector<std::string> command = python_command({"-P", "-m", "marey.sql"});
    command.insert(command.end(), words.begin(), words.end());
    const std::string package = fs::path(start).parent_path().parent_path().parent_path().string();
    const std::string path = environment_text("PYTHONPATH");
    ::setenv("PYTHONPATH", ((path.empty() ? "" : path + ":") + package).c_str(), 1);
    ::unsetenv("MAREY");  // for other programs
    std::vector<char*> arguments;
    arguments.reserve(command.size() + 1);
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    throw Error(start_failure_reason(command[0], errno));
}

}  // namespace marey::cli
