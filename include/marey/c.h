/* c.h: recording from C and from other languages' bindings, and the writer table for sources in other
 * libraries. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define MAREY_C_API __attribute__((visibility("default")))
#else
#define MAREY_C_API
#endif

/* A site: what is marked, and where. 0 is none; every call that takes one ignores 0. */
typedef uint32_t marey_site;

/* The numbers of marey::Scope. */
enum { MAREY_SCOPE_FUNCTION = 0, MAREY_SCOPE_BACKWARD_FUNCTION = 1, MAREY_SCOPE_USER = 7 };

/* Interns a site once; keep the number. `file` may be NULL. Equal places get equal numbers. */
MAREY_C_API marey_site marey_intern(const char* name, const char* file, uint32_t line, uint8_t scope);

/* Opens and closes ranges of the calling thread. Each end closes the innermost begin that has not been ended,
   also when recording was switched on or off in between. */
MAREY_C_API void marey_begin(marey_site site);
MAREY_C_API void marey_begin_named(const char* name);
MAREY_C_API void marey_end(void);
/* Closes the innermost open begin of this site; what was begun inside it and never ended becomes unfinished.
 */
MAREY_C_API void marey_end_site(marey_site site);

/* Ranges that may end on another thread: begin gives an id (0 when nothing records), end takes it. */
MAREY_C_API uint64_t marey_async_begin(marey_site site);
MAREY_C_API void marey_async_end(marey_site site, uint64_t id);

MAREY_C_API void marey_instant(const char* name);
MAREY_C_API void marey_counter_double(const char* name, double value);
MAREY_C_API void marey_counter_int(const char* name, int64_t value);
/* For allocators, as marey::report_allocation: `bytes` < 0 is a release. Device types are the numbers of
   marey::DeviceType (0 CPU, 1 CUDA); the index is -1 when there is one only. */
MAREY_C_API void marey_report_allocation(const void* address, int64_t bytes, int64_t total_allocated,
                                         int64_t total_reserved, uint8_t device_type, int32_t device_index);
MAREY_C_API void marey_report_out_of_memory(int64_t bytes, int64_t total_allocated, int64_t total_reserved,
                                            uint8_t device_type, int32_t device_index);
MAREY_C_API void marey_thread_name(const char* name);
MAREY_C_API int marey_is_recording(void);

/* Sessions. `options` is the text of the environment variable MAREY ("out=app.marey,max=64MB"; NULL:
   defaults, memory only). Gives 0 on failure and the reason in `error` (may be NULL). Stopping completes the
   capture file. */
MAREY_C_API uint64_t marey_session_start(const char* options, char* error, size_t error_bytes);
MAREY_C_API void marey_session_stop(uint64_t session);

/* Contexts (marey/context.h). Capture takes the calling thread's, or NULL when there is no memory; any thread
   may adopt it, any number of times, and free it, also while it is adopted. Adopting puts the calling thread
   into it (NULL: into an empty one), restoring puts the same thread back; a NULL adoption (no memory) changed
   nothing. */
typedef struct marey_context marey_context;
typedef struct marey_adoption marey_adoption;
MAREY_C_API marey_context* marey_context_capture(void);
MAREY_C_API void marey_context_free(marey_context* context);
MAREY_C_API marey_adoption* marey_context_adopt(const marey_context* context);
MAREY_C_API void marey_context_restore(marey_adoption* adoption);

/* ---- for sources: everything else that writes into logs goes through this table
 * ---------------------------- */

typedef struct marey_log
    marey_log; /* a log of something that is not a thread: a device stream, a collector */

#define MAREY_WRITER_VERSION 1
typedef struct marey_writer {
    uint32_t version; /* MAREY_WRITER_VERSION of the library; later versions only add members at the end */
    uint32_t bytes;   /* sizeof of the library's table */
    uint64_t (*now)(void); /* ticks, the clock of every record */
    marey_site (*intern)(const char* name, const char* file, uint32_t line, uint8_t scope);
    void (*open)(marey_site site); /* on the calling thread's stack, as marey_begin */
    void (*close)(void);
    marey_log* (*log_create)(const char* name); /* NULL when there is no room */
    void (*log_close)(marey_log* log);
    /* Appends with given ticks, to `log` or, when it is NULL, to the calling thread's log. Ranges of one log
       come in order of their ends; `depth` counts the ranges of that log around this one. Gives 0 when
       nothing records or there is no room (then counted). */
    int (*range)(marey_log* log, marey_site site, uint64_t start, uint64_t end, uint32_t depth);
    int (*instant)(marey_log* log, marey_site site, uint64_t ticks);
    int (*counter)(marey_log* log, marey_site site, uint64_t ticks, double value);
    int (*blob)(marey_log* log, marey_site site, uint64_t ticks, uint64_t tag, const void* data,
                size_t bytes);
} marey_writer;

/* The table, or NULL when the library is older than `version`. */
MAREY_C_API const marey_writer* marey_writer_table(uint32_t version);

#ifdef __cplusplus
}
#endif
