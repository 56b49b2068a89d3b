// child_waits.cpp: puts a function in front of each of os.wait*().
#include "sources/python/child_waits.h"

#include <Python.h>
#include <sys/wait.h>

#include <cstddef>
#include <iterator>
#include <utility>

#include "record/process_report.h"

namespace marey::python {
namespace {

constexpr const char* kNames[] = {"wait", "waitpid", "wait3", "wait4", "waitid"};
constexpr std::size_t kWaits = std::size(kNames);
constexpr std::size_t kWaitid = 4;

// Guarded by the GIL. They live as long as the process, like the functions in front of them.
PyObject* originals[kWaits];
PyMethodDef definitions[kWaits];

/// -1 if it is not a number.
long number_at(PyObject* sequence, Py_ssize_t index) {
    if (!PyTuple_Check(sequence) || PyTuple_GET_SIZE(sequence) <= index) return -1;
    const long number = PyLong_AsLong(PyTuple_GET_ITEM(sequence, index));
    if (number == -1) PyErr_Clear();
    return number;
}

void report_result(std::size_t which, PyObject* result) {
    const auto pid = static_cast<pid_t>(number_at(result, 0));
    if (pid <= 0) return;
    if (which != kWaitid) {
        report_child_end(pid, static_cast<int>(number_at(result, 1)));
        return;
    }
    const auto status = static_cast<int>(number_at(result, 3));
    const long code = number_at(result, 4);
    if (code == CLD_EXITED) report_child_end(pid, (status & 0xff) << 8);
    if (code == CLD_KILLED || code == CLD_DUMPED) report_child_end(pid, status & 0x7f);
}

template <std::size_t kWhich>
PyObject* wait_and_report(PyObject*, PyObject* arguments, PyObject* keywords) {
    PyObject* const result = PyObject_Call(originals[kWhich], arguments, keywords);
    if (result != nullptr) report_result(kWhich, result);
    return result;
}

template <std::size_t... kWhich>
void define(std::index_sequence<kWhich...>) {
    ((definitions[kWhich] = {kNames[kWhich],
                             reinterpret_cast<PyCFunction>(
                                 reinterpret_cast<void (*)()>(&wait_and_report<kWhich>)),
                             METH_VARARGS | METH_KEYWORDS, nullptr}),
     ...);
}

/// Replaces a function in `posix`, and in `os` if it has the same one.
bool replace(PyObject* posix, PyObject* os, std::size_t which) {
    PyObject* const original = PyObject_GetAttrString(posix, kNames[which]);
    if (original == nullptr || !PyCFunction_CheckExact(original)) {
        Py_XDECREF(original);
        return false;
    }
    const auto* const function = reinterpret_cast<PyCFunctionObject*>(original);
    definitions[which].ml_doc = function->m_ml->ml_doc;
    PyObject* const added = PyCFunction_NewEx(&definitions[which], function->m_self, function->m_module);
    PyObject* const of_os = PyObject_GetAttrString(os, kNames[which]);
    bool is_replaced = false;
    if (added != nullptr && of_os == original) {
        originals[which] = Py_NewRef(original);
        is_replaced = PyObject_SetAttrString(posix, kNames[which], added) == 0 &&
                      PyObject_SetAttrString(os, kNames[which], added) == 0;
    }
    Py_XDECREF(of_os);
    Py_XDECREF(added);
    Py_DECREF(original);
    return is_replaced;
}

}  // namespace

void report_child_waits() noexcept {
    if (originals[0] != nullptr) return;
    define(std::make_index_sequence<kWaits>());
    PyObject* const posix = PyImport_ImportModule("posix");
    PyObject* const os = posix == nullptr ? nullptr : PyImport_ImportModule("os");
    for (std::size_t i = 0; os != nullptr && i < kWaits; ++i) {
        if (!replace(posix, os, i)) PyErr_Clear();
    }
    Py_XDECREF(os);
    Py_XDECREF(posix);
    PyErr_Clear();
}

}  // namespace marey::python
