// record_function.cpp: kymo.record_function against the raw C API: no Python code runs on its way.
#include "bindings/record_function.h"

#include <memory>
#include <new>
#include <vector>

#include <kymo/operation.h>
#include <kymo/range.h>

#include "bindings/ranged_function.h"
#include "bindings/site_cache.h"

namespace kymo::bindings {
namespace {

using detail::kNotOpen;
using detail::Opened;

/// What a with-block that was entered while another of the same object is open has put aside.
struct Outer {
    Opened opened;
    std::unique_ptr<Operation> operation;
};

struct RecordFunction {
    PyObject_HEAD PyObject* name;  ///< str
    PyObject* args;                ///< str, or null
    Opened opened;
    Operation* operation;        ///< with args that somebody wants: the range, instead of `opened`
    std::vector<Outer>* outers;  ///< null: never entered twice at once
    std::uint32_t entered;
};

// Objects come and go with every block: a few are kept. Guarded by the GIL.
constexpr std::size_t kMostFree = 16;
RecordFunction* free_objects[kMostFree];
std::size_t free_count = 0;

PyTypeObject* record_function_type = nullptr;

void enter_with_args(RecordFunction* self) noexcept {
    auto* const operation = new (std::nothrow) Operation(Scope::User);
    if (operation == nullptr) return;
    self->operation = operation;
    with_text(self->name, [&](std::string_view name) {
        return with_text(self->args, [&](std::string_view args) {
            const Value input(args);
            operation->begin(name, {}, std::span(&input, 1));
            return 0;
        });
    });
}

bool put_aside(RecordFunction* self) noexcept {
    try {
        if (self->outers == nullptr) self->outers = new std::vector<Outer>;
        self->outers->push_back({self->opened, std::unique_ptr<Operation>(self->operation)});
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
        return false;
    }
    self->operation = nullptr;
    return true;
}

PyObject* enter(PyObject* object, PyObject*) {
    auto* const self = reinterpret_cast<RecordFunction*>(object);
    if (self->entered != 0 && !put_aside(self)) return nullptr;
    ++self->entered;
    self->opened.index = kNotOpen;
    if (detail::is_wanted(Scope::User)) {
        if (self->args != nullptr && inputs_wanted()) {
            enter_with_args(self);
        } else {
            self->opened = detail::open_range(site_cache.site(self->name, Scope::User), Scope::User);
        }
    }
    return Py_NewRef(object);
}

void close(RecordFunction* self) noexcept {
    if (self->opened.index != kNotOpen) detail::close_range(self->opened);
    if (self->operation != nullptr) {
        delete self->operation;
        self->operation = nullptr;
    }
    --self->entered;
    if (self->entered != 0) {
        Outer& outer = self->outers->back();
        self->opened = outer.opened;
        self->operation = outer.operation.release();
        self->outers->pop_back();
    }
}

PyObject* leave(PyObject* object, PyObject* const*, Py_ssize_t) {
    auto* const self = reinterpret_cast<RecordFunction*>(object);
    if (self->entered == 0) {
        PyErr_SetString(PyExc_RuntimeError, "record_function: left without having been entered");
        return nullptr;
    }
    close(self);
    Py_RETURN_NONE;
}

PyObject* decorate(PyObject* object, PyObject* args, PyObject* kwargs) {
    PyObject* function = nullptr;
    static const char* const kNames[] = {"func", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:record_function", const_cast<char**>(kNames),
                                     &function))
        return nullptr;
    const auto* const self = reinterpret_cast<RecordFunction*>(object);
    return make_ranged_function(function, self->name, self->args);
}

RecordFunction* make(PyTypeObject* type, PyObject* name, PyObject* args) noexcept {
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "record_function: the name must be a str, not %.80s",
                     Py_TYPE(name)->tp_name);
        return nullptr;
    }
    if (args == Py_None) args = nullptr;
    if (args != nullptr && !PyUnicode_Check(args)) {
        PyErr_Format(PyExc_TypeError, "record_function: args must be a str or None, not %.80s",
                     Py_TYPE(args)->tp_name);
        return nullptr;
    }
    RecordFunction* self;
    if (type == record_function_type && free_count != 0) {
        self = free_objects[--free_count];
        _Py_NewReference(reinterpret_cast<PyObject*>(self));
    } else {
        self = reinterpret_cast<RecordFunction*>(type->tp_alloc(type, 0));
        if (self == nullptr) return nullptr;
    }
    self->name = Py_NewRef(name);
    self->args = Py_XNewRef(args);
    self->opened = {0, kNotOpen};
    self->operation = nullptr;
    self->outers = nullptr;
    self->entered = 0;
    return self;
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    PyObject *name = nullptr, *given = nullptr;
    static const char* const kNames[] = {"name", "args", nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:record_function", const_cast<char**>(kNames), &name,
                                     &given))
        return nullptr;
    return reinterpret_cast<PyObject*>(make(type, name, given));
}

