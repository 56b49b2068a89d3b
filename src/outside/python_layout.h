// python_layout.h: where the interpreter's structures have what, by version of CPython.
#pragma once

#include <cstdint>
#include <string>

#include "outside/process_modules.h"

namespace marey {

/// Offsets in bytes. Those of 3.11 and 3.12 are built in; later versions describe themselves, and nothing in
/// that description is believed without a check.
struct PythonLayout {
    std::uint32_t version = 0;  ///< PY_VERSION_HEX
    // The runtime, an interpreter, and the GIL, which 3.11 has in the runtime and later versions point to.
    std::uint32_t interpreters = 40, next_interpreter = 0, threads = 0;
    std::uint32_t gil = 0, gil_holder = 8, gil_locked = 16, gil_bytes = 208;
    // A thread. Until 3.12 the frame is found by a structure in the C stack, the entry.
    std::uint32_t thread_bytes = 0, next_thread = 8, current = 0, thread_id = 0, native_id = 0, chunk = 0;
    std::uint32_t entry_frame = 0, entry_previous = 0;
    // A frame.
    std::uint32_t frame_bytes = 80, previous = 8, code = 0, instruction = 56, owner = 70, locals = 72;
    std::uint32_t is_entry = 0;       ///< 3.11: marks the outermost frame of an entry
    std::uint32_t stack_pointer = 0;  ///< 3.14: the end of the value stack; 0: not kept in the frame
    // A code object.
    std::uint32_t code_bytes = 200, filename = 112, name = 120, qualname = 128, line_table = 136;
    std::uint32_t exception_table = 40, first_line = 68, local_count = 72, instructions = 192;
    // Other objects.
    std::uint32_t text_bytes = 40,
                  text_more = 16;  ///< an ASCII text's header, and what others have beside it

    bool has_entries() const noexcept { return version < 0x030d0000; }
    bool is_311() const noexcept { return version < 0x030c0000; }
};

/// The interpreter in a process.
struct FoundPython {
    std::uintptr_t runtime = 0;  ///< address of _PyRuntime
    PythonLayout layout{};
    std::string version{};     ///< "3.12.1"
    std::uintptr_t begin = 0;  ///< of the file that contains the interpreter, in memory
    std::uintptr_t end = 0;
};

/// Finds the interpreter in a program, which may be linked into it; nothing if it has none. Throws Error if
/// it has one of a version that is not supported.
std::optional<FoundPython> find_python(const ProcessFiles& process, ProcessModules& modules);

/// For tests: the layout that the words of a _Py_DebugOffsets describe. Throws Error if they cannot be true.
PythonLayout layout_of(std::span<const std::uint64_t> words);

}  // namespace marey
