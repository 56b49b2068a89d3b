// cuda_libraries.h: the CUDA driver and CUPTI, loaded at run time.
#pragma once

#include <string>

#include "sources/cuda/cupti_records.h"

namespace marey::cuda {

using CudaResult = int;
inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaNotInitialized = 3;
inline constexpr CudaResult kCudaNotReady = 600;

/// The functions of a library.
class Symbols {
  public:
    /// Converts to a pointer to any type of function; null: the library does not have it.
    struct Symbol {
        void* address;
        template <class Function>
        operator Function*() const noexcept {
            return reinterpret_cast<Function*>(address);
        }
    };
    /// Null: a library without functions.
    explicit Symbols(void* library = nullptr) noexcept : library_(library) {}
    Symbol operator[](const char* name);
    Symbol optional(const char* name) const;
    /// The first that operator[] did not find; null: it found all.
    const char* missing() const noexcept { return missing_; }

  private:
    void* library_;
    const char* missing_ = nullptr;
};

/// The driver functions that Marey calls, with opaque types.
struct Driver {
    Symbols symbols{};
    CudaResult (*driver_version)(int* version) = symbols["cuDriverGetVersion"];
    CudaResult (*device_count)(int* count) = symbols["cuDeviceGetCount"];
    CudaResult (*device_name)(char* name, int length, int device) = symbols["cuDeviceGetName"];
    CudaResult (*device_memory)(std::size_t* bytes, int device) = symbols["cuDeviceTotalMem_v2"];
    CudaResult (*device_attribute)(int* value, int attribute, int device) = symbols["cuDeviceGetAttribute"];
    CudaResult (*primary_state)(int device, unsigned* flags,
                                int* active) = symbols["cuDevicePrimaryCtxGetState"];
    CudaResult (*primary_retain)(void** context, int device) = symbols["cuDevicePrimaryCtxRetain"];
    CudaResult (*primary_release)(int device) = symbols["cuDevicePrimaryCtxRelease_v2"];
    CudaResult (*context_push)(void* context) = symbols["cuCtxPushCurrent_v2"];
    CudaResult (*context_pop)(void** context) = symbols["cuCtxPopCurrent_v2"];
    CudaResult (*context_current)(void** context) = symbols["cuCtxGetCurrent"];
    CudaResult (*context_device)(int* device) = symbols["cuCtxGetDevice"];
    CudaResult (*context_id)(void* context, unsigned long long* id) = symbols["cuCtxGetId"];
    CudaResult (*context_synchronize)() = symbols["cuCtxSynchronize"];
    CudaResult (*event_create)(void** event, unsigned flags) = symbols["cuEventCreate"];
    CudaResult (*event_record)(void* event, void* stream) = symbols["cuEventRecord"];
    CudaResult (*event_synchronize)(void* event) = symbols["cuEventSynchronize"];
    CudaResult (*event_query)(void* event) = symbols["cuEventQuery"];
    CudaResult (*event_elapsed)(float* milliseconds, void* from, void* to) = symbols["cuEventElapsedTime"];
    CudaResult (*stream_create)(void** stream, unsigned flags,
                                int priority) = symbols["cuStreamCreateWithPriority"];
    CudaResult (*stream_query)(void* stream) = symbols["cuStreamQuery"];
    CudaResult (*module_load)(void** module, const void* image) = symbols["cuModuleLoadData"];
    CudaResult (*module_function)(void** function, void* module,
                                  const char* name) = symbols["cuModuleGetFunction"];
    CudaResult (*host_allocate)(void** memory, std::size_t bytes, unsigned flags) = symbols["cuMemHostAlloc"];
    CudaResult (*host_pointer)(std::uint64_t* pointer, void* memory,
                               unsigned flags) = symbols["cuMemHostGetDevicePointer_v2"];
    CudaResult (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned shared_bytes, void* stream, void** parameters,
                         void** extra) = symbols["cuLaunchKernel"];
    CudaResult (*capture_mode)(int* mode) = symbols["cuThreadExchangeStreamCaptureMode"];
    CudaResult (*error_name)(CudaResult error, const char** name) = symbols["cuGetErrorName"];
};

struct Cupti {
    Symbols symbols{};
    CuptiResult (*version)(std::uint32_t* version) = symbols["cuptiGetVersion"];
    CuptiResult (*result_string)(CuptiResult result, const char** text) = symbols["cuptiGetResultString"];
    CuptiResult (*callback_name)(std::uint32_t domain, std::uint32_t callback,
                                 const char** name) = symbols["cuptiGetCallbackName"];
    CuptiResult (*set_timestamps)(TimestampFunction function) =
        symbols["cuptiActivityRegisterTimestampCallback"];
    CuptiResult (*set_buffers)(RequestBuffer request,
                               CompleteBuffer complete) = symbols["cuptiActivityRegisterCallbacks"];
    CuptiResult (*enable)(std::uint32_t kind) = symbols["cuptiActivityEnable"];
    CuptiResult (*disable)(std::uint32_t kind) = symbols["cuptiActivityDisable"];
    CuptiResult (*next_record)(std::uint8_t* buffer, std::size_t valid_bytes,
                               ActivityRecord** record) = symbols["cuptiActivityGetNextRecord"];
    CuptiResult (*dropped)(void* context, std::uint32_t stream,
                           std::size_t* count) = symbols["cuptiActivityGetNumDroppedRecords"];
    CuptiResult (*flush_all)(std::uint32_t flags) = symbols["cuptiActivityFlushAll"];
    CuptiResult (*subscribe)(void** subscriber, SubscriberCallback callback, void* user,
                             SubscriberParams* params) = symbols.optional("cuptiSubscribe_v2");
    /// CUDA 12: does not report the name of another subscriber.
    CuptiResult (*subscribe_unnamed)(void** subscriber, SubscriberCallback callback,
                                     void* user) = subscribe == nullptr ? symbols["cuptiSubscribe"]
                                                                        : Symbols::Symbol{};
    CuptiResult (*unsubscribe)(void* subscriber) = symbols["cuptiUnsubscribe"];
    CuptiResult (*enable_callback)(std::uint32_t enable, void* subscriber, std::uint32_t domain,
                                   std::uint32_t callback) = symbols["cuptiEnableCallback"];
    CuptiResult (*configure_unified_memory)(UnifiedMemoryConfig* config, std::uint32_t count) =
        symbols.optional("cuptiActivityConfigureUnifiedMemoryCounter");
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
