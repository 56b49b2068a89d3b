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

/// A Python frame as a sample has it: nothing of it may be used before it has been checked.
struct SampledFrame {
    std::uintptr_t code;    ///< the code object
    std::uint32_t offset;   ///< of the instruction, in units of two bytes
    std::uintptr_t anchor;  ///< an address inside the interpreter's native frame; 0: unknown
};

/// The functions of the extension that samples need. The first two are async-signal-safe, and read nothing
/// without a check.
struct PythonSampling {
    /// The interpreter's state of the calling thread; null: it has none.
    void* (*own_thread)() noexcept;
    /// Writes the frames of a thread, innermost first, and returns their number. `is_own`: it is the calling
    /// thread. `is_torn`: not all could be read.
    std::size_t (*frames)(void* thread, bool is_own, SampledFrame* out, std::size_t room,
                          bool& is_torn) noexcept;
    /// Takes the GIL, gives the code places that have none their names, and tells which threads there are.
    /// Not for a thread of Python.
    void (*name_places)() noexcept;
};
/// Sets them, when the extension is loaded; null: Python ends.
MAREY_API void set_python_sampling(const PythonSampling* sampling) noexcept;

/// The places in code objects that samples have met, from number 1 on. False: there is none of that number.
MAREY_API bool sampled_place(std::uint32_t place, std::uintptr_t& code, std::uint32_t& offset) noexcept;
/// `site`: of the code; 0: samples leave it out; the largest number: it is not known any more.
MAREY_API void name_sampled_place(std::uint32_t place, std::uint32_t site, std::uint32_t line) noexcept;
/// A thread that is sampled has this state of the interpreter.
MAREY_API void note_python_thread(std::int64_t os_tid, void* state) noexcept;
/// A code object has been freed: what is at its address from now on is another one.
MAREY_API void forget_sampled_code(std::uintptr_t code) noexcept;

/// Sets the functions once, when the extension is loaded; they are never unset.
MAREY_API void set_python_stacks(const PythonStacks* stacks) noexcept;

/// Like CapturedTraceback::gather, but leaves out `native_skip` more of the innermost native frames.
MAREY_API TracebackData* gather(const TracebackOptions& options, std::size_t native_skip) noexcept;

/// Releases the references of destroyed tracebacks. Call it with the GIL and without locks: finalizers may
/// run.
MAREY_API void release_dropped() noexcept;

}  // namespace marey::detail
