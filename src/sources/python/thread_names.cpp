// thread_names.cpp: names recorded threads after their threading.Thread.
#include "sources/python/thread_names.h"

#include <new>
#include <string_view>

#include <marey/range.h>

#include "sources/python/python_text.h"

namespace marey::python {

bool is_thread_code(PyCodeObject* code) noexcept {
    return with_text(code->co_qualname, [](std::string_view text) { return text == "Thread._bootstrap"; }) &&
           with_text(code->co_filename,
                     [](std::string_view text) { return text.ends_with("/threading.py"); });
}

std::string name_of_thread(PyObject* thread) {
    const SavedError error;
    if (thread == nullptr) return {};
    const Ref members(PyObject_GenericGetDict(thread, nullptr));
    PyObject* const text = members ? PyDict_GetItemString(members.get(), "_name") : nullptr;  // borrowed
    return text != nullptr && PyUnicode_Check(text) ? text_of(text) : std::string();
}

void name_calling_thread(PyObject* thread) noexcept {
    try {
        const std::string name = name_of_thread(thread);
        if (!name.empty()) thread_name(name);
    } catch (const std::bad_alloc&) {  // then it keeps its current name
    }
}

}  // namespace marey::python
