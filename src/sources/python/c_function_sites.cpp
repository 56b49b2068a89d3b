// c_function_sites.cpp: the names of C functions: module or class, and qualified name; never an instance's
// address.
#include "sources/python/c_function_sites.h"

#include <string>
#include <string_view>
#include <utility>

#include "record/source_writer.h"
#include "sources/python/call_filter.h"
#include "sources/python/python_text.h"

namespace kymo::python {

CFunctionSites c_function_sites;

namespace {

bool holds(const PyMethodDef* methods, const PyMethodDef* wanted) noexcept {
    for (; methods != nullptr && methods->ml_name != nullptr; ++methods) {
        if (methods == wanted) return true;
    }
    return false;
}

// The class in `type`'s line of descent that defines a method; null: none does.
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

// tp_name of a class made in C says its module, that of others does not; builtins stay as short as people
// write them.
std::string class_name(PyTypeObject* type) {
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) == 0) return type->tp_name;
    std::string name;
    PyObject* const module =
        PyDict_GetItemString(type->tp_dict, "__module__");  // borrowed; clears its errors
    if (module != nullptr && PyUnicode_Check(module))
        with_text(module, [&](std::string_view text) { name = text; });
    if (!name.empty()) name += '.';
    with_text(reinterpret_cast<PyHeapTypeObject*>(type)->ht_qualname,
              [&](std::string_view text) { name += text; });
    return name;
}

std::string module_of(PyTypeObject* type) {
    const std::string name = class_name(type);
    const std::size_t dot = name.rfind('.');
    return dot == std::string::npos ? "builtins" : name.substr(0, dot);
}

// Never empty: it tells a traced call from a range of the program's own.
std::string_view module_text(const std::string& module) {
    return module.empty() ? std::string_view("(unknown)") : module;
}

struct Described {
    std::string name;
    std::string module;
    bool is_lasting = false;  ///< its definition is a constant of the library that holds it
};

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
        // Slots given out as methods (`__new__`), functions of binding libraries with a record as their self.
        if (PyType_Check(self)) {
            auto* const owner = reinterpret_cast<PyTypeObject*>(self);
            return {class_name(owner) + "." + own, module_of(owner), false};
        }
    }
    std::string module;
    if (function->m_module != nullptr && PyUnicode_Check(function->m_module))
        with_text(function->m_module, [&](std::string_view text) { module = text; });
    // A method of a class that pybind11 has made says so in its signature alone: `add(self: module.Class`.
    const std::string_view text = method->ml_doc != nullptr ? method->ml_doc : "";
    if (const std::string head = own + "(self: ";
        self != nullptr && PyCapsule_CheckExact(self) && text.starts_with(head)) {
        const std::size_t end = text.find_first_of(",)", head.size());
        if (end != std::string_view::npos)
            return {std::string(text.substr(head.size(), end - head.size())) + "." + own, module, false};
    }
    return {module.empty() ? own : module + "." + own, module, false};
}

}  // namespace

void CFunctionSites::remember(const void* key, std::uint32_t site, PyObject* owner) noexcept {
    const std::size_t at = place(key);
    entries_[at].key = key;
    entries_[at].site = site;
    Py_XINCREF(owner);
    PyObject* const before = std::exchange(owners_[at], owner);
    Py_XDECREF(before);
}

