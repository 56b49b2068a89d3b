// c_function_sites.h: from a C function that Python calls to the site of its calls.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "base/address_cache.h"

namespace marey::python {

/// Sites of C functions by the address of their definition (PyMethodDef), or of their type where calls of
/// other callables are seen. What could be freed is held as long as its entry is there. Guarded by the GIL.
class CFunctionSites {
  public:
    /// The site of a built-in function or method. Never fails; 0: its calls are not recorded (Marey's own, no
    /// room).
    std::uint32_t site(PyObject* function) noexcept {
        const void* const key = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
        const Sites::Entry* const entry = sites_.find(key);
        return entry != nullptr ? entry->number : learn(function);
    }
    /// The same for one that has been seen; 0 also when it has not, or when it is anything else.
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
    /// To be called once before the next.
    void prepare() noexcept;
    /// The site of any callable that is no Python function; 0 also for what does no more than to call one:
    /// classes made in Python, objects whose class has a `__call__` made in Python.
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
    /// Of this one known_site() never tells: its calls are to be noticed.
    void never_cache(const PyMethodDef* method) noexcept {
        unknown_ = method;
    }
    /// Lets go of everything held.
    void clear() noexcept;
    /// Of everything known too: the filter is another one.
    void forget() noexcept;

  private:
    using Sites = AddressCache<1024>;
    static constexpr std::uint32_t kByObject = ~0u;  ///< of a type whose objects have sites of their own
#if PY_VERSION_HEX >= 0x030C0000
    /// The slot that a bound one (`[].__len__`) is of: `list.__len__`.
    static PyObject* slot_of(PyObject* bound) noexcept {
        struct Wrapper {  // as the interpreter lays it out (Objects/descrobject.c)
            PyObject_HEAD PyObject* slot;
        };
        return reinterpret_cast<Wrapper*>(bound)->slot;
    }
#endif
    /// Of calls of a type's objects; the type itself is the key of its own calls.
    static const void* key_of_objects(PyTypeObject* type) noexcept {
        return reinterpret_cast<const char*>(type) + 1;
    }
    /// Of a class's `__new__`: one definition serves all classes made in C.
    static const void* key_of_new(PyObject* type) noexcept {
        return reinterpret_cast<const char*>(type) + 2;
    }
    std::uint32_t learn(PyObject* function) noexcept;
    std::uint32_t register_callable(PyObject* callable, const void* key) noexcept;
    std::uint32_t make_callable_site(PyObject* callable, const void* key) noexcept;
    void remember(const void* key, std::uint32_t site, PyObject* owner) noexcept;

#if PY_VERSION_HEX >= 0x030C0000
    destructor python_dealloc_ = nullptr;  ///< what classes made in Python have
    ternaryfunc python_call_ = nullptr;
    PyTypeObject* bound_slot_ = nullptr;  ///< of `[].__len__`; the interpreter's, which stays
#endif
    const PyMethodDef* unknown_ = nullptr;
    Sites sites_;
};

/// The process's.
[[gnu::visibility("hidden")]] extern CFunctionSites c_function_sites;

}  // namespace marey::python
