// modules_binding.cpp: registers classes whose calls are module or optimizer calls; torch's are registered
// automatically. Reads their parameters, gradients, state and children.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <marey/modules.h>
#include <marey/value.h>

#include "bindings/bind.h"
#include "bindings/object_values.h"
#include "bindings/site_cache.h"
#include "bindings/trace_values.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

using python::drop_error;
using python::ModuleInstance;
using python::ModuleType;

constexpr std::size_t kMaxParameters = 100'000;
constexpr std::size_t kMaxChildren = 10'000;
constexpr int kMaxModuleNesting = 32;

/// An attribute stored in the object itself, in its dict or in a slot. No property, __getattr__ or
/// __getattribute__ of a class runs. Returns a new reference, or null if there is none.
PyObject* held_attribute(PyObject* object, PyObject* name) noexcept {
    if (PyObject* const dict = PyObject_GenericGetDict(object, nullptr)) {
        PyObject* const found =
            PyDict_Check(dict) ? Py_XNewRef(PyDict_GetItemWithError(dict, name)) : nullptr;
        Py_DECREF(dict);
        if (found != nullptr) return found;
    }
    drop_error();
    PyObject* const descriptor = _PyType_Lookup(Py_TYPE(object), name);  // borrowed
    if (descriptor == nullptr || Py_TYPE(descriptor) != &PyMemberDescr_Type) return nullptr;
    PyObject* const found =
        PyMemberDescr_Type.tp_descr_get(descriptor, object, reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (found == nullptr) drop_error();
    return found;
}

/// Reads an attribute by name, or calls a callable, for an object.
nb::object read(PyObject* what, PyObject* object) noexcept {
    if (what == nullptr) return nb::object();
    if (PyUnicode_Check(what)) return nb::steal(held_attribute(object, what));
    nb::object given = nb::steal(PyObject_CallOneArg(what, object));
    if (!given) {
        drop_error();
        return given;
    }
    if (PyDict_Check(given.ptr()) || PyList_Check(given.ptr()) || PyTuple_Check(given.ptr())) return given;
    nb::object listed = nb::steal(PySequence_List(given.ptr()));  // probably an iterator
    if (!listed) drop_error();
    return listed;
}

bool is_sequence(PyObject* object) noexcept {
    return PyList_Check(object) || PyTuple_Check(object);
}

using Named = std::pair<nb::object, nb::object>;  // an optional key, and a value

/// The entries of a dict or a list. Copied because reading an entry may change the container.
std::vector<Named> entries(PyObject* container) {
    std::vector<Named> found;
    if (container == nullptr) return found;
    if (PyDict_Check(container)) {
        Py_ssize_t at = 0;
        PyObject *key = nullptr, *value = nullptr;
        while (PyDict_Next(container, &at, &key, &value) != 0)
            found.emplace_back(nb::borrow(key), nb::borrow(value));
    } else if (is_sequence(container)) {
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i)
            found.emplace_back(nb::object(), nb::borrow(PySequence_Fast_GET_ITEM(container, i)));
    }
    return found;
}

/// Parameters are a dict by name, or a list of parameters, of pairs (name, parameter), or of groups (dicts
/// with such a list under "params").
void add_parameters(PyObject* container, std::vector<Named>& parameters, int nesting) {
    for (Named& entry : entries(container)) {
        if (parameters.size() >= kMaxParameters) return;
        PyObject* const value = entry.second.ptr();
        if (!entry.first && PyDict_Check(value) && nesting == 0) {
            const auto group = nb::borrow(PyDict_GetItemString(value, "params"));
            if (group) add_parameters(group.ptr(), parameters, 1);
        } else if (!entry.first && PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2 &&
                   PyUnicode_Check(PyTuple_GET_ITEM(value, 0))) {
            parameters.emplace_back(nb::borrow(PyTuple_GET_ITEM(value, 0)),
                                    nb::borrow(PyTuple_GET_ITEM(value, 1)));
        } else {
            parameters.push_back(std::move(entry));
        }
    }
}

