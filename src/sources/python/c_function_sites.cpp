// c_function_sites.cpp: names of C functions: module or class, and qualified name; never an instance's
// address.
#include "sources/python/c_function_sites.h"

#include <cstdio>
#include <unordered_map>

#include "record/source_writer.h"
#include "sources/python/call_filter.h"
#include "sources/python/python_text.h"

namespace marey::python {

CFunctionSites c_function_sites;

namespace {

bool holds(const PyMethodDef* methods, const PyMethodDef* wanted) noexcept {
    for (; methods != nullptr && methods->ml_name != nullptr; ++methods) {
        if (methods == wanted) return true;
    }
    return false;
}

// The class among the bases of `type` that defines a method; null: none does.
PyTypeObject* defining_class(PyTypeObject* type, const PyMethodDef* method) noexcept {
    PyObject* const line = type->tp_mro;
    if (line == nullptr || !PyTuple_Check(line)) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(line); ++i) {
        PyObject* const each = PyTuple_GET_ITEM(line, i);
        if (PyType_Check(each) && holds(reinterpret_cast<PyTypeObject*>(each)->tp_methods, method))
            return reinterpret_cast<PyTypeObject*>(each);
    }
    return nullptr;
}

// tp_name includes the module for classes implemented in C, but not for others; builtins keep their short
// names.
std::string class_name(PyTypeObject* type) {
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return type->tp_name;
    std::string name;
    PyObject* const module =
        PyDict_GetItemString(type->tp_dict, "__module__");  // borrowed; clears its errors
    if (module != nullptr && PyUnicode_Check(module)) name = text_of(module) + '.';
    return name + text_of(reinterpret_cast<PyHeapTypeObject*>(type)->ht_qualname);
}

std::string module_of(PyTypeObject* type) {
    const std::string name = class_name(type);
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? "builtins" : name.substr(0, dot);
}

// The text that Python prints for each C function, by its name here. Guarded by the GIL; never destroyed.
auto& printed_names = *new std::unordered_map<std::string, std::string>;

// Calls no program code: only the class of a bound object is printed, and its address.
void note_printed_name(const std::string& name, PyObject* function) {
    if (const Ref printed(PyObject_Repr(function)); printed) add_printed_name(name, text_of(printed.get()));
}

struct Described {
    std::string name;
    std::string module;
    bool is_static;  ///< its definition is a constant of its library
};

// 0: its calls are not recorded. Marey's own functions open and close ranges: a range around them would not
// nest with those.
std::uint32_t c_call_site(const Described& described) {
    // Never empty: the module distinguishes a traced call from a range of the program.
    const std::string_view module =
        described.module.empty() ? "(unknown)" : std::string_view(described.module);
    if (described.name.starts_with("marey.") || !takes_module(module)) return 0;
    return traced_site(described.name, module, 0, Scope::CFunction);
}

// Whether an object is the self of a pybind11 function: a capsule, or since version 3.0.2 an object of a
// special class.
bool is_pybind11_record(PyObject* self) noexcept {
    return PyCapsule_CheckExact(self) ||
           std::string_view(Py_TYPE(self)->tp_name).find("pybind11_detail_function_record") !=
               std::string_view::npos;
}

// A method of a pybind11 class is recognizable only by its signature: `add(self: module.Class`, after a
// separate line if there are several. Returns an empty string if it is not one.
std::string class_of_signature(const std::string& name, std::string_view text) {
    constexpr std::string_view kFirst = "\n1. ";
    if (const std::size_t first = text.find(kFirst);
        first != std::string_view::npos && text.starts_with(name + "(*args, **kwargs)\n"))
        text.remove_prefix(first + kFirst.size());
    const std::string head = name + "(self: ";
    if (!text.starts_with(head)) return "";
    const std::size_t end = text.find_first_of(",)", head.size());
    return end == std::string_view::npos ? "" : std::string(text.substr(head.size(), end - head.size()));
}

Described describe(PyCFunctionObject* function) {
    const PyMethodDef* const method = function->m_ml;
    PyObject* const self = function->m_self;
    const std::string own = method->ml_name != nullptr ? method->ml_name : "(unnamed)";
    if (self != nullptr && PyModule_Check(self)) {
        const PyModuleDef* const definition = PyModule_GetDef(self);
        PyErr_Clear();
        const char* const module = PyModule_GetName(self);
        PyErr_Clear();
        return {(module != nullptr ? std::string(module) + "." : std::string()) + own,
                module != nullptr ? module : "",
                definition != nullptr && holds(definition->m_methods, method)};
    }
    if (self != nullptr) {
        PyTypeObject* type =
            PyType_Check(self) ? defining_class(reinterpret_cast<PyTypeObject*>(self), method) : nullptr;
        if (type == nullptr) type = defining_class(Py_TYPE(self), method);
        if (type != nullptr) return {class_name(type) + "." + own, module_of(type), true};
        // Slots exposed as methods (`__new__`), and functions of binding libraries with a record as their
        // self.
        if (PyType_Check(self)) {
            auto* const owner = reinterpret_cast<PyTypeObject*>(self);
            return {class_name(owner) + "." + own, module_of(owner), false};
        }
    }
    std::string module;
    if (function->m_module != nullptr && PyUnicode_Check(function->m_module))
        module = text_of(function->m_module);
    if (const std::string owner =
            self != nullptr && is_pybind11_record(self)
                ? class_of_signature(own, method->ml_doc != nullptr ? method->ml_doc : "")
                : "";
        !owner.empty())
        return {owner + "." + own, module, false};
    return {module.empty() ? own : module + "." + own, module, false};
}

}  // namespace

