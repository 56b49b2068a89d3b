// python_calls.cpp: calls into Python from any thread, until the interpreter ends.
#include "bindings/python_calls.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include <marey/error.h>

#include "sources/python/python_text.h"

namespace marey::bindings {
namespace {

using namespace std::chrono_literals;

std::atomic<bool> is_over{false};
std::atomic<int> active_calls{0};

/// Keeps the interpreter from ending during its lifetime, unless it has already ended.
class CallGuard {
  public:
    CallGuard() noexcept {
        active_calls.fetch_add(1);
        is_allowed_ = !is_over.load() && Py_IsInitialized() != 0;
    }
    ~CallGuard() { active_calls.fetch_sub(1); }
    CallGuard(const CallGuard&) = delete;
    CallGuard& operator=(const CallGuard&) = delete;
    explicit operator bool() const noexcept { return is_allowed_; }

  private:
    bool is_allowed_;
};

/// Objects released without the GIL. A list without a lock, so that no lock can be held during a fork.
struct PendingRelease {
    PyObject* object;
    PendingRelease* next;
};
std::atomic<PendingRelease*> pending_release{nullptr};

void drop_pending() noexcept {
    PendingRelease* entry = pending_release.exchange(nullptr);
    while (entry != nullptr) {
        Py_DECREF(entry->object);
        delete std::exchange(entry, entry->next);
    }
}

struct GilState {
    PyGILState_STATE state = PyGILState_Ensure();
    GilState() = default;
    GilState(const GilState&) = delete;
    GilState& operator=(const GilState&) = delete;
    ~GilState() { PyGILState_Release(state); }
};

}  // namespace

HeldObject::HeldObject(HeldObject&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}

HeldObject& HeldObject::operator=(HeldObject&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
}

HeldObject::~HeldObject() {
    if (object_ == nullptr || is_over.load()) return;
    if (PyGILState_Check() != 0) {
        Py_DECREF(object_);
        return;
    }
    auto* const entry = new (std::nothrow) PendingRelease{object_, pending_release.load()};
    if (entry == nullptr) return;
    while (!pending_release.compare_exchange_weak(entry->next, entry)) {
    }
}

std::string take_error_text() noexcept {
    if (PyErr_Occurred() != nullptr && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0)
        PyErr_SetInterrupt();  // a KeyboardInterrupt: raised again at the next opportunity
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    std::string text = "an unknown error";
    if (type != nullptr) text = reinterpret_cast<PyTypeObject*>(type)->tp_name;
    if (value != nullptr) {
        PyObject* const said = PyObject_Str(value);
        if (said != nullptr && PyUnicode_Check(said) && PyUnicode_GET_LENGTH(said) != 0)
            python::with_text(said, [&](std::string_view words) { text += ": " + std::string(words); });
        Py_XDECREF(said);
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyErr_Clear();
    return text;
}

void with_gil(const std::function<void()>& work) {
    const CallGuard call;
    if (!call) throw Error("the Python interpreter has ended");
    const GilState gil;
    const python::SavedError kept;
    drop_pending();
    work();
}

// ---- tasks ----

struct PythonTaskQueue::Queue {
    struct Task {
        std::function<void()> work;
        bool is_done = false;
    };
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<Task>> waiting;
    bool has_thread = false;
    const pid_t process = ::getpid();

    /// Returns after it has been idle for a while.
    void serve() {
        std::unique_lock lock(mutex);
        while (true) {
            if (!changed.wait_for(lock, 100ms, [&] { return !waiting.empty(); })) {
                has_thread = false;
                return;
            }
            const std::shared_ptr<Task> task = waiting.front();
            waiting.pop_front();
            lock.unlock();
            try {
                with_gil(task->work);
            } catch (const std::exception&) {  // the interpreter has ended: the caller gives up waiting
            }
            lock.lock();
            task->is_done = true;
            changed.notify_all();
        }
    }
};

// A queue exists for the lifetime of the process because its thread may be using it.
PythonTaskQueue::PythonTaskQueue() : queue_(new Queue) {}

// In the child of a fork the thread does not exist, and a thread of the parent may have held the lock: the
// child uses a new queue.
PythonTaskQueue::Queue& PythonTaskQueue::queue() {
    Queue* queue = queue_.load();
    if (queue->process == ::getpid()) return *queue;
    auto own = std::make_unique<Queue>();
    if (queue_.compare_exchange_strong(queue, own.get())) return *own.release();
    return *queue;
}

bool PythonTaskQueue::run(std::function<void()> work, std::chrono::nanoseconds timeout) noexcept {
    if (is_over.load()) return false;
    try {
        Queue& queue = this->queue();
        const auto task = std::make_shared<Queue::Task>(Queue::Task{std::move(work)});
        std::unique_lock lock(queue.mutex);
        queue.waiting.push_back(task);
        if (!queue.has_thread) {
            std::thread([&queue] { queue.serve(); }).detach();
            queue.has_thread = true;
        }
        queue.changed.notify_all();
        if (PyGILState_Check() != 0) return false;
        return queue.changed.wait_for(lock, timeout, [&] { return task->is_done; });
    } catch (const std::exception&) {  // cannot create a thread, or out of memory
        return false;
    }
}

// ---- shutdown ----

bool calls_have_ended() noexcept {
    return is_over.load();
}

void end_calls_with_interpreter(std::function<void()> at_end) {
    static std::function<void()>& work = *new std::function<void()>;
    const bool is_first = !work;
    if (!is_first) return;
    work = std::move(at_end);
    static PyMethodDef end = {"end_device_calls",
                              [](PyObject*, PyObject*) -> PyObject* {
                                  work();
                                  is_over.store(true);
                                  // Calls in progress may need the GIL to finish; one that does not finish is
                                  // abandoned.
                                  PyThreadState* const thread = PyEval_SaveThread();
                                  for (int i = 0; i < 100 && active_calls.load() != 0; ++i)
                                      std::this_thread::sleep_for(10ms);
                                  PyEval_RestoreThread(thread);
                                  Py_RETURN_NONE;
                              },
                              METH_NOARGS, nullptr};
    PyObject* const atexit = PyImport_ImportModule("atexit");
    PyObject* const function = PyCFunction_New(&end, nullptr);
    PyObject* const done = atexit != nullptr && function != nullptr
                               ? PyObject_CallMethod(atexit, "register", "O", function)
                               : nullptr;
    Py_XDECREF(done);
    Py_XDECREF(function);
    Py_XDECREF(atexit);
    if (done == nullptr) throw Error("register_device: " + take_error_text());
}

}  // namespace marey::bindings
