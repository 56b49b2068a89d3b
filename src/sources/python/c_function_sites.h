// c_function_sites.h: from a C function that Python calls to the site of its calls.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>

namespace kymo::python {

/// Sites of C functions by the address of their definition (PyMethodDef), or of their type where calls of
/// other callables are seen. What could be freed is held as long as its entry is there. Guarded by the GIL.
class CFunctionSites {
  public:
    /// The site of a built-in function or method. Never fails; 0: its calls are not recorded (Kymo's own, no
    /// room).
    std::uint32_t site(PyObject* function) noexcept {
        const void* const key = reinterpret_cast<PyCFunctionObject*>(function)->m_ml;
        const Entry& entry = entries_[place(key)];
        return entry.key == key ? entry.site : learn(function);
    }
#if PY_VERSION_HEX >= 0x030C0000
    /// The site of any callable that is no Python function; 0 also for those.
    std::uint32_t site_of_callable(PyObject* callable) noexcept {
        if (PyCFunction_Check(callable)) return site(callable);
        const void* key = Py_TYPE(callable);
        if (Py_TYPE(callable) == &PyMethodDescr_Type)
            key = reinterpret_cast<PyMethodDescrObject*>(callable)->d_method;
        else if (PyType_Check(callable))
            key = callable;
        const Entry* entry = &entries_[place(key)];
        if (entry->key == key && entry->site == kByObject) [[unlikely]] {
            key = callable;
            entry = &entries_[place(key)];
        }
        return entry->key == key ? entry->site : learn_callable(callable, key);
    }
#endif
    /// Lets go of everything held.
    void clear() noexcept;
    /// Of everything known too: the filter is another one.
    void forget() noexcept;

  private:
    static constexpr std::size_t kEntries = 4096;
    static constexpr std::uint32_t kByObject = ~0u;  ///< a class whose objects have sites of their own
    struct Entry {
        const void* key = nullptr;
        std::uint32_t site = 0;
    };
    static std::size_t place(const void* key) noexcept {
        const auto address = reinterpret_cast<std::uintptr_t>(key);
        return (address >> 4 ^ address >> 15) % kEntries;
    }
    std::uint32_t learn(PyObject* function) noexcept;
    std::uint32_t learn_callable(PyObject* callable, const void* key) noexcept;
    void remember(const void* key, std::uint32_t site, PyObject* owner) noexcept;

    Entry entries_[kEntries];
    PyObject* owners_[kEntries] = {};  ///< what the entry of the same place holds
};

/// The process's.
extern CFunctionSites c_function_sites;

}  // namespace kymo::python
