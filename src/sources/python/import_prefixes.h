// import_prefixes.h: the folders from which modules are imported, to shorten the paths of files by.
#pragma once

#include <Python.h>

#include <string>
#include <string_view>
#include <vector>

namespace marey::python {

/// Follows sys.path: it is looked at again when it has changed. Guarded by the GIL; may set errors, which
/// the caller keeps away.
class ImportPrefixes {
  public:
    /// What is left of a file's path behind the longest folder of sys.path that it is in, also by another
    /// path to the same folder; else all of it.
    std::string shortened(std::string_view file);

  private:
    void rescan();
    std::size_t longest(std::string_view file) const noexcept;

    PyObject* seen_ = nullptr;  ///< sys.path as a tuple
    std::string working_folder_;
    bool has_relative_ = false;
    std::vector<std::string> folders_;
};

/// The process's; never destroyed.
[[gnu::visibility("hidden")]] extern ImportPrefixes& import_prefixes;

/// A path as it is, or behind the working folder when it is relative; texts like `<string>` stay.
std::string absolute_file(std::string_view file);

/// The dotted name that the module in a file would be imported by: `pkg/__init__.py` is `pkg`.
std::string module_of_file(std::string_view file);

}  // namespace marey::python
