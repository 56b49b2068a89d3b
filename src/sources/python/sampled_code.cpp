// sampled_code.cpp: names code objects that samples have met, if they are still there.
#include "sources/python/sampled_code.h"

#include <Python.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <thread>

#include <marey/detail/python_stacks.h>

#include "sources/python/code_sites.h"
#include "sources/python/python_text.h"
#include "sources/python/sampled_frames.h"

static_assert(sizeof(marey_sampled_frame) == sizeof(marey::detail::SampledFrame));
static_assert(offsetof(marey_sampled_frame, offset) == offsetof(marey::detail::SampledFrame, offset));
static_assert(offsetof(marey_sampled_frame, anchor) == offsetof(marey::detail::SampledFrame, anchor));

namespace marey::python {
namespace {

constexpr std::uint32_t kUnknown = ~std::uint32_t{0};
constexpr std::uint32_t kInstructionBytes = 2;
std::uint32_t named_places = 0;  // places up to this number; guarded by the GIL
Py_ssize_t freed_slot = -1;      // of code objects: their own address, for the callback when they are freed

void* own_thread_state() noexcept {
    return PyGILState_GetThisThreadState();
}

std::size_t sample_frames(void* thread, bool is_own, detail::SampledFrame* out, std::size_t room,
                          bool& is_torn) noexcept {
    int torn = 0;
    const std::size_t count = marey_sample_python_frames(
        thread, is_own ? 1 : 0, reinterpret_cast<marey_sampled_frame*>(out), room, &torn);
    is_torn = torn != 0;
    return count;
}

void code_freed(void* code) noexcept {
    if (code != nullptr) detail::forget_sampled_code(reinterpret_cast<std::uintptr_t>(code));
}

bool claim_freed_slot() noexcept {
    if (freed_slot < 0) {
#if PY_VERSION_HEX >= 0x030C0000
        freed_slot = PyUnstable_Eval_RequestCodeExtraIndex(code_freed);
#else
        freed_slot = _PyEval_RequestCodeExtraIndex(code_freed);
#endif
    }
    return freed_slot >= 0;
}

/// The code object at an address where there was one. Null: it has been freed. The count of references of
/// freed memory is 0, or a part of an address. With the GIL, an object that is there stays.
PyCodeObject* code_at(std::uintptr_t address) noexcept {
    PyObject head;
    if (address == 0 || marey_copy_checked(address, &head, sizeof head) == 0) return nullptr;
    std::uint64_t references = 0;
    static_assert(sizeof references <= offsetof(PyObject, ob_type));
    __builtin_memcpy(&references, &head, sizeof references);
    constexpr std::uint64_t kCount = 0x0000ffffffffffff;  // 3.14 has flags above it
    references &= kCount;
    if (head.ob_type != &PyCode_Type || references == 0 || references > 0xffffffff) return nullptr;
    return reinterpret_cast<PyCodeObject*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Once: setting it again would call the callback.
void watch_end(PyObject* code) noexcept {
    void* before = nullptr;
#if PY_VERSION_HEX >= 0x030C0000
    PyUnstable_Code_GetExtra(code, freed_slot, &before);
    if (before == nullptr) PyUnstable_Code_SetExtra(code, freed_slot, code);
#else
    _PyCode_GetExtra(code, freed_slot, &before);
    if (before == nullptr) _PyCode_SetExtra(code, freed_slot, code);
#endif
}

void name_place(std::uint32_t place, std::uintptr_t address, std::uint32_t offset) noexcept {
    PyCodeObject* const code = code_at(address);
    if (code == nullptr) return detail::name_sampled_place(place, kUnknown, 0);
    Py_INCREF(code);
    const CodeWord word = known_code(code) != 0 ? known_code(code) : register_code(code);
    watch_end(reinterpret_cast<PyObject*>(code));
    PyErr_Clear();
    const int line = PyCode_Addr2Line(code, static_cast<int>(offset * kInstructionBytes));
    detail::name_sampled_place(place, (word & kCodeSkipped) != 0 ? 0 : site_of(word),
                               line > 0 ? static_cast<std::uint32_t>(line) : 0);
    Py_DECREF(code);
}

void name_places_with_gil() noexcept {
    if (!claim_code_slot() || !claim_freed_slot()) return;
    const SavedError error;
    std::uintptr_t code = 0;
    std::uint32_t offset = 0;
    while (detail::sampled_place(named_places + 1, code, offset)) name_place(++named_places, code, offset);
}

// A thread that waits for the GIL when Python ends never returns: Python waits for this one before.
std::atomic<bool> has_ended{false};
std::atomic<pid_t> naming_process{0};  // a forked child does not have the thread

void name_sampled_places() noexcept {
    naming_process.store(getpid());
    if (!has_ended.load()) {
        const PyGILState_STATE state = PyGILState_Ensure();
        for (PyThreadState* thread = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
             thread != nullptr; thread = PyThreadState_Next(thread))
            detail::note_python_thread(static_cast<std::int64_t>(thread->native_thread_id), thread);
        name_places_with_gil();
        PyGILState_Release(state);
    }
    naming_process.store(0);
}

constexpr detail::PythonSampling offered_sampling{own_thread_state, sample_frames, name_sampled_places};

PyObject* end_sampling(PyObject*, PyObject*) {
    detail::set_python_sampling(nullptr);
    has_ended.store(true);
    Py_BEGIN_ALLOW_THREADS while (naming_process.load() == getpid()) std::this_thread::yield();
    Py_END_ALLOW_THREADS name_places_with_gil();
    Py_RETURN_NONE;
}

}  // namespace

void offer_python_sampling() noexcept {
    static PyMethodDef end{"end_sampling", end_sampling, METH_NOARGS, nullptr};
    const Ref module(PyImport_ImportModule("atexit"));
    const Ref function(PyCFunction_New(&end, nullptr));
    const Ref done(module && function ? PyObject_CallMethod(module.get(), "register", "O", function.get())
                                      : nullptr);
    if (done)
        detail::set_python_sampling(&offered_sampling);
    else
        PyErr_Clear();
}

}  // namespace marey::python
