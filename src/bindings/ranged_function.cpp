// ranged_function.cpp: the decorator of plain functions and methods; calls run no extra Python code.
#include "bindings/range_objects.h"

#include <structmember.h>

#include <cstddef>

#include <marey/range.h>

#include "bindings/inherited_context.h"
#include "bindings/site_cache.h"
#include "sources/python/tracer.h"

namespace marey::bindings {
namespace {

struct RangedFunction {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* function;
    PyObject* name;  ///< str
    PyObject* dict;  ///< filled by functools.update_wrapper
    PyObject* weakrefs;
    CachedSite site;
};

PyTypeObject* ranged_function_type = nullptr;

// The site is not known yet, or the range is recorded only in the followed context.
[[gnu::noinline]] detail::Opened open_slow(RangedFunction* self) noexcept {
    detail::Opened opened{0, detail::kNotOpen};
    open_if_recording(Scope::User, [&]() noexcept {
        if (self->site.get() == 0) self->site.set(site_cache.site(self->name, Scope::User));
        opened = detail::open_range(self->site.get(), Scope::User);
    });
    return opened;
}

[[gnu::always_inline]] inline PyObject* call_inner(PyObject* function, PyObject* const* args,
                                                   std::size_t flags, PyObject* names) noexcept {
    if (PyFunction_Check(function)) [[likely]]
        return reinterpret_cast<PyFunctionObject*>(function)->vectorcall(function, args, flags, names);
    return PyObject_Vectorcall(function, args, flags, names);
}

PyObject* call(PyObject* object, PyObject* const* args, std::size_t flags, PyObject* names) {
    auto* const self = reinterpret_cast<RangedFunction*>(object);
    if (self->function == nullptr) [[unlikely]] {  // called by another object of the same garbage cycle
        PyErr_SetString(PyExc_ReferenceError, "the decorated function has been destroyed");
        return nullptr;
    }
    python::before_range();
    const std::uint32_t site = self->site.get();
    const bool is_fast_path = site != 0 && followed_variable == nullptr;
    const detail::Opened opened = is_fast_path ? detail::open_range(site, Scope::User) : open_slow(self);
    if (opened.index == detail::kNotOpen) return call_inner(self->function, args, flags, names);
    PyObject* const result = call_inner(self->function, args, flags, names);
    detail::close_range(opened);
    return result;
}

PyObject* bind(PyObject* object, PyObject* instance, PyObject*) {
    if (instance == nullptr || instance == Py_None) return Py_NewRef(object);
    return PyMethod_New(object, instance);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
    auto* const self = reinterpret_cast<RangedFunction*>(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->function);
    Py_VISIT(self->dict);
    return 0;
}

int clear(PyObject* object) {
    auto* const self = reinterpret_cast<RangedFunction*>(object);
    Py_CLEAR(self->function);
    Py_CLEAR(self->dict);
    return 0;
}

void destroy(PyObject* object) {
    PyObject_GC_UnTrack(object);
    auto* const self = reinterpret_cast<RangedFunction*>(object);
    if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(object);
    clear(object);
    Py_CLEAR(self->name);
    PyTypeObject* const type = Py_TYPE(object);
    type->tp_free(object);
    Py_DECREF(type);
}

// Pickled like a function: by its qualified name.
PyObject* reduce(PyObject* object, PyObject*) {
    return PyObject_GetAttrString(object, "__qualname__");
}

PyMethodDef kMethods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(RangedFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(RangedFunction, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(RangedFunction, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef kProperties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot kSlots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {Py_tp_getset, kProperties},
    {0, nullptr},
};

PyType_Spec kSpec = {"marey.ranged_function", sizeof(RangedFunction), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                         Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE |
                         Py_TPFLAGS_DISALLOW_INSTANTIATION,
                     kSlots};

// Keeps staticmethod and classmethod around the decorated function.
PyObject* rewrap_method(PyObject* method, PyObject* name, PyObject* args, StackChoice stack) noexcept {
    PyObject* const function = PyObject_GetAttrString(method, "__func__");
    if (function == nullptr) return nullptr;
    const Ref held(function);
    PyObject* const ranged = make_ranged_function(function, name, args, stack);
    if (ranged == nullptr) return nullptr;
    const Ref held_ranged(ranged);
    return PyObject_CallOneArg(reinterpret_cast<PyObject*>(Py_TYPE(method)), ranged);
}

}  // namespace

PyObject* call_module(const char* module_name, const char* function_name,
                      std::initializer_list<PyObject*> arguments) noexcept {
    PyObject* const module = PyImport_ImportModule(module_name);
    if (module == nullptr) return nullptr;
    const Ref held(module);
    PyObject* const function = PyObject_GetAttrString(module, function_name);
    if (function == nullptr) return nullptr;
    const Ref held_function(function);
    return PyObject_Vectorcall(function, arguments.begin(), arguments.size(), nullptr);
}

PyObject* make_ranged_function(PyObject* function, PyObject* name, PyObject* args,
                               StackChoice stack) noexcept {
    if (PyObject_TypeCheck(function, &PyStaticMethod_Type) ||
        PyObject_TypeCheck(function, &PyClassMethod_Type))
        return rewrap_method(function, name, args, stack);
    if (!PyCallable_Check(function)) {
        PyErr_Format(PyExc_TypeError, "record_function can only decorate callables, not %.80s",
                     Py_TYPE(function)->tp_name);
        return nullptr;
    }
    // None: the function does not suspend, and its range needs only a name.
    PyObject* const choice = stack_choice_object(stack);
    if (choice == nullptr) return nullptr;
    const Ref held(choice);
    PyObject* const wrapped = call_module("marey.context.suspending", "wrap",
                                          {function, name, args != nullptr ? args : Py_None, choice});
    if (wrapped != Py_None) return wrapped;
    Py_DECREF(wrapped);
    auto* const self =
        reinterpret_cast<RangedFunction*>(ranged_function_type->tp_alloc(ranged_function_type, 0));
    if (self == nullptr) return nullptr;
    self->vectorcall = call;
    self->function = Py_NewRef(function);
    self->name = Py_NewRef(name);
    PyObject* const result = reinterpret_cast<PyObject*>(self);
    const Ref held_result(result);
    return call_module("functools", "update_wrapper", {result, function});  // returns its argument
}

bool add_ranged_function(PyObject*) noexcept {
    ranged_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    return ranged_function_type != nullptr;
}

}  // namespace marey::bindings
