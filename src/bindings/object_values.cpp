// object_values.cpp: reads the type and metadata of Python objects without importing anything.
#include "bindings/object_values.h"

#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <string_view>
#include <utility>

#include "bindings/site_cache.h"
#include "sources/torch/torch_source.h"

namespace marey::bindings {
namespace {

constexpr int kMaxNesting = 8;
constexpr Py_ssize_t kMaxItems = 64;  // the recorder keeps 30 and notes that there were more

/// An attribute of the object or its type; null if there is none.
PyObject* attribute(PyObject* object, const char* name) noexcept {
    PyObject* const value = PyObject_GetAttrString(object, name);
    if (value == nullptr) PyErr_Clear();
    return value;
}

/// The DType of a NumPy type string: byte order, kind, bytes ("<f4").
DType from_typestr(std::string_view text) noexcept {
    if (!text.empty() && (text[0] == '<' || text[0] == '>' || text[0] == '=' || text[0] == '|'))
        text.remove_prefix(1);
    constexpr std::pair<std::string_view, DType> kTypes[] = {
        {"b1", DType::Bool},      {"i1", DType::Int8},        {"i2", DType::Int16},
        {"i4", DType::Int32},     {"i8", DType::Int64},       {"u1", DType::UInt8},
        {"u2", DType::UInt16},    {"u4", DType::UInt32},      {"u8", DType::UInt64},
        {"f2", DType::Float16},   {"f4", DType::Float32},     {"f8", DType::Float64},
        {"c8", DType::Complex64}, {"c16", DType::Complex128}, {"M8", DType::DateTime},
        {"m8", DType::DateTime},  {"O", DType::Object},
    };
    for (const auto& [name, type] : kTypes) {
        if (text.substr(0, name.size()) == name &&
            (text.size() == name.size() || name[0] == 'M' || name[0] == 'm' || name[0] == 'O'))
            return type;
    }
    return !text.empty() && (text[0] == 'U' || text[0] == 'S') ? DType::Text : DType::Other;
}

/// The DType of a type name: "float32", "torch.float32", "<dtype: 'float32'>".
DType from_dtype_name(std::string_view text) noexcept {
    if (const std::size_t dot = text.rfind('.'); dot != text.npos) text.remove_prefix(dot + 1);
    constexpr std::pair<std::string_view, DType> kOthers[] = {
        {"short", DType::Int16},
        {"int", DType::Int32},
        {"long", DType::Int64},
        {"half", DType::Float16},
        {"float", DType::Float32},
        {"double", DType::Float64},
        {"float8_e4m3fn", DType::Float8E4M3},
    };
    for (const auto& [name, type] : kOthers) {
        if (text == name) return type;
    }
    for (int i = 0; i <= static_cast<int>(kLastDType); ++i) {
        if (text == dtype_name(static_cast<DType>(i))) return static_cast<DType>(i);
    }
    return DType::Other;
}

/// The DType of a struct-module format ("f", "<l").
DType from_format(const char* format, Py_ssize_t item_bytes) noexcept {
    if (format == nullptr) return DType::UInt8;
    if (std::strchr("@=<>!", *format) != nullptr && *format != '\0') ++format;
    if (std::strlen(format) != 1)
        return std::string_view(format) == "Zf"   ? DType::Complex64
               : std::string_view(format) == "Zd" ? DType::Complex128
                                                  : DType::Other;
    const auto of_size = [&](DType one, DType two, DType four, DType eight) {
        return item_bytes == 1 ? one : item_bytes == 2 ? two : item_bytes == 4 ? four : eight;
    };
    switch (*format) {
        case '?':
            return DType::Bool;
        case 'e':
            return DType::Float16;
        case 'f':
            return DType::Float32;
        case 'd':
            return DType::Float64;
        case 'b':
        case 'h':
        case 'i':
        case 'l':
        case 'q':
        case 'n':
            return of_size(DType::Int8, DType::Int16, DType::Int32, DType::Int64);
        case 'B':
        case 'c':
        case 'H':
        case 'I':
        case 'L':
        case 'Q':
        case 'N':
            return of_size(DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64);
        case 'O':
            return DType::Object;
        default:
            return DType::Other;
    }
}

/// DLPack's device numbers.
DeviceType from_dlpack_device(long type) noexcept {
    switch (type) {
        case 1:
        case 3:   // pinned host memory
        case 11:  // the same for ROCm
            return DeviceType::Cpu;
        case 2:
        case 10:
        case 13:
            return DeviceType::Cuda;
        case 8:
            return DeviceType::Mps;
        case 14:
            return DeviceType::Xpu;
        default:
            return DeviceType::Other;
    }
}

}  // namespace

Value ObjectValues::value(PyObject* object) noexcept {
    try {
        return any(object, 0);
    } catch (const std::exception&) {  // out of memory
        return {};
    }
}

Value ObjectValues::tensor(PyObject* object) noexcept {
    const PyRef address(attribute(object, "_cdata"));
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
        const PyRef item(Py_NewRef(PySequence_Fast_GET_ITEM(object, i)));  // reading it may change the list
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
    const PyRef fast(PySequence_Fast(sequence, ""));
    if (!fast) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
        const PyRef item(
            Py_NewRef(PySequence_Fast_GET_ITEM(fast.get(), i)));  // reading it may change the list
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
    const PyRef interface(attribute(object, name));
    if (!interface || !PyDict_Check(interface.get())) return false;
    // PyRef: reading an entry may change the dict.
    const auto entry = [&](const char* key) {
        return Py_XNewRef(PyDict_GetItemString(interface.get(), key));
    };
    const PyRef shape(entry("shape")), typestr(entry("typestr")), strides(entry("strides")),
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
    const PyRef where(attribute(object, "__dlpack_device__"));
    if (!where) return false;
    const PyRef shape(attribute(object, "shape"));
    const PyRef dtype(attribute(object, "dtype"));
    std::vector<std::int64_t> sizes, strides;
    if (!shape || !dtype || !read_extents(shape.get(), sizes)) return false;
    if (const PyRef name(PyObject_Str(dtype.get())); name)
        array.dtype = with_text(name.get(), [](std::string_view text) { return from_dtype_name(text); });
    if (const PyRef device(PyObject_CallNoArgs(where.get()));
        device && PyTuple_Check(device.get()) && PyTuple_GET_SIZE(device.get()) == 2) {
        array.device.type = from_dlpack_device(PyLong_AsLong(PyTuple_GET_ITEM(device.get(), 0)));
        array.device.index = static_cast<std::int32_t>(PyLong_AsLong(PyTuple_GET_ITEM(device.get(), 1)));
        if (array.device.type == DeviceType::Cpu) array.device.index = -1;
        PyErr_Clear();
    }
    if (const PyRef stride(attribute(object, "stride")); stride && PyCallable_Check(stride.get()) != 0) {
        const PyRef steps(PyObject_CallNoArgs(stride.get()));
        if (steps && !read_extents(steps.get(), strides)) strides.clear();
    }
    if (const PyRef address(attribute(object, "data_ptr")); address && PyCallable_Check(address.get()) != 0) {
        if (const PyRef number(PyObject_CallNoArgs(address.get())); number && PyLong_Check(number.get()))
            array.storage = PyLong_AsVoidPtr(number.get());
        PyErr_Clear();
    }
    keep(array, std::move(sizes), std::move(strides));
    return true;
}

}  // namespace marey::bindings
