/* simulated.h: controls the simulated device in libmarey_simulated.so. Load it with dlopen, ctypes or
 * similar. */
#pragma once

#include <stdint.h>

#include <marey/c.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work with this duration never ends, nor does work launched to its queue after it. */
#define MAREY_SIMULATED_FOREVER UINT64_MAX

/* Changes a setting (see tests/simulated/README.md). Returns 0, or 1 if the setting or the value is invalid.
 */
MAREY_C_API int marey_simulated_configure(const char* key, double value);
/* Restores the initial settings and discards launched work that has not been reported yet. */
MAREY_C_API void marey_simulated_reset(void);

/* Launch work. Each is a call into the device's library and returns its correlation number; 0 if it was
   refused (no such device). */
MAREY_C_API uint32_t marey_simulated_launch(int32_t device, uint32_t stream, const char* name,
                                            uint64_t duration_ns);
MAREY_C_API uint32_t marey_simulated_copy(int32_t device, uint32_t stream, const char* name, uint64_t bytes,
                                          uint64_t duration_ns);
MAREY_C_API uint32_t marey_simulated_set(int32_t device, uint32_t stream, uint64_t bytes,
                                         uint64_t duration_ns);
/* Launches `count` kernels with one call. */
MAREY_C_API uint32_t marey_simulated_graph(int32_t device, uint32_t stream, const char* const* names,
                                           const uint64_t* durations_ns, uint32_t count);
/* Makes work launched to `stream` from now on wait for the work launched to `other` so far. */
MAREY_C_API uint32_t marey_simulated_wait(int32_t device, uint32_t stream, uint32_t other);
/* Waits until a device (-1: all devices) has finished its work. Returns 0, or 1 if it never will or there is
   no such device. */
MAREY_C_API int marey_simulated_synchronize(int32_t device);
/* Allocates memory and returns its address; 0 if there is no such device or not enough memory. */
MAREY_C_API uint64_t marey_simulated_allocate(int32_t device, uint64_t bytes);
/* Frees memory. Returns 0, or 1 if nothing is allocated at this address. */
MAREY_C_API int marey_simulated_release(int32_t device, uint64_t address);

/* Sets the device and queue for the calling thread's events. Returns 0, or 1 if there is no such device. */
MAREY_C_API int marey_simulated_use(int32_t device, uint32_t stream);
/* Returns the number of records lost for lack of a buffer since the last reset. */
MAREY_C_API uint64_t marey_simulated_lost(void);

#ifdef __cplusplus
}
#endif
