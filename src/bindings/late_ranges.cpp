// late_ranges.cpp: marey._marey.late_range: a range that gets its name and its values at its end.
#include <cstdint>

#include "bindings/inherited_context.h"
#include "bindings/range_objects.h"
#include "bindings/site_cache.h"
#include "sources/python/late_range.h"

namespace marey::bindings {
namespace {

struct LateRangeObject {
    PyObject_HEAD python::LateRange range;
};

PyTypeObject* late_range_type = nullptr;

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    PyObject* name = nullptr;
    static const char* const kNames[] = {"name", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|U:late_range", const_cast<char**>(kNames), &name))
        return nullptr;
    PyObject* const object = type->tp_alloc(type, 0);  // filled with zeros: not open
    if (object == nullptr) return nullptr;
    auto* const self = reinterpret_cast<LateRangeObject*>(object);
    if (name == nullptr) {
        self->range.begin(0);
    } else {
        open_if_recording(Scope::User, [&]() noexcept {
            const std::uint32_t site = site_cache.site(name, Scope::User);
            if (site != 0) self->range.begin(site);
        });
    }
    return object;
}

PyObject* end(PyObject* object, PyObject* const* args, Py_ssize_t count) {
    if (count != 3 || !PyUnicode_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "end(name, status, bytes) takes a str and two integers");
        return nullptr;
    }
    const long long status = PyLong_AsLongLong(args[1]);
    const long long bytes = PyLong_AsLongLong(args[2]);
    if (PyErr_Occurred() != nullptr) return nullptr;
    auto* const self = reinterpret_cast<LateRangeObject*>(object);
    const auto finish = [&]() noexcept {
        const KeyedNumber numbers[] = {{"status", status}, {"bytes", bytes}};
        self->range.end(site_cache.site(args[0], Scope::User), numbers);
    };
    if (detail::should_record(Scope::User) || followed_variable == nullptr) {
        finish();
    } else {
        const FollowedContext context;
        finish();
    }
    Py_RETURN_NONE;
}

void destroy(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    reinterpret_cast<LateRangeObject*>(object)->range.drop();
    type->tp_free(object);
    Py_DECREF(type);
}

PyMethodDef kMethods[] = {
    {"end", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(end)), METH_FASTCALL,
     "End the range, named by the first argument. Does nothing if it has ended."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot kSlots[] = {
    {Py_tp_doc, const_cast<char*>("A range that gets its name, a status and a number of bytes at its end.\n\n"
                                  "With a name, it nests with the other ranges of this thread; otherwise it "
                                  "is on an async track.")},
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, kMethods},
    {0, nullptr},
};
PyType_Spec kSpec = {"marey.late_range", sizeof(LateRangeObject), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, kSlots};

}  // namespace

bool add_late_ranges(PyObject* module) noexcept {
    late_range_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    return late_range_type != nullptr && PyModule_AddType(module, late_range_type) == 0;
}

}  // namespace marey::bindings
