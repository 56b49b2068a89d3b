// import_names.h: the names of modules that are imported, from the calls of importlib.
#pragma once

#include <Python.h>

#include <cstdint>

#include "sources/python/code_sites.h"

namespace marey::python {

/// Whether this is the function that imports a module which is not loaded yet: its first argument is the
/// module's name.
bool is_import_code(PyCodeObject* code) noexcept;

/// The site of a call of that function: for each module one, with the module as its overload. The name is
/// known even if a filter leaves out the module's own code. Never fails: without space it is the site of
/// `word`. Keeps the error indicator.
std::uint32_t import_site(CodeWord word, PyCodeObject* code, PyObject* module) noexcept;

}  // namespace marey::python
