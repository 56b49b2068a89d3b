// python_stacks.h: the Python extension's part of tracebacks, if it is loaded.
#pragma once

#include <marey/detail/python_stacks.h>

namespace marey {

/// Null: Python is not loaded.
const detail::PythonStacks* python_stacks() noexcept;

}  // namespace marey
