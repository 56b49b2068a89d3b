// traceback.h: the call stack of a thread: Python and native frames, captured as addresses and named later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <marey/detail/export.h>
#include <marey/span.h>

struct _object;  // PyObject of Python.h, which this header does not need

namespace marey {

namespace detail {
struct TracebackData;
MAREY_API void keep(TracebackData* data) noexcept;
MAREY_API void release_traceback(TracebackData* data) noexcept;
}  // namespace detail

/// Options for capturing a traceback.
struct TracebackOptions {
    bool python = true;    ///< capture Python frames, if this thread runs any
    bool native = false;   ///< capture C and C++ frames
    std::size_t skip = 0;  ///< leave out this many of the innermost Python frames
};

/// An address in a file, valid on other machines and in other processes.
struct NativeLocation {
    std::string path;          ///< of the program or library, on the capturing machine
    std::string build_id;      ///< in hexadecimal; empty: none
    std::uint64_t offset = 0;  ///< offset in the file, as addr2line expects it
};

/// A frame with its names.
struct TracebackFrame {
    std::string name;      ///< function; "??" if unknown
    std::string filename;  ///< source file; the library if the source is unknown
    int line = 0;          ///< 0: unknown
    bool python = false;
    bool inlined = false;  ///< native: inlined into the next frame
};

/// The frames of a thread at one moment. A handle: copies share the capture through a reference count.
///
/// Capturing does not look up names or format text: it stores a code object and an instruction for each
/// Python frame, and an address for each native frame. symbolize() names them later, many at once.
///
/// Any thread may copy, destroy or symbolize a traceback, with or without the GIL, and whatever locks it
/// holds. When one is destroyed, its references to Python objects are put on a lock-free list and released at
/// the next capture that has the GIL, or when a Python handle is destroyed. **Lock order: the GIL, then your
/// locks; Marey adds none.** So capture (which may take the GIL and run finalizers) before you take a lock
/// that is ever held while a thread waits for the GIL.
class CapturedTraceback {
  public:
    /// Creates an empty traceback without frames.
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

    /// Captures the frames of the calling thread; the caller is the innermost frame. Python frames are
    /// captured if the interpreter is running and this thread has the GIL or is a Python thread, which then
    /// takes the GIL briefly; any other thread gets only native frames. Empty if out of memory.
    MAREY_API static CapturedTraceback gather(const TracebackOptions& options = {}) noexcept;

    explicit operator bool() const noexcept { return data_ != nullptr; }
    /// Whether both are the same capture.
    bool operator==(const CapturedTraceback& other) const noexcept { return data_ == other.data_; }

    MAREY_API std::size_t python_frames() const noexcept;
    /// The return addresses of the native frames, innermost first. Valid while a handle is alive.
    MAREY_API Span<const std::uintptr_t> addresses() const noexcept;
    /// The locations of those addresses, for use on another machine. Call it while the libraries are loaded.
    MAREY_API std::vector<NativeLocation> locations() const;

    /// For passing handles through other languages. adopt() takes ownership of the result of release().
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

/// Tracebacks with names. Equal frames are stored once.
struct SymbolizedTracebacks {
    std::vector<TracebackFrame> all_frames;
    /// The frames of each traceback, innermost first, as indexes into all_frames. Python frames come before
    /// the native frame of the interpreter that runs them, or last if that frame was not captured.
    std::vector<std::vector<std::uint32_t>> tracebacks;
};

/// Returns whether native frames get files, lines and inlined calls. False if the library was built without
/// elfutils; then they get only function names.
MAREY_API bool has_native_lines() noexcept;

/// Names the frames of tracebacks. Results are cached. Takes the GIL if there are Python frames; call it
/// without holding locks. Native frames in a library that cannot be read get only the library's name.
MAREY_API SymbolizedTracebacks symbolize(Span<const CapturedTraceback> tracebacks);

/// Names the frames at return addresses of this process; for each address, innermost first.
MAREY_API std::vector<std::vector<TracebackFrame>> symbolize_addresses(Span<const std::uintptr_t> addresses);

/// Names the frames at locations captured on another machine. Files are looked up by build id below `folder`
/// (which contains .build-id/), then by path. If a file is not found, its path and offset are the name.
MAREY_API std::vector<std::vector<TracebackFrame>> symbolize_locations(
    Span<const NativeLocation> locations, const std::string& folder = "/usr/lib/debug");

/// Counters of native unwinding in this process.
struct UnwindCounts {
    std::uint64_t known;          ///< frames whose address was cached
    std::uint64_t looked_up;      ///< frames that had to be looked up
    std::uint64_t without_table;  ///< looked-up frames without a usable unwind table
    std::uint64_t forgotten;      ///< times the cache was cleared because a library was unloaded
};
/// Returns the counters.
MAREY_API UnwindCounts unwind_counts() noexcept;

/// Convert a handle to a marey.CapturedTraceback object and back; both refer to the same capture. The caller
/// must hold the GIL and have imported marey; the casters for nanobind and pybind11 in marey/python/ ensure
/// that. to_python() returns a new reference, or null with a Python error set; from_python() returns an empty
/// handle if the object has another type.
MAREY_API _object* to_python(const CapturedTraceback& traceback) noexcept;
MAREY_API bool is_captured_traceback(_object* object) noexcept;
MAREY_API CapturedTraceback from_python(_object* object) noexcept;

}  // namespace marey
