// itt_protocol.h: the interface between a program and an ITT collector: structures, function names, loading.
//
// The collector is the library given in INTEL_LIBITTNOTIFY64. If it exports __itt_api_init, it gets an
// IttGlobal and writes its functions into the pointers of the list there. Older collectors export the
// functions themselves. Existing collectors depend on these layouts.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace marey {

struct IttDomain {
    volatile int flags;  ///< 0: switched off by the collector
    const char* name;
    void* wide_name;
    int reserved1;
    void* reserved2;
    IttDomain* next;
};

struct IttString {
    const char* text;
    void* wide_text;
    int reserved1;
    void* reserved2;
    IttString* next;
};

struct IttId {
    unsigned long long d1, d2, d3;
};

struct IttFunction {
    const char* name;
    void** pointer;  ///< where the collector writes its function
    void* initial;
    void* nothing;
    int group;
};
inline constexpr int kIttGroupStructure = 1 << 12;  ///< domains, tasks, metadata
inline constexpr int kIttGroupAll = -1;

struct IttGlobal {
    unsigned char magic[8] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
    unsigned long version_major = 3;
    unsigned long version_minor = 0;
    unsigned long version_build = 20111111;
    volatile long is_initialized = 0;
    volatile long is_mutex_initialized = 0;
    volatile long atomic_counter = 0;
    pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
    void* library = nullptr;
    void* error_handler = nullptr;
    const char** library_path = nullptr;
    IttFunction* functions = nullptr;  ///< the last entry has no name
    IttGlobal* next = nullptr;
    void* threads = nullptr;
    IttDomain* domains = nullptr;
    IttString* strings = nullptr;
    int state = 0;
    void* counters = nullptr;
    unsigned int collects_processor_trace = 0;
    void* histograms = nullptr;
    void* counter_metadata = nullptr;
};

/// The functions that Marey calls; null if the collector does not have one.
struct IttCalls {
    IttDomain* (*domain_create)(const char* name) = nullptr;
    IttString* (*string_handle_create)(const char* text) = nullptr;
    void (*task_begin)(const IttDomain*, IttId task, IttId parent, IttString* name) = nullptr;
    void (*task_end)(const IttDomain*) = nullptr;
    void (*task_begin_overlapped)(const IttDomain*, IttId task, IttId parent, IttString* name) = nullptr;
    void (*task_end_overlapped)(const IttDomain*, IttId task) = nullptr;
    void (*metadata_str_add)(const IttDomain*, IttId task, IttString* key, const char* text,
                             std::size_t length) = nullptr;
};

}  // namespace marey
