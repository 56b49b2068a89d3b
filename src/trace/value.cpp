// value.cpp: element types and devices, and their names.
#include <kymo/value.h>

#include <charconv>
#include <iterator>
#include <string>

#include <kymo/error.h>

namespace kymo {

const char* dtype_name(DType dtype) noexcept {
    static constexpr const char* kNames[] = {
        "other",     "bool",      "int8",       "int16",       "int32",       "int64",   "uint8",
        "uint16",    "uint32",    "uint64",     "float16",     "bfloat16",    "float32", "float64",
        "complex32", "complex64", "complex128", "float8_e4m3", "float8_e5m2", "qint8",   "quint8",
        "qint32",    "str",       "object",     "datetime",
    };
    const auto index = static_cast<std::size_t>(dtype);
    return index < std::size(kNames) ? kNames[index] : "other";
}

const char* dtype_cpp_name(DType dtype) noexcept {
    switch (dtype) {
        case DType::Bool:
            return "bool";
        case DType::Int8:
            return "signed char";
        case DType::Int16:
            return "short int";
        case DType::Int32:
            return "int";
        case DType::Int64:
            return "long int";
        case DType::UInt8:
            return "unsigned char";
        case DType::Float16:
            return "c10::Half";
        case DType::BFloat16:
            return "c10::BFloat16";
        case DType::Float32:
            return "float";
        case DType::Float64:
            return "double";
        case DType::Complex64:
            return "c10::complex<float>";
        case DType::Complex128:
            return "c10::complex<double>";
        default:
            return dtype_name(dtype);
    }
}

std::uint32_t dtype_bytes(DType dtype) noexcept {
    static constexpr std::uint8_t kBytes[] = {0, 1, 1, 2,  4, 8, 1, 2, 4, 8, 2, 2, 4,
                                              8, 4, 8, 16, 1, 1, 1, 1, 4, 0, 0, 8};
    const auto index = static_cast<std::size_t>(dtype);
    return index < std::size(kBytes) ? kBytes[index] : 0;
}

const char* device_type_name(DeviceType type) noexcept {
    switch (type) {
        case DeviceType::Cpu:
            return "cpu";
        case DeviceType::Cuda:
            return "cuda";
        case DeviceType::Hip:
            return "hip";
        case DeviceType::Xpu:
            return "xpu";
        case DeviceType::Mps:
            return "mps";
        case DeviceType::Meta:
            return "meta";
        case DeviceType::Hpu:
            return "hpu";
        case DeviceType::Mtia:
            return "mtia";
        case DeviceType::None:
            return "none";
        default:
            return "other";
    }
}

Device parse_device(std::string_view text) {
    const std::size_t colon = text.find(':');
    const std::string_view name = text.substr(0, colon);
    Device device{DeviceType::None, -1};
    for (const DeviceType type :
         {DeviceType::Cpu, DeviceType::Cuda, DeviceType::Hip, DeviceType::Xpu, DeviceType::Mps,
          DeviceType::Meta, DeviceType::Hpu, DeviceType::Mtia, DeviceType::Other}) {
        if (name == device_type_name(type)) device.type = type;
    }
    bool is_good = device.type != DeviceType::None;
    if (is_good && colon != std::string_view::npos) {
        const char* const end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data() + colon + 1, end, device.index);
        is_good = parsed.ec == std::errc() && parsed.ptr == end && device.index >= 0;
    }
    if (!is_good) throw Error("'" + std::string(text) + "' is no device: it is written like cpu or cuda:0");
    return device;
}

}  // namespace kymo
