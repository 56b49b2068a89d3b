// python_text.h: texts of Python objects, and ways to preserve the error indicator.
#pragma once

#include <Python.h>

#include <string_view>

namespace marey::python {

/// Saves the error indicator for its lifetime; errors set in between are discarded.
class SavedError {
  public:
    SavedError() noexcept { PyErr_Fetch(&type_, &value_, &traceback_); }
    ~SavedError() { PyErr_Restore(type_, value_, traceback_); }
    SavedError(const SavedError&) = delete;
    SavedError& operator=(const SavedError&) = delete;

  private:
    PyObject* type_ = nullptr;
    PyObject* value_ = nullptr;
    PyObject* traceback_ = nullptr;
};

/// Clears the current error, if any. A KeyboardInterrupt is raised again at the next opportunity.
inline void drop_error() noexcept {
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0)
        PyErr_SetInterrupt();
    PyErr_Clear();
}

/// Calls `use` with the UTF-8 text of a str; text without a UTF-8 form is escaped. No error is set
/// afterwards.
template <class Use>
void with_text(PyObject* text, Use use) {
    Py_ssize_t length = 0;
    if (text != nullptr && PyUnicode_Check(text)) {
        if (const char* const bytes = PyUnicode_AsUTF8AndSize(text, &length))
            return use(std::string_view(bytes, static_cast<std::size_t>(length)));
        PyErr_Clear();
        if (PyObject* const escaped = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace")) {
            use(std::string_view(PyBytes_AS_STRING(escaped),
                                 static_cast<std::size_t>(PyBytes_GET_SIZE(escaped))));
            Py_DECREF(escaped);
            return;
        }
        PyErr_Clear();
    }
    use(std::string_view("(unprintable)"));
}

}  // namespace marey::python
