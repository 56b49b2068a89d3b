// traceback_object.cpp: marey.CapturedTraceback, written with the raw C API: a capture costs only its frames.
#include <Python.h>

#include <structmember.h>

#include <cstddef>

#include <marey/detail/python_stacks.h>
#include <marey/traceback.h>

#include "bindings/range_objects.h"
#include "sources/python/sampled_code.h"
#include "sources/python/traceback_source.h"

namespace marey::bindings {
namespace {

struct TracebackObject {
    PyObject_HEAD detail::TracebackData* data;  ///< null: cleaned up or unpickled
    PyObject* weak_references;
};

PyTypeObject* traceback_type = nullptr;

TracebackObject* as_traceback(PyObject* object) noexcept {
    return reinterpret_cast<TracebackObject*>(object);
}

/// Drops the capture and the references that it holds.
void drop(TracebackObject* self) noexcept {
    detail::TracebackData* data = self->data;
    self->data = nullptr;
    if (data == nullptr) return;
    detail::release_traceback(data);
    detail::release_dropped();
}

PyObject* made(PyTypeObject* type, detail::TracebackData* data) noexcept {
    PyObject* object = type->tp_alloc(type, 0);
    if (object == nullptr) {
        if (data != nullptr) detail::release_traceback(data);
        return nullptr;
    }
    as_traceback(object)->data = data;
    return object;
}

int traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(object));
    detail::TracebackData* data = as_traceback(object)->data;
    // References shared with C++ are not visited: the collector would treat them as reachable only from here.
    if (data == nullptr || data->owners.load(std::memory_order_acquire) != 1) return 0;
    for (std::uint32_t i = 0; i < data->python_count; ++i)
        Py_VISIT(static_cast<PyObject*>(data->python()[i].code));
    return 0;
}

int clear(PyObject* object) {
    drop(as_traceback(object));
    return 0;
}

void dealloc(PyObject* object) {
    PyObject_GC_UnTrack(object);
    TracebackObject* self = as_traceback(object);
    if (self->weak_references != nullptr) PyObject_ClearWeakRefs(object);
    drop(self);
    PyTypeObject* type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

/// Stores a keyword's value in the options. False with an error set.
bool take_option(PyObject* name, PyObject* value, TracebackOptions& options) noexcept {
    if (PyUnicode_CompareWithASCIIString(name, "cpp") == 0 ||
        PyUnicode_CompareWithASCIIString(name, "script") == 0) {
        const int truth = PyObject_IsTrue(value);
        if (truth < 0) return false;
        if (PyUnicode_CompareWithASCIIString(name, "cpp") == 0) options.native = truth != 0;
        return true;
    }
    if (PyUnicode_CompareWithASCIIString(name, "skip") == 0) {
        const Py_ssize_t skip = PyNumber_AsSsize_t(value, PyExc_OverflowError);
        if (skip == -1 && PyErr_Occurred() != nullptr) return false;
        if (skip < 0) {
            PyErr_Format(PyExc_ValueError, "skip must not be negative, got %zd", skip);
            return false;
        }
        options.skip = static_cast<std::size_t>(skip);
        return true;
    }
    PyErr_Format(PyExc_TypeError, "extract() got an unexpected keyword argument '%U'", name);
    return false;
}

PyObject* extract(PyObject* type, PyObject* const* arguments, Py_ssize_t count, PyObject* names) {
    if (count != 0) {
        PyErr_Format(PyExc_TypeError, "extract() takes only keyword arguments, but %zd positional were given",
                     count);
        return nullptr;
    }
    TracebackOptions options;
    if (names != nullptr) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
            if (!take_option(PyTuple_GET_ITEM(names, i), arguments[i], options)) return nullptr;
        }
        if (options.native && options.skip != 0) {
            PyErr_SetString(error_type, "skip counts Python frames: it cannot be used with cpp=True");
            return nullptr;
        }
    }
    detail::TracebackData* data = detail::gather(options, 1);  // skips this function
    if (data == nullptr) return PyErr_NoMemory();
    return made(reinterpret_cast<PyTypeObject*>(type), data);
}

PyObject* cleanup(PyObject* object, PyObject*) {
    drop(as_traceback(object));
    Py_RETURN_NONE;
}

/// Creates another object for the same capture, which is immutable.
PyObject* twin(PyObject* object, PyObject*) {
    detail::TracebackData* data = as_traceback(object)->data;
    if (data != nullptr) detail::keep(data);
    return made(Py_TYPE(object), data);
}

PyObject* construct(PyTypeObject* type, PyObject* arguments, PyObject* named) {
    if (PyTuple_GET_SIZE(arguments) != 0 || (named != nullptr && PyDict_GET_SIZE(named) != 0)) {
        PyErr_Format(PyExc_TypeError, "%s() takes no arguments; use extract() to capture a traceback",
                     type->tp_name);
        return nullptr;
    }
    return made(type, nullptr);
}

PyObject* represent(PyObject* object) {
    const detail::TracebackData* data = as_traceback(object)->data;
    return PyUnicode_FromFormat("<marey.CapturedTraceback of %u Python and %u native frames>",
                                data != nullptr ? data->python_count : 0,
                                data != nullptr ? data->native_count : 0);
}

Py_ssize_t size_of(PyObject* object) {
    const detail::TracebackData* data = as_traceback(object)->data;
    return data != nullptr ? static_cast<Py_ssize_t>(data->python_count) + data->native_count : 0;
}

int truth_of(PyObject*) {
    return 1;
}

PyMethodDef kMethods[] = {
    {"extract", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(extract)),
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "extract($type, /, *, cpp=False, skip=0)\n--\n\nCapture the stack of the calling thread.\n\n"
     "The innermost frame is the caller of this function. Names and lines are looked up on first use."},
    {"cleanup", cleanup, METH_NOARGS, "cleanup($self, /)\n--\n\nRelease the frames."},
    {"_twin", twin, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef kMembers[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TracebackObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot kSlots[] = {
    {Py_tp_doc, const_cast<char*>("The stack of a thread at one moment, captured by extract().")},
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_sq_length, reinterpret_cast<void*>(size_of)},
    {Py_nb_bool, reinterpret_cast<void*>(truth_of)},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {0, nullptr},
};

PyType_Spec kSpec = {"marey.CapturedTraceback", sizeof(TracebackObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, kSlots};

PyObject* wrap(const CapturedTraceback& traceback) noexcept {
    if (traceback.get() != nullptr) detail::keep(traceback.get());
    return made(traceback_type, traceback.get());
}

}  // namespace

bool is_traceback(PyObject* object) noexcept {
    return PyObject_TypeCheck(object, traceback_type) != 0;
}

CapturedTraceback traceback_of(PyObject* object) noexcept {
    if (!is_traceback(object) || as_traceback(object)->data == nullptr) return {};
    detail::keep(as_traceback(object)->data);
    return CapturedTraceback::adopt(as_traceback(object)->data);
}

bool add_traceback(PyObject* module) noexcept {
    traceback_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    if (traceback_type == nullptr ||
        PyModule_AddObjectRef(module, "CapturedTraceback", reinterpret_cast<PyObject*>(traceback_type)) != 0)
        return false;
    python::offer_python_stacks({wrap, is_traceback, traceback_of});
    python::offer_python_sampling();
    return true;
}

}  // namespace marey::bindings
