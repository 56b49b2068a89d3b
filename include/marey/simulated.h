/* simulated.h: drives the simulated device (docs/reference/devices.md), in libmarey_simulated.so beside libmarey.so: to
 * be loaded with dlopen, ctypes or the like. */
#pragma once

#include <stdint.h>

#include <marey/c.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work that lasts so long never ends; neither does what is given to its queue after it. */
#define MAREY_SIMULATED_FOREVER UINT64_MAX

/* Changes a setting; those of docs/reference/devices.md. 0: done; 1: there is no such setting, or not this value. */
MAREY_C_API int marey_simulated_configure(const char* key, double value);
/* Settings as they were at first; what has been launched and not yet told is forgotten. */
MAREY_C_API void marey_simulated_reset(void);

/* Each is a call of the library, and gives its correlation; 0: refused (there is no such device). */
MAREY_C_API uint32_t marey_simulated_launch(int32_t device, uint32_t stream, const char* name,
                                            uint64_t duration_ns);
MAREY_C_API uint32_t marey_simulated_copy(int32_t device, uint32_t stream, const char* name, uint64_t bytes,
                                          uint64_t duration_ns);
MAREY_C_API uint32_t marey_simulated_set(int32_t device, uint32_t stream, uint64_t bytes,
                                         uint64_t duration_ns);
/* One call, `count` kernels. */
MAREY_C_API uint32_t marey_simulated_graph(int32_t device, uint32_t stream, const char* const* names,
                                           const uint64_t* durations_ns, uint32_t count);
/* What is given to `stream` from now on waits for what was given to `other`. */
MAREY_C_API uint32_t marey_simulated_wait(int32_t device, uint32_t stream, uint32_t other);
/* Waits until a device (-1: every one) has done what it was given. 0: it has; 1: it never will, or there is
   none. */
MAREY_C_API int marey_simulated_synchronize(int32_t device);
/* An address; 0: there is no such device, or not so much memory. */
MAREY_C_API uint64_t marey_simulated_allocate(int32_t device, uint64_t bytes);
/* 0: done; 1: nothing is there. */
MAREY_C_API int marey_simulated_release(int32_t device, uint64_t address);

/* The device and queue of the calling thread's events. 0: done; 1: there is no such device. */
MAREY_C_API int marey_simulated_use(int32_t device, uint32_t stream);
/* Records that found no buffer since the last reset. */
MAREY_C_API uint64_t marey_simulated_lost(void);

#ifdef __cplusplus
}
#endif
