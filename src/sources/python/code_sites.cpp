// code_sites.cpp: the names of Python functions.
#include "sources/python/code_sites.h"

#include <string>
#include <string_view>

#include "record/source_writer.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"

namespace kymo::python {

Py_ssize_t code_slot = -1;

bool claim_code_slot() noexcept {
    if (code_slot < 0) {
#if PY_VERSION_HEX >= 0x030C0000
        code_slot = PyUnstable_Eval_RequestCodeExtraIndex(nullptr);
#else
        code_slot = _PyEval_RequestCodeExtraIndex(nullptr);
#endif
    }
    return code_slot >= 0;
}

namespace {

// What is left of a file's path behind the longest folder from which modules are imported.
std::string_view without_import_prefix(std::string_view file) {
    PyObject* const path = PySys_GetObject("path");  // borrowed
    std::size_t longest = 0;
    if (path == nullptr || !PyList_Check(path)) return file;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(path); ++i) {
        PyObject* const folder = PyList_GET_ITEM(path, i);
        if (!PyUnicode_Check(folder)) continue;
        with_text(folder, [&](std::string_view text) {
            while (!text.empty() && text.back() == '/') text.remove_suffix(1);
            if (!text.empty() && text.size() > longest && file.size() > text.size() + 1 &&
                file[text.size()] == '/' && file.substr(0, text.size()) == text)
                longest = text.size() + 1;
        });
    }
    return file.substr(longest);
}

// Of the package itself: what it does to record is no part of the program.
bool is_own(PyCodeObject* code) {
    bool is_own = false;
    with_text(code->co_filename, [&](std::string_view file) {
        constexpr std::string_view kFolder = "/kymo";
        const std::size_t end = file.rfind('/');
        if (end == std::string_view::npos || end < kFolder.size()) return;
        is_own = file.substr(end - kFolder.size(), kFolder.size()) == kFolder;
    });
    return is_own;
}

std::uint32_t make_site(PyCodeObject* code) {
    std::string file;
    with_text(code->co_filename, [&](std::string_view text) { file = text; });
    std::string name(without_import_prefix(file));
    name += '(';
    name += std::to_string(code->co_firstlineno);
    name += "): ";
    with_text(code->co_qualname, [&](std::string_view text) { name += text; });
    return traced_site(name, file.empty() ? std::string_view("(unknown)") : std::string_view(file),
                       static_cast<std::uint32_t>(code->co_firstlineno), Scope::PythonFunction);
}

void set_word(PyCodeObject* code, CodeWord word) noexcept {
    auto* const object = reinterpret_cast<PyObject*>(code);
#if PY_VERSION_HEX >= 0x030C0000
    PyUnstable_Code_SetExtra(object, code_slot, reinterpret_cast<void*>(word));
#else
    _PyCode_SetExtra(object, code_slot, reinterpret_cast<void*>(word));
#endif
}

}  // namespace

CodeWord learn_code(PyCodeObject* code) noexcept {
    const KeptError error;
    CodeWord word = kCodeKnown;
    if ((code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0) word |= kCodeGenerator;
    try {
        if (is_own(code)) word |= kCodeSkipped;
        word |= CodeWord{make_site(code)} << kCodeSiteShift;
    } catch (const std::bad_alloc&) {
        return word;
    }
    if (is_module_code(code)) word |= kCodeModule;
    set_word(code, word);
    return word;
}

void mark_code(PyCodeObject* code, CodeWord bit, bool is_set) noexcept {
    const CodeWord word = code_slot >= 0 ? known_code(code) : 0;
    if (word == 0) return;
    const KeptError error;
    set_word(code, is_set ? word | bit : word & ~bit);
}

}  // namespace kymo::python
