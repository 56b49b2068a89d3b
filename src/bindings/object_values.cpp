// object_values.cpp: reads the type and metadata of Python objects without importing anything.
#include "bindings/object_values.h"

#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include "bindings/array_types.h"
#include "bindings/site_cache.h"
#include "sources/torch/torch_source.h"

namespace marey::bindings {

using python::attribute;

namespace {

constexpr int kMaxNesting = 8;
constexpr Py_ssize_t kMaxItems = 64;  // the recorder keeps 30 and notes that there were more

}  // namespace

Value ObjectValues::value(PyObject* object) noexcept {
    try {
        return any(object, 0);
    } catch (const std::exception&) {  // out of memory
        return {};
    }
}

Value ObjectValues::tensor(PyObject* object) noexcept {
    const Ref address = attribute(object, "_cdata");
    if (!address || !PyLong_Check(address.get())) return {};
    Value found;
    auto take = [&](const ArrayView& array) {
        ArrayView& own = arrays_.emplace_back(array);
        keep(own, {array.sizes.begin(), array.sizes.end()}, {array.strides.begin(), array.strides.end()});
        found = Value(own);
    };
    using Take = decltype(take);
    torch::describe_tensor(
        reinterpret_cast<std::uintptr_t>(PyLong_AsVoidPtr(address.get())),
        [](const ArrayView& array, void* context) { (*static_cast<Take*>(context))(array); }, &take);
    PyErr_Clear();
    return found;
}

Value ObjectValues::any(PyObject* object, int nesting) {
    if (object == Py_None) return {};
    if (PyBool_Check(object)) return Value(object == Py_True);
    if (PyLong_Check(object)) {
        int overflow = 0;
        const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
        if (overflow == 0) return Value(static_cast<std::int64_t>(number));
        const double large = PyLong_AsDouble(object);
        if (PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            return {};
        }
        return Value(large);
    }
    if (PyFloat_Check(object)) return Value(PyFloat_AS_DOUBLE(object));
    if (PyUnicode_Check(object)) return text(object);
    if (PyList_Check(object) || PyTuple_Check(object)) return list(object, nesting);
    Value found;
    if (array(object, found)) return found;
    return {};
}

Value ObjectValues::text(PyObject* object) {
    return with_text(object, [&](std::string_view bytes) {
        texts_.emplace_back(bytes);
        return Value(std::string_view(texts_.back()));
    });
}

Value ObjectValues::list(PyObject* object, int nesting) {
    if (nesting >= kMaxNesting) return {};
    const Py_ssize_t count = std::min(PySequence_Fast_GET_SIZE(object), kMaxItems);
    std::vector<Value> items;
    for (Py_ssize_t i = 0; i < count && i < PySequence_Fast_GET_SIZE(object); ++i) {
        const Ref item(Py_NewRef(PySequence_Fast_GET_ITEM(object, i)));  // reading it may change the list
        items.push_back(any(item.get(), nesting + 1));
    }
    lists_.push_back(std::move(items));
    return Value(Span<const Value>(lists_.back()));
}

bool ObjectValues::array(PyObject* object, Value& value) {
    if (PyBytes_Check(object) || PyByteArray_Check(object)) return false;  // text-like, not arrays
    ArrayView found;
    const bool is_array = from_buffer(object, found) ||
                          from_interface(object, "__array_interface__", DeviceType::Cpu, found) ||
                          from_attributes(object, found) ||
                          from_interface(object, "__cuda_array_interface__", DeviceType::Cuda, found);
    if (!is_array) return false;
    arrays_.push_back(found);
    value = Value(arrays_.back());
    return true;
}

void ObjectValues::keep(ArrayView& array, std::vector<std::int64_t>&& sizes,
                        std::vector<std::int64_t>&& strides) {
    extents_.push_back(std::move(sizes));
    array.sizes = extents_.back();
    extents_.push_back(std::move(strides));
    array.strides = extents_.back();
}

bool ObjectValues::from_buffer(PyObject* object, ArrayView& array) {
    if (PyObject_CheckBuffer(object) == 0) return false;
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return false;
    }
    const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> released(&view, PyBuffer_Release);
    std::vector<std::int64_t> sizes(view.shape, view.shape + view.ndim);
    std::vector<std::int64_t> strides;
    if (view.strides != nullptr && view.itemsize > 0) {
        for (int i = 0; i < view.ndim; ++i) strides.push_back(view.strides[i] / view.itemsize);
    }
    array.dtype = from_format(view.format, view.itemsize);
    array.storage = view.buf;
    keep(array, std::move(sizes), std::move(strides));
    return true;
}