/// The values of parameters: in a dict by parameter or name, or in a list by index. Parameters are compared
/// by identity, not by hash, since their hash may run code of the program.
class PerParameterValues {
  public:
    explicit PerParameterValues(PyObject* container) : entries_(entries(container)) {
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            if (PyObject* const key = entries_[i].first.ptr()) {
                by_object_.emplace(key, i);
                if (PyUnicode_Check(key))
                    with_text(key, [&](std::string_view text) { by_name_.emplace(text, i); });
            } else {
                is_list_ = true;
            }
        }
    }
    /// Borrowed; null if there is none.
    PyObject* find(const Named& parameter, std::size_t index) const {
        if (is_list_) return index < entries_.size() ? entries_[index].second.ptr() : nullptr;
        if (const auto found = by_object_.find(parameter.second.ptr()); found != by_object_.end())
            return entries_[found->second].second.ptr();
        if (!parameter.first || !PyUnicode_Check(parameter.first.ptr())) return nullptr;
        const auto found = by_name_.find(python::text_of(parameter.first.ptr()));
        return found != by_name_.end() ? entries_[found->second].second.ptr() : nullptr;
    }

  private:
    std::vector<Named> entries_;
    std::unordered_map<PyObject*, std::size_t> by_object_;
    std::unordered_map<std::string, std::size_t> by_name_;
    bool is_list_ = false;
};

class Description {
  public:
    explicit Description(const ModuleInstance& instance) : instance_(instance), type_(instance.type) {}

    void write(std::vector<KeyedValue>& values) {
        values.push_back({module_keys::kKind, type_.is_optimizer ? "optimizer" : "module"});
        values.push_back({module_keys::kClass, text(instance_.class_name)});
        values.push_back({module_keys::kNumber, std::int64_t{instance_.number}});
        values.push_back({module_keys::kSelf, address(instance_.self)});
        values.push_back({module_keys::kClassAddress, address(Py_TYPE(instance_.self))});
        values.push_back({module_keys::kFunction, text(type_.code->co_name)});
        add_all_parameters(values);
        if (!instance_.with_children || type_.is_optimizer) return;
        values.push_back({module_keys::kHasParts, true});
        add_children(type_, instance_.self, "", values, 0);
    }

  private:
    static std::int64_t address(const void* place) noexcept {
        return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(place));
    }
    Value text(std::string_view bytes) { return std::string_view(texts_.emplace_back(bytes)); }
    Value text(PyObject* object) {
        return with_text(object, [&](std::string_view bytes) { return text(bytes); });
    }
    Value name(const nb::object& key) {
        return key && PyUnicode_Check(key.ptr()) ? text(key.ptr()) : Value(std::string_view());
    }

    // Returns an empty value if the object is not an array.
    Value array(PyObject* object) {
        if (object == nullptr || object == Py_None) return {};
        if (type_.arrays != nullptr && PyTuple_GET_SIZE(type_.arrays) != 0) {
            bool is_one = false;
            for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(type_.arrays); ++i)
                is_one |= PyTuple_GET_ITEM(type_.arrays, i) == reinterpret_cast<PyObject*>(Py_TYPE(object));
            if (!is_one) return {};
            if (type_.has_tensors) {
                if (const Value own = objects_.tensor(object); own.kind() == ValueKind::Array) return own;
            }
        } else if (PyUnicode_Check(object) || PyLong_Check(object) || PyFloat_Check(object) ||
                   PyDict_Check(object) || is_sequence(object)) {
            return {};
        }
        const Value value = objects_.value(object);
        drop_error();
        return value.kind() == ValueKind::Array ? value : Value();
    }

    /// A gradient named ".x" is the attribute x of each parameter.
    Value gradient(const PerParameterValues& gradients, const Named& parameter, std::size_t index) {
        PyObject* const what = type_.gradients;
        if (what == nullptr || !is_of_parameter(what)) return array(gradients.find(parameter, index));
        const auto attribute = nb::steal(PyUnicode_Substring(what, 1, PyUnicode_GET_LENGTH(what)));
        const auto found =
            nb::steal(attribute ? PyObject_GetAttr(parameter.second.ptr(), attribute.ptr()) : nullptr);
        if (!found) drop_error();
        return array(found.ptr());
    }
    static bool is_of_parameter(PyObject* what) noexcept {
        return what != nullptr && PyUnicode_Check(what) && PyUnicode_GET_LENGTH(what) > 1 &&
               PyUnicode_READ_CHAR(what, 0) == '.';
    }

    void add_state(PyObject* state, std::vector<Value>& items) {
        if (state == nullptr) return;
        if (!PyDict_Check(state)) {
            const Value whole = array(state);
            if (whole.kind() == ValueKind::Array)
                items.insert(items.end(), {Value(std::string_view()), whole});
            return;
        }
        for (const Named& entry : entries(state)) {
            const Value part = array(entry.second.ptr());
            if (part.kind() == ValueKind::Array) items.insert(items.end(), {name(entry.first), part});
        }
    }

    void add_all_parameters(std::vector<KeyedValue>& values) {
        const nb::object container = read(type_.parameters, instance_.self);
        std::vector<Named> parameters;
        if (container) add_parameters(container.ptr(), parameters, 0);
        if (parameters.empty()) return;
        const nb::object given =
            is_of_parameter(type_.gradients) ? nb::object() : read(type_.gradients, instance_.self);
        const nb::object state = read(type_.state, instance_.self);
        const PerParameterValues gradients(given.ptr());
        const PerParameterValues states(state.ptr());
        for (std::size_t i = 0; i < parameters.size(); ++i) {
            const Value own = array(parameters[i].second.ptr());
            if (own.kind() != ValueKind::Array) continue;
            std::vector<Value>& items = lists_.emplace_back();
            items = {name(parameters[i].first), own, gradient(gradients, parameters[i], i)};
            add_state(states.find(parameters[i], i), items);
            values.push_back({module_keys::kParameter, std::span<const Value>(items)});
        }
    }

    // Adds the modules inside a module recursively: one that is not called by its parent may be in between.
    void add_children(const ModuleType& type, PyObject* self, const std::string& path,
                      std::vector<KeyedValue>& values, int nesting) {
        if (type.children == nullptr || nesting == kMaxModuleNesting || !seen_.insert(self).second) return;
        const nb::object container = read(type.children, self);
        if (!container || !PyDict_Check(container.ptr())) return;
        for (const Named& child : entries(container.ptr())) {
            if (seen_.size() + lists_.size() > kMaxChildren) return;
            if (!PyUnicode_Check(child.first.ptr())) continue;
            const auto child_type = python::module_type_of(child.second.ptr());
            if (child_type == nullptr) continue;
            std::string name = path;
            with_text(child.first.ptr(), [&](std::string_view part) { name += part; });
            std::vector<Value>& items = lists_.emplace_back();
            items = {text(name), address(child.second.ptr())};
            values.push_back({module_keys::kChild, std::span<const Value>(items)});
            add_children(*child_type, child.second.ptr(), name + ".", values, nesting + 1);
        }
    }

    const ModuleInstance& instance_;
    const ModuleType& type_;
    ObjectValues objects_;
    std::deque<std::string> texts_;
    std::deque<std::vector<Value>> lists_;
    std::unordered_set<PyObject*> seen_;
};

