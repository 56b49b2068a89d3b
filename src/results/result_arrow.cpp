// result_arrow.cpp: tables of results as Arrow arrays, which own their data.
#include <marey/result_table.h>

#include "results/arrow_parts.h"

namespace marey {
namespace {

const char* format_of(ResultType type) {
    static constexpr const char* kFormats[] = {"l", "g", "b", kTextFormat, "+L", "+L"};
    return kFormats[static_cast<int>(type)];
}

OwnedArrow<ArrowSchema> schema_of(const ResultColumn& column) {
    auto parts = std::make_unique<SchemaParts>();
    if (column.type == ResultType::Integers || column.type == ResultType::Texts)
        parts->children.push_back(
            make_schema(column.type == ResultType::Texts ? kTextFormat : "l", "item", false));
    return make_schema(format_of(column.type), column.key, column.is_nullable, std::move(parts));
}

std::unique_ptr<ArrayParts> parts_of(const std::vector<std::string>& texts) {
    auto parts = std::make_unique<ArrayParts>();
    TextColumn column;
    for (const std::string& text : texts) column.add(text);
    column.move_into(*parts);
    return parts;
}

template <class T>
std::unique_ptr<ArrayParts> parts_of(const std::vector<T>& numbers) {
    auto parts = std::make_unique<ArrayParts>();
    T* const copy = room_for<T>(parts->owned[1], numbers.size());
    if (!numbers.empty()) std::memcpy(copy, numbers.data(), numbers.size() * sizeof(T));
    return parts;
}

template <>
std::unique_ptr<ArrayParts> parts_of(const std::vector<bool>& flags) {
    auto parts = std::make_unique<ArrayParts>();
    std::byte* const bits = no_bits(parts->owned[1], flags.size());
    for (std::size_t i = 0; i < flags.size(); ++i) {
        if (flags[i]) set_bits(bits, i, i + 1);
    }
    return parts;
}

template <class T>
std::unique_ptr<ArrayParts> parts_of(const std::vector<std::vector<T>>& lists) {
    std::vector<std::int64_t> ends{0};
    std::vector<T> all;
    for (const std::vector<T>& list : lists) {
        all.insert(all.end(), list.begin(), list.end());
        ends.push_back(static_cast<std::int64_t>(all.size()));
    }
    auto parts = parts_of(ends);
    parts->children.push_back(
        make_array(all.size(), 0, std::is_same_v<T, std::string> ? 3 : 2, parts_of(all)));
    return parts;
}

OwnedArrow<ArrowArray> array_of(ResultType type, const ResultValues& values) {
    auto parts = type == ResultType::Integer    ? parts_of(values.integers)
                 : type == ResultType::Real     ? parts_of(values.reals)
                 : type == ResultType::Flag     ? parts_of(values.flags)
                 : type == ResultType::Text     ? parts_of(values.texts)
                 : type == ResultType::Integers ? parts_of(values.integer_lists)
                                                : parts_of(values.text_lists);
    std::size_t nulls = 0;
    std::byte* const valid = no_bits(parts->owned[kValidity], values.nulls.size());
    for (std::size_t i = 0; i < values.nulls.size(); ++i) {
        values.nulls[i] ? void(++nulls) : set_bits(valid, i, i + 1);
    }
    return make_array(values.nulls.size(), nulls, type == ResultType::Text ? 3 : 2, std::move(parts));
}

}  // namespace

void export_arrow(const ResultTable& table, ArrowSchema* schema, ArrowArray* array) {
    auto parts = std::make_unique<ArrayParts>();
    auto schemas = std::make_unique<SchemaParts>();
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        schemas->children.push_back(schema_of(table.columns[i]));
        parts->children.push_back(array_of(table.columns[i].type, table.values[i]));
    }
    move_to(schema, make_schema("+s", "", false, std::move(schemas)));
    move_to(array, make_array(table.rows, 0, 1, std::move(parts)));
}

}  // namespace marey
