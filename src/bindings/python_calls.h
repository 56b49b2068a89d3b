// python_calls.h: calls Python from threads that may not hold the GIL and must not wait for it for long.
#pragma once

#include <Python.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

namespace marey::bindings {

/// A strong reference that may be released without the GIL; then it is released at the next call.
class HeldObject {
  public:
    HeldObject() noexcept = default;
    explicit HeldObject(PyObject* stolen) noexcept : object_(stolen) {}
    HeldObject(HeldObject&& other) noexcept;
    HeldObject& operator=(HeldObject&& other) noexcept;
    ~HeldObject();
    PyObject* get() const noexcept { return object_; }

  private:
    PyObject* object_ = nullptr;
};

/// Returns the text of the current Python error ("ValueError: why") and clears it.
std::string take_error_text() noexcept;

/// Runs `work` on this thread with the GIL and no error set; an error that was set before is restored
/// afterwards. Acquires the GIL if this thread does not hold it. Throws marey::Error if the interpreter has
/// ended.
void with_gil(const std::function<void()>& work);

/// Runs tasks in order on a separate thread, for callers that hold locks that other threads wait for while
/// they hold the GIL. Callers wait for the thread with a timeout.
class PythonTaskQueue {
  public:
    PythonTaskQueue();
    /// Returns false if the work was not finished in time (it may still run), or at once if the caller holds
    /// the GIL, which must not wait. `work` must own everything that it uses, and must not throw.
    bool run(std::function<void()> work, std::chrono::nanoseconds timeout) noexcept;

  private:
    struct Queue;
    Queue& queue();
    std::atomic<Queue*> queue_;
};

/// Whether the interpreter has ended or is ending: no more calls into Python are made.
bool calls_have_ended() noexcept;

/// Called when the first Python device is registered. `at_end` runs with the GIL before the interpreter ends;
/// after that, no more calls into Python are made.
void end_calls_with_interpreter(std::function<void()> at_end);

}  // namespace marey::bindings
