// range_text.cpp: the text of a range for other tools.
#include "emitters/range_text.h"

#include "json/json_writer.h"

namespace marey {
namespace {

// False: the value contains no arrays.
bool collect_arrays(const Value& value, std::vector<const ArrayView*>& arrays) {
    if (value.kind() == ValueKind::Array) {
        arrays.push_back(&value.array());
        return true;
    }
    if (value.kind() != ValueKind::List) return false;
    bool found = false;
    for (const Value& item : value.list()) found = collect_arrays(item, arrays) || found;
    return found;
}

void add_sizes(std::string& text, const ArrayView* array) {
    text += '[';
    if (array != nullptr && array->is_defined) {
        for (std::size_t i = 0; i < array->sizes.size(); ++i) {
            if (i != 0) text += ", ";
            append_json_number(text, array->sizes[i]);
        }
    }
    text += ']';
}

}  // namespace

std::vector<const ArrayView*> arrays_of(std::span<const Value> values) {
    std::vector<const ArrayView*> arrays;
    for (const Value& value : values) {
        if (!collect_arrays(value, arrays)) arrays.push_back(nullptr);
    }
    return arrays;
}

std::string range_text(const ObservedRange& range, std::span<const ArrayView* const> arrays,
                       std::span<const Producer> producers) {
    std::string text(range.name());
    if (range.sequence() >= 0) {
        text += ", seq = ";
        append_json_number(text, range.sequence());
    }
    if (range.id() != 0) {
        text += ", op_id = ";
        append_json_number(text, range.id());
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        text += i == 0 ? ", sizes = [" : ", ";
        add_sizes(text, arrays[i]);
    }
    if (!arrays.empty()) text += ']';
    for (std::size_t i = 0; i < producers.size(); ++i) {
        text += i == 0 ? ", input_op_ids = [(" : ", (";
        append_json_number(text, producers[i].range);
        text += ',';
        append_json_number(text, std::int64_t{producers[i].output});
        text += ')';
    }
    if (!producers.empty()) text += ']';
    return text;
}

}  // namespace marey
