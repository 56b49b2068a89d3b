// call_names.cpp: lists of CUDA's functions.
#include "sources/cuda/call_names.h"

#include <algorithm>
#include <cctype>

namespace marey::cuda {
namespace {

constexpr std::string_view kAsking[] = {"cudaGetDevice",
                                        "cudaSetDevice",
                                        "cudaGetLastError",
                                        "cudaPeekAtLastError",
                                        "cudaEventCreate",
                                        "cudaEventCreateWithFlags",
                                        "cudaEventDestroy",
                                        "cudaEventQuery",
                                        "cudaStreamIsCapturing",
                                        "cudaStreamGetCaptureInfo",
                                        "cudaGetDeviceCount",
                                        "cudaDeviceGetAttribute",
                                        "cudaFuncGetAttributes",
                                        "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
                                        "cudaPointerGetAttributes",
                                        "cudaStreamGetDevice",
                                        "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
                                        "cudaFuncSetAttribute",
                                        "cudaGetErrorName",
                                        "cudaGetErrorString",
                                        "cudaCreateChannelDesc"};

constexpr std::string_view kDriverWork[] = {
    "cuLaunch",           "cuGraphLaunch",      "cuMemcpy",         "cuMemset",
    "cuMemAlloc",         "cuMemFree",          "cuCtxSynchronize", "cuStreamSynchronize",
    "cuStreamWaitEvent",  "cuEventSynchronize", "cuEventRecord",    "cuStreamWaitValue",
    "cuStreamWriteValue", "cuMemPrefetch",      "cuModuleLoad",     "cuLibraryLoad"};

bool is_version(std::string_view text) {
    return text.size() > 1 && text[0] == 'v' && std::all_of(text.begin() + 1, text.end(), [](char c) {
               return std::isdigit(static_cast<unsigned char>(c)) != 0;
           });
}

}  // namespace

std::string plain_call_name(std::string_view name) {
    for (std::size_t bar = name.rfind('_'); bar != std::string_view::npos && bar != 0;
         bar = name.rfind('_')) {
        const std::string_view last = name.substr(bar + 1);
        if (last != "ptsz" && last != "ptds" && !is_version(last)) break;
        name = name.substr(0, bar);
    }
    return std::string(name);
}

bool is_traced_runtime_call(std::string_view name) {
    // What the compiler puts into programs registers and prepares, but for the launch.
    if (name.starts_with("__")) return name.starts_with("__cudaLaunch");
    return std::find(std::begin(kAsking), std::end(kAsking), name) == std::end(kAsking);
}

bool is_traced_driver_call(std::string_view name) {
    return std::any_of(std::begin(kDriverWork), std::end(kDriverWork),
                       [&](std::string_view start) { return name.starts_with(start); });
}

}  // namespace marey::cuda
