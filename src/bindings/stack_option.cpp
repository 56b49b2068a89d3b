// stack_option.cpp: the `stack` argument of ranges: the frames to record.
#include "bindings/stack_option.h"

namespace marey::bindings {
namespace {

constexpr const char* kWords[] = {"", "python", "cpp", "both"};

}  // namespace

bool parse_stack_choice(PyObject* given, const char* who, StackChoice& choice) noexcept {
    choice = kNoStack;
    if (given == nullptr || given == Py_None || given == Py_False) return true;
    if (given == Py_True) {
        choice = kPythonStack;
        return true;
    }
    if (!PyUnicode_Check(given)) {
        PyErr_Format(PyExc_TypeError, "%s: stack must be a bool or a str, not %.80s", who,
                     Py_TYPE(given)->tp_name);
        return false;
    }
    for (StackChoice word = kPythonStack; word <= (kPythonStack | kNativeStack); ++word) {
        if (PyUnicode_CompareWithASCIIString(given, kWords[word]) == 0) choice = word;
    }
    if (choice != kNoStack) return true;
    PyErr_Format(PyExc_ValueError, "%s: stack must be True, 'python', 'cpp' or 'both', not %R", who, given);
    return false;
}

PyObject* stack_choice_object(StackChoice choice) noexcept {
    if (choice == kNoStack) return Py_NewRef(Py_False);
    return PyUnicode_FromString(kWords[choice & (kPythonStack | kNativeStack)]);
}

}  // namespace marey::bindings
