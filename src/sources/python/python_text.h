// python_text.h: references to Python objects, their texts, and ways to preserve the error indicator.
#pragma once

#include <Python.h>

#include <string>
#include <string_view>
#include <utility>

namespace marey::python {

/// Whether the interpreter is ending.
inline bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030d0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
}

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

/// An owned reference to a Python object, or none. Needs the GIL.
class Ref {
  public:
    Ref() noexcept = default;
    /// Takes a new reference. Null after an error, which is cleared.
    explicit Ref(PyObject* owned) noexcept : object_(owned) {
        if (object_ == nullptr) PyErr_Clear();
    }
    static Ref borrow(PyObject* object) noexcept { return Ref(Py_XNewRef(object)); }
    Ref(const Ref& other) noexcept : object_(Py_XNewRef(other.object_)) {}
    Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Ref& operator=(Ref other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Ref() { Py_XDECREF(object_); }
    PyObject* get() const noexcept { return object_; }
    PyObject* release() noexcept { return std::exchange(object_, nullptr); }
    explicit operator bool() const noexcept { return object_ != nullptr; }

  private:
    PyObject* object_ = nullptr;
};

/// An attribute of an object; null if it is missing or the object is null.
inline Ref attribute(PyObject* object, const char* name) noexcept {
    return object != nullptr ? Ref(PyObject_GetAttrString(object, name)) : Ref();
}

/// Calls `use` with the UTF-8 text of a str, as a string_view that is valid during the call; text without a
/// UTF-8 form is escaped. Exceptions of `use` pass through. No error is set afterwards.
auto with_text(PyObject* text, auto use) {
    Py_ssize_t length = 0;
    if (text != nullptr && PyUnicode_Check(text)) {
        if (const char* const bytes = PyUnicode_AsUTF8AndSize(text, &length))
            return use(std::string_view(bytes, static_cast<std::size_t>(length)));
        PyErr_Clear();
        if (const Ref escaped(PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace")); escaped)
            return use(std::string_view(PyBytes_AS_STRING(escaped.get()),
                                        static_cast<std::size_t>(PyBytes_GET_SIZE(escaped.get()))));
    }
    return use(std::string_view("(unprintable)"));
}

/// The text of a str.
inline std::string text_of(PyObject* text) {
    return with_text(text, [](std::string_view found) { return std::string(found); });
}

}  // namespace marey::python
