// c_function_sites.h: maps C functions called by Python to the sites of their calls.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/address_cache.h"

namespace marey::python {

/// Sites of C functions by the address of their definition (PyMethodDef), or of their type for other
/// callables. Objects that could be freed are kept alive while they have an entry. Guarded by the GIL.
class CFunctionSites {
  public:
    /// The site of a built-in function or method. Never fails; 0 if its calls are not recorded (Marey's own
    /// functions, or no space).
    std::uint32_t site(PyObject* function) noexcept {
        const void* const key = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
        const Sites::Entry* const entry = sites_.find(key);
        return entry != nullptr ? entry->number : learn(function);
    }
    /// The same for a function that was seen before; 0 also for other callables.
    std::uint32_t known_site(PyObject* callable) const noexcept {
        const void* key = nullptr;
        if (Py_TYPE(callable) == &PyMethodDescr_Type)
            key = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
        else if (PyCFunction_CheckExact(callable))
            key = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
        const Sites::Entry* const entry = sites_.find(key);
        return entry != nullptr ? entry->number : 0;
    }
#if PY_VERSION_HEX >= 0x030C0000
    /// Must be called once before site_of_callable().
    void prepare() noexcept;
    /// The site of any callable that is not a Python function; 0 also for callables that only call one:
    /// Python classes and objects whose class has a Python `__call__`.
    std::uint32_t site_of_callable(PyObject* callable) noexcept {
        if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
        if (PyInstanceMethod_Check(callable)) callable = PyInstanceMethod_GET_FUNCTION(callable);
        if (PyCFunction_Check(callable)) return site(callable);
        if (Py_TYPE(callable) == bound_slot_) callable = slot_of(callable);
        PyTypeObject* const type = Py_TYPE(callable);
        const void* key = key_of_objects(type);
        if (type == &PyMethodDescr_Type) {
            key = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
        } else if (PyType_Check(callable)) {
            if (reinterpret_cast<PyTypeObject*>(callable)->tp_dealloc == python_dealloc_) return 0;
            key = callable;
        } else if (type->tp_call == python_call_) {
            return 0;
        }
        const Sites::Entry* const entry = sites_.find(key);
        if (entry == nullptr || entry->number == kByObject) [[unlikely]]
            return register_callable(callable, key);
        return entry->number;
    }
#endif
    /// Excludes this function from known_site(), so that its calls are noticed.
    void never_cache(const PyMethodDef* method) noexcept {
        unknown_ = method;
    }
    /// Releases all objects.
    void clear() noexcept;
    /// Also forgets all sites, because the filter has changed.
    void forget() noexcept;

  private:
    using Sites = AddressCache<1024>;
    static constexpr std::uint32_t kByObject = ~0u;  ///< for a type whose objects have individual sites
#if PY_VERSION_HEX >= 0x030C0000
    /// The slot function of a bound one: `list.__len__` for `[].__len__`.
    static PyObject* slot_of(PyObject* bound) noexcept {
        struct Wrapper {  // same layout as in Objects/descrobject.c
            PyObject_HEAD PyObject* slot;
        };
        return reinterpret_cast<Wrapper*>(bound)->slot;
    }
#endif
    /// The key for calls of a type's objects; the type itself is the key for its own calls.
    static const void* key_of_objects(PyTypeObject* type) noexcept {
        return reinterpret_cast<const char*>(type) + 1;
    }
    /// The key for a class's `__new__`: all classes implemented in C share one definition.
    static const void* key_of_new(PyObject* type) noexcept {
        return reinterpret_cast<const char*>(type) + 2;
    }
    std::uint32_t learn(PyObject* function) noexcept;
    std::uint32_t register_callable(PyObject* callable, const void* key) noexcept;
    std::uint32_t make_callable_site(PyObject* callable, const void* key) noexcept;
    void remember(const void* key, std::uint32_t site, PyObject* owner) noexcept;

#if PY_VERSION_HEX >= 0x030C0000
    destructor python_dealloc_ = nullptr;  ///< the deallocator of Python classes
    ternaryfunc python_call_ = nullptr;
    PyTypeObject* bound_slot_ = nullptr;  ///< the type of `[].__len__`; static in the interpreter
#endif
    const PyMethodDef* unknown_ = nullptr;
    Sites sites_;
};

/// The text that Python prints for a C function that was called, by the name of its site:
/// `<built-in function len>`, or what was added for a name; empty for others. Requires the GIL.
std::string printed_name(std::string_view name);
void add_printed_name(const std::string& name, std::string_view text);

/// The only instance in the process.
[[gnu::visibility("hidden")]] extern CFunctionSites c_function_sites;

}  // namespace marey::python
