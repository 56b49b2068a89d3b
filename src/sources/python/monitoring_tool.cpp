// monitoring_tool.cpp: calls of functions of sys.monitoring.
#include "sources/python/monitoring_tool.h"

#if PY_VERSION_HEX >= 0x030C0000

#include <utility>

namespace marey::python {

namespace {

constexpr const char* kToolName = "marey";

// A new reference; null without an error set.
PyObject* monitoring_attribute(const char* name) noexcept {
    PyObject* const module = PySys_GetObject("monitoring");  // borrowed
    PyObject* const found = module != nullptr ? PyObject_GetAttrString(module, name) : nullptr;
    PyErr_Clear();
    return found;
}

// The result of a call, or null with the error cleared.
template <class... Arguments>
PyObject* call_monitoring(const char* function, const char* format, Arguments... arguments) noexcept {
    PyObject* const callable = monitoring_attribute(function);
    PyObject* const result =
        callable != nullptr ? PyObject_CallFunction(callable, format, arguments...) : nullptr;
    Py_XDECREF(callable);
    PyErr_Clear();
    return result;
}

// Takes the result of a call; whether there is one.
bool succeeded(PyObject* result) noexcept {
    Py_XDECREF(result);
    return result != nullptr;
}

// Likewise; 0 if it is not a number.
long number_of(PyObject* result) noexcept {
    const long number = result != nullptr ? PyLong_AsLong(result) : 0;
    PyErr_Clear();
    Py_XDECREF(result);
    return number > 0 ? number : 0;
}

long event_bit(const char* name) noexcept {
    PyObject* const names = monitoring_attribute("events");
    const long bit = number_of(names != nullptr ? PyObject_GetAttrString(names, name) : nullptr);
    Py_XDECREF(names);
    return bit;
}

}  // namespace

bool MonitoringTool::claim() noexcept {
    for (const int id : {3, 4, 2}) {
        if (!succeeded(call_monitoring("use_tool_id", "is", id, kToolName))) continue;
        id_ = id;
        return true;
    }
    return false;
}

bool MonitoringTool::is_ours() const noexcept {
    if (id_ < 0) return false;
    PyObject* const name = call_monitoring("get_tool", "i", id_);
    const bool is_ours =
        name != nullptr && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, kToolName) == 0;
    Py_XDECREF(name);
    PyErr_Clear();
    return is_ours;
}

bool MonitoringTool::has_event(const char* name) const noexcept {
    return (number_of(call_monitoring("get_events", "i", id_)) & event_bit(name)) != 0;
}

void MonitoringTool::request(const char* name, PyMethodDef* callback, bool is_requested) noexcept {
    const long bit = event_bit(name);
    PyObject* const function = PyCFunction_New(callback, nullptr);
    if (function == nullptr || bit == 0) {
        Py_XDECREF(function);
        PyErr_Clear();
        return;
    }
    succeeded(call_monitoring("register_callback", "ilN", id_, bit, function));
    if (is_requested) requested_ |= bit;
}

void MonitoringTool::end_request() noexcept {
    succeeded(call_monitoring("set_events", "il", id_, requested_));
    succeeded(call_monitoring("restart_events", nullptr));
}

bool MonitoringTool::switch_off() noexcept {
    return is_ours() && succeeded(call_monitoring("set_events", "ii", id_, 0));
}

void MonitoringTool::forget(const char* name) noexcept {
    if (const long bit = event_bit(name))
        succeeded(call_monitoring("register_callback", "ilO", id_, bit, Py_None));
}

void MonitoringTool::release() noexcept {
    if (is_ours()) succeeded(call_monitoring("free_tool_id", "i", id_));
    id_ = -1;
}

PyObject* MonitoringTool::disable_answer() noexcept {
    PyObject* const answer = monitoring_attribute("DISABLE");
    return answer != nullptr ? answer : Py_NewRef(Py_None);
}

}  // namespace marey::python

#endif
