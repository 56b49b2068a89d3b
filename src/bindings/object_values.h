// object_values.h: Python objects as values: scalars, texts, lists and array metadata.
#pragma once

#include <Python.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <marey/value.h>

namespace marey::bindings {

/// Converts Python objects to values and owns the data that these point to. Arrays of any library are
/// recognized by their interfaces (the buffer protocol, __array_interface__, __cuda_array_interface__,
/// __dlpack_device__ with shape and dtype); elements are never read and libraries never imported. Leaves no
/// Python error set.
class ObjectValues {
  public:
    /// Empty if the object is not a value. Valid during the lifetime of this object.
    Value value(PyObject* object) noexcept;
    /// The same for an object that must be a PyTorch tensor, with the identity of the tensor. Empty if no
    /// session records it.
    Value tensor(PyObject* object) noexcept;

  private:
    Value text(PyObject* object);
    Value list(PyObject* object, int nesting);
    Value any(PyObject* object, int nesting);
    bool array(PyObject* object, Value& value);
    bool from_buffer(PyObject* object, ArrayView& array);
    bool from_interface(PyObject* object, const char* attribute, DeviceType device, ArrayView& array);
    bool from_attributes(PyObject* object, ArrayView& array);
    bool read_extents(PyObject* sequence, std::vector<std::int64_t>& extents);
    void keep(ArrayView& array, std::vector<std::int64_t>&& sizes, std::vector<std::int64_t>&& strides);

    std::deque<ArrayView> arrays_;
    std::deque<std::vector<std::int64_t>> extents_;
    std::deque<std::vector<Value>> lists_;
    std::deque<std::string> texts_;
};

}  // namespace marey::bindings
