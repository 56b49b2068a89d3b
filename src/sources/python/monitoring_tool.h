// monitoring_tool.h: Marey's tool id in sys.monitoring.
#pragma once

#include <Python.h>

namespace marey::python {

/// A tool id, the callbacks of its events, and the events that it requests. All functions need the GIL and
/// clear errors. A program can free the id and assign it to another tool.
class MonitoringTool {
  public:
    /// False: no id is free.
    bool claim() noexcept;
    /// Whether an id was claimed, and not released since.
    bool is_claimed() const noexcept { return id_ >= 0; }
    /// Whether the id still belongs to Marey.
    bool is_ours() const noexcept;
    bool has_event(const char* name) const noexcept;

    /// Between the two: the callback of each event. Those that come with others must not be `is_requested`.
    void begin_request() noexcept { requested_ = 0; }
    void request(const char* name, PyMethodDef* callback, bool is_requested) noexcept;
    void end_request() noexcept;

    /// Requests no events. False: the id is not ours any more, and nothing has changed.
    bool switch_off() noexcept;
    /// Removes the callback of an event. The id is ours.
    void forget(const char* name) noexcept;
    /// Frees the id, if it is still ours.
    void release() noexcept;

    /// A new reference to what a callback returns to switch an event off at its instruction.
    static PyObject* disable_answer() noexcept;

  private:
    int id_ = -1;
    long requested_ = 0;
};

}  // namespace marey::python
