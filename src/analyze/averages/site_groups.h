// site_groups.h: the text under which the ranges of a site are counted: its name, or its function, line,
// file, module or package.
#pragma once

#include <marey/trace.h>

namespace marey {

/// The parts of the name of a Python function: "json/decoder.py(332): JSONDecoder.decode".
struct PythonName {
    std::string_view path;  ///< relative to the folder that it was imported from; empty: a name without one
    std::string_view function;
};
PythonName parse_python_name(std::string_view name);

/// The name with the function first: "JSONDecoder.decode (json/decoder.py:332)". Names without a path stay as
/// they are.
std::string function_first(std::string_view name);

/// The module in a file: "json/decoder.py" becomes json.decoder, "<frozen os>" becomes os. Anything that is
/// not a module stays a path.
std::string module_of(std::string_view path);

/// Whether the full path of a file is not in a folder of the standard library or of installed packages.
bool is_program_file(std::string_view file);

/// Whether a folded import has this name: "import shop.load".
bool is_import_name(Scope scope, std::string_view name) noexcept;

/// "ProfilerStep*" for every "ProfilerStep#n"; other names are unchanged.
std::string_view group_name(std::string_view name) noexcept;

}  // namespace marey
