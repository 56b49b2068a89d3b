// symbolize.h: names for the native frames of the stacks in a trace, on any machine that has the files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// A program or library in which native frames of a trace lie.
struct NativeModule {
    std::string path;          ///< where the recording process had it
    std::string build_id;      ///< in hexadecimal; empty: it has none
    std::string file;          ///< what was read for it here; empty: nothing
    std::string trouble;       ///< why nothing was read, or what could not be checked
    std::uint64_t frames = 0;  ///< of the trace in it, each place once
    std::uint64_t named = 0;   ///< of those, that have a name now
};

/// A native frame of a trace and what is there.
struct NamedFrame {
    std::string place;                 ///< "library.so+0x12ab"
    std::vector<std::string> entries;  ///< innermost first; several where calls were inlined; empty: unknown
};

struct SymbolizedTrace {
    Trace trace;  ///< the same, with names in its stacks: "file.cpp(12): f(int)", "library.so+0x12ab: f(int)"
    std::vector<NativeModule> modules;  ///< that have frames
    std::vector<NamedFrame> frames;     ///< each place once
};

/// Names the native frames of the values "Call stack". For each module these are tried in turn: in each of
/// `debug_dirs` the file with its build id below .build-id/, the one at its path, the one of its name; then
/// its own path, with separate debug information from /usr/lib/debug. A file with another build id is not
/// used. Nothing is downloaded. Frames without names stay as they are.
MAREY_API SymbolizedTrace symbolize_trace(const Trace& trace, std::span<const std::string> debug_dirs = {});

}  // namespace marey