// record_function("x"): straight into make(). Anything with keywords takes the general way.
PyObject* construct_fast(PyObject* type, PyObject* const* args, std::size_t flags, PyObject* names) {
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    const bool is_plain = names == nullptr || PyTuple_GET_SIZE(names) == 0;
    if (is_plain && (count == 1 || count == 2)) [[likely]] {
        return reinterpret_cast<PyObject*>(
            make(reinterpret_cast<PyTypeObject*>(type), args[0], count == 2 ? args[1] : nullptr));
    }
    PyObject* const tuple = PyTuple_New(count);
    if (tuple == nullptr) return nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple, i, Py_NewRef(args[i]));
    PyObject* const dict = PyDict_New();
    bool is_good = dict != nullptr;
    for (Py_ssize_t i = 0; is_good && !is_plain && i < PyTuple_GET_SIZE(names); ++i)
        is_good = PyDict_SetItem(dict, PyTuple_GET_ITEM(names, i), args[count + i]) == 0;
    PyObject* const result =
        is_good ? construct(reinterpret_cast<PyTypeObject*>(type), tuple, dict) : nullptr;
    Py_DECREF(tuple);
    Py_XDECREF(dict);
    return result;
}

void destroy(PyObject* object) {
    auto* const self = reinterpret_cast<RecordFunction*>(object);
    while (self->entered != 0) close(self);  // an open range whose object goes ends then
    delete self->outers;
    Py_DECREF(self->name);
    Py_XDECREF(self->args);
    PyTypeObject* const type = Py_TYPE(object);
    if (type == record_function_type && free_count < kMostFree) {
        free_objects[free_count++] = self;  // with its reference to the type
        return;
    }
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* get_name(PyObject* object, void*) {
    return Py_NewRef(reinterpret_cast<RecordFunction*>(object)->name);
}

PyObject* get_args(PyObject* object, void*) {
    PyObject* const args = reinterpret_cast<RecordFunction*>(object)->args;
    return Py_NewRef(args != nullptr ? args : Py_None);
}

PyObject* represent(PyObject* object) {
    return PyUnicode_FromFormat("record_function(%R)", reinterpret_cast<RecordFunction*>(object)->name);
}

PyMethodDef kMethods[] = {
    {"__enter__", enter, METH_NOARGS, "Begins the range."},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(leave)), METH_FASTCALL,
     "Ends the range."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef kProperties[] = {
    {"name", get_name, nullptr, "What the range is called.", nullptr},
    {"args", get_args, nullptr, "The text given with it, or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot kSlots[] = {
    {Py_tp_doc,
     const_cast<char*>("record_function(name, args=None)\n--\n\n"
                       "Marks a range: a with-block, or every call of the function that it decorates.")},
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_call, reinterpret_cast<void*>(decorate)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_methods, kMethods},
    {Py_tp_getset, kProperties},
    {0, nullptr},
};

PyType_Spec kSpec = {"kymo.record_function", sizeof(RecordFunction), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE, kSlots};

}  // namespace

bool add_range_objects(PyObject* module) noexcept {
    record_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    if (record_function_type == nullptr) return false;
    record_function_type->tp_vectorcall = construct_fast;
    return PyModule_AddType(module, record_function_type) == 0 && add_ranged_function(module);
}

}  // namespace kymo::bindings
