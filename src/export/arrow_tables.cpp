// arrow_tables.cpp: trace columns as Arrow arrays. Each array owns its data or keeps the trace that does.
#include <marey/arrow.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <marey/error.h>

#include "base/utf8.h"
#include "export/trace_columns.h"

namespace marey {
namespace {

constexpr const char* kTextFormat = "U";  // utf8 with 64-bit offsets
constexpr std::int64_t kValidity = 0;     // index of the validity buffer

/// Stands in for an empty buffer: some readers treat null as a missing buffer.
alignas(64) constexpr std::byte kNothing[64] = {};

// ---- schemas ----

struct SchemaParts {
    std::string name;
    std::vector<std::unique_ptr<ArrowSchema>> children;
    std::vector<ArrowSchema*> child_pointers;
    std::unique_ptr<ArrowSchema> dictionary;
};

void release_schema(ArrowSchema* schema) {
    auto* const parts = static_cast<SchemaParts*>(schema->private_data);
    for (const auto& child : parts->children) {
        if (child->release != nullptr) child->release(child.get());
    }
    if (parts->dictionary != nullptr && parts->dictionary->release != nullptr)
        parts->dictionary->release(parts->dictionary.get());
    delete parts;
    schema->release = nullptr;
}

void fill_schema(ArrowSchema& schema, const char* format, std::string_view name, bool is_nullable,
                 std::unique_ptr<SchemaParts> parts) {
    parts->name = name;
    for (const auto& child : parts->children) parts->child_pointers.push_back(child.get());
    schema = {};
    schema.format = format;
    schema.name = parts->name.c_str();
    schema.flags = is_nullable ? ARROW_FLAG_NULLABLE : 0;
    schema.n_children = static_cast<std::int64_t>(parts->children.size());
    schema.children = parts->child_pointers.empty() ? nullptr : parts->child_pointers.data();
    schema.dictionary = parts->dictionary.get();
    schema.release = release_schema;
    schema.private_data = parts.release();
}

/// The format of a dictionary column is that of its indexes.
const char* format_of(CellType type) {
    switch (type) {
        case CellType::Bool:
            return "b";
        case CellType::UInt8:
            return "C";
        case CellType::UInt16:
            return "S";
        case CellType::UInt32:
            return "I";
        case CellType::UInt64:
            return "L";
        case CellType::Int32:
        case CellType::String:
        case CellType::Name:
            return "i";
        case CellType::Int64:
            return "l";
        case CellType::Double:
            return "g";
        case CellType::Text:
            return kTextFormat;
    }
    return "n";
}

bool has_dictionary(CellType type) {
    return type == CellType::String || type == CellType::Name;
}

void fill_table_schema(ArrowSchema& schema, std::span<const TraceColumn> columns) {
    auto parts = std::make_unique<SchemaParts>();
    for (const TraceColumn& column : columns) {
        auto of_column = std::make_unique<SchemaParts>();
        if (has_dictionary(column.type)) {
            of_column->dictionary = std::make_unique<ArrowSchema>();
            fill_schema(*of_column->dictionary, kTextFormat, "", false, std::make_unique<SchemaParts>());
        }
        parts->children.push_back(std::make_unique<ArrowSchema>());
        fill_schema(*parts->children.back(), format_of(column.type), column.name, column.is_null != nullptr,
                    std::move(of_column));
    }
    fill_schema(schema, "+s", "", false, std::move(parts));
}

// ---- arrays ----

struct ArrayParts {
    Trace trace;  ///< keeps the exported data alive
    std::array<std::vector<std::byte>, 3> owned;
    std::array<const void*, 3> buffers{};
    std::vector<std::unique_ptr<ArrowArray>> children;
    std::vector<ArrowArray*> child_pointers;
    std::unique_ptr<ArrowArray> dictionary;
};

void release_array(ArrowArray* array) {
    auto* const parts = static_cast<ArrayParts*>(array->private_data);
    for (const auto& child : parts->children) {
        if (child->release != nullptr) child->release(child.get());
    }
    if (parts->dictionary != nullptr && parts->dictionary->release != nullptr)
        parts->dictionary->release(parts->dictionary.get());
    delete parts;
    array->release = nullptr;
}

/// Takes ownership of `parts`; owned buffers are used unless a pointer is given already.
void fill_array(ArrowArray& array, std::size_t length, std::size_t nulls, std::int64_t buffers,
                std::unique_ptr<ArrayParts> parts) {
    for (std::int64_t i = 0; i < buffers; ++i) {
        if (parts->buffers[i] != nullptr || (i == kValidity && nulls == 0)) continue;
        parts->buffers[i] = parts->owned[i].empty() ? kNothing : parts->owned[i].data();
    }
    for (const auto& child : parts->children) parts->child_pointers.push_back(child.get());
    array = {};
    array.length = static_cast<std::int64_t>(length);
    array.null_count = static_cast<std::int64_t>(nulls);
    array.n_buffers = buffers;
    array.n_children = static_cast<std::int64_t>(parts->children.size());
    array.buffers = parts->buffers.data();
    array.children = parts->child_pointers.empty() ? nullptr : parts->child_pointers.data();
    array.dictionary = parts->dictionary.get();
    array.release = release_array;
    array.private_data = parts.release();
}

void set_bit(std::vector<std::byte>& bits, std::size_t at) {
    bits[at / 8] |= static_cast<std::byte>(1u << (at % 8));
}

template <class T>
T* resized_to(std::vector<std::byte>& bytes, std::size_t count) {
    bytes.resize(count * sizeof(T));
    return reinterpret_cast<T*>(bytes.data());
}

/// Texts stored one after another, with their end offsets.
class TextColumn {
  public:
    void add(std::string_view bytes) {
        append_utf8(text_, bytes);
        offsets_.push_back(static_cast<std::int64_t>(text_.size()));
    }
    void add_null() { offsets_.push_back(offsets_.back()); }
    std::size_t size() const { return offsets_.size() - 1; }

