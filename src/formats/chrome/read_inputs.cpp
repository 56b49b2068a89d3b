// read_inputs.cpp: converts the four lists to values.
#include "formats/chrome/read_inputs.h"

#include <algorithm>

#include "json/json_cursor.h"

namespace marey {
namespace {

struct NamedType {
    std::string_view name;
    DType dtype;
};
constexpr NamedType kTypes[] = {
    {"float", DType::Float32},
    {"double", DType::Float64},
    {"long int", DType::Int64},
    {"long", DType::Int64},
    {"int", DType::Int32},
    {"short int", DType::Int16},
    {"short", DType::Int16},
    {"signed char", DType::Int8},
    {"unsigned char", DType::UInt8},
    {"unsigned short", DType::UInt16},
    {"unsigned long", DType::UInt64},
    {"bool", DType::Bool},
};

/// An entry of an extents list: numbers, or lists of numbers.
struct Extents {
    std::vector<std::int64_t> flat;
    std::vector<std::vector<std::int64_t>> nested;
};

/// A cursor over a copy of a text, with padding after it.
class PaddedText {
  public:
    explicit PaddedText(std::string_view text) : text_(text), size_(text.size()) {
        text_ += '"';
        text_.append(JsonCursor::kPadding, '\0');
    }
    JsonCursor cursor() const { return {text_.data(), text_.data() + size_}; }

  private:
    std::string text_;
    std::size_t size_;
};

bool read_flat(JsonCursor& cursor, std::vector<std::int64_t>& numbers) {
    if (!cursor.take('[')) return false;
    if (cursor.take(']')) return true;
    do {
        JsonNumber number;
        if (!cursor.read_number(number) || number.kind != JsonNumber::Kind::Int) return false;
        numbers.push_back(number.integer);
    } while (cursor.take(','));
    return cursor.take(']');
}

bool read_extents(JsonCursor& cursor, Extents& extents) {
    const char* const start = cursor.at();
    if (!cursor.take('[')) return false;
    if (cursor.peek() != '[') {
        cursor.move_to(start);
        return read_flat(cursor, extents.flat);
    }
    do {
        if (!read_flat(cursor, extents.nested.emplace_back())) return false;
    } while (cursor.take(','));
    return cursor.take(']');
}

/// The entries of an extents list, up to the first error.
std::vector<Extents> read_all_extents(std::string_view text) {
    std::vector<Extents> all;
    const PaddedText padded(text);
    JsonCursor cursor = padded.cursor();
    if (!cursor.take('[') || cursor.take(']')) return all;
    do {
        cursor.peek();
        const char* const start = cursor.at();
        Extents extents;
        if (!read_extents(cursor, extents)) {
            extents = {};
            cursor.move_to(start);
            if (!cursor.skip_value()) return all;
        }
        all.push_back(std::move(extents));
    } while (cursor.take(','));
    return all;
}

std::vector<std::string> read_strings(std::string_view text) {
    std::vector<std::string> all;
    const PaddedText padded(text);
    JsonCursor cursor = padded.cursor();
    if (!cursor.take('[') || cursor.take(']')) return all;
    do {
        std::string_view entry;
        if (cursor.peek() == '"' ? !cursor.read_string(entry) : !cursor.skip_value(entry)) return all;
        all.emplace_back(entry);
    } while (cursor.take(','));
    return all;
}

class Inputs {
  public:
    Inputs(TraceAssembler& assembler, ArgumentRole role) : assembler_(assembler), role_(role) {}

    Argument value(const Extents& dims, std::string_view type, const Extents& strides, bool has_strides,
                   const std::string& concrete) const {
        if (type == "TensorList" || !dims.nested.empty()) return array_list(dims, strides);
        const DType dtype = dtype_of_name(type);
        if (dtype != DType::Other || !dims.flat.empty())
            return array(dtype, dims.flat, strides.flat, has_strides);
        Argument value = plain();
        if (type == "Scalar" && concrete.empty()) {
            value.left_out = ValueKind::Int;
        } else if (type == "Scalar" || type == "ScalarList" || type == "Int" || type == "Double" ||
                   type == "Bool") {
            read_concrete(concrete, value);
            if (type == "Scalar" && value.kind == ValueKind::String) value.left_out = ValueKind::Double;
        } else if (!concrete.empty()) {
            value.set_string(assembler_.string(concrete));
        }
        return value;
    }

