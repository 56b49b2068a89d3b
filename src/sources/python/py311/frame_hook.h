// frame_hook.h: records Python calls with the frame evaluation hook (PEP 523): Python 3.11 without C calls.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include <marey/detail/thread_state.h>

#include "sources/python/start_frames.h"

struct _PyInterpreterFrame;

namespace marey::python {

/// The frame hook's data for a thread; ThreadState::tracer points to it. Belongs to its thread; others access
/// it only with the GIL.
struct FrameThread {
    /// Below this address of the C stack, calls take the slow path. All bits set: there is work to do first.
    std::uintptr_t stack_floor = ~std::uintptr_t{0};
    std::uintptr_t stack_middle = 0;  ///< below this address they run without the hook
    /// The innermost call that began before the hook, while no call that the hook has seen is running; else
    /// null.
    const void* adopted_top = nullptr;
    std::vector<AdoptedFrame> adopted;  ///< running calls that began before the hook, the outermost first
    bool has_stale_frames = false;      ///< the hook was removed: some of them may have ended
    std::uint32_t thread = 0;           ///< the recorder's number
    std::uint32_t depth = 0;            ///< with a filter: recorded calls that began since tracing started
};

/// Both need the GIL. `cannot_follow`: called when a thread has switched greenlets, which the hook cannot
/// follow.
bool start_frame_hook(void (*cannot_follow)(PyObject* origin) noexcept) noexcept;
/// Removes the hook; calls that it has seen begin still end normally.
void pause_frame_hook() noexcept;
/// While the hook is removed: a call of the calling thread has returned, which may have begun before the
/// hook.
void end_adopted_frame(_PyInterpreterFrame* frame) noexcept;
/// Ends calls that had ended before the hook was removed. `innermost`: the frame that ran then. Does nothing
/// when called again.
void end_stale_thread_frames(const _PyInterpreterFrame* innermost) noexcept;
/// `will_restart`: a hook is started right after, and each thread then ends its own open calls.
void stop_frame_hook(bool will_restart) noexcept;
/// For the child of a fork: the other threads no longer exist.
void frame_hook_forked() noexcept;
/// How often recording had to pause near the end of a thread's C stack since the last call. Any thread.
std::uint64_t frame_hook_gaps() noexcept;

/// The calling thread is about to open a range: opens its earlier calls and ends those that have ended.
void prepare_frame_thread() noexcept;

}  // namespace marey::python
