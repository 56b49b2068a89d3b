// python_stacks.h: the functions that libmarey, which does not link to Python, calls in the Python extension.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <marey/traceback.h>

namespace marey::detail {

/// A Python frame as captured.
struct PythonFrame {
    void* code;          ///< a strong reference to the code object
    std::int32_t lasti;  ///< offset of the instruction in bytes
    /// The number of the interpreter's native frame that runs it; since Python 3.11 several share one.
    std::uint32_t place;
};

constexpr std::uint32_t kNoPlace = UINT32_MAX;
constexpr std::uint64_t kNoFrame = UINT64_MAX;

/// One memory block: this header, the Python frames, the addresses; all innermost first.
struct TracebackData {
    std::atomic<std::uint32_t> owners;
    std::uint32_t python_count;
    std::uint32_t native_count;
    TracebackData* next;  ///< the next one in the list of those whose references must be released

    PythonFrame* python() noexcept { return reinterpret_cast<PythonFrame*>(this + 1); }
    std::uintptr_t* native() noexcept { return reinterpret_cast<std::uintptr_t*>(python() + python_count); }
};

/// The functions of the extension. All except `enter` are called with the GIL; only `describe` may throw.
struct PythonStacks {
    /// Returns whether this thread may use Python: it has the GIL, or takes it. `state` is passed to `leave`.
    bool (*enter)(int& state) noexcept;
    void (*leave)(int state) noexcept;
    /// Returns the number of frames after the first `skip`. Writes the first `room` of them, with references.
    /// `anchors`, if not null, receives for each an address inside the interpreter's native frame.
    std::size_t (*capture)(PythonFrame* out, std::size_t room, std::size_t skip,
                           std::uintptr_t* anchors) noexcept;
    void (*release)(PythonFrame* frames, std::size_t count) noexcept;
    void (*describe)(const PythonFrame& frame, TracebackFrame& out);
    _object* (*to_python)(const CapturedTraceback& traceback) noexcept;
    bool (*is_traceback)(_object* object) noexcept;
    CapturedTraceback (*from_python)(_object* object) noexcept;
    /// The frame in the form of the log (log_format.h): the site of its code and the line. 0: unknown;
    /// kNoFrame: leave it out.
    std::uint64_t (*frame_word)(const PythonFrame& frame) noexcept;
};

/// Sets the functions once, when the extension is loaded; they are never unset.
MAREY_API void set_python_stacks(const PythonStacks* stacks) noexcept;

/// Like CapturedTraceback::gather, but leaves out `native_skip` more of the innermost native frames.
MAREY_API TracebackData* gather(const TracebackOptions& options, std::size_t native_skip) noexcept;

/// Releases the references of destroyed tracebacks. Call it with the GIL and without locks: finalizers may
/// run.
MAREY_API void release_dropped() noexcept;

}  // namespace marey::detail
