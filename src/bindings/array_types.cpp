// array_types.cpp: tables of the names that libraries give element types and devices.
#include "bindings/array_types.h"

#include <string>
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
    std::string_view text = format;
    if (!text.empty() && std::string_view("@=<>!").find(text[0]) != text.npos) text.remove_prefix(1);
    // The kinds of type strings, and the formats of each.
    constexpr std::pair<char, std::string_view> kKinds[] = {{'i', "bhilqn"}, {'u', "BcHILQN"}, {'f', "efd"},
                                                            {'b', "?"},      {'O', "O"},       {'c', ""}};
    const bool is_complex = text == "Zf" || text == "Zd";
    for (const auto& [kind, formats] : kKinds) {
        if (is_complex ? kind == 'c' : text.size() == 1 && formats.find(text[0]) != text.npos)
            return from_typestr(kind + std::to_string(item_bytes));
    }
    return DType::Other;
}

DeviceType from_dlpack_device(long type) noexcept {
    using enum DeviceType;
    // 3 and 11 are pinned host memory.
    constexpr std::pair<long, DeviceType> kDevices[] = {{1, Cpu},   {3, Cpu},   {11, Cpu}, {2, Cuda},
                                                        {10, Cuda}, {13, Cuda}, {8, Mps},  {14, Xpu}};
    for (const auto& [number, device] : kDevices) {
        if (number == type) return device;
    }
    return Other;
}

}  // namespace marey::bindings
