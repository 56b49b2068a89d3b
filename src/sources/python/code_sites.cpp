// code_sites.cpp: the names of Python functions.
#include "sources/python/code_sites.h"

#include <string>
#include <string_view>

#include "record/source_writer.h"
#include "sources/python/import_prefixes.h"
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

// The folder of the package itself, with a '/' behind it: what it does to record is no part of the program.
const std::string& own_folder() {
    static const std::string folder = [] {
        std::string found;
        PyObject* const module =
            PyDict_GetItemString(PyImport_GetModuleDict(), "kymo");  // borrowed, as the next
        PyObject* const file = module != nullptr && PyModule_Check(module)
                                   ? PyDict_GetItemString(PyModule_GetDict(module), "__file__")
                                   : nullptr;
        if (file != nullptr && PyUnicode_Check(file))
            with_text(file, [&](std::string_view text) { found = text.substr(0, text.rfind('/') + 1); });
        return found;
    }();
    return folder;
}

std::uint32_t make_site(PyCodeObject* code) {
    std::string file;
    with_text(code->co_filename, [&](std::string_view text) { file = text; });
    std::string name = import_prefixes.shortened(file);
    name += '(';
    name += std::to_string(code->co_firstlineno);
    name += "): ";
    with_text(code->co_qualname, [&](std::string_view text) { name += text; });
    return traced_site(name, file.empty() ? std::string_view("(unknown)") : std::string_view(file),
                       static_cast<std::uint32_t>(code->co_firstlineno), Scope::PythonFunction);
}

}  // namespace

CodeWord learn_code(PyCodeObject* code) noexcept {
    const KeptError error;
    CodeWord word = kCodeKnown;
    if ((code->co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0) word |= kCodeGenerator;
    try {
        const std::string& own = own_folder();
        with_text(code->co_filename, [&](std::string_view file) {
            if (!own.empty() && file.starts_with(own)) word |= kCodeSkipped;
        });
        word |= CodeWord{make_site(code)} << kCodeSiteShift;
    } catch (const std::bad_alloc&) {
        return word;
    }
    set_code_word(code, word);
    return word;
}

void set_code_word(PyCodeObject* code, CodeWord word) noexcept {
    auto* const object = reinterpret_cast<PyObject*>(code);
#if PY_VERSION_HEX >= 0x030C0000
    PyUnstable_Code_SetExtra(object, code_slot, reinterpret_cast<void*>(word));
#else
    _PyCode_SetExtra(object, code_slot, reinterpret_cast<void*>(word));
#endif
    PyErr_Clear();
}

}  // namespace kymo::python