  private:
    Argument plain() const {
        Argument value;
        value.role = role_;
        return value;
    }
    Argument array(DType dtype, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides,
                   bool has_strides) const {
        ArrayInfo info{.dtype = dtype,
                       .has_strides = has_strides && !sizes.empty() && strides.size() == sizes.size(),
                       .device = {DeviceType::None, -1},
                       .dimensions = static_cast<std::uint32_t>(sizes.size())};
        std::vector<std::int64_t> extents(sizes.begin(), sizes.end());
        if (info.has_strides) extents.insert(extents.end(), strides.begin(), strides.end());
        Argument value = plain();
        value.set_array(assembler_.add_array(info, extents));
        return value;
    }
    Argument array_list(const Extents& dims, const Extents& strides) const {
        std::vector<Argument> items;
        for (std::size_t i = 0; i < dims.nested.size(); ++i) {
            const bool has_strides = i < strides.nested.size();
            items.push_back(array(DType::Other, dims.nested[i],
                                  has_strides ? strides.nested[i] : std::vector<std::int64_t>(),
                                  has_strides));
            items.back().role = ArgumentRole::Keyword;
        }
        Argument value = plain();
        value.set_list(assembler_.add_list(items));
        if (items.empty()) value.left_out = ValueKind::Array;
        return value;
    }
    /// Reads "1", "0.5", "True" or "[1, 2]"; anything else becomes a string.
    void read_concrete(const std::string& text, Argument& value) const {
        const PaddedText padded(text);
        JsonCursor cursor = padded.cursor();
        if (text.starts_with('[')) {
            std::vector<Argument> items;
            cursor.take('[');
            while (!cursor.ran_out() && cursor.peek() != ']') {
                std::string_view item;
                if (!cursor.skip_value(item)) break;
                read_scalar(item, items.emplace_back());
                if (!cursor.take(',')) break;
            }
            if (cursor.take(']') && cursor.ran_out()) {
                value.set_list(assembler_.add_list(items));
                return;
            }
        }
        read_scalar(text, value);
    }
    void read_scalar(std::string_view text, Argument& value) const {
        if (text == "True" || text == "False" || text == "true" || text == "false") {
            value.set_bool(text == "True" || text == "true");
            return;
        }
        const PaddedText padded(std::string(text) + " ");
        JsonCursor cursor = padded.cursor();
        JsonNumber number;
        if (cursor.read_number(number) && (cursor.peek(), cursor.ran_out()) &&
            number.kind != JsonNumber::Kind::Unsigned) {
            if (number.kind == JsonNumber::Kind::Int) {
                value.set_integer(number.integer);
            } else {
                value.set_real(number.real);
            }
        } else if (!text.empty()) {
            value.set_string(assembler_.string(text));
        }
    }

    TraceAssembler& assembler_;
    ArgumentRole role_;
};

}  // namespace

DType dtype_of_name(std::string_view name) {
    for (const NamedType& type : kTypes) {
        if (type.name == name) return type.dtype;
    }
    for (int i = 1; i <= static_cast<int>(kLastDType); ++i) {
        const auto dtype = static_cast<DType>(i);
        if (name == dtype_cpp_name(dtype) || name == dtype_name(dtype)) return dtype;
    }
    return DType::Other;
}

std::vector<Argument> read_chrome_inputs(TraceAssembler& assembler, const ChromeInputTexts& texts,
                                         ArgumentRole role) {
    const std::vector<Extents> dims = read_all_extents(texts.dims);
    const std::vector<Extents> strides = read_all_extents(texts.strides);
    const std::vector<std::string> types = read_strings(texts.types);
    const std::vector<std::string> concrete = read_strings(texts.concrete);
    const Inputs inputs(assembler, role);
    std::vector<Argument> values;
    const std::size_t count = std::max({dims.size(), types.size(), strides.size(), concrete.size()});
    for (std::size_t i = 0; i < count; ++i) {
        values.push_back(inputs.value(i < dims.size() ? dims[i] : Extents{},
                                      i < types.size() ? std::string_view(types[i]) : std::string_view(),
                                      i < strides.size() ? strides[i] : Extents{}, i < strides.size(),
                                      i < concrete.size() ? concrete[i] : std::string()));
    }
    return values;
}

}  // namespace marey
