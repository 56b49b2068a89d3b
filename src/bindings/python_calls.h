// python_calls.h: calling Python from threads that may not hold the GIL, and must not wait for it long.
#pragma once

#include <Python.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

namespace marey::bindings {

/// A strong reference that may be let go without the GIL: then that is done at the next call.
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

/// The text of the Python error that is set ("ValueError: why"), which is cleared.
std::string take_error_text() noexcept;

/// Runs `work` with the GIL, on this thread, with no error set; what was set before is so again afterwards.
/// Takes the GIL where this thread does not have it. Throws marey::Error when the interpreter has ended.
void with_gil(const std::function<void()>& work);

/// Runs things on a thread of its own, in order, for callers that hold locks which others, with the GIL, wait
/// for: these may wait for the thread, but not forever.
class PythonTaskQueue {
  public:
    PythonTaskQueue();
    /// False: not done in time (it will be, or never), or by a caller with the GIL, which must not wait at
    /// all. `work` must own what it uses, and not throw.
    bool run(std::function<void()> work, std::chrono::nanoseconds timeout) noexcept;

  private:
    struct Queue;
    Queue& queue();
    std::atomic<Queue*> queue_;
};

/// Whether the interpreter has ended, or is about to: nothing calls Python any more.
bool calls_have_ended() noexcept;

/// To be called when the first device of Python is registered: `at_end` runs, with the GIL, before the
/// interpreter ends; afterwards nothing calls Python any more.
void end_calls_with_interpreter(std::function<void()> at_end);

}  // namespace marey::bindings
