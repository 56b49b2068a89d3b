// gc_ranges.cpp: ranges of garbage collections, from a callback in gc.callbacks.
#include "sources/python/gc_ranges.h"

#include <Python.h>

#include <cstdint>
#include <utility>

#include "record/source_writer.h"
#include "sources/python/code_sites.h"
#include "sources/python/python_text.h"
#include "sources/python/tracer.h"

namespace marey::python {
namespace {

using detail::Opened;

// Guarded by the GIL. One collection runs at a time, and ends on the thread on which it began.
PyObject* gc_callback = nullptr;  // created once, never freed
Ref& callbacks = *new Ref;        // the list that holds it, while tracing; never destroyed
Opened collection_range{0, detail::kNotOpen};
std::uint32_t opened_thread = 0;

std::int64_t number(PyObject* info, const char* key) noexcept {
    PyObject* const value = PyDict_Check(info) ? PyDict_GetItemString(info, key) : nullptr;  // borrowed
    const long long read = value != nullptr && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;
    PyErr_Clear();
    return read;
}

void begin_collection() noexcept {
    static std::uint32_t site = 0;
    if (site == 0) site = traced_site("Python GC", "gc", 0, Scope::GarbageCollection);
    if (collection_range.index != detail::kNotOpen) return;
    before_range();
    collection_range = detail::open_range(site, Scope::GarbageCollection);
    opened_thread = detail::thread_number();
}

void end_collection(PyObject* info) noexcept {
    const Opened ended = std::exchange(collection_range, {0, detail::kNotOpen});
    if (ended.index == detail::kNotOpen) return;
    if (opened_thread != detail::thread_number()) return detail::close_elsewhere(ended, opened_thread);
    const KeyedValue values[] = {{"generation", number(info, "generation")},
                                 {"collected", number(info, "collected")},
                                 {"uncollectable", number(info, "uncollectable")}};
    close_with_values(ended, values);
}

// phase, info. The interpreter's last collections are not part of the program.
PyObject* on_collection(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count >= 2 && callbacks && !is_finalizing() && PyUnicode_Check(args[0])) {
        const SavedError error;
        if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
            begin_collection();
        } else if (PyUnicode_CompareWithASCIIString(args[0], "stop") == 0) {
            end_collection(args[1]);
        }
    }
    Py_RETURN_NONE;
}

PyMethodDef method = {"on_collection", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_collection)),
                      METH_FASTCALL, nullptr};

// The index of the gc_callback in the list, or -1. Comparing by identity runs no code.
Py_ssize_t place_in(PyObject* list) noexcept {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        if (PyList_GET_ITEM(list, i) == gc_callback) return i;
    }
    return -1;
}

}  // namespace

void start_gc_ranges() noexcept {
    const SavedError error;
    if (callbacks) return;
    if (gc_callback == nullptr) gc_callback = PyCFunction_New(&method, nullptr);
    Ref list = attribute(Ref(PyImport_ImportModule("gc")).get(), "callbacks");
    if (gc_callback != nullptr && list && PyList_Check(list.get()) &&
        (place_in(list.get()) >= 0 || PyList_Append(list.get(), gc_callback) == 0))
        callbacks = std::move(list);
    PyErr_Clear();
}

void stop_gc_ranges() noexcept {
    const SavedError error;
    const Ref list = std::exchange(callbacks, {});
    if (!list) return;
    if (const Py_ssize_t place = place_in(list.get()); place >= 0)
        PyList_SetSlice(list.get(), place, place + 1, nullptr);
    PyErr_Clear();
    const Opened ended = std::exchange(collection_range, {0, detail::kNotOpen});
    if (ended.index != detail::kNotOpen) detail::close_elsewhere(ended, opened_thread);
}

}  // namespace marey::python
