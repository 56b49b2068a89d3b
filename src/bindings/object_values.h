// object_values.h: Python objects as values: scalars, texts, lists, and what arrays say about themselves.
#pragma once

#include <Python.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <marey/value.h>

namespace marey::bindings {

/// Makes values of Python objects and holds what they view. Arrays of any library are told by what they offer
/// (the buffer protocol, __array_interface__, __cuda_array_interface__, __dlpack_device__ with shape and
/// dtype); their elements are never touched and their libraries never imported. Leaves no Python error set.
class ObjectValues {
  public:
    /// None for what is no value. Valid as long as this lives.
    Value value(PyObject* object) noexcept;
    /// Of a tensor of PyTorch, which the object must be: also which tensor it is. None: no session asks for
    /// that.
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
