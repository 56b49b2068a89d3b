// symbolize.h: names the native frames of the stacks in a trace, on any machine that has the files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// A program or library that contains native frames of a trace.
struct NativeModule {
    std::string path;          ///< its path in the recording process
    std::string build_id;      ///< in hexadecimal; empty: none
    std::string file;          ///< the file that was read for it; empty: none
    std::string trouble;       ///< why no file was read, or what could not be checked
    std::uint64_t frames = 0;  ///< number of different frames of the trace in it
    std::uint64_t named = 0;   ///< number of those that now have a name
};

/// A native frame of a trace with its names.
struct NamedFrame {
    std::string place;                 ///< "library.so+0x12ab"
    std::vector<std::string> entries;  ///< innermost first; several if calls were inlined; empty: unknown
};

/// The result of symbolize_trace().
struct SymbolizedTrace {
    Trace trace;  ///< with names in its stacks: "file.cpp(12): f(int)", "library.so+0x12ab: f(int)"
    std::vector<NativeModule> modules;  ///< the modules that contain frames
    std::vector<NamedFrame> frames;     ///< each frame once
};

/// Names the native frames of the values "Call stack". Looks up each module in this order: in each of
/// `debug_dirs`, the file with its build id below .build-id/, the file at its path, the file with its name;
/// then its own path, with separate debug information from /usr/lib/debug. Files with a different build id
/// are not used. Nothing is downloaded. Frames without names are left unchanged.
MAREY_API SymbolizedTrace symbolize_trace(const Trace& trace, std::span<const std::string> debug_dirs = {});

}  // namespace marey
