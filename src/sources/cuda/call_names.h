// call_names.h: the functions of CUDA by their names, and which of them are worth a record.
#pragma once

#include <string>
#include <string_view>

namespace marey::cuda {

/// "cudaLaunchKernel" of "cudaLaunchKernel_v7000", "cuMemcpyHtoD" of "cuMemcpyHtoD_v2_ptds".
std::string plain_call_name(std::string_view name);

/// Whether calls of a function with this plain name are told. Of the runtime's all but those that only ask or
/// prepare, and are made so often that they would drown the others.
bool is_traced_runtime_call(std::string_view name);
/// Of the driver's those that programs make themselves and that give the GPU something to do, or wait for it.
bool is_traced_driver_call(std::string_view name);

}  // namespace marey::cuda
