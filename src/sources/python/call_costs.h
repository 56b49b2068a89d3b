// call_costs.h: measures what recording adds to a Python call and to a resume.
#pragma once

#include <Python.h>

#include <cstdint>

namespace marey::python {

/// Runs two small functions without the hook when it is created, and with it in finish(). Needs the GIL. Does
/// nothing if the functions cannot be run; the caller saves and restores the current error.
class CallCostProbe {
  public:
    CallCostProbe() noexcept;
    ~CallCostProbe();
    CallCostProbe(const CallCostProbe&) = delete;
    CallCostProbe& operator=(const CallCostProbe&) = delete;
    /// The hook is set: measures again, into a log that is discarded, and reports the differences.
    void finish() noexcept;

  private:
    PyObject* names_;            ///< the functions and their globals; null: they cannot be run
    std::uint64_t call_ps_ = 0;  ///< without the hook
    std::uint64_t resume_ps_ = 0;
};

}  // namespace marey::python
