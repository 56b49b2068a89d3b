/* c.h: recording from C and from other languages' bindings, and the writer table for sources in other
 * libraries. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KYMO_C_API __attribute__((visibility("default")))
#else
#define KYMO_C_API
#endif

/* A site: what is marked, and where. 0 is none; every call that takes one ignores 0. */
typedef uint32_t kymo_site;

/* The numbers of kymo::Scope. */
enum { KYMO_SCOPE_FUNCTION = 0, KYMO_SCOPE_BACKWARD_FUNCTION = 1, KYMO_SCOPE_USER = 7 };

/* Interns a site once; keep the number. `file` may be NULL. Equal places get equal numbers. */
KYMO_C_API kymo_site kymo_intern(const char* name, const char* file, uint32_t line, uint8_t scope);

/* Opens and closes ranges of the calling thread. Each end closes the innermost begin that has not been ended,
   also when recording was switched on or off in between. */
KYMO_C_API void kymo_begin(kymo_site site);
KYMO_C_API void kymo_begin_named(const char* name);
KYMO_C_API void kymo_end(void);
/* Closes the innermost open begin of this site; what was begun inside it and never ended becomes unfinished.
 */
KYMO_C_API void kymo_end_site(kymo_site site);

/* Ranges that may end on another thread: begin gives an id (0 when nothing records), end takes it. */
KYMO_C_API uint64_t kymo_async_begin(kymo_site site);
KYMO_C_API void kymo_async_end(kymo_site site, uint64_t id);

KYMO_C_API void kymo_instant(const char* name);
KYMO_C_API void kymo_counter_double(const char* name, double value);
KYMO_C_API void kymo_counter_int(const char* name, int64_t value);
/* For allocators, as kymo::report_allocation: `bytes` < 0 is a release. Device types are the numbers of
   kymo::DeviceType (0 CPU, 1 CUDA); the index is -1 when there is one only. */
KYMO_C_API void kymo_report_allocation(const void* address, int64_t bytes, int64_t total_allocated,
                                       int64_t total_reserved, uint8_t device_type, int32_t device_index);
KYMO_C_API void kymo_report_out_of_memory(int64_t bytes, int64_t total_allocated, int64_t total_reserved,
                                          uint8_t device_type, int32_t device_index);
KYMO_C_API void kymo_thread_name(const char* name);
KYMO_C_API int kymo_is_recording(void);

/* Sessions. `options` is the text of the environment variable KYMO ("out=app.kymo,max=64MB"; NULL: defaults,
   memory only). Gives 0 on failure and the reason in `error` (may be NULL). Stopping completes the capture
   file. */
KYMO_C_API uint64_t kymo_session_start(const char* options, char* error, size_t error_bytes);
KYMO_C_API void kymo_session_stop(uint64_t session);

/* Contexts (kymo/context.h). Capture takes the calling thread's, or NULL when there is no memory; any thread
   may adopt it, any number of times, and free it, also while it is adopted. Adopting puts the calling thread
   into it (NULL: into an empty one), restoring puts the same thread back; a NULL adoption (no memory) changed
   nothing. */
typedef struct kymo_context kymo_context;
typedef struct kymo_adoption kymo_adoption;
KYMO_C_API kymo_context* kymo_context_capture(void);
KYMO_C_API void kymo_context_free(kymo_context* context);
KYMO_C_API kymo_adoption* kymo_context_adopt(const kymo_context* context);
KYMO_C_API void kymo_context_restore(kymo_adoption* adoption);

/* ---- for sources: everything else that writes into logs goes through this table
 * ---------------------------- */

typedef struct kymo_log kymo_log; /* a log of something that is not a thread: a device stream, a collector */

#define KYMO_WRITER_VERSION 1
typedef struct kymo_writer {
    uint32_t version; /* KYMO_WRITER_VERSION of the library; later versions only add members at the end */
    uint32_t bytes;   /* sizeof of the library's table */
    uint64_t (*now)(void); /* ticks, the clock of every record */
    kymo_site (*intern)(const char* name, const char* file, uint32_t line, uint8_t scope);
    void (*open)(kymo_site site); /* on the calling thread's stack, as kymo_begin */
    void (*close)(void);
    kymo_log* (*log_create)(const char* name); /* NULL when there is no room */
    void (*log_close)(kymo_log* log);
    /* Appends with given ticks, to `log` or, when it is NULL, to the calling thread's log. Ranges of one log
       come in order of their ends; `depth` counts the ranges of that log around this one. Gives 0 when
       nothing records or there is no room (then counted). */
    int (*range)(kymo_log* log, kymo_site site, uint64_t start, uint64_t end, uint32_t depth);
    int (*instant)(kymo_log* log, kymo_site site, uint64_t ticks);
    int (*counter)(kymo_log* log, kymo_site site, uint64_t ticks, double value);
    int (*blob)(kymo_log* log, kymo_site site, uint64_t ticks, uint64_t tag, const void* data, size_t bytes);
} kymo_writer;

/* The table, or NULL when the library is older than `version`. */
KYMO_C_API const kymo_writer* kymo_writer_table(uint32_t version);

#ifdef __cplusplus
}
#endif