    void move_into(ArrayParts& parts) {
        auto* const offsets = resized_to<std::int64_t>(parts.owned[1], offsets_.size());
        std::memcpy(offsets, offsets_.data(), offsets_.size() * sizeof offsets_[0]);
        char* const text = resized_to<char>(parts.owned[2], text_.size());
        if (!text_.empty()) std::memcpy(text, text_.data(), text_.size());
    }

  private:
    std::string text_;
    std::vector<std::int64_t> offsets_{0};
};

/// Maps cell values to indexes into the distinct texts.
class Dictionary {
  public:
    std::int32_t index_of(const TraceTables& tables, const TraceColumn& column, std::uint64_t number) {
        if (number >= known_.size()) known_.resize(number + 1, -1);
        std::int32_t& index = known_[number];
        if (index < 0) {
            std::string valid;
            append_utf8(valid, column.type == CellType::Name
                                   ? std::string_view(column.name_of(number))
                                   : tables.trace().string(static_cast<StringId>(number)));
            if (texts_.size() >= std::numeric_limits<std::int32_t>::max())
                throw Error("too many names for an Arrow dictionary (at most 2147483647)");
            const auto [found, is_new] = places_.try_emplace(valid, static_cast<std::int32_t>(texts_.size()));
            if (is_new) texts_.add(valid);
            index = found->second;
        }
        return index;
    }

    std::unique_ptr<ArrowArray> array() {
        auto parts = std::make_unique<ArrayParts>();
        texts_.move_into(*parts);
        auto made = std::make_unique<ArrowArray>();
        fill_array(*made, texts_.size(), 0, 3, std::move(parts));
        return made;
    }

  private:
    std::vector<std::int32_t> known_;  ///< by cell value; -1: not yet used
    std::unordered_map<std::string, std::int32_t> places_;
    TextColumn texts_;
};

class ColumnExport {
  public:
    ColumnExport(const TraceTables& tables, const TraceColumn& column, std::size_t rows)
        : tables_(tables), column_(column), rows_(rows), parts_(std::make_unique<ArrayParts>()) {}

    void fill(ArrowArray& array) {
        if (column_.is_null != nullptr) find_nulls();
        switch (column_.type) {
            case CellType::Bool:
                fill_bits();
                break;
            case CellType::UInt8:
                fill_numbers<std::uint8_t>();
                break;
            case CellType::UInt16:
                fill_numbers<std::uint16_t>();
                break;
            case CellType::UInt32:
                fill_numbers<std::uint32_t>();
                break;
            case CellType::UInt64:
                fill_numbers<std::uint64_t>();
                break;
            case CellType::Int32:
                fill_numbers<std::int32_t>();
                break;
            case CellType::Int64:
                fill_numbers<std::int64_t>();
                break;
            case CellType::Double:
                fill_numbers<double>();
                break;
            case CellType::String:
            case CellType::Name:
                fill_indexes();
                break;
            case CellType::Text:
                fill_texts();
                break;
        }
        fill_array(array, rows_, nulls_, column_.type == CellType::Text ? 3 : 2, std::move(parts_));
    }

  private:
    bool is_null(std::size_t row) const { return nulls_ != 0 && column_.is_null(row); }

    void find_nulls() {
        std::vector<std::byte>& bits = parts_->owned[kValidity];
        bits.resize((rows_ + 7) / 8);
        for (std::size_t row = 0; row < rows_; ++row) {
            if (column_.is_null(row)) {
                ++nulls_;
            } else {
                set_bit(bits, row);
            }
        }
    }