/// Implements python::DescribeModule.
void describe_module(const ModuleInstance& instance, std::vector<KeyedValue>& values,
                     std::shared_ptr<void>& held) {
    const auto description = std::make_shared<Description>(instance);
    held = description;
    description->write(values);
}

PyObject* given(const nb::object& object) {
    return object.is_none() ? nullptr : Py_NewRef(object.ptr());
}

void register_type(const nb::object& cls, const nb::object& code, const nb::object& name,
                   const nb::object& parameters, const nb::object& gradients, const nb::object& state,
                   const nb::object& children, const nb::tuple& arrays, const std::string& prefix,
                   bool is_optimizer, bool has_tensors) {
    if (!PyType_Check(cls.ptr())) throw nb::type_error("cls must be a class");
    if (!PyCode_Check(code.ptr())) throw nb::type_error("call must be a code object");
    auto type = std::make_shared<ModuleType>();
    type->cls = reinterpret_cast<PyTypeObject*>(Py_NewRef(cls.ptr()));
    type->code = reinterpret_cast<PyCodeObject*>(Py_NewRef(code.ptr()));
    type->name = given(name);
    type->parameters = given(parameters);
    type->gradients = given(gradients);
    type->state = given(state);
    type->children = given(children);
    type->arrays = Py_NewRef(arrays.ptr());
    type->prefix = prefix;
    type->is_optimizer = is_optimizer;
    type->has_tensors = has_tensors;
    python::add_module_type(type);
}

// A module in sys.modules, possibly still being imported; null if there is none. Borrowed.
PyObject* imported(const char* name) noexcept {
    return PyDict_GetItemString(PyImport_GetModuleDict(), name);
}

// An entry in the dict of a module or class; runs none of its code. Borrowed.
PyObject* entry(PyObject* owner, const char* name) noexcept {
    if (owner == nullptr) return nullptr;
    if (PyModule_Check(owner)) return PyDict_GetItemString(PyModule_GetDict(owner), name);
    if (!PyType_Check(owner)) return nullptr;
#if PY_VERSION_HEX >= 0x030C0000
    PyObject* const dict = PyType_GetDict(reinterpret_cast<PyTypeObject*>(owner));
    PyObject* const found = dict != nullptr ? PyDict_GetItemString(dict, name) : nullptr;
    Py_XDECREF(dict);
    return found;
#else
    return PyDict_GetItemString(reinterpret_cast<PyTypeObject*>(owner)->tp_dict, name);
#endif
}

