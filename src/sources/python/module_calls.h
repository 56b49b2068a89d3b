// module_calls.h: calls of registered objects (modules, optimizers), each with its own name.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <marey/value.h>

#include "sources/python/code_sites.h"

namespace marey::python {

/// A class whose objects are modules or optimizers. Holds references to Python objects; created and destroyed
/// with the GIL. Members that were not given are null.
struct ModuleType {
    ModuleType() = default;
    ModuleType(const ModuleType&) = delete;
    ModuleType& operator=(const ModuleType&) = delete;
    ~ModuleType();

    PyTypeObject* cls = nullptr;
    PyCodeObject* code = nullptr;  ///< calls of this code are calls of the object
    PyObject* name = nullptr;      ///< object -> name of its class
    // Each is the name of an attribute of the object, or a callable that returns the value of such an
    // attribute.
    PyObject* parameters = nullptr;
    PyObject* gradients = nullptr;
    PyObject* state = nullptr;
    PyObject* children = nullptr;
    PyObject* arrays = nullptr;  ///< a tuple of the exact types that count as arrays
    bool has_tensors = false;    ///< those types are PyTorch's tensors
    std::string prefix;
    bool is_optimizer = false;
};

/// An object at its first call.
struct ModuleInstance {
    const ModuleType& type;
    PyObject* self;
    std::string class_name;
    std::uint32_t number = 0;    ///< among the objects with that name, from 0
    bool with_children = false;  ///< a session records the hierarchy of modules
};
/// Adds values that point to data owned by `held`. Called with recording switched off on this thread; may
/// leave an error set.
using DescribeModule = void (*)(const ModuleInstance& instance, std::vector<KeyedValue>& values,
                                std::shared_ptr<void>& held);
/// Receives code that may be the call of a known library, so that it can be registered.
using NewCodeCallback = void (*)(PyCodeObject* code);

// All of these need the GIL.
void set_module_callbacks(DescribeModule describe, NewCodeCallback new_code) noexcept;
/// Replaces a type with the same class and code.
void add_module_type(std::shared_ptr<const ModuleType> type);
/// Removes the types of a class and returns their number.
std::size_t remove_module_type(PyTypeObject* cls);
/// The type of an object's class; null: none. The one registered last wins.
std::shared_ptr<const ModuleType> module_type_of(PyObject* object);

/// Whether calls of this code may be module calls. Checks the known libraries.
bool is_module_code(PyCodeObject* code) noexcept;

/// The site of a call of code with kCodeModule; `self`: its first argument, or null. May run Python code, and
/// then other threads; keeps the error indicator.
std::uint32_t module_site(CodeWord word, PyCodeObject* code, PyObject* self) noexcept;

/// Called when sessions begin: every object is described again at its next call.
void describe_modules_again() noexcept;
/// Sets whether children of modules are recorded. Any thread.
void set_module_children(bool wanted) noexcept;
/// Called when no session records calls any more: numbers begin at 0 again.
void forget_modules() noexcept;

}  // namespace marey::python
