// code_sites.h: from a code object to the site of its calls: one look-up the first time, a word in the code
// object after.
#pragma once

#include <Python.h>

#include <cstdint>

namespace marey::python {

/// What the tracer knows of a code object, as one word in an extra slot of the code object itself: it goes
/// with the object, so a reused address never has another function's name. 0: nothing yet.
using CodeWord = std::uintptr_t;
inline constexpr CodeWord kCodeKnown = 1;
inline constexpr CodeWord kCodeGenerator =
    2;                                       ///< makes a generator, a coroutine or an asynchronous generator
inline constexpr CodeWord kCodeSkipped = 4;  ///< its calls are not recorded: Marey's own
inline constexpr CodeWord kCodeCoroutine = 8;  ///< a coroutine, which may be a task's
inline constexpr CodeWord kCodeModule =
    16;  ///< its calls may be those of a registered object: ask module_calls.h for the site
inline constexpr CodeWord kCodeThread = 32;  ///< with kCodeModule: its first argument is a threading.Thread
inline constexpr unsigned kCodeSiteShift = 8;

/// Its calls are recorded as they come: nothing about it is special.
inline bool is_usual(CodeWord word) noexcept {
    return (word & (kCodeKnown | kCodeSkipped | kCodeGenerator | kCodeModule)) == kCodeKnown;
}

inline std::uint32_t site_of(CodeWord word) noexcept {
    return static_cast<std::uint32_t>(word >> kCodeSiteShift);
}

/// Of the interpreter's extra slots the one that is ours; -1: none yet.
[[gnu::visibility("hidden")]] extern Py_ssize_t code_slot;

/// Asks the interpreter for a slot, once. False: there is none left. Needs the GIL.
bool claim_code_slot() noexcept;

/// The word of a code object that has been seen; 0: it has not.
inline CodeWord known_code(PyCodeObject* code) noexcept {
#if PY_VERSION_HEX < 0x030E0000
    // As the interpreter lays it out (Objects/codeobject.c); its own function makes three calls of this.
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

/// Makes its site and remembers it. Never fails and never changes the error indicator: without room the site
/// is 0.
CodeWord register_code(PyCodeObject* code) noexcept;

/// Changes what is remembered of a code object.
void set_code_word(PyCodeObject* code, CodeWord word) noexcept;
/// Sets or clears a bit of a code object's word, should it have one.
void mark_code(PyCodeObject* code, CodeWord bit, bool is_set) noexcept;

inline CodeWord code_word(PyCodeObject* code) noexcept {
    const CodeWord known = known_code(code);
    return known != 0 ? known : register_code(code);
}

}  // namespace marey::python
