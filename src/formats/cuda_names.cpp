// cuda_names.cpp: numbers from CUPTI's headers. All versions of a call have the same name.
#include "formats/cuda_names.h"

#include <algorithm>
#include <span>

namespace marey {
namespace {

struct CallName {
    std::int64_t number;
    std::string_view name;
};

// Sorted by number.
constexpr CallName kRuntimeCalls[] = {
    {1, "cudaDriverGetVersion"},
    {2, "cudaRuntimeGetVersion"},
    {3, "cudaGetDeviceCount"},
    {4, "cudaGetDeviceProperties"},
    {8, "cudaConfigureCall"},
    {9, "cudaSetupArgument"},
    {10, "cudaGetLastError"},
    {11, "cudaPeekAtLastError"},
    {13, "cudaLaunch"},
    {14, "cudaFuncSetCacheConfig"},
    {15, "cudaFuncGetAttributes"},
    {16, "cudaSetDevice"},
    {17, "cudaGetDevice"},
    {20, "cudaMalloc"},
    {21, "cudaMallocPitch"},
    {22, "cudaFree"},
    {25, "cudaMallocHost"},
    {26, "cudaFreeHost"},
    {27, "cudaHostAlloc"},
    {28, "cudaHostGetDevicePointer"},
    {30, "cudaMemGetInfo"},
    {31, "cudaMemcpy"},
    {32, "cudaMemcpy2D"},
    {39, "cudaMemcpyToSymbol"},
    {40, "cudaMemcpyFromSymbol"},
    {41, "cudaMemcpyAsync"},
    {44, "cudaMemcpy2DAsync"},
    {47, "cudaMemcpyToSymbolAsync"},
    {48, "cudaMemcpyFromSymbolAsync"},
    {49, "cudaMemset"},
    {51, "cudaMemsetAsync"},
    {123, "cudaThreadExit"},
    {126, "cudaThreadSynchronize"},
    {129, "cudaStreamCreate"},
    {130, "cudaStreamDestroy"},
    {131, "cudaStreamSynchronize"},
    {132, "cudaStreamQuery"},
    {133, "cudaEventCreate"},
    {134, "cudaEventCreateWithFlags"},
    {135, "cudaEventRecord"},
    {136, "cudaEventDestroy"},
    {137, "cudaEventSynchronize"},
    {138, "cudaEventQuery"},
    {139, "cudaEventElapsedTime"},
    {144, "cudaMemcpy3D"},
    {145, "cudaMemcpy3DAsync"},
    {147, "cudaStreamWaitEvent"},
    {151, "cudaPointerGetAttributes"},
    {152, "cudaHostRegister"},
    {153, "cudaHostUnregister"},
    {154, "cudaDeviceCanAccessPeer"},
    {155, "cudaDeviceEnablePeerAccess"},
    {160, "cudaMemcpyPeer"},
    {161, "cudaMemcpyPeerAsync"},
    {164, "cudaDeviceReset"},
    {165, "cudaDeviceSynchronize"},
    {166, "cudaDeviceGetLimit"},
    {167, "cudaDeviceSetLimit"},
    {171, "cudaProfilerStart"},
    {172, "cudaProfilerStop"},
    {174, "cudaDeviceGetPCIBusId"},
    {178, "cudaIpcGetMemHandle"},
    {179, "cudaIpcOpenMemHandle"},
    {180, "cudaIpcCloseMemHandle"},
    {185, "cudaCreateTextureObject"},
    {186, "cudaDestroyTextureObject"},
    {197, "cudaStreamAddCallback"},
    {198, "cudaStreamCreateWithFlags"},
    {200, "cudaDeviceGetAttribute"},
    {201, "cudaStreamDestroy"},
    {202, "cudaStreamCreateWithPriority"},
    {203, "cudaStreamGetPriority"},
    {205, "cudaDeviceGetStreamPriorityRange"},
    {206, "cudaMallocManaged"},
    {207, "cudaOccupancyMaxActiveBlocksPerMultiprocessor"},
    {210, "cudaOccupancyMaxActiveBlocksPerMultiprocessor"},
    {kLaunchKernelCall, "cudaLaunchKernel"},
    {213, "cudaLaunch"},
    {214, "cudaLaunchKernel"},
    {215, "cudaMemcpy"},
    {225, "cudaMemcpyAsync"},
    {233, "cudaMemset"},
    {235, "cudaMemsetAsync"},
    {239, "cudaStreamSynchronize"},
    {240, "cudaStreamQuery"},
    {242, "cudaEventRecord"},
    {247, "cudaStreamWaitEvent"},
    {251, "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"},
    {252, "cudaMemPrefetchAsync"},
    {254, "cudaMemAdvise"},
    {269, "cudaLaunchCooperativeKernel"},
    {272, "cudaLaunchCooperativeKernelMultiDevice"},
    {273, "cudaFuncSetAttribute"},
    {284, "cudaLaunchHostFunc"},
    {310, "cudaGraphInstantiate"},
    {311, "cudaGraphLaunch"},
    {315, "cudaStreamBeginCapture"},
    {317, "cudaStreamIsCapturing"},
    {319, "cudaStreamEndCapture"},
};

constexpr CallName kDriverCalls[] = {
    {307, "cuLaunchKernel"},
};

std::string call_name(std::span<const CallName> calls, std::int64_t number, std::string_view unknown) {
    const auto found =
        std::lower_bound(calls.begin(), calls.end(), number,
                         [](const CallName& call, std::int64_t wanted) { return call.number < wanted; });
    if (found != calls.end() && found->number == number) return std::string(found->name);
    return std::string(unknown) + std::to_string(number);
}

}  // namespace

std::string runtime_call_name(std::int64_t number) {
    return call_name(kRuntimeCalls, number, "CUDA runtime call ");
}

std::string driver_call_name(std::int64_t number) {
    return call_name(kDriverCalls, number, "CUDA driver call ");
}

}  // namespace marey
