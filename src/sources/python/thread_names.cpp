// thread_names.cpp: names recorded threads after their threading.Thread.
#include "sources/python/thread_names.h"

#include <new>
#include <string_view>

#include <marey/range.h>

#include "sources/python/python_text.h"

namespace marey::python {

bool is_thread_code(PyCodeObject* code) noexcept {
    bool is_it = false;
    with_text(code->co_qualname, [&](std::string_view text) { is_it = text == "Thread._bootstrap"; });
    if (!is_it) return false;
    with_text(code->co_filename, [&](std::string_view text) { is_it = text.ends_with("/threading.py"); });
    return is_it;
}

std::string name_of_thread(PyObject* thread) {
    const SavedError error;
    std::string name;
    if (thread == nullptr) return name;
    PyObject* const members = PyObject_GenericGetDict(thread, nullptr);
    PyObject* const text = members != nullptr ? PyDict_GetItemString(members, "_name") : nullptr;  // borrowed
    if (text != nullptr && PyUnicode_Check(text))
        with_text(text, [&](std::string_view found) { name = found; });
    Py_XDECREF(members);
    return name;
}

void name_calling_thread(PyObject* thread) noexcept {
    try {
        const std::string name = name_of_thread(thread);
        if (!name.empty()) thread_name(name);
    } catch (const std::bad_alloc&) {  // then it keeps its current name
    }
}

}  // namespace marey::python
