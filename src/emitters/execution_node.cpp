// execution_node.cpp: the JSON of one node of an execution trace.
#include "emitters/execution_node.h"

#include <algorithm>
#include <cmath>

#include "json/json_writer.h"

namespace marey {
namespace {

constexpr std::size_t kMaxItems = 4096;  ///< written of a list

// Element types under the names that readers of these files expect.
std::string_view element_type(const ArrayView& array) {
    if (!array.is_defined) return "nullptr (uninitialized)";
    return dtype_cpp_name(array.dtype);
}

// Saturates instead of overflowing.
std::uint64_t element_count(const ArrayView& array) {
    std::uint64_t count = array.is_defined ? 1 : 0;
    for (const std::int64_t size : array.sizes) {
        if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(std::max<std::int64_t>(size, 0)),
                                   &count))
            return ~std::uint64_t{0};
    }
    return count;
}

std::span<const Value> shown_items(const Value& list) {
    return list.list().first(std::min(list.list().size(), kMaxItems));
}

void add_arrays(const Value& value, std::vector<const ArrayView*>& arrays) {
    if (value.kind() == ValueKind::Array) arrays.push_back(&value.array());
    if (value.kind() != ValueKind::List) return;
    for (const Value& item : shown_items(value)) add_arrays(item, arrays);
}

// Values other than numbers, lists and arrays. Symbols are written as their kind, not their names.
std::string_view word_of(const Value& value) {
    if (value.kind() == ValueKind::None)
        return value.counts_as() == ValueKind::None ? "<None>" : value.string();
    switch (value.counts_as()) {
        case ValueKind::Int:
            return "<SymInt>";
        case ValueKind::Bool:
            return "<SymBool>";
        case ValueKind::Double:
            return value.string().ends_with('j') ? "<ComplexDouble>" : "<SymFloat>";
        default:
            return value.string();
    }
}

std::string_view word_type(const Value& value) {
    if (value.kind() == ValueKind::String && value.counts_as() == ValueKind::None) return "String";
    const std::string_view word = word_of(value);
    return word.starts_with('<') ? word.substr(1, word.size() - 2) : "Device";
}

void add_extents(std::string& out, std::span<const std::int64_t> extents) {
    out += '[';
    for (std::size_t i = 0; i < extents.size(); ++i) {
        if (i != 0) out += ',';
        append_json_number(out, extents[i]);
    }
    out += ']';
}

void add_real(std::string& out, double value) {
    if (std::isnan(value)) {
        out += "\"nan\"";
    } else if (std::isinf(value)) {
        out += value > 0 ? "\"inf\"" : "\"-inf\"";
    } else {
        const std::size_t before = out.size();
        append_json_number(out, value);
        if (out.find_first_of(".e", before) == std::string::npos) out += ".0";
    }
}

// [array, storage, offset, elements, bytes of one, device]
void add_array(std::string& out, const ArrayView& array, const ArrayKey& ids) {
    out += '[';
    append_json_number(out, ids.array);
    out += ',';
    append_json_number(out, ids.storage);
    out += ",0,";
    append_json_number(out, element_count(array));
    out += ',';
    append_json_number(out, std::uint64_t{dtype_bytes(array.dtype)});
    std::string device = device_type_name(array.device.type);
    if (array.device.index >= 0) device += ":" + std::to_string(array.device.index);
    out += ',';
    append_json_string(out, device);
    out += ']';
}

/// Writes the four lists of one argument side by side.
class ArgumentWriter {
  public:
    explicit ArgumentWriter(std::span<const ArrayKey> ids) : ids_(ids) {}

    void add(const Value& value) {
        separate();
        add_one(value);
        types_ += '"';
        add_type(types_, value);
        types_ += '"';
    }
    std::string json() const {
        return "{\"values\": [" + values_ + "], \"shapes\": [" + shapes_ + "], \"types\": [" + types_ +
               "], \"strides\": [" + strides_ + "]}";
    }

