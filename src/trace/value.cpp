// value.cpp: element types, devices and scopes, and their names.
#include <marey/value.h>

#include <charconv>
#include <iterator>
#include <string>
#include <utility>

#include <marey/error.h>
#include <marey/scope.h>

#include "base/enum_names.h"

namespace marey {
namespace {

struct DTypeInfo {
    const char* name;
    const char* cpp_name;  ///< null: none
    std::uint8_t bytes;
};

/// By number.
constexpr DTypeInfo kDTypes[] = {
    {"other", nullptr, 0},
    {"bool", "bool", 1},
    {"int8", "signed char", 1},
    {"int16", "short int", 2},
    {"int32", "int", 4},
    {"int64", "long int", 8},
    {"uint8", "unsigned char", 1},
    {"uint16", "short unsigned int", 2},
    {"uint32", "unsigned int", 4},
    {"uint64", "long unsigned int", 8},
    {"float16", "c10::Half", 2},
    {"bfloat16", "c10::BFloat16", 2},
    {"float32", "float", 4},
    {"float64", "double", 8},
    {"complex32", "c10::complex<c10::Half>", 4},
    {"complex64", "c10::complex<float>", 8},
    {"complex128", "c10::complex<double>", 16},
    {"float8_e4m3", "c10::Float8_e4m3fn", 1},
    {"float8_e5m2", "c10::Float8_e5m2", 1},
    {"qint8", "c10::qint8", 1},
    {"quint8", "c10::quint8", 1},
    {"qint32", "c10::qint32", 4},
    {"str", nullptr, 0},
    {"object", nullptr, 0},
    {"datetime", nullptr, 8},
    {"float8_e4m3fnuz", "c10::Float8_e4m3fnuz", 1},
    {"float8_e5m2fnuz", "c10::Float8_e5m2fnuz", 1},
    {"float8_e8m0fnu", "c10::Float8_e8m0fnu", 1},
    {"float4_e2m1fn_x2", "c10::Float4_e2m1fn_x2", 1},
    {"quint4x2", "c10::quint4x2", 1},
    {"quint2x4", "c10::quint2x4", 1},
    {"bits1x8", "c10::bits1x8", 1},
    {"bits2x4", "c10::bits2x4", 1},
    {"bits4x2", "c10::bits4x2", 1},
    {"bits8", "c10::bits8", 1},
    {"bits16", "c10::bits16", 2},
    {"uint1", "c10::dummy_uint1_7_t<1>", 1},
    {"uint2", "c10::dummy_uint1_7_t<2>", 1},
    {"uint3", "c10::dummy_uint1_7_t<3>", 1},
    {"uint4", "c10::dummy_uint1_7_t<4>", 1},
    {"uint5", "c10::dummy_uint1_7_t<5>", 1},
    {"uint6", "c10::dummy_uint1_7_t<6>", 1},
    {"uint7", "c10::dummy_uint1_7_t<7>", 1},
    {"int1", "c10::dummy_int1_7_t<1>", 1},
    {"int2", "c10::dummy_int1_7_t<2>", 1},
    {"int3", "c10::dummy_int1_7_t<3>", 1},
    {"int4", "c10::dummy_int1_7_t<4>", 1},
    {"int5", "c10::dummy_int1_7_t<5>", 1},
    {"int6", "c10::dummy_int1_7_t<6>", 1},
    {"int7", "c10::dummy_int1_7_t<7>", 1},
    {"bcomplex32", "c10::complex<c10::BFloat16>", 4},
};
static_assert(std::size(kDTypes) == static_cast<std::size_t>(kLastDType) + 1);

constexpr std::pair<DeviceType, const char*> kDeviceTypes[] = {
    {DeviceType::Cpu, "cpu"}, {DeviceType::Cuda, "cuda"}, {DeviceType::Hip, "hip"},
    {DeviceType::Xpu, "xpu"}, {DeviceType::Mps, "mps"},   {DeviceType::Meta, "meta"},
    {DeviceType::Hpu, "hpu"}, {DeviceType::Mtia, "mtia"}, {DeviceType::Other, "other"}};

const DTypeInfo& info_of(DType dtype) noexcept {
    const auto index = static_cast<std::size_t>(dtype);
    return kDTypes[index < std::size(kDTypes) ? index : 0];
}

}  // namespace

const char* dtype_name(DType dtype) noexcept {
    return info_of(dtype).name;
}

const char* dtype_cpp_name(DType dtype) noexcept {
    const DTypeInfo& info = info_of(dtype);
    return info.cpp_name != nullptr ? info.cpp_name : info.name;
}

std::uint32_t dtype_bytes(DType dtype) noexcept {
    return info_of(dtype).bytes;
}

const char* device_type_name(DeviceType type) noexcept {
    for (const auto& [known, name] : kDeviceTypes) {
        if (known == type) return name;
    }
    return type == DeviceType::None ? "none" : "other";
}

Device parse_device(std::string_view text) {
    const std::size_t colon = text.find(':');
    Device device{DeviceType::None, -1};
    for (const auto& [type, name] : kDeviceTypes) {
        if (text.substr(0, colon) == name) device.type = type;
    }
    bool is_good = device.type != DeviceType::None;
    if (is_good && colon != std::string_view::npos) {
        const char* const end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data() + colon + 1, end, device.index);
        is_good = parsed.ec == std::errc() && parsed.ptr == end && device.index >= 0;
    }
    if (!is_good)
        throw Error("'" + std::string(text) + "': not a device; expected a name such as cpu or cuda:0");
    return device;
}

const char* scope_name(Scope scope) noexcept {
    static constexpr const char* kNames[] = {"function",           "backward_function",
                                             "script_function",    "kernel_dtype",
                                             "custom_class",       "build_feature",
                                             "lite_interpreter",   "user",
                                             "runtime_op",         "runtime_model",
                                             "python_function",    "c_function",
                                             "garbage_collection", "device",
                                             "device_runtime",     "step"};
    static_assert(std::size(kNames) == kScopeCount);
    return name_at(kNames, scope);
}

}  // namespace marey