bool is_code_of(PyObject* function, PyCodeObject* code) noexcept {
    return function != nullptr && PyFunction_Check(function) &&
           PyFunction_GET_CODE(function) == reinterpret_cast<PyObject*>(code);
}

// Registers torch's modules and optimizers when the first of their calls is traced, so that torch does not
// have to be imported or watched. Runs no Python code.
void on_new_code(PyCodeObject* code) {
    const bool is_module = PyUnicode_CompareWithASCIIString(code->co_name, "_wrapped_call_impl") == 0;
    if (!is_module && PyUnicode_CompareWithASCIIString(code->co_name, "_optimizer_step_code") != 0) return;
    PyObject* const cls = is_module ? entry(imported("torch.nn.modules.module"), "Module")
                                    : entry(imported("torch.optim.optimizer"), "Optimizer");
    if (cls == nullptr || !PyType_Check(cls) ||
        !is_code_of(entry(cls, is_module ? "__call__" : "_optimizer_step_code"), code))
        return;
    PyObject* const tensor = entry(imported("torch"), "Tensor");
    PyObject* const parameter = entry(imported("torch.nn.parameter"), "Parameter");
    if (tensor == nullptr || parameter == nullptr) return;
    const auto text = [](const char* bytes) { return nb::steal(PyUnicode_InternFromString(bytes)); };
    try {
        // A tensor's _grad is its grad, without the warning for tensors that have none.
        register_type(nb::borrow(cls), nb::borrow(reinterpret_cast<PyObject*>(code)), nb::none(),
                      text(is_module ? "_parameters" : "param_groups"), text("._grad"),
                      is_module ? nb::object(nb::none()) : nb::object(text("state")),
                      is_module ? nb::object(text("_modules")) : nb::object(nb::none()),
                      nb::make_tuple(nb::borrow(tensor), nb::borrow(parameter)),
                      is_module ? "nn.Module: " : "Optimizer: ", !is_module, true);
    } catch (const std::exception&) {  // then they are recorded as ordinary calls
        PyErr_Clear();
    }
}

/// (whether it is an optimizer, class, number, address, address of the class, function, parameters);
/// parameters are (name, array, gradient, [(name, array) of each state]), with arrays as returned by
/// array_object().
nb::object module_object(const Trace& trace, const ModuleInfo* module) {
    if (module == nullptr) return nb::none();
    nb::list parameters;
    for (const ModuleParameter& parameter : module->parameters) {
        nb::list states;
        for (const ModuleParameter::State& state : parameter.state)
            states.append(nb::make_tuple(text_object(state.name), array_object(trace, state.array)));
        parameters.append(nb::make_tuple(text_object(parameter.name), array_object(trace, parameter.array),
                                         array_object(trace, parameter.gradient), states));
    }
    return nb::make_tuple(module->is_optimizer, text_object(module->class_name), module->number, module->self,
                          module->cls, text_object(module->function), parameters);
}

/// A ModuleTable and the trace that it reads.
struct BoundModules {
    explicit BoundModules(const Trace& of) : trace(of), table(of) {}
    Trace trace;
    ModuleTable table;
};

}  // namespace

void bind_modules(nb::module_& module) {
    python::set_module_callbacks(describe_module, on_new_code);
    nb::class_<BoundModules>(module, "ModuleTable", "The modules and optimizers of a trace.")
        .def(nb::init<Trace>(), nb::arg("trace"))
        .def("find", [](const BoundModules& own, Row range) {
            return module_object(own.trace, own.table.find(range));
        });
    module.def("register_module_type", &register_type, nb::arg("cls"), nb::arg("code"),
               nb::arg("name").none(), nb::arg("parameters").none(), nb::arg("gradients").none(),
               nb::arg("state").none(), nb::arg("children").none(), nb::arg("arrays"), nb::arg("prefix"),
               nb::arg("is_optimizer"), nb::arg("has_tensors") = false,
               "Register a class whose objects' calls are recognized by their code object.");
    module.def(
        "unregister_module_type",
        [](const nb::object& cls) {
            return PyType_Check(cls.ptr())
                       ? python::remove_module_type(reinterpret_cast<PyTypeObject*>(cls.ptr()))
                       : std::size_t{0};
        },
        nb::arg("cls"), "Remove all registrations of a class and return their number.");
}

}  // namespace marey::bindings
