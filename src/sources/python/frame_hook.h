// frame_hook.h: Python calls through the frame evaluation hook (PEP 523): Python 3.11 without C calls.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include <marey/detail/thread_state.h>

#include "sources/python/start_frames.h"

struct _PyInterpreterFrame;

namespace marey::python {

/// What the frame hook knows of a thread; ThreadState::tracer points to it. Belongs to its thread; others
/// touch it only with the GIL held.
struct FrameThread {
    /// Below this address of the C stack, calls take the slow way. All addresses: there is something to do
    /// first.
    std::uintptr_t stack_floor = ~std::uintptr_t{0};
    std::uintptr_t stack_middle = 0;  ///< below this one they run without the hook
    /// While no call that the hook has seen is running: the innermost one that it has not seen begin. Else
    /// null.
    const void* adopted_top = nullptr;
    std::vector<AdoptedFrame> adopted;  ///< those running calls, the outermost first
    bool has_stale_frames = false;      ///< the hook was taken out: some of them may have ended before
    std::uint32_t thread = 0;           ///< the recorder's number
    std::uint32_t depth = 0;            ///< with a filter: recorded calls that have begun since tracing did
};

/// Both need the GIL. `cannot_follow`: called when a thread has switched greenlets, which the hook does not
/// follow.
bool start_frame_hook(void (*cannot_follow)(PyObject* origin) noexcept) noexcept;
/// The filter is another one.
void refilter_frame_hook() noexcept;
/// Takes the hook out; calls that it has seen begin still end when they do.
void pause_frame_hook() noexcept;
/// While the hook is out: a call of the calling thread has returned, which may be one that the hook has not
/// seen begin.
void end_adopted_frame(_PyInterpreterFrame* frame) noexcept;
/// Those that have ended before it was taken out end now. `innermost`: what ran then. Does nothing when
/// called again.
void end_stale_thread_frames(const _PyInterpreterFrame* innermost) noexcept;
/// `will_restart`: a hook is started right after, and what is open ends when its thread comes to that.
void stop_frame_hook(bool will_restart) noexcept;
/// In the child of a fork: the other threads are not there, whatever they were doing.
void frame_hook_forked() noexcept;
/// How often recording had to pause near the end of a thread's C stack, since this was last asked. Any
/// thread.
std::uint64_t frame_hook_gaps() noexcept;

/// The calling thread is about to open a range: its calls from before are opened, those that have ended end.
void prepare_frame_thread() noexcept;

}  // namespace marey::python
