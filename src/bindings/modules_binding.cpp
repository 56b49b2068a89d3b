// modules_binding.cpp: registers classes whose calls are module or optimizer calls; torch's are registered
// automatically.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>

#include <marey/modules.h>

#include "bindings/bind.h"
#include "bindings/module_values.h"
#include "bindings/trace_values.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

using python::ModuleType;

PyObject* given(const nb::object& object) {
    return object.is_none() ? nullptr : Py_NewRef(object.ptr());
}

std::shared_ptr<ModuleType> make_type(const nb::object& cls, const nb::object& code, const nb::object& name,
                                      const nb::object& parameters, const nb::object& gradients,
                                      const nb::object& state, const nb::object& children,
                                      const nb::tuple& arrays, const std::string& prefix, bool is_optimizer) {
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
    return type;
}

void register_type(const nb::object& cls, const nb::object& code, const nb::object& name,
                   const nb::object& parameters, const nb::object& gradients, const nb::object& state,
                   const nb::object& children, const nb::tuple& arrays, const std::string& prefix,
                   bool is_optimizer) {
    python::add_module_type(
        make_type(cls, code, name, parameters, gradients, state, children, arrays, prefix, is_optimizer));
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
        const auto type =
            make_type(nb::borrow(cls), nb::borrow(reinterpret_cast<PyObject*>(code)), nb::none(),
                      text(is_module ? "_parameters" : "param_groups"), text("._grad"),
                      is_module ? nb::object(nb::none()) : nb::object(text("state")),
                      is_module ? nb::object(text("_modules")) : nb::object(nb::none()),
                      nb::make_tuple(nb::borrow(tensor), nb::borrow(parameter)),
                      is_module ? "nn.Module: " : "Optimizer: ", !is_module);
        type->has_tensors = true;
        python::add_module_type(type);
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
        .def("find", [](const BoundModules& own,
                        Row range) { return module_object(own.trace, own.table.find(range)); })
        .def("hierarchy",
             [](const BoundModules& own, Row range) { return text_object(own.table.hierarchy(range)); });
    module.def("register_module_type", &register_type, nb::arg("cls"), nb::arg("code"),
               nb::arg("name").none(), nb::arg("parameters").none(), nb::arg("gradients").none(),
               nb::arg("state").none(), nb::arg("children").none(), nb::arg("arrays"), nb::arg("prefix"),
               nb::arg("is_optimizer"),
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
