// array_types.cpp: tables of the names that libraries give element types and devices.
#include "bindings/array_types.h"

#include <cstring>
#include <utility>

namespace marey::bindings {

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

DType from_dtype_name(std::string_view text) noexcept {
    if (text.ends_with("'>")) text.remove_suffix(2);
    if (const std::size_t last = text.find_last_of(".'"); last != text.npos) text.remove_prefix(last + 1);
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

DType from_format(const char* format, std::ptrdiff_t item_bytes) noexcept {
    if (format == nullptr) return DType::UInt8;
    if (std::strchr("@=<>!", *format) != nullptr && *format != '\0') ++format;
    if (std::strlen(format) != 1)
        return std::string_view(format) == "Zf"   ? DType::Complex64
               : std::string_view(format) == "Zd" ? DType::Complex128
                                                  : DType::Other;
    const auto of_size = [&](DType one, DType two, DType four, DType eight) {
        return item_bytes == 1 ? one : item_bytes == 2 ? two : item_bytes == 4 ? four : eight;
    };
    if (std::strchr("bhilqn", *format) != nullptr)
        return of_size(DType::Int8, DType::Int16, DType::Int32, DType::Int64);
    if (std::strchr("BcHILQN", *format) != nullptr)
        return of_size(DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64);
    switch (*format) {
        case '?':
            return DType::Bool;
        case 'e':
            return DType::Float16;
        case 'f':
            return DType::Float32;
        case 'd':
            return DType::Float64;
        case 'O':
            return DType::Object;
        default:
            return DType::Other;
    }
}

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

}  // namespace marey::bindings
