// program_start.cpp: records a program from its first line, and the processes that it forks.
#include "sources/python/program_start.h"

#include <Python.h>
#include <sys/wait.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "record/process_report.h"
#include "record/source_writer.h"
#include "sources/python/code_sites.h"
#include "sources/python/python_text.h"
#include "sources/python/tracer.h"

namespace marey::python {
namespace {

// Guarded by the GIL.
bool is_waiting = false;
bool is_for_this_process_alone = false;

// Calls into C are cheap to record on 3.12 and later.
constexpr bool kRecordsCCalls = PY_VERSION_HEX >= 0x030C0000;

void begin() noexcept {
    is_waiting = false;
    prepare_tracer(false);
    begin_environment_session(kRecordsCCalls);
    if (is_for_this_process_alone) ::unsetenv("MAREY");
    release_tracer();
}

// Whether the interpreter is still importing `site`, which runs the start file.
bool is_starting() noexcept {
    const SavedError error;
    PyObject* const site = PyDict_GetItemString(PyImport_GetModuleDict(), "site");  // borrowed
    const Ref flag = attribute(attribute(site, "__spec__").get(), "_initializing");
    return flag && PyObject_IsTrue(flag.get()) == 1;
}

// The interpreter reports that it runs a file, a module, a command or its standard input. A program that
// embeds the interpreter only executes code.
int on_audit_event(const char* event, PyObject*, void*) {
    if (!is_waiting) return 0;
    if (std::strncmp(event, "cpython.run_", 12) == 0) {
        if (std::strcmp(event, "cpython.run_command") == 0) expect_command_code();
        begin();
    } else if (std::strcmp(event, "exec") == 0 && !is_starting()) {
        begin();
    }
    return 0;
}

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

void begin_with_program(bool alone) {
    is_waiting = true;
    is_for_this_process_alone = alone;
    if (PySys_AddAuditHook(on_audit_event, nullptr) == 0) return;
    PyErr_Clear();  // another audit hook does not allow it: record from here on
    begin();
}

bool begin_without_calls() noexcept {
    if (environment_requests_calls()) return false;
    begin_environment_session(kRecordsCCalls);
    release_tracer();
    return true;
}

void restart_recording() noexcept {
    attach_thread();
    apply_tracer();
}

void finish_program() noexcept {
    check_tracer();
    finish_recording();
    apply_tracer();
}

void finish_with_interpreter() noexcept {
    Py_AtExit([] { finish_recording(); });
}

void report_child_waits() noexcept {
    if (originals[0] != nullptr) return;
    define(std::make_index_sequence<kWaits>());
    const Ref posix(PyImport_ImportModule("posix")), os(PyImport_ImportModule("os"));
    for (std::size_t i = 0; posix && os && i < kWaits; ++i) {
        if (!replace(posix.get(), os.get(), i)) PyErr_Clear();
    }
}

}  // namespace marey::python
