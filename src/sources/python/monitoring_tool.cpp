// monitoring_tool.cpp: calls of functions of sys.monitoring.
#include "sources/python/monitoring_tool.h"

#if PY_VERSION_HEX >= 0x030C0000

#include "sources/python/python_text.h"

namespace marey::python {

namespace {

constexpr const char* kToolName = "marey";

Ref monitoring_attribute(const char* name) noexcept {
    return attribute(PySys_GetObject("monitoring"), name);
}

// The result of a call; null: it failed.
template <class... Arguments>
Ref call_monitoring(const char* function, const char* format, Arguments... arguments) noexcept {
    const Ref callable = monitoring_attribute(function);
    return callable ? Ref(PyObject_CallFunction(callable.get(), format, arguments...)) : Ref();
}

// 0 if it is not a number.
long number_of(const Ref& result) noexcept {
    const long number = result ? PyLong_AsLong(result.get()) : 0;
    PyErr_Clear();
    return number > 0 ? number : 0;
}

long event_bit(const char* name) noexcept {
    return number_of(attribute(monitoring_attribute("events").get(), name));
}

}  // namespace

bool MonitoringTool::claim() noexcept {
    for (const int id : {3, 4, 2}) {
        if (!call_monitoring("use_tool_id", "is", id, kToolName)) continue;
        id_ = id;
        return true;
    }
    return false;
}

bool MonitoringTool::is_ours() const noexcept {
    if (id_ < 0) return false;
    const Ref name = call_monitoring("get_tool", "i", id_);
    return name && PyUnicode_Check(name.get()) &&
           PyUnicode_CompareWithASCIIString(name.get(), kToolName) == 0;
}

bool MonitoringTool::has_event(const char* name) const noexcept {
    return (number_of(call_monitoring("get_events", "i", id_)) & event_bit(name)) != 0;
}

void MonitoringTool::request(const char* name, PyMethodDef* callback, bool is_requested) noexcept {
    const long bit = event_bit(name);
    const Ref function(PyCFunction_New(callback, nullptr));
    if (!function || bit == 0) return;
    call_monitoring("register_callback", "ilO", id_, bit, function.get());
    if (is_requested) requested_ |= bit;
}

void MonitoringTool::end_request() noexcept {
    call_monitoring("set_events", "il", id_, requested_);
    call_monitoring("restart_events", nullptr);
}

bool MonitoringTool::switch_off() noexcept {
    return is_ours() && call_monitoring("set_events", "ii", id_, 0);
}

void MonitoringTool::forget(const char* name) noexcept {
    if (const long bit = event_bit(name)) call_monitoring("register_callback", "ilO", id_, bit, Py_None);
}

void MonitoringTool::release() noexcept {
    if (is_ours()) call_monitoring("free_tool_id", "i", id_);
    id_ = -1;
}

PyObject* MonitoringTool::disable_answer() noexcept {
    Ref answer = monitoring_attribute("DISABLE");
    return answer ? answer.release() : Py_NewRef(Py_None);
}

}  // namespace marey::python

#endif
