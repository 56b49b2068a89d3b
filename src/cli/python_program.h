// python_program.h: programs that are run by Python, and how.
#pragma once

#include <string>
#include <vector>

namespace marey::cli {

/// Whether the words of a command mean a program for Python, as they would behind `python`: a script x.py, an
/// archive x.pyz, a folder with __main__.py, "-m module", "-c code", "-".
bool is_python_program(const std::vector<std::string>& words);
/// The whole command: the interpreter of the environment that marey was installed into, with its options.
std::vector<std::string> python_command(const std::vector<std::string>& words);
/// What the program is called: the script without its suffix, the module.
std::string python_program_name(const std::vector<std::string>& words);

/// The folder by which an interpreter begins to record itself, for PYTHONPATH; empty where the package is not
/// found.
std::string python_start_folder();

}  // namespace marey::cli
