/* sampled_frames.h: reads the Python frames of a thread for a sample: anywhere, so nothing is trusted. */
#pragma once

#include <Python.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The same layout as marey::detail::SampledFrame. */
struct marey_sampled_frame {
    uintptr_t code;
    uint32_t offset;
    uintptr_t anchor;
};

/* As detail::PythonSampling::frames. Needs no GIL; async-signal-safe; follows no code object. */
size_t marey_sample_python_frames(void* thread, int is_own, struct marey_sampled_frame* out, size_t room,
                                  int* is_torn);

/* Copies memory of this process that may not be there. */
int marey_copy_checked(uintptr_t from, void* to, size_t bytes);

#ifdef __cplusplus
}
#endif
