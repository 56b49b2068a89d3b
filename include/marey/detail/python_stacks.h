// python_stacks.h: what libmarey, which knows no Python, asks of the Python extension about stacks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <marey/traceback.h>

namespace marey::detail {

/// A Python frame as captured.
struct PythonFrame {
    void* code;          ///< a strong reference to the code object
    std::int32_t lasti;  ///< offset of the instruction in bytes
    /// The number of the native frame of the interpreter that runs it; several share one since Python 3.11.
    std::uint32_t place;
};

constexpr std::uint32_t kNoPlace = UINT32_MAX;
constexpr std::uint64_t kNoFrame = UINT64_MAX;

/// One block: this, the Python frames, the addresses; all innermost first.
struct TracebackData {
    std::atomic<std::uint32_t> owners;
    std::uint32_t python_count;
    std::uint32_t native_count;
    TracebackData* next;  ///< while it waits for its references to be released

    PythonFrame* python() noexcept { return reinterpret_cast<PythonFrame*>(this + 1); }
    std::uintptr_t* native() noexcept { return reinterpret_cast<std::uintptr_t*>(python() + python_count); }
};

/// The extension's part. All but `enter` are called with the GIL, and none throws, but for `describe`.
struct PythonStacks {
    /// Whether this thread may use Python: it has the GIL, or takes it. `state` goes to `leave`.
    bool (*enter)(int& state) noexcept;
    void (*leave)(int state) noexcept;
    /// The number of frames behind `skip`. The first `room` are written, with references; `anchors`, where
    /// given, gets for each an address inside of the interpreter's native frame.
    std::size_t (*capture)(PythonFrame* out, std::size_t room, std::size_t skip,
                           std::uintptr_t* anchors) noexcept;
    void (*release)(PythonFrame* frames, std::size_t count) noexcept;
    void (*describe)(const PythonFrame& frame, TracebackFrame& out);
    _object* (*to_python)(const CapturedTraceback& traceback) noexcept;
    bool (*is_traceback)(_object* object) noexcept;
    CapturedTraceback (*from_python)(_object* object) noexcept;
    /// The frame as a log has it (log_format.h): the site of its code and the line. 0: not known;
    /// kNoFrame: to be left out.
    std::uint64_t (*frame_word)(const PythonFrame& frame) noexcept;
};

/// Once, when the extension is loaded; it is never taken back.
MAREY_API void set_python_stacks(const PythonStacks* stacks) noexcept;

/// As CapturedTraceback::gather, which leaves out itself: and `native_skip` more of the innermost native
/// frames.
MAREY_API TracebackData* gather(const TracebackOptions& options, std::size_t native_skip) noexcept;

/// Releases what dropped tracebacks held. With the GIL, and without locks: finalizers may run.
MAREY_API void release_dropped() noexcept;

/// How many dropped ones wait.
MAREY_API std::size_t dropped_count() noexcept;

}  // namespace marey::detail
