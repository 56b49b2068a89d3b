// monitoring_tool.h: Marey's tool id in sys.monitoring.
#pragma once

#include <Python.h>

#include "sources/python/python_text.h"

namespace marey::python {

/// A tool id, the callbacks of its events, and the events that it requests. All functions need the GIL and
/// clear errors. A program can free the id and assign it to another tool.
class MonitoringTool {
  public:
    /// False: no id is free.
    bool claim() noexcept {
        for (const int id : {3, 4, 2}) {
            if (!call_monitoring("use_tool_id", "is", id, kToolName)) continue;
            id_ = id;
            return true;
        }
        return false;
    }
    /// Whether an id was claimed, and not released since.
    bool is_claimed() const noexcept { return id_ >= 0; }
    /// Whether the id still belongs to Marey.
    bool is_ours() const noexcept {
        if (id_ < 0) return false;
        const Ref name = call_monitoring("get_tool", "i", id_);
        return name && PyUnicode_Check(name.get()) &&
               PyUnicode_CompareWithASCIIString(name.get(), kToolName) == 0;
    }
    bool has_event(const char* name) const noexcept {
        return (number_of(call_monitoring("get_events", "i", id_)) & event_bit(name)) != 0;
    }

    /// Between the two: the callback of each event. Those that come with others must not be `is_requested`.
    void begin_request() noexcept { requested_ = 0; }
    void request(const char* name, PyMethodDef* callback, bool is_requested) noexcept {
        const long bit = event_bit(name);
        const Ref function(PyCFunction_New(callback, nullptr));
        if (!function || bit == 0) return;
        call_monitoring("register_callback", "ilO", id_, bit, function.get());
        if (is_requested) requested_ |= bit;
    }
    void end_request() noexcept {
        call_monitoring("set_events", "il", id_, requested_);
        call_monitoring("restart_events", nullptr);
    }

    /// Requests no events. False: the id is not ours any more, and nothing has changed.
    bool switch_off() noexcept { return is_ours() && call_monitoring("set_events", "ii", id_, 0); }
    /// Removes the callback of an event. The id is ours.
    void forget(const char* name) noexcept {
        if (const long bit = event_bit(name)) call_monitoring("register_callback", "ilO", id_, bit, Py_None);
    }
    /// Frees the id, if it is still ours.
    void release() noexcept {
        if (is_ours()) call_monitoring("free_tool_id", "i", id_);
        id_ = -1;
    }

    /// A new reference to what a callback returns to switch an event off at its instruction.
    static PyObject* disable_answer() noexcept {
        Ref answer = monitoring_attribute("DISABLE");
        return answer ? answer.release() : Py_NewRef(Py_None);
    }

  private:
    static constexpr const char* kToolName = "marey";

    static Ref monitoring_attribute(const char* name) noexcept {
        return attribute(PySys_GetObject("monitoring"), name);
    }

    // The result of a call; null: it failed.
    template <class... Arguments>
    static Ref call_monitoring(const char* function, const char* format, Arguments... arguments) noexcept {
        const Ref callable = monitoring_attribute(function);
        return callable ? Ref(PyObject_CallFunction(callable.get(), format, arguments...)) : Ref();
    }

    // 0 if it is not a number.
    static long number_of(const Ref& result) noexcept {
        const long number = result ? PyLong_AsLong(result.get()) : 0;
        PyErr_Clear();
        return number > 0 ? number : 0;
    }

    static long event_bit(const char* name) noexcept {
        return number_of(attribute(monitoring_attribute("events").get(), name));
    }

    int id_ = -1;
    long requested_ = 0;
};

}  // namespace marey::python
