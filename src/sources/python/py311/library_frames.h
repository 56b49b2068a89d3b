// library_frames.h: finds out from the interpreter's frames whether library code makes a call (Python 3.11).
#pragma once

#include "sources/python/call_filter.h"
#include "sources/python/interpreter_frames.h"

#if PY_VERSION_HEX < 0x030C0000

namespace marey::python {

/// Whether a frame, or the nearest enclosing one that is not excluded by its name, belongs to library code.
inline bool is_library_frame(_PyInterpreterFrame* frame) noexcept {
    for (; frame != nullptr; frame = frame->previous) {
        if (_PyFrame_IsIncomplete(frame)) continue;
        const CodeWord word = filtered_word(frame->f_code, frame->f_globals);
        if ((word & (kCodeExcluded | kCodeSkipped)) == 0) return (word & kCodeLibrary) != 0;
    }
    return false;
}

}  // namespace marey::python

#endif
