// traceback.h: where a thread is: Python and native frames, captured raw and named later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <marey/detail/export.h>

struct _object;  // PyObject of Python.h, which this header does not need

namespace marey {

namespace detail {
struct TracebackData;
MAREY_API void keep(TracebackData* data) noexcept;
MAREY_API void release_traceback(TracebackData* data) noexcept;
}  // namespace detail

/// What to capture.
struct TracebackOptions {
    bool python = true;    ///< frames of Python, where this thread runs some
    bool native = false;   ///< frames of C and C++
    std::size_t skip = 0;  ///< leaves out that many of the innermost Python frames
};

/// An address in a file, good on other machines and in other processes.
struct NativeLocation {
    std::string path;          ///< of the program or library, as it was here
    std::string build_id;      ///< in hexadecimal, empty: it has none
    std::uint64_t offset = 0;  ///< as the file counts: what addr2line takes
};

/// A frame with its names.
struct TracebackFrame {
    std::string name;      ///< function; "??" where nothing is known
    std::string filename;  ///< source; the library where the source is not known
    int line = 0;          ///< 0: not known
    bool python = false;
    bool inlined = false;  ///< native: into the next frame
};

/// The frames of one moment of one thread. A handle: copies are the same capture, and cost a count.
///
/// Capturing names nothing and formats nothing: it stores a code object and an instruction for each Python
/// frame, an address for each native one. `symbolize` names them later, many at once.
///
/// Any thread may copy, drop or symbolise one, with or without Python's lock (the GIL), and whatever locks it
/// holds: the references to Python's objects in one that is dropped are put on a list without a lock, and
/// released at the next capture that has the GIL, or when one of Python's handles goes. **Order of locks: the
/// GIL, then yours, then none of ours.** So capture (which may take the GIL, and may run finalizers) before
/// you take a lock that is ever held while somebody waits for the GIL.
class CapturedTraceback {
  public:
    /// Empty: of no frames.
    CapturedTraceback() noexcept = default;
    CapturedTraceback(const CapturedTraceback& other) noexcept : data_(other.data_) {
        if (data_ != nullptr) detail::keep(data_);
    }
    CapturedTraceback(CapturedTraceback&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
    CapturedTraceback& operator=(CapturedTraceback other) noexcept {
        std::swap(data_, other.data_);
        return *this;
    }
    ~CapturedTraceback() {
        if (data_ != nullptr) detail::release_traceback(data_);
    }

    /// The calling thread's frames, its caller the innermost. Python frames are captured where the
    /// interpreter lives and this thread has the GIL or is one of Python's threads, which then takes it for a
    /// moment; any other thread gets native frames alone. Empty where there is no memory.
    MAREY_API static CapturedTraceback gather(const TracebackOptions& options = {}) noexcept;

    explicit operator bool() const noexcept { return data_ != nullptr; }
    /// Whether both are the same capture.
    bool operator==(const CapturedTraceback& other) const noexcept { return data_ == other.data_; }

    MAREY_API std::size_t python_frames() const noexcept;
    /// The return addresses of the native frames, innermost first. Good as long as a handle lives.
    MAREY_API std::span<const std::uintptr_t> addresses() const noexcept;
    /// Where those are, for another machine. While the libraries are loaded.
    MAREY_API std::vector<NativeLocation> locations() const;

    /// For those who pass handles through languages that know none. `adopt` takes over what `release` gave.
    detail::TracebackData* get() const noexcept { return data_; }
    detail::TracebackData* release() noexcept { return std::exchange(data_, nullptr); }
    static CapturedTraceback adopt(detail::TracebackData* data) noexcept {
        CapturedTraceback handle;
        handle.data_ = data;
        return handle;
    }

  private:
    detail::TracebackData* data_ = nullptr;
};

/// Many tracebacks with names. Each frame that differs is there once.
struct SymbolizedTracebacks {
    std::vector<TracebackFrame> all_frames;
    /// For each traceback its frames, innermost first, as indices. Python's frames stand before the native
    /// frame of the interpreter that runs them; those that have none here come last.
    std::vector<std::vector<std::uint32_t>> tracebacks;
};

/// Whether native frames get files, lines and inlined calls, or (where this library was built without
/// elfutils) names of functions alone.
MAREY_API bool has_native_lines() noexcept;

/// Names frames. What was looked up once is remembered. Takes the GIL where there are Python frames; call it
/// without holding locks. Native frames in a library that cannot be read are named by the library alone.
MAREY_API SymbolizedTracebacks symbolize(std::span<const CapturedTraceback> tracebacks);

/// The frames at return addresses of this process, innermost first for each.
MAREY_API std::vector<std::vector<TracebackFrame>> symbolize_addresses(
    std::span<const std::uintptr_t> addresses);

/// The frames at locations that another machine captured. Files are sought by build id below `folder` (which
/// has a .build-id/), then by their path. A location whose file is not here is named by its path and offset.
MAREY_API std::vector<std::vector<TracebackFrame>> symbolize_locations(
    std::span<const NativeLocation> locations, const std::string& folder = "/usr/lib/debug");

/// What native unwinding has done in this process.
struct UnwindCounts {
    std::uint64_t known;          ///< frames whose address was known from before
    std::uint64_t looked_up;      ///< that had to be looked up
    std::uint64_t without_table;  ///< of those, that had no table which could be used
    std::uint64_t forgotten;      ///< how often all was forgotten, because a library was unloaded
};
MAREY_API UnwindCounts unwind_counts() noexcept;

/// marey.CapturedTraceback for a handle, and back: the same capture. With the GIL, and marey imported;
/// marey/python/ has casters for nanobind and pybind11 that see to that. `to_python` gives a new reference,
/// or null with a Python error set; `from_python` an empty handle where the object is none.
MAREY_API _object* to_python(const CapturedTraceback& traceback) noexcept;
MAREY_API bool is_captured_traceback(_object* object) noexcept;
MAREY_API CapturedTraceback from_python(_object* object) noexcept;

}  // namespace marey
