// cupti_records.h: the parts of CUPTI's activity records and functions that Marey uses. They are declared
// here so that Marey builds without CUDA and works with the CUPTI of CUDA 12 and 13: records have only ever
// been extended at the end. cupti_records_test.cpp compares them with NVIDIA's header, if it is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace marey::cuda {

using CuptiResult = int;
inline constexpr CuptiResult kCuptiSuccess = 0;
inline constexpr CuptiResult kCuptiMaxLimitReached = 12;
inline constexpr CuptiResult kCuptiMultipleSubscribers = 39;

enum ActivityKind : std::uint32_t {
    kActivityMemcpy = 1,
    kActivityMemset = 2,
    kActivityKernel = 10,
    kActivityOverhead = 17,
    kActivityMemcpyPeer = 22,
    kActivityUnifiedMemory = 25,
    kActivityEvent = 36,
    kActivitySynchronization = 38,
    kActivityMemory = 49,
};

struct ActivityRecord {
    std::uint32_t kind;
};

struct KernelRecord {
    std::uint32_t kind;
    std::uint8_t cache_config;
    std::uint8_t shared_memory_config;
    std::uint16_t registers_per_thread;
    std::uint32_t global_cache[2];
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t completed;
    std::uint32_t device;
    std::uint32_t context;
    std::uint32_t stream;
    std::int32_t grid[3];
    std::int32_t block[3];
    std::int32_t static_shared;
    std::int32_t dynamic_shared;
    std::uint32_t local_memory[2];
    std::uint32_t correlation;
    std::int64_t grid_id;
    const char* name;
    void* reserved;
    std::uint64_t queued;
    std::uint64_t submitted;
    std::uint8_t launch_type;
    std::uint8_t carveout[3];
    std::uint32_t shared_memory_executed;
    std::uint64_t graph_node;
    std::uint32_t shared_memory_limit;
    std::uint32_t graph;
};

struct CopyRecord {
    std::uint32_t kind;
    std::uint8_t copy_kind;
    std::uint8_t source_kind;
    std::uint8_t target_kind;
    std::uint8_t flags;
    std::uint64_t bytes;
    std::uint64_t start;
    std::uint64_t end;
    std::uint32_t device;
    std::uint32_t context;
    std::uint32_t stream;
    std::uint32_t correlation;
};

struct PeerCopyRecord {
    std::uint32_t kind;
    std::uint8_t copy_kind;
    std::uint8_t source_kind;
    std::uint8_t target_kind;
    std::uint8_t flags;
    std::uint64_t bytes;
    std::uint64_t start;
    std::uint64_t end;
    std::uint32_t device;
    std::uint32_t context;
    std::uint32_t stream;
    std::uint32_t source_device;
    std::uint32_t source_context;
    std::uint32_t target_device;
    std::uint32_t target_context;
    std::uint32_t correlation;
};

struct SetRecord {
    std::uint32_t kind;
    std::uint32_t value;
    std::uint64_t bytes;
    std::uint64_t start;
    std::uint64_t end;
    std::uint32_t device;
    std::uint32_t context;
    std::uint32_t stream;
    std::uint32_t correlation;
    std::uint16_t flags;
    std::uint16_t memory_kind;
};

/// An event that was recorded on a stream.
struct EventRecord {
    std::uint32_t kind;
    std::uint32_t correlation;
    std::uint32_t context;
    std::uint32_t stream;
    std::uint32_t event;
};

struct WaitRecord {
    std::uint32_t kind;
    std::uint32_t type;
    std::uint64_t start;
    std::uint64_t end;
    std::uint32_t correlation;
    std::uint32_t context;
    std::uint32_t stream;
    std::uint32_t event;
};

/// Packed in CUDA, but its times are at multiples of 8 anyway.
struct OverheadRecord {
    std::uint32_t kind;
    std::uint32_t overhead_kind;
    std::uint32_t object_kind;
    std::uint32_t object[3];  ///< for a thread: process, thread
    std::uint64_t start;
    std::uint64_t end;
};

struct MemoryRecord {
    std::uint32_t kind;
    std::uint32_t operation;  ///< 1 allocation, 2 release
    std::uint32_t memory_kind;
    std::uint32_t correlation;
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint64_t time;
    std::uint64_t pc;
    std::uint32_t process;
    std::uint32_t device;
    std::uint32_t context;
    std::uint32_t stream;
};

struct UnifiedMemoryRecord {
    std::uint32_t kind;
    std::uint32_t counter_kind;
    std::uint64_t value;
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t address;
    std::uint32_t source;
    std::uint32_t target;
    std::uint32_t stream;
    std::uint32_t process;
};

/// The argument of cuptiActivityConfigureUnifiedMemoryCounter.
struct UnifiedMemoryConfig {
    std::uint32_t scope;  ///< 1: the process on one device
    std::uint32_t kind;
    std::uint32_t device;
    std::uint32_t enable;
};

/// The argument of cuptiSubscribe_v2.
struct SubscriberParams {
    std::size_t struct_size;
    const char* name;
    char* old_name;  ///< filled in: the name of the current subscriber
    std::size_t old_name_size;
};

/// Callback domains.
inline constexpr std::uint32_t kDriverCalls = 1, kRuntimeCalls = 2, kResourceEvents = 3;
inline constexpr std::uint32_t kCallDomains = 3;  ///< domains below this are calls
inline constexpr std::uint32_t kContextEnds = 2;  ///< a callback of kResourceEvents
inline constexpr std::uint32_t kCallBegins = 0, kCallEnds = 1;

/// Data for a callback at the begin and at the end of a call.
struct CallbackData {
    std::uint32_t site;  ///< kCallBegins or kCallEnds
    const char* function;
    const void* parameters;
    const void* result;  ///< a number, at the end
    const char* symbol;
    void* context;
    std::uint32_t context_id;
    std::uint64_t* shared;
    std::uint32_t correlation;
};

/// Data for a callback about a context.
struct ResourceData {
    void* context;
    void* handle;
    void* descriptor;
};

using TimestampFunction = std::uint64_t (*)();
using RequestBuffer = void (*)(std::uint8_t** buffer, std::size_t* bytes, std::size_t* max_records);
using CompleteBuffer = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer, std::size_t bytes,
                                std::size_t valid_bytes);
using SubscriberCallback = void (*)(void* user, std::uint32_t domain, std::uint32_t callback,
                                    const void* data);

}  // namespace marey::cuda