std::uint32_t CFunctionSites::learn(PyObject* object) noexcept {
    const KeptError error;
    auto* const function = reinterpret_cast<PyCFunctionObject*>(object);
    // One definition serves many classes here: type's own `__new__`. Each is named by its class, none is
    // remembered.
    const bool is_slot = function->m_self != nullptr && PyType_Check(function->m_self) &&
                         std::string_view(function->m_ml->ml_name) == "__new__";
    try {
        const Described described = describe(function);
        // Kymo's own open and close ranges: one around them would not nest with those.
        const bool is_left_out =
            described.name.starts_with("kymo.") || !takes_module(module_text(described.module));
        const std::uint32_t site =
            is_left_out ? 0 : traced_site(described.name, module_text(described.module), 0, Scope::CFunction);
        if (!is_slot) remember(function->m_ml, site, described.is_lasting ? nullptr : object);
        return site;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}

#if PY_VERSION_HEX >= 0x030C0000

namespace {

// What a class, or one that it descends from, has under a name; borrowed. Nothing of the program's runs.
PyObject* of_class(PyTypeObject* type, const char* name) noexcept {
    PyObject* const line = type->tp_mro;
    if (line == nullptr || !PyTuple_Check(line)) return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(line); ++i) {
        PyObject* const each = PyTuple_GET_ITEM(line, i);
        if (!PyType_Check(each)) continue;
        PyObject* const members = PyType_GetDict(reinterpret_cast<PyTypeObject*>(each));
        PyObject* const found = members != nullptr ? PyDict_GetItemString(members, name) : nullptr;
        Py_XDECREF(members);
        if (found != nullptr) return found;
    }
    return nullptr;
}

// Whether objects of a class have names of their own, which can be asked for without running code of the
// program's: functions of binding libraries and of Cython, ufuncs. Not those that are made for one call.
bool has_named_objects(PyTypeObject* type) noexcept {
    const std::string_view type_name = type->tp_name;
    if (type == &PyMethod_Type || type_name == "method-wrapper" ||
        type_name.find("bound") != std::string_view::npos)
        return false;
    PyObject* const name = of_class(type, "__name__");
    if (name != nullptr)
        return Py_IS_TYPE(name, &PyGetSetDescr_Type) || Py_IS_TYPE(name, &PyMemberDescr_Type);
    if (of_class(type, "__getattr__") != nullptr) return false;
    const bool is_generic = type->tp_getattro == PyObject_GenericGetAttr;
    return PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) ? !is_generic && type->tp_getattro != nullptr
                                                        : is_generic;
}

// A text that an object says of itself; empty: none.
std::string attribute_text(PyObject* object, const char* name) {
    std::string text;
    PyObject* const value = PyObject_GetAttrString(object, name);
    if (value != nullptr && PyUnicode_Check(value))
        with_text(value, [&](std::string_view found) { text = found; });
    Py_XDECREF(value);
    PyErr_Clear();
    return text;
}

// By its own name; empty: it has none.
Described describe_named(PyObject* callable) {
    std::string name = attribute_text(callable, "__qualname__");
    if (name.empty()) name = attribute_text(callable, "__name__");
    if (name.empty()) return {};
    PyObject* const owner = PyObject_GetAttrString(callable, "__objclass__");  // slots and methods of a class
    PyErr_Clear();
    std::string module;
    if (owner != nullptr && PyType_Check(owner)) {
        auto* const type = reinterpret_cast<PyTypeObject*>(owner);
        module = module_of(type);
        name = class_name(type) + "." + name.substr(name.rfind('.') + 1);
    } else {
        module = attribute_text(callable, "__module__");
        if (module.empty()) module = module_of(Py_TYPE(callable));
        if (!module.empty()) name = module + "." + name;
    }
    Py_XDECREF(owner);
    return {name, module, false};
}

}  // namespace

std::uint32_t CFunctionSites::learn_callable(PyObject* callable, const void* key) noexcept {
    const KeptError error;
    try {
        PyTypeObject* const type = Py_TYPE(callable);
        Described described{};
        PyObject* owner = reinterpret_cast<PyObject*>(type);
        if (type == &PyMethodDescr_Type) {
            auto* const descriptor = reinterpret_cast<PyMethodDescrObject*>(callable);
            PyTypeObject* const of = descriptor->d_common.d_type;
            described = {class_name(of) + "." + descriptor->d_method->ml_name, module_of(of), false};
            owner = callable;
        } else if (PyType_Check(callable)) {
            auto* const made = reinterpret_cast<PyTypeObject*>(callable);
            described = {class_name(made), module_of(made), false};
            owner = callable;
        } else if (key == callable || has_named_objects(type)) {
            described = describe_named(callable);
            if (!described.name.empty()) {
                if (key != callable) remember(type, kByObject, owner);
                key = owner = callable;
            }
        }
        if (described.name.empty()) described = {class_name(type) + ".__call__", module_of(type), false};
        const std::string_view module = module_text(described.module);
        const bool is_left_out = described.name.starts_with("kymo.") || !takes_module(module);
        const std::uint32_t site = is_left_out ? 0 : traced_site(described.name, module, 0, Scope::CFunction);
        remember(key, site, owner);
        return site;
    } catch (const std::bad_alloc&) {
        return 0;
    }
}
#endif

void CFunctionSites::forget() noexcept {
    clear();
    for (Entry& entry : entries_) entry = {};
}

void CFunctionSites::clear() noexcept {
    for (std::size_t i = 0; i < kEntries; ++i) {
        if (owners_[i] == nullptr) continue;
        entries_[i] = {};
        Py_DECREF(std::exchange(owners_[i], nullptr));
    }
}

}  // namespace kymo::python