  private:
    void separate() {
        if (is_first_) {
            is_first_ = false;
            return;
        }
        for (std::string* each : {&values_, &shapes_, &types_, &strides_}) *each += ',';
    }
    void add_one(const Value& value) {
        switch (value.kind()) {
            case ValueKind::Array:
                add_array(values_, value.array(), next_ < ids_.size() ? ids_[next_] : ArrayKey());
                ++next_;
                add_extents(shapes_, value.array().sizes);
                add_extents(strides_, value.array().strides);
                return;
            case ValueKind::List:
                add_list(shown_items(value));
                return;
            case ValueKind::Bool:
                values_ += value.boolean() ? "true" : "false";
                break;
            case ValueKind::Int:
                append_json_number(values_, value.integer());
                break;
            case ValueKind::Double:
                add_real(values_, value.real());
                break;
            case ValueKind::String:
            default:
                append_json_string(values_, word_of(value));
        }
        shapes_ += "[]";
        strides_ += "[]";
    }
    void add_list(std::span<const Value> items) {
        for (std::string* each : {&values_, &shapes_, &strides_}) *each += '[';
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (i != 0) {
                for (std::string* each : {&values_, &shapes_, &strides_}) *each += ',';
            }
            add_one(items[i]);
        }
        for (std::string* each : {&values_, &shapes_, &strides_}) *each += ']';
    }
    static void add_type(std::string& out, const Value& value) {
        switch (value.kind()) {
            case ValueKind::Array:
                out.append("Tensor(").append(element_type(value.array())).append(")");
                return;
            case ValueKind::List:
                out += "GenericList[";
                for (std::size_t i = 0; i < shown_items(value).size(); ++i) {
                    if (i != 0) out += ',';
                    add_type(out, value.list()[i]);
                }
                out += ']';
                return;
            case ValueKind::Bool:
                out += "Bool";
                return;
            case ValueKind::Int:
                out += "Int";
                return;
            case ValueKind::Double:
                out += "Double";
                return;
            case ValueKind::String:
            default:
                out += word_type(value);
        }
    }

    std::span<const ArrayKey> ids_;
    std::size_t next_ = 0;  ///< of ids_
    bool is_first_ = true;
    std::string values_, shapes_, types_, strides_;
};

void add_attribute(std::string& out, std::string_view name, std::string_view type, auto value) {
    out.append(out.empty() ? "" : ",").append("{\"name\": \"").append(name);
    out.append("\", \"type\": \"").append(type).append("\", \"value\": ");
    append_json_number(out, value);
    out += '}';
}

void add_keyword(std::string& out, std::string_view name, const Value& value) {
    std::string_view type = "string";
    std::string text;
    switch (value.kind()) {
        case ValueKind::Bool:
            type = "bool";
            text = value.boolean() ? "true" : "false";
            break;
        case ValueKind::Int:
            type = "int64";
            append_json_number(text, value.integer());
            break;
        case ValueKind::Double:
            type = "double";
            add_real(text, value.real());
            break;
        case ValueKind::String:
            append_json_string(text, value.string());
            break;
        default: {  // as JSON text: readers do not support lists here
            const std::string whole = values_json(std::span(&value, 1), {});
            const std::size_t from = std::string_view("{\"values\": [").size();
            append_json_string(text,
                               std::string_view(whole).substr(from, whole.find("], \"shapes\"") - from));
        }
    }
    out += ",{\"name\": ";
    append_json_string(out, name);
    out.append(", \"type\": \"").append(type).append("\", \"value\": ").append(text).append("}");
}

constexpr std::string_view kNumberAttributes[] = {"rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid"};
constexpr std::string_view kTextAttributes[] = {"op_schema", "kernel_backend", "kernel_file", "tensor_range"};

bool is_known(std::string_view name) {
    return std::ranges::find(kNumberAttributes, name) != std::end(kNumberAttributes) ||
           std::ranges::find(kTextAttributes, name) != std::end(kTextAttributes);
}

}  // namespace

std::vector<const ArrayView*> array_list(std::span<const Value> values) {
    std::vector<const ArrayView*> arrays;
    for (const Value& value : values) add_arrays(value, arrays);
    return arrays;
}

std::string values_json(std::span<const Value> values, std::span<const ArrayKey> ids) {
    ArgumentWriter writer(ids);
    for (const Value& value : values) writer.add(value);
    return writer.json();
}

std::string attributes_json(const NodeProperties& facts, std::span<const KeyedValue> keywords) {
    std::string out;
    add_attribute(out, "rf_id", "uint64", facts.range);
    add_attribute(out, "fw_parent", "uint64", facts.forward_parent);
    add_attribute(out, "seq_id", "int64", facts.sequence);
    add_attribute(out, "scope", "uint64", static_cast<std::uint64_t>(facts.scope));
    add_attribute(out, "tid", "uint64", std::uint64_t{facts.thread});
    add_attribute(out, "fw_tid", "uint64", std::uint64_t{facts.forward_thread});
    for (const std::string_view name : kTextAttributes) {
        const auto given = std::find_if(keywords.begin(), keywords.end(), [&](const KeyedValue& keyword) {
            return keyword.key == name && keyword.value.kind() == ValueKind::String;
        });
        add_keyword(out, name, given != keywords.end() ? given->value : Value(""));
    }
    for (const KeyedValue& keyword : keywords) {
        if (!is_known(keyword.key)) add_keyword(out, keyword.key, keyword.value);
    }
    return "[" + out + "]";
}

std::string node_json(const NodeProperties& facts, std::string_view inputs, std::string_view outputs,
                      std::string_view attributes) {
    std::string out = "{\n        \"id\": ";
    append_json_number(out, facts.id);
    out += ", \"name\": ";
    append_json_string(out, facts.name);
    out += ", \"ctrl_deps\": ";
    append_json_number(out, facts.parent);
    out.append(",\n        \"inputs\": ").append(inputs);
    out.append(",\n        \"outputs\": ").append(outputs);
    out.append(",\n        \"attrs\": ").append(attributes).append("\n      }");
    return out;
}

}  // namespace marey
