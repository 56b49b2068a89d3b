/* interpreter_frames.c: the part of interpreter_frames.h that needs the layout of frames. */
#include "frame_layout.h"

#if PY_VERSION_HEX >= 0x030c0000

PyObject* marey_generator_of(const void* frame);

PyObject* marey_generator_of(const void* frame) {
    return (PyObject*)GENERATOR_OF((_PyInterpreterFrame*)frame);
}

#else
typedef int marey_no_generators; /* 3.11: frame hooks include the headers themselves; C wants a declaration */
#endif
