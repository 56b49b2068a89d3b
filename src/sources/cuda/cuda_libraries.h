// cuda_libraries.h: the CUDA driver and CUPTI, loaded at run time.
#pragma once

#include <string>

#include "sources/cuda/cupti_records.h"

namespace marey::cuda {

using CudaResult = int;
inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaNotInitialized = 3;
inline constexpr CudaResult kCudaNotReady = 600;

/// The driver functions that Marey calls, with opaque types.
struct Driver {
    CudaResult (*driver_version)(int* version);
    CudaResult (*device_count)(int* count);
    CudaResult (*device_name)(char* name, int length, int device);
    CudaResult (*device_memory)(std::size_t* bytes, int device);
    CudaResult (*device_attribute)(int* value, int attribute, int device);
    CudaResult (*primary_state)(int device, unsigned* flags, int* active);
    CudaResult (*primary_retain)(void** context, int device);
    CudaResult (*primary_release)(int device);
    CudaResult (*context_push)(void* context);
    CudaResult (*context_pop)(void** context);
    CudaResult (*context_current)(void** context);
    CudaResult (*context_device)(int* device);
    CudaResult (*context_id)(void* context, unsigned long long* id);
    CudaResult (*context_synchronize)();
    CudaResult (*event_create)(void** event, unsigned flags);
    CudaResult (*event_record)(void* event, void* stream);
    CudaResult (*event_synchronize)(void* event);
    CudaResult (*event_query)(void* event);
    CudaResult (*event_elapsed)(float* milliseconds, void* from, void* to);
    CudaResult (*stream_create)(void** stream, unsigned flags, int priority);
    CudaResult (*stream_query)(void* stream);
    CudaResult (*module_load)(void** module, const void* image);
    CudaResult (*module_function)(void** function, void* module, const char* name);
    CudaResult (*host_allocate)(void** memory, std::size_t bytes, unsigned flags);
    CudaResult (*host_pointer)(std::uint64_t* pointer, void* memory, unsigned flags);
    CudaResult (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned shared_bytes, void* stream, void** parameters, void** extra);
    CudaResult (*capture_mode)(int* mode);
    CudaResult (*error_name)(CudaResult error, const char** name);
};

struct Cupti {
    CuptiResult (*version)(std::uint32_t* version);
    CuptiResult (*result_string)(CuptiResult result, const char** text);
    CuptiResult (*callback_name)(std::uint32_t domain, std::uint32_t callback, const char** name);
    CuptiResult (*set_timestamps)(TimestampFunction function);
    CuptiResult (*set_buffers)(RequestBuffer request, CompleteBuffer complete);
    CuptiResult (*enable)(std::uint32_t kind);
    CuptiResult (*disable)(std::uint32_t kind);
    CuptiResult (*next_record)(std::uint8_t* buffer, std::size_t valid_bytes, ActivityRecord** record);
    CuptiResult (*dropped)(void* context, std::uint32_t stream, std::size_t* count);
    CuptiResult (*flush_all)(std::uint32_t flags);
    CuptiResult (*subscribe)(void** subscriber, SubscriberCallback callback, void* user,
                             SubscriberParams* params);
    /// CUDA 12: does not report the name of another subscriber.
    CuptiResult (*subscribe_unnamed)(void** subscriber, SubscriberCallback callback, void* user);
    CuptiResult (*unsubscribe)(void* subscriber);
    CuptiResult (*enable_callback)(std::uint32_t enable, void* subscriber, std::uint32_t domain,
                                   std::uint32_t callback);
    CuptiResult (*configure_unified_memory)(UnifiedMemoryConfig* config, std::uint32_t count);
};

/// Both libraries. Once loaded, they are never unloaded.
struct Libraries {
    Driver driver{};
    Cupti cupti{};
    bool has_driver = false;
    bool has_cupti = false;
    std::string trouble;        ///< what is missing and how to get it; empty: nothing is missing
    std::string cupti_trouble;  ///< the same if only CUPTI is missing: event timing still works
    std::string cupti_path;
    std::uint32_t cupti_version = 0;
};

/// Looks for the driver on the first call. Does not initialise CUDA, because the program may fork before it
/// uses CUDA.
const Libraries& libraries();
/// Looks for CUPTI, again if it was not found before: the program may load one later. Returns whether it was
/// found; if not, cupti_trouble has the reason.
bool find_cupti();
/// The version of the CUPTI that was found; 0: none was found yet.
std::uint32_t cupti_version();
/// Whether the program has not initialised CUDA yet, and the driver will call Marey when it does
/// (CUDA_INJECTION64_PATH).
bool will_begin();
/// For tests: replaces the libraries.
void replace_libraries(const Libraries& others);

/// The version of the CUDA runtime that the program has loaded: 13000 for 13.0. 0: it has none, or linked it
/// statically.
int runtime_version();

/// "CUDA_ERROR_NOT_INITIALIZED (3)".
std::string cuda_error(CudaResult result);
std::string cupti_error(CuptiResult result);

}  // namespace marey::cuda
