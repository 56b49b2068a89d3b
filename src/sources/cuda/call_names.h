// call_names.h: the names of CUDA's functions, and the selection of those that are recorded.
#pragma once

#include <string>
#include <string_view>

namespace marey::cuda {

/// "cudaLaunchKernel" from "cudaLaunchKernel_v7000", "cuMemcpyHtoD" from "cuMemcpyHtoD_v2_ptds".
std::string plain_call_name(std::string_view name);

/// Whether calls of a runtime function with this plain name are recorded: all except queries and preparations
/// that are so frequent that they would hide the others.
bool is_traced_runtime_call(std::string_view name);
/// The same for driver functions: those that programs call directly and that launch work or wait for it.
bool is_traced_driver_call(std::string_view name);

}  // namespace marey::cuda