void CFunctionSites::remember(const void* key, std::uint32_t site, PyObject* owner) noexcept {
    Py_XINCREF(owner);
    Py_XDECREF(static_cast<PyObject*>(sites_.put(key, site, owner)));
}

std::uint32_t CFunctionSites::learn(PyObject* object) noexcept {
    const SavedError error;
    auto* const function = reinterpret_cast<PyCFunctionObject*>(object);
    const bool is_new = function->m_self != nullptr && PyType_Check(function->m_self) &&
                        std::string_view(function->m_ml->ml_name) == "__new__";
    if (const Sites::Entry* const entry = is_new ? sites_.find(key_of_new(function->m_self)) : nullptr)
        return entry->number;
    try {
        const Described described = describe(function);
        const std::uint32_t site = c_call_site(described);
        if (site != 0) note_printed_name(described.name, object);
        if (is_new)
            remember(key_of_new(function->m_self), site, object);
        else if (function->m_ml != unknown_)
            remember(function->m_ml, site, described.is_static ? nullptr : object);
        return site;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

#if PY_VERSION_HEX >= 0x030C0000
void CFunctionSites::prepare() noexcept {
    if (python_call_ != nullptr) return;
    const SavedError error;
    const Ref sample(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(){sO}", "Sample",
                                           "__call__", Py_None));
    if (!sample) return;
    python_dealloc_ = reinterpret_cast<PyTypeObject*>(sample.get())->tp_dealloc;
    python_call_ = reinterpret_cast<PyTypeObject*>(sample.get())->tp_call;
    if (const Ref bound = attribute(Py_None, "__bool__"); bound) bound_slot_ = Py_TYPE(bound.get());
}

namespace {

// A text attribute of an object whose class is implemented in C; empty if it has none.
std::string text_attribute(PyObject* object, const char* name) {
    const Ref value = attribute(object, name);
    return value && PyUnicode_Check(value.get()) ? text_of(value.get()) : std::string();
}

// Whether the objects of a type are functions with individual names, which are few and long-lived: they are
// kept alive while tracing.
bool are_functions(PyTypeObject* type) noexcept {
    const std::string_view name = type->tp_name;
    if (name == "numpy._ArrayFunctionDispatcher") return true;
    if ((type->tp_flags & Py_TPFLAGS_METHOD_DESCRIPTOR) != 0) return type->tp_dictoffset == 0;
    return name == "numpy.ufunc" || name.ends_with("nb_func");
}

// The text that Python prints for a method after binding it to an object. PyTorch's tensors are objects of a
// class derived from the one that has their methods.
std::string printed_method(const PyDescrObject& method, const std::string& name) {
    char address[32];
    std::snprintf(address, sizeof address, "%p", static_cast<const void*>(&method));
    std::string type = method.d_type->tp_name;
    if (type == "torch._C.TensorBase") type = "Tensor";
    return "<built-in method " + name + " of " + type + " object at " + address + ">";
}

Described describe_callable(PyObject* callable) {
    PyTypeObject* const type = Py_TYPE(callable);
    if (type == &PyMethodDescr_Type || type == &PyWrapperDescr_Type || type == &PyClassMethodDescr_Type) {
        auto* const descriptor = reinterpret_cast<PyDescrObject*>(callable);
        const std::string own = text_of(descriptor->d_name);
        const std::string name = class_name(descriptor->d_type) + "." + own;
        if (type != &PyWrapperDescr_Type) add_printed_name(name, printed_method(*descriptor, own));
        return {name, module_of(descriptor->d_type), false};
    }
    if (PyType_Check(callable)) {
        auto* const own = reinterpret_cast<PyTypeObject*>(callable);
        return {class_name(own), module_of(own), false};
    }
    if (are_functions(type)) {
        std::string name = text_attribute(callable, "__qualname__");
        if (name.empty()) name = text_attribute(callable, "__name__");
        std::string module = text_attribute(callable, "__module__");
        if (module.empty()) module = module_of(type);
        if (!name.empty()) return {module + "." + name, module, false};
    }
    return {class_name(type) + ".__call__", module_of(type), false};
}

}  // namespace

std::uint32_t CFunctionSites::register_callable(PyObject* callable, const void* key) noexcept {
    PyTypeObject* const type = Py_TYPE(callable);
    if (key == key_of_objects(type) && are_functions(type)) {
        if (sites_.find(key) == nullptr) remember(key, kByObject, reinterpret_cast<PyObject*>(type));
        const Sites::Entry* const entry = sites_.find(callable);
        return entry != nullptr ? entry->number : make_callable_site(callable, callable);
    }
    return make_callable_site(callable, key);
}

std::uint32_t CFunctionSites::make_callable_site(PyObject* callable, const void* key) noexcept {
    const SavedError error;
    try {
        const std::uint32_t site = c_call_site(describe_callable(callable));
        PyObject* const type = reinterpret_cast<PyObject*>(Py_TYPE(callable));
        remember(key, site, key == key_of_objects(Py_TYPE(callable)) ? type : callable);
        return site;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}
#endif

void add_printed_name(const std::string& name, std::string_view text) {
    printed_names.try_emplace(name, text);
}

std::string printed_name(std::string_view name) {
    const auto found = printed_names.find(std::string(name));
    return found != printed_names.end() ? found->second : std::string();
}

void CFunctionSites::forget() noexcept {
    clear();
    sites_.clear();
}

void CFunctionSites::clear() noexcept {
    sites_.drop_held([](void* object) { Py_DECREF(static_cast<PyObject*>(object)); });
}

}  // namespace marey::python
