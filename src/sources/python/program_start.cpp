// program_start.cpp: records a program from its first line, and the processes that it forks.
#include "sources/python/program_start.h"

#include <Python.h>

#include <cstdlib>
#include <cstring>

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

}  // namespace marey::python
