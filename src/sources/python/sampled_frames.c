/* sampled_frames.c: reads frames of the interpreter that may be changing, or gone. In C, like the
 * interpreter's headers.
 *
 * A frame of the calling thread is read where it is if it lies in a chunk of the thread's data stack. Frames
 * of generators are in the heap: the kernel copies them, as it does all frames of other threads. */
#include "sampled_frames.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "frame_layout.h"

enum { kMostChunks = 64, kMostOffset = 1 << 20 };

int marey_copy_checked(uintptr_t from, void* to, size_t bytes) {
    const struct iovec local = {to, bytes};
    const struct iovec remote = {(void*)from, bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}

struct chunks {
    const _PyStackChunk* newest;
    uintptr_t low; /* of the one that was found last */
    uintptr_t high;
};

static int is_in_chunk(struct chunks* chunks, uintptr_t from, size_t bytes) {
    if (from >= chunks->low && from + bytes <= chunks->high) return 1;
    const _PyStackChunk* chunk = chunks->newest;
    for (int i = 0; chunk != NULL && i < kMostChunks; ++i, chunk = chunk->previous) {
        const uintptr_t low = (uintptr_t)chunk;
        if (from < low || from + bytes > low + chunk->size) continue;
        chunks->low = low;
        chunks->high = low + chunk->size;
        return 1;
    }
    return 0;
}

static int read_frame(struct chunks* chunks, const _PyInterpreterFrame* from, _PyInterpreterFrame* to) {
    const uintptr_t at = (uintptr_t)from;
    if (at % sizeof(void*) != 0) return 0;
    if (!is_in_chunk(chunks, at, sizeof *to)) return marey_copy_checked(at, to, sizeof *to);
    memcpy(to, from, sizeof *to);
    return 1;
}

/* The code object and the instruction of a copied frame. 0: they cannot be right. */
static int read_place(const _PyInterpreterFrame* frame, struct marey_sampled_frame* out) {
#if PY_VERSION_HEX >= 0x030e0000
    out->code = (uintptr_t)PyStackRef_AsPyObjectBorrow(frame->f_executable);
#else
    out->code = (uintptr_t)CODE_OF(frame);
#endif
    if (out->code < 4096 || out->code % sizeof(void*) != 0) return 0;
    const uintptr_t first = out->code + offsetof(PyCodeObject, co_code_adaptive);
#if PY_VERSION_HEX >= 0x030d0000
    const uintptr_t at = (uintptr_t)frame->instr_ptr;
#else
    const uintptr_t at = (uintptr_t)frame->prev_instr;
#endif
    const uintptr_t offset = (at - first) / sizeof(_Py_CODEUNIT);
    if (at + sizeof(_Py_CODEUNIT) == first) { /* it has not begun */
        out->offset = 0;
    } else if (at < first || offset >= kMostOffset) {
        return 0;
    } else {
        out->offset = (uint32_t)offset;
    }
    return 1;
}

size_t marey_sample_python_frames(void* thread_state, int is_own, struct marey_sampled_frame* out,
                                  size_t room, int* is_torn) {
    struct chunks chunks = {NULL, 0, 0};
    PyThreadState copy;
    const PyThreadState* thread = thread_state;
    if (is_own) {
        chunks.newest = thread->datastack_chunk;
    } else {
        if (!marey_copy_checked((uintptr_t)thread_state, &copy, sizeof copy)) return 0;
        thread = &copy;
    }
    const _PyInterpreterFrame* at = NULL;
#if PY_VERSION_HEX >= 0x030d0000
    at = thread->current_frame;
#else
    _PyCFrame entry;
    uintptr_t entry_at = (uintptr_t)thread->cframe;
    if (!marey_copy_checked(entry_at, &entry, sizeof entry)) {
        *is_torn = 1;
        return 0;
    }
    at = entry.current_frame;
#endif
    size_t count = 0;
    size_t anchored = 0; /* frames whose anchor is known; on 3.12 and later it comes after them */
    for (size_t steps = 0; at != NULL && count < room; ++steps) {
        _PyInterpreterFrame frame;
        if (steps > 2 * room || !read_frame(&chunks, at, &frame)) {
            *is_torn = 1;
            return 0;
        }
        if (IS_ENTRY(&frame)) {
            for (; anchored < count; ++anchored) out[anchored].anchor = (uintptr_t)at;
        } else {
            if (!read_place(&frame, &out[count])) {
                *is_torn = 1;
                return 0;
            }
#if PY_VERSION_HEX < 0x030c0000
            out[count].anchor = entry_at;
            if (frame.is_entry) {
                entry_at = (uintptr_t)entry.previous;
                if (frame.previous != NULL && !marey_copy_checked(entry_at, &entry, sizeof entry)) {
                    *is_torn = 1;
                    return 0;
                }
            }
            anchored = count + 1;
#endif
            ++count;
        }
        at = frame.previous;
    }
    for (; anchored < count; ++anchored) out[anchored].anchor = 0;
    return count;
}
