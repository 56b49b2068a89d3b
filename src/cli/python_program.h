// python_program.h: recognizes Python programs and builds the commands that run them.
#pragma once

#include <string>
#include <vector>

namespace marey::cli {

/// Whether the words name a Python program, as they would after `python`: a script x.py, an archive x.pyz, a
/// folder with __main__.py, "-m module", "-c code" or "-".
bool is_python_program(const std::vector<std::string>& words);
/// The whole command: the interpreter of the environment that marey is installed in, its options, `words`.
std::vector<std::string> python_command(const std::vector<std::string>& words);
/// The program's name: the script without its suffix, or the module.
std::string python_program_name(const std::vector<std::string>& words);

/// The folder that makes an interpreter record itself when it is in PYTHONPATH; empty if the package is not
/// found.
std::string python_start_folder();

/// Replaces this process with a verb of the Python package: `python -m marey.sql VERB OPTION=VALUE...`.
/// Throws marey::Error if there is no package or its interpreter cannot be started.
[[noreturn]] void exec_sql_command(const std::vector<std::string>& words);

}  // namespace marey::cli
