// child_waits.cpp: puts a function in front of each of os.wait*().
#include "sources/python/child_waits.h"

#include <Python.h>
#include <sys/wait.h>

#include <cstddef>
#include <iterator>
#include <utility>

#include "record/process_report.h"
#include "sources/python/python_text.h"

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
    Ref original = attribute(posix, kNames[which]);
    if (!original || !PyCFunction_CheckExact(original.get())) return false;
    const auto* const function = reinterpret_cast<PyCFunctionObject*>(original.get());
    definitions[which].ml_doc = function->m_ml->ml_doc;
    const Ref added(PyCFunction_NewEx(&definitions[which], function->m_self, function->m_module));
    if (!added || attribute(os, kNames[which]).get() != original.get()) return false;
    originals[which] = original.release();
    return PyObject_SetAttrString(posix, kNames[which], added.get()) == 0 &&
           PyObject_SetAttrString(os, kNames[which], added.get()) == 0;
}

}  // namespace

void report_child_waits() noexcept {
    if (originals[0] != nullptr) return;
    define(std::make_index_sequence<kWaits>());
    const Ref posix(PyImport_ImportModule("posix")), os(PyImport_ImportModule("os"));
    for (std::size_t i = 0; posix && os && i < kWaits; ++i) {
        if (!replace(posix.get(), os.get(), i)) PyErr_Clear();
    }
}

}  // namespace marey::python
