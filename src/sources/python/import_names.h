// import_names.h: the names of modules that are imported, from the calls of importlib, and the
// folders from which they are imported, used to shorten file paths.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sources/python/code_sites.h"

namespace marey::python {

/// Whether this is the function that imports a module which is not loaded yet: its first argument is the
/// module's name.
bool is_import_code(PyCodeObject* code) noexcept;

/// The site of a call of that function: for each module one, with the module as its overload. The name is
/// known even if a filter leaves out the module's own code. Never fails: without space it is the site of
/// `word`. Keeps the error indicator.
std::uint32_t import_site(CodeWord word, PyCodeObject* code, PyObject* module) noexcept;

/// Follows sys.path: it is read again when it has changed. Guarded by the GIL; may set errors, which the
/// caller handles.
class ImportPrefixes {
  public:
    /// The path of a file without the longest folder of sys.path that contains it, also through another path
    /// to the same folder; otherwise the whole path.
    std::string shortened(std::string_view file);

  private:
    void rescan();
    std::size_t longest(std::string_view file) const noexcept;

    PyObject* seen_ = nullptr;  ///< sys.path as a tuple
    std::string working_folder_;
    bool has_relative_ = false;
    std::vector<std::string> folders_;
};

/// The only instance in the process; never destroyed.
[[gnu::visibility("hidden")]] extern ImportPrefixes& import_prefixes;

/// Makes a relative path absolute with the working folder; texts like `<string>` stay unchanged.
std::string absolute_file(std::string_view file);

/// The dotted name of the module in a file: `pkg` for `pkg/__init__.py`.
std::string module_of_file(std::string_view file);

}  // namespace marey::python