bool ObjectValues::read_extents(PyObject* sequence, std::vector<std::int64_t>& extents) {
    const Ref fast(PySequence_Fast(sequence, ""));
    if (!fast) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
        const Ref item(Py_NewRef(PySequence_Fast_GET_ITEM(fast.get(), i)));  // reading it may change the list
        const long long extent = PyLong_AsLongLong(item.get());
        if (extent == -1 && PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            return false;
        }
        extents.push_back(extent);
    }
    return true;
}

bool ObjectValues::from_interface(PyObject* object, const char* name, DeviceType device, ArrayView& array) {
    const Ref interface = attribute(object, name);
    if (!interface || !PyDict_Check(interface.get())) return false;
    // Ref: reading an entry may change the dict.
    const auto entry = [&](const char* key) {
        return Py_XNewRef(PyDict_GetItemString(interface.get(), key));
    };
    const Ref shape(entry("shape")), typestr(entry("typestr")), strides(entry("strides")),
        data(entry("data"));
    std::vector<std::int64_t> sizes, steps;
    if (!shape || !read_extents(shape.get(), sizes)) return false;
    if (typestr && PyUnicode_Check(typestr.get()))
        array.dtype = with_text(typestr.get(), [](std::string_view text) { return from_typestr(text); });
    const std::int64_t item_bytes = dtype_bytes(array.dtype);
    if (strides && strides.get() != Py_None && item_bytes != 0) {
        if (!read_extents(strides.get(), steps)) steps.clear();
        for (std::int64_t& step : steps) step /= item_bytes;
    }
    if (data && PyTuple_Check(data.get()) && PyTuple_GET_SIZE(data.get()) > 0) {
        array.storage = PyLong_AsVoidPtr(PyTuple_GET_ITEM(data.get(), 0));
        PyErr_Clear();
    }
    array.device.type = device;
    keep(array, std::move(sizes), std::move(steps));
    return true;
}

// Tensors of torch, JAX and similar libraries: __dlpack__ identifies an array, and its attributes describe
// it.
// __dlpack__ itself is not called because it may copy, wait or fail.
bool ObjectValues::from_attributes(PyObject* object, ArrayView& array) {
    const Ref where = attribute(object, "__dlpack_device__");
    if (!where) return false;
    const Ref shape = attribute(object, "shape");
    const Ref dtype = attribute(object, "dtype");
    std::vector<std::int64_t> sizes, strides;
    if (!shape || !dtype || !read_extents(shape.get(), sizes)) return false;
    if (const Ref name(PyObject_Str(dtype.get())); name)
        array.dtype = with_text(name.get(), [](std::string_view text) { return from_dtype_name(text); });
    if (const Ref device(PyObject_CallNoArgs(where.get()));
        device && PyTuple_Check(device.get()) && PyTuple_GET_SIZE(device.get()) == 2) {
        array.device.type = from_dlpack_device(PyLong_AsLong(PyTuple_GET_ITEM(device.get(), 0)));
        array.device.index = static_cast<std::int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(device.get(), 1)));
        if (array.device.type == DeviceType::Cpu) array.device.index = -1;
        PyErr_Clear();
    }
    if (const Ref stride = attribute(object, "stride"); stride && PyCallable_Check(stride.get()) != 0) {
        const Ref steps(PyObject_CallNoArgs(stride.get()));
        if (steps && !read_extents(steps.get(), strides)) strides.clear();
    }
    if (const Ref address = attribute(object, "data_ptr"); address && PyCallable_Check(address.get()) != 0) {
        if (const Ref number(PyObject_CallNoArgs(address.get())); number && PyLong_Check(number.get()))
            array.storage = PyLong_AsVoidPtr(number.get());
        PyErr_Clear();
    }
    keep(array, std::move(sizes), std::move(strides));
    return true;
}

}  // namespace marey::bindings
