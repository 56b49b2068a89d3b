// open_ranges.cpp: ranges owned by separate objects: for end_on_future, and for the lives of generators and
// coroutines.
#include <new>
#include <utility>

#include <marey/range.h>

#include "bindings/range_objects.h"
#include "bindings/range_state.h"
#include "sources/python/tracer.h"

namespace marey::bindings {
namespace {

struct OpenRange {
    PyObject_HEAD RangeState range;
};

struct AsyncRange {
    PyObject_HEAD Range range;
};

PyTypeObject* open_range_type = nullptr;
PyTypeObject* async_range_type = nullptr;

template <class Object>
void free_object(PyObject* object) noexcept {
    PyTypeObject* const type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* end_open(PyObject* object, PyObject*) {
    reinterpret_cast<OpenRange*>(object)->range.release();
    Py_RETURN_NONE;
}

void destroy_open(PyObject* object) {
    reinterpret_cast<OpenRange*>(object)->range.release();
    free_object<OpenRange>(object);
}

PyObject* make_async(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    PyObject* name = nullptr;
    int is_step = 0;
    static const char* const kNames[] = {"name", "is_step", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|p:async_range", const_cast<char**>(kNames), &name,
                                     &is_step))
        return nullptr;
    PyObject* const object = type->tp_alloc(type, 0);
    if (object == nullptr) return nullptr;
    auto* const self = reinterpret_cast<AsyncRange*>(object);
    new (&self->range) Range;
    if (detail::should_record(Scope::User)) {
        self->range = with_text(name, [&](std::string_view text) {
            return is_step != 0 ? python::open_step(text) : Range::apart(text);
        });
    }
    return object;
}

PyObject* end_async(PyObject* object, PyObject*) {
    reinterpret_cast<AsyncRange*>(object)->range.end();
    Py_RETURN_NONE;
}

void destroy_async(PyObject* object) {
    reinterpret_cast<AsyncRange*>(object)->range.~Range();
    free_object<AsyncRange>(object);
}

PyMethodDef kOpenMethods[] = {
    {"end", end_open, METH_NOARGS, "End the range. Does nothing if it has ended."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot kOpenSlots[] = {
    {Py_tp_doc, const_cast<char*>("A range transferred from its with statement.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_open)},
    {Py_tp_methods, kOpenMethods},
    {0, nullptr},
};
PyType_Spec kOpenSpec = {"marey.open_range", sizeof(OpenRange), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         kOpenSlots};

PyMethodDef kAsyncMethods[] = {
    {"end", end_async, METH_NOARGS, "End the range, on any thread. Does nothing if it has ended."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot kAsyncSlots[] = {
    {Py_tp_doc,
     const_cast<char*>("async_range(name, is_step=False)\n--\n\n"
                       "A range on an async track that is open until end(), on any thread.\n\n"
                       "A step is among the ranges of its thread, and nests with the calls there.")},
    {Py_tp_new, reinterpret_cast<void*>(make_async)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_async)},
    {Py_tp_methods, kAsyncMethods},
    {0, nullptr},
};
PyType_Spec kAsyncSpec = {"marey.async_range", sizeof(AsyncRange), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, kAsyncSlots};

}  // namespace

PyObject* take_over(RangeState& from) noexcept {
    PyObject* const object = open_range_type->tp_alloc(open_range_type, 0);
    if (object != nullptr) from.move_to_range(reinterpret_cast<OpenRange*>(object)->range);
    return object;
}

bool add_open_ranges(PyObject* module) noexcept {
    open_range_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kOpenSpec));
    async_range_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kAsyncSpec));
    return open_range_type != nullptr && async_range_type != nullptr &&
           PyModule_AddType(module, async_range_type) == 0;
}

}  // namespace marey::bindings
