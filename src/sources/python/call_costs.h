// call_costs.h: measures what recording adds to a Python call and to a resume.
#pragma once

#include <Python.h>

#include <cstdint>

#include "record/source_writer.h"
#include "sources/python/python_text.h"

namespace marey::python {

/// Runs two small functions without the hook when it is created, and with it in finish(). Needs the GIL. Does
/// nothing if the functions cannot be run; the caller saves and restores the current error.
class CallCostProbe {
  public:
    CallCostProbe() noexcept : names_(make_globals()) {
        if (names_ != nullptr && add_functions(names_)) {
            call_ps_ = measure(names_, "calls", false);
            resume_ps_ = measure(names_, "resumes", false);
        }
        drop_error();
    }
    ~CallCostProbe() {
        if (names_ != nullptr) PyDict_Clear(names_);  // the functions refer to it
        Py_XDECREF(names_);
    }
    CallCostProbe(const CallCostProbe&) = delete;
    CallCostProbe& operator=(const CallCostProbe&) = delete;
    /// The hook is set: measures again, into a log that is discarded, and reports the differences.
    void finish() noexcept {
        if (names_ == nullptr) return;
        report(detail::CostKind::PythonCall, call_ps_, measure(names_, "calls", true));
        report(detail::CostKind::PythonResume, resume_ps_, measure(names_, "resumes", true));
    }

  private:
    // A resume is a step of a loop over a generator: that makes no calls into C.
    static constexpr const char* kSource =
        "def call(): pass\n"
        "def generator():\n"
        "    for _ in events: yield\n"
        "def calls():\n"
        "    for _ in events: call()\n"
        "def resumes():\n"
        "    for _ in generator(): pass\n";

    static PyObject* make_globals() noexcept {
        PyObject* const type = reinterpret_cast<PyObject*>(&PyRange_Type);
        PyObject* const events = PyObject_CallFunction(type, "i", kMeasuredEvents);
        if (events == nullptr) return nullptr;
        return Py_BuildValue("{sOsN}", "__builtins__", PyEval_GetBuiltins(), "events", events);
    }

    // An audit hook of the program may refuse.
    static bool add_functions(PyObject* names) noexcept {
        const Ref code(Py_CompileString(kSource, "<marey>", Py_file_input));
        return code && Ref(PyEval_EvalCode(code.get(), names, names));
    }

    static void run(void* function) noexcept {
        if (PyErr_Occurred() == nullptr) Py_XDECREF(PyObject_CallNoArgs(static_cast<PyObject*>(function)));
    }

    /// The time of an event of that function, in picoseconds; 0: it failed.
    static std::uint64_t measure(PyObject* names, const char* name, bool records) noexcept {
        PyObject* const function = PyDict_GetItemString(names, name);  // borrowed
        const std::uint64_t time = function != nullptr ? measure_events(run, function, records) : 0;
        if (PyErr_Occurred() == nullptr) return time;
        drop_error();
        return 0;
    }

    static void report(detail::CostKind kind, std::uint64_t plain, std::uint64_t recorded) noexcept {
        if (plain != 0 && recorded > plain) add_cost(kind, recorded - plain);
    }

    PyObject* names_;            ///< the functions and their globals; null: they cannot be run
    std::uint64_t call_ps_ = 0;  ///< without the hook
    std::uint64_t resume_ps_ = 0;
};

}  // namespace marey::python