    void fill_bits() {
        std::vector<std::byte>& bits = parts_->owned[1];
        bits.resize((rows_ + 7) / 8);
        for (std::size_t row = 0; row < rows_; ++row) {
            if (!is_null(row) && column_.number(row) != 0) set_bit(bits, row);
        }
    }

    template <class T>
    void fill_numbers() {
        if (column_.in_place != nullptr && rows_ != 0) {
            parts_->trace = tables_.trace();
            parts_->buffers[1] = column_.in_place;
            return;
        }
        T* const numbers = resized_to<T>(parts_->owned[1], rows_);
        for (std::size_t row = 0; row < rows_; ++row) {
            const std::uint64_t number = is_null(row) ? 0 : column_.number(row);
            if constexpr (std::is_same_v<T, double>) {
                numbers[row] = std::bit_cast<double>(number);
            } else {
                numbers[row] = static_cast<T>(number);
            }
        }
    }

    void fill_indexes() {
        Dictionary dictionary;
        auto* const indexes = resized_to<std::int32_t>(parts_->owned[1], rows_);
        if (has_small_keys()) return fill_indexes_by_key(dictionary, indexes);
        for (std::size_t row = 0; row < rows_; ++row) {
            indexes[row] = is_null(row) ? 0 : dictionary.index_of(tables_, column_, column_.number(row));
        }
        parts_->dictionary = dictionary.array();
    }

    /// Whether a table by key is smaller than the column, also in a trace whose keys are wrong.
    bool has_small_keys() const {
        return column_.keys != nullptr && rows_ != 0 &&
               *std::max_element(column_.keys->begin(), column_.keys->end()) < rows_;
    }

    void fill_indexes_by_key(Dictionary& dictionary, std::int32_t* indexes) {
        const std::vector<std::uint32_t>& keys = *column_.keys;
        std::vector<std::int32_t> known(rows_, -1);
        for (std::size_t row = 0; row < rows_; ++row) {
            std::int32_t& index = known[keys[row]];
            if (index < 0)
                index = is_null(row) ? 0 : dictionary.index_of(tables_, column_, column_.number(row));
            indexes[row] = index;
        }
        parts_->dictionary = dictionary.array();
    }

    void fill_texts() {
        TextColumn texts;
        for (std::size_t row = 0; row < rows_; ++row) {
            is_null(row) ? texts.add_null() : texts.add(column_.text(row));
        }
        texts.move_into(*parts_);
    }

    const TraceTables& tables_;
    const TraceColumn& column_;
    std::size_t rows_;
    std::size_t nulls_ = 0;
    std::unique_ptr<ArrayParts> parts_;
};

/// The named columns of the table; all if there are no names.
std::vector<TraceColumn> selected(const TraceTable& table, const std::vector<std::string>& names) {
    if (names.empty()) return table.columns;
    std::vector<TraceColumn> columns;
    for (const std::string& name : names) {
        const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                        [&](const TraceColumn& column) { return column.name == name; });
        if (found == table.columns.end())
            throw Error("unknown column '" + name + "' of the table " + std::string(table.name));
        columns.push_back(*found);
    }
    return columns;
}

void export_columns(const TraceTables& tables, std::size_t rows, std::span<const TraceColumn> columns,
                    ArrowSchema* schema, ArrowArray* array) {
    ArrowArray whole{};
    fill_array(whole, rows, 0, 1, std::make_unique<ArrayParts>());
    auto* const parts = static_cast<ArrayParts*>(whole.private_data);
    try {
        for (const TraceColumn& column : columns) {
            parts->children.push_back(std::make_unique<ArrowArray>());
            ColumnExport(tables, column, rows).fill(*parts->children.back());
        }
        for (const auto& child : parts->children) parts->child_pointers.push_back(child.get());
        fill_table_schema(*schema, columns);
    } catch (...) {
        whole.release(&whole);
        throw;
    }
    whole.n_children = static_cast<std::int64_t>(parts->children.size());
    whole.children = parts->child_pointers.data();
    *array = whole;
}

}  // namespace

void export_arrow(const Trace& trace, std::string_view name, ArrowSchema* schema, ArrowArray* array) {
    export_arrow(trace, name, {}, schema, array);
}

void export_arrow(const Trace& trace, std::string_view name, const std::vector<std::string>& columns,
                  ArrowSchema* schema, ArrowArray* array) {
    *schema = {};
    *array = {};
    const TraceTables tables(trace);
    const TraceTable& table = tables.table(name);
    export_columns(tables, table.rows, selected(table, columns), schema, array);
}

void export_arrow_schema(const Trace& trace, std::string_view name, const std::vector<std::string>& columns,
                         ArrowSchema* schema) {
    *schema = {};
    const TraceTables tables(trace);
    fill_table_schema(*schema, selected(tables.table(name), columns));
}

}  // namespace marey
