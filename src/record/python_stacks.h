// python_stacks.h: the Python extension's part of tracebacks, where it is loaded.
#pragma once

#include <marey/detail/python_stacks.h>

namespace marey {

/// Null: no Python here.
const detail::PythonStacks* python_stacks() noexcept;

}  // namespace marey
