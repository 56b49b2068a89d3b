// code_sites.h: maps code objects to the sites of their calls: a lookup the first time, then a word in the
// code object.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <marey/scope.h>

namespace marey::python {

/// The tracer's data for a code object: one word in an extra slot of the code object itself. It is freed with
/// the object, so a reused address never has another function's name. 0: not set yet.
using CodeWord = std::uintptr_t;
inline constexpr CodeWord kCodeKnown = 1;
inline constexpr CodeWord kCodeGenerator =
    2;  ///< creates a generator, a coroutine or an asynchronous generator
inline constexpr CodeWord kCodeSkipped = 4;    ///< its calls are not recorded: Marey's own
inline constexpr CodeWord kCodeCoroutine = 8;  ///< a coroutine, which may belong to a task
inline constexpr CodeWord kCodeModule =
    16;  ///< may be the call of a registered object: module_calls.h has its site
/// With kCodeModule: its first argument is a threading.Thread, or the name of a module to import.
inline constexpr CodeWord kCodeNamed = 32;
inline constexpr unsigned kCodeSiteShift = 8;

/// Whether its calls are recorded without special handling.
inline bool is_usual(CodeWord word) noexcept {
    return (word & (kCodeKnown | kCodeSkipped | kCodeGenerator | kCodeModule)) == kCodeKnown;
}

inline std::uint32_t site_of(CodeWord word) noexcept {
    return static_cast<std::uint32_t>(word >> kCodeSiteShift);
}

/// The index of Marey's extra slot in code objects; -1: none yet.
[[gnu::visibility("hidden")]] extern Py_ssize_t code_slot;

/// Requests a slot from the interpreter once. False: there is none left. Needs the GIL.
bool claim_code_slot() noexcept;

/// The word of a code object that was seen before; otherwise 0.
inline CodeWord known_code(PyCodeObject* code) noexcept {
#if PY_VERSION_HEX < 0x030E0000
    // Same layout as in Objects/codeobject.c; the interpreter's own function would take three calls.
    struct Extra {
        Py_ssize_t size;
        void* words[1];
    };
    const auto* const extra = static_cast<const Extra*>(code->co_extra);
    if (extra == nullptr || extra->size <= code_slot) return 0;
    return reinterpret_cast<CodeWord>(extra->words[code_slot]);
#else
    void* word = nullptr;
    PyUnstable_Code_GetExtra(reinterpret_cast<PyObject*>(code), code_slot, &word);
    return reinterpret_cast<CodeWord>(word);
#endif
}

/// Creates its site and stores the word. Never fails and never changes the error indicator: without space the
/// site is 0.
CodeWord register_code(PyCodeObject* code) noexcept;

/// The name that PyTorch's profiler has for the site of a call: with a function's own name instead of the
/// qualified one, and what Python prints for a C function. Empty: the same name. Requires the GIL.
std::string pytorch_name(Scope scope, std::string_view name);
/// Makes that name the one of this function's calls. Requires the GIL.
void show_as_code_to_pytorch(const std::string& name, PyCodeObject* code);

/// The next code object with the file `<string>` is the program, given with `python -c`. Requires the GIL.
void expect_command_code() noexcept;

/// Code whose file is a key of this dict is named after a notebook's cell: `In[7]` for the value 7. Null:
/// none. Requires the GIL.
void name_cells(PyObject* numbers) noexcept;

/// Replaces the word of a code object.
void set_code_word(PyCodeObject* code, CodeWord word) noexcept;
/// Sets or clears a bit in the word of a code object, if it has one.
void mark_code(PyCodeObject* code, CodeWord bit, bool is_set) noexcept;

inline CodeWord code_word(PyCodeObject* code) noexcept {
    const CodeWord known = known_code(code);
    return known != 0 ? known : register_code(code);
}

}  // namespace marey::python
