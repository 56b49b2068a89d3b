/* c.h: recording from C and from bindings of other languages, and the writer table for sources in other
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

/* A site: a name and the place in the source that marks it. 0 means none; every function ignores site 0. */
typedef uint32_t marey_site;

/* Numbers of marey::Scope. */
enum { MAREY_SCOPE_FUNCTION = 0, MAREY_SCOPE_BACKWARD_FUNCTION = 1, MAREY_SCOPE_USER = 7 };

/* Registers a site and returns its number; call it once and keep the number. `file` may be NULL. Equal places
   get equal numbers. */
MAREY_C_API marey_site marey_intern(const char* name, const char* file, uint32_t line, uint8_t scope);

/* Begin and end ranges on the calling thread. Each end closes the innermost begin that has not been ended,
   even if recording was switched on or off in between. */
MAREY_C_API void marey_begin(marey_site site);
MAREY_C_API void marey_begin_named(const char* name);
MAREY_C_API void marey_end(void);
/* Ends the innermost open range of this site. Ranges that began inside it and never ended are marked
   unfinished. */
MAREY_C_API void marey_end_site(marey_site site);

/* Begin and end ranges that may end on another thread. begin returns an id (0 if nothing is recording), which
   end takes. */
MAREY_C_API uint64_t marey_async_begin(marey_site site);
MAREY_C_API void marey_async_end(marey_site site, uint64_t id);

MAREY_C_API void marey_instant(const char* name);
MAREY_C_API void marey_counter_double(const char* name, double value);
MAREY_C_API void marey_counter_int(const char* name, int64_t value);
/* Report an allocation, for allocators; see marey::report_allocation. `bytes` < 0 means freed. Device types
   are the numbers of marey::DeviceType (0 CPU, 1 CUDA); the index is -1 if there is only one device. */
MAREY_C_API void marey_report_allocation(const void* address, int64_t bytes, int64_t total_allocated,
                                         int64_t total_reserved, uint8_t device_type, int32_t device_index);
MAREY_C_API void marey_report_out_of_memory(int64_t bytes, int64_t total_allocated, int64_t total_reserved,
                                            uint8_t device_type, int32_t device_index);
MAREY_C_API void marey_thread_name(const char* name);
MAREY_C_API int marey_is_recording(void);

/* Start and stop a session. `options` has the form of the environment variable MAREY
   ("out=app.marey,max=64MB"; NULL: defaults, memory only). start returns 0 on failure and writes the reason
   to `error` (may be NULL). stop completes the capture file. */
MAREY_C_API uint64_t marey_session_start(const char* options, char* error, size_t error_bytes);
MAREY_C_API void marey_session_stop(uint64_t session);

/* Contexts (marey/context.h). capture returns the context of the calling thread, or NULL if out of memory;
   any thread may adopt it, any number of times, and free it, even while it is adopted. adopt puts the calling
   thread into the context (NULL: an empty context); restore puts the same thread back. If adopt returns NULL
   (out of memory), nothing changed. */
typedef struct marey_context marey_context;
typedef struct marey_adoption marey_adoption;
MAREY_C_API marey_context* marey_context_capture(void);
MAREY_C_API void marey_context_free(marey_context* context);
MAREY_C_API marey_adoption* marey_context_adopt(const marey_context* context);
MAREY_C_API void marey_context_restore(marey_adoption* adoption);

/* ---- for sources: all other writing into logs goes through this table */

/* A log of something other than a thread: a device stream, a collector. */
typedef struct marey_log marey_log;

#define MAREY_WRITER_VERSION 1
typedef struct marey_writer {
    uint32_t version; /* MAREY_WRITER_VERSION of the library; later versions only add members at the end */
    uint32_t bytes;   /* size of the library's table */
    uint64_t (*now)(void); /* the current time in ticks, the clock of every record */
    marey_site (*intern)(const char* name, const char* file, uint32_t line, uint8_t scope);
    void (*open)(marey_site site); /* on the calling thread's stack, as marey_begin */
    void (*close)(void);
    marey_log* (*log_create)(const char* name); /* NULL if there is no space */
    void (*log_close)(marey_log* log);
    /* Append an event with given ticks to `log`, or to the calling thread's log if `log` is NULL. Ranges of
       one log must come in order of their ends; `depth` is the number of ranges of that log around this one.
       Return 0 if nothing is recording or there is no space (then the event is counted as dropped). */
    int (*range)(marey_log* log, marey_site site, uint64_t start, uint64_t end, uint32_t depth);
    int (*instant)(marey_log* log, marey_site site, uint64_t ticks);
    int (*counter)(marey_log* log, marey_site site, uint64_t ticks, double value);
    int (*blob)(marey_log* log, marey_site site, uint64_t ticks, uint64_t tag, const void* data,
                size_t bytes);
} marey_writer;

/* Returns the table, or NULL if the library is older than `version`. */
MAREY_C_API const marey_writer* marey_writer_table(uint32_t version);

#ifdef __cplusplus
}
#endif
