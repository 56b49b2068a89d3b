// arrow_capsule.h: structs of Arrow's C interfaces in Python capsules, which own them.
#pragma once

#include <memory>

#include <nanobind/nanobind.h>

namespace marey::bindings {

template <class Struct>
void free_capsule(PyObject* capsule) {
    auto* const content = static_cast<Struct*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (content->release != nullptr) content->release(content);
    delete content;
}

/// The capsule owns `content`. Throws if there is not enough memory.
template <class Struct>
nanobind::object to_capsule(std::unique_ptr<Struct> content, const char* name) {
    PyObject* const capsule = PyCapsule_New(content.get(), name, free_capsule<Struct>);
    if (capsule == nullptr) throw nanobind::python_error();
    (void)content.release();  // the capsule owns it now
    return nanobind::steal(capsule);
}

}  // namespace marey::bindings
