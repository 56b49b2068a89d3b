// call_parts.h: begins a part of a call that can be suspended, from the interpreter's frame (Python 3.11).
#pragma once

#include "sources/python/asyncio_tasks.h"
#include "sources/python/code_sites.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/live_calls.h"

#if PY_VERSION_HEX < 0x030C0000

namespace marey::python {

/// `start`: the start of the part's range. A coroutine that is not awaited may belong to a task.
inline void begin_call_part(_PyInterpreterFrame* frame, CodeWord word, std::uint64_t start) noexcept {
    const std::uint64_t number = begin_part(frame, is_at_start(frame), start);
    if (number != 0 && (word & kCodeCoroutine) != 0 && !is_awaited(frame))
        note_task(generator_of(frame), number);
}

}  // namespace marey::python

#endif
