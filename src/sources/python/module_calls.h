// module_calls.h: calls of registered objects (modules, optimizers), each object under a name of its own.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <marey/value.h>

#include "sources/python/code_sites.h"

namespace marey::python {

/// A class whose objects are modules or optimizers. Holds references to its objects; made and dropped with
/// the GIL held. What is not given is null.
struct ModuleType {
    ModuleType() = default;
    ModuleType(const ModuleType&) = delete;
    ModuleType& operator=(const ModuleType&) = delete;
    ~ModuleType();

    PyTypeObject* cls = nullptr;
    PyCodeObject* code = nullptr;  ///< its calls are the object's calls
    PyObject* name = nullptr;      ///< object -> name of its class
    // Each the name of an attribute of the object, or a callable that gives what the attribute would hold.
    PyObject* parameters = nullptr;
    PyObject* gradients = nullptr;
    PyObject* state = nullptr;
    PyObject* children = nullptr;
    PyObject* arrays = nullptr;  ///< a tuple of the exact types that count as arrays
    bool has_tensors = false;    ///< those types are PyTorch's tensors
    std::string prefix;
    bool is_optimizer = false;
};

/// What there is to tell of an object at its first call.
struct ModuleInstance {
    const ModuleType& type;
    PyObject* self;
    std::string class_name;
    std::uint32_t number = 0;    ///< among those of that name, from 0
    bool with_children = false;  ///< a session asks for the hierarchy of modules
};
/// Fills in values that view what `held` keeps. Runs with recording switched off on this thread; may leave an
/// error set. Its strings and arrays live as long as `held`.
using DescribeModule = void (*)(const ModuleInstance& instance, std::vector<KeyedValue>& values,
                                std::shared_ptr<void>& held);
/// Is told of code that may be a known library's call, so that it can be registered.
using NewCodeCallback = void (*)(PyCodeObject* code);

/// All of these need the GIL.
void set_module_callbacks(DescribeModule describe, NewCodeCallback meet) noexcept;
/// One that has the same class and code gives way to it.
void add_module_type(std::shared_ptr<const ModuleType> type);
/// Drops the types of a class. How many there were.
std::size_t remove_module_type(PyTypeObject* cls);
/// Of an object's class; null: it is none. The one that was registered last wins.
std::shared_ptr<const ModuleType> module_type_of(PyObject* object);

/// True when calls of this code may be those of modules. Asks the libraries that are known for theirs.
bool is_module_code(PyCodeObject* code) noexcept;

/// The site of a call of code that has kCodeModule; `self`: its first argument, or null. May run Python code,
/// and then lets other threads run; leaves the error indicator as it is.
std::uint32_t module_site(CodeWord word, PyCodeObject* code, PyObject* self) noexcept;

/// Sessions begin that are to have every object described again at its next call.
void describe_modules_again() noexcept;
/// Whether objects are to say what they hold. Any thread.
void set_module_children(bool wanted) noexcept;
/// No session asks for calls any more: numbers begin at 0 again.
void forget_modules() noexcept;

}  // namespace marey::python
