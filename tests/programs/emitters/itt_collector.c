/* itt_collector.c: an ITT collector for tests. Writes what it receives as nvtx_collector.c does. Built twice:
 * as collectors are now, with __itt_api_init, and, with OLD_STYLE, as older ones, which export the functions.
 * The layouts below are those that ITT documents, written down apart from ours. */
#include <string.h>

#include "collected_lines.h"

typedef struct domain {
    volatile int flags;
    const char* nameA;
    void* nameW;
    int extra1;
    void* extra2;
    struct domain* next;
} domain;
typedef struct string_handle {
    const char* strA;
    void* strW;
    int extra1;
    void* extra2;
    struct string_handle* next;
} string_handle;
typedef struct {
    unsigned long long d1, d2, d3;
} id;

#ifdef OLD_STYLE
#define FUNCTION __attribute__((visibility("default")))
#else
#define FUNCTION static
#endif

FUNCTION domain* __itt_domain_create(const char* name) {
    domain* const made = calloc(1, sizeof *made);
    made->flags = 1;
    made->nameA = strdup(name);
    collected_line("domain %s", name);
    return made;
}
FUNCTION string_handle* __itt_string_handle_create(const char* text) {
    string_handle* const made = calloc(1, sizeof *made);
    made->strA = strdup(text);
    return made;
}
FUNCTION void __itt_task_begin(const domain* in, id task, id parent, string_handle* name) {
    (void)task, (void)parent;
    collected_line("begin %s:%s", in->nameA, name->strA);
}
FUNCTION void __itt_task_end(const domain* in) {
    collected_line("end %s", in->nameA);
}
FUNCTION void __itt_task_begin_overlapped(const domain* in, id task, id parent, string_handle* name) {
    (void)parent;
    collected_line("overlapped %llu %s:%s", task.d1, in->nameA, name->strA);
}
FUNCTION void __itt_task_end_overlapped(const domain* in, id task) {
    collected_line("overlapped end %llu %s", task.d1, in->nameA);
}
FUNCTION void __itt_metadata_str_add(const domain* in, id task, string_handle* key, const char* text,
                                     size_t length) {
    (void)in;
    collected_line("metadata %llu %s=%.*s", task.d1, key->strA, (int)length, text);
}

#ifndef OLD_STYLE

typedef struct {
    const char* name;
    void** func_ptr;
    void* init_func;
    void* null_func;
    int group;
} api_info;
typedef struct {
    unsigned char magic[8];
    unsigned long version_major, version_minor, version_build;
    volatile long api_initialized, mutex_initialized, atomic_counter;
    pthread_mutex_t mutex;
    void* lib;
    void* error_handler;
    const char** dll_path_ptr;
    api_info* api_list_ptr;
} global;

static const struct {
    const char* name;
    void* function;
} kFunctions[] = {
    {"__itt_domain_create", (void*)__itt_domain_create},
    {"__itt_string_handle_create", (void*)__itt_string_handle_create},
    {"__itt_task_begin", (void*)__itt_task_begin},
    {"__itt_task_end", (void*)__itt_task_end},
    {"__itt_task_begin_overlapped", (void*)__itt_task_begin_overlapped},
    {"__itt_task_end_overlapped", (void*)__itt_task_end_overlapped},
    {"__itt_metadata_str_add", (void*)__itt_metadata_str_add},
};

__attribute__((visibility("default"))) void __itt_api_init(global* program, int groups) {
    static const unsigned char kMagic[] = {0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30};
    if (memcmp(program->magic, kMagic, sizeof kMagic) != 0 || program->version_major != 3) return;
    pthread_mutex_lock(&program->mutex);
    for (api_info* each = program->api_list_ptr; each->name != NULL; ++each) {
        for (size_t i = 0; i < sizeof kFunctions / sizeof *kFunctions; ++i) {
            if ((each->group & groups) != 0 && strcmp(each->name, kFunctions[i].name) == 0)
                *each->func_ptr = kFunctions[i].function;
        }
    }
    pthread_mutex_unlock(&program->mutex);
}

#endif
