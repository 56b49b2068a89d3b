// write.cpp: trace columns as Arrow arrays. Each array owns its data or keeps the trace that does.
#include <marey/arrow.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>

#include <marey/error.h>

#include "base/enum_names.h"
#include "base/utf8.h"
#include "formats/trace_columns.h"
#include "results/arrow_parts.h"

namespace marey {
namespace {

/// The format of a dictionary column is that of its indexes.
const char* format_of(CellType type) {
    static constexpr const char* kFormats[] = {"b", "C", "S", "I", "L", "i", "l", "g", "i", "i", kTextFormat};
    return name_at(kFormats, type, "n");
}

bool has_dictionary(CellType type) {
    return type == CellType::String || type == CellType::Name;
}

OwnedArrow<ArrowSchema> schema_of(std::span<const TraceColumn> columns) {
    auto parts = std::make_unique<SchemaParts>();
    for (const TraceColumn& column : columns) {
        auto of_column = std::make_unique<SchemaParts>();
        if (has_dictionary(column.type)) of_column->dictionary = make_schema(kTextFormat, "", false);
        parts->children.push_back(make_schema(format_of(column.type), column.name, column.is_null != nullptr,
                                              std::move(of_column)));
    }
    return make_schema("+s", "", false, std::move(parts));
}

/// Maps cell values to indexes into the distinct texts.
class Dictionary {
  public:
    std::int32_t index_of(const TraceTables& tables, const TraceColumn& column, std::uint64_t number) {
        if (number >= known_.size()) known_.resize(number + 1, -1);
        std::int32_t& index = known_[number];
        if (index < 0) {
            std::string valid;
            append_utf8(valid, column.type == CellType::Name
                                   ? column.name_of(number)
                                   : tables.trace().string(static_cast<StringId>(number)));
            if (texts_.size() >= std::numeric_limits<std::int32_t>::max())
                throw Error("too many names for an Arrow dictionary (at most 2147483647)");
            const auto [found, is_new] = places_.try_emplace(valid, static_cast<std::int32_t>(texts_.size()));
            if (is_new) texts_.add(valid);
            index = found->second;
        }
        return index;
    }

    OwnedArrow<ArrowArray> array() {
        auto parts = std::make_unique<ArrayParts>();
        texts_.move_into(*parts);
        return make_array(texts_.size(), 0, 3, std::move(parts));
    }

  private:
    std::vector<std::int32_t> known_;  ///< by cell value; -1: not yet used
    std::unordered_map<std::string, std::int32_t> places_;
    TextColumn texts_;
};

class ColumnExport {
  public:
    /// Exports `rows` rows from `first_row` on.
    ColumnExport(const TraceTables& tables, const TraceColumn& column, std::size_t first_row,
                 std::size_t rows)
        : tables_(tables),
          column_(column),
          first_row_(first_row),
          rows_(rows),
          key_count_(count_keys()),
          parts_(std::make_unique<ArrayParts>()) {}

    OwnedArrow<ArrowArray> array() {
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
        return make_array(rows_, nulls_, column_.type == CellType::Text ? 3 : 2, std::move(parts_));
    }

  private:
    // Rows are counted from the first one that is exported.
    std::uint64_t number(std::size_t row) const { return column_.number(first_row_ + row); }
    bool is_null_cell(std::size_t row) const { return column_.is_null(first_row_ + row); }
    bool is_null(std::size_t row) const { return nulls_ != 0 && is_null_cell(row); }
    std::span<const std::uint32_t> keys() const { return {column_.keys->data() + first_row_, rows_}; }

    /// Calls `fill(first, end)` for stretches of rows with equal cells.
    void for_each_stretch(const auto& fill) const {
        for (std::size_t row = 0; row < rows_;) {
            std::size_t end = row + 1;
            if (column_.stretch_end != nullptr)
                end = std::clamp(column_.stretch_end(first_row_ + row, first_row_ + rows_) - first_row_, end,
                                 rows_);
            fill(row, end);
            row = end;
        }
    }

    void find_nulls() {
        std::byte* const bits = no_bits(parts_->owned[kValidity], rows_);
        if (key_count_ != 0) return find_nulls_by_key(bits);
        for_each_stretch([&](std::size_t first, std::size_t end) {
            if (is_null_cell(first)) {
                nulls_ += end - first;
            } else {
                set_bits(bits, first, end);
            }
        });
    }

    void fill_bits() {
        std::byte* const bits = no_bits(parts_->owned[1], rows_);
        for_each_stretch([&](std::size_t first, std::size_t end) {
            if (!is_null(first) && number(first) != 0) set_bits(bits, first, end);
        });
    }

    template <class T>
    void fill_numbers() {
        if (column_.in_place != nullptr && rows_ != 0) {
            parts_->kept = tables_.trace();
            parts_->buffers[1] = static_cast<const T*>(column_.in_place) + first_row_;
            return;
        }
        T* const numbers = room_for<T>(parts_->owned[1], rows_);
        for_each_stretch([&](std::size_t first, std::size_t end) {
            const std::uint64_t value = is_null(first) ? 0 : number(first);
            if constexpr (std::is_same_v<T, double>) {
                std::fill(numbers + first, numbers + end, std::bit_cast<double>(value));
            } else {
                std::fill(numbers + first, numbers + end, static_cast<T>(value));
            }
        });
    }

    void fill_indexes() {
        Dictionary dictionary;
        auto* const indexes = room_for<std::int32_t>(parts_->owned[1], rows_);
        if (key_count_ != 0) {
            fill_indexes_by_key(dictionary, indexes);
        } else {
            for_each_stretch([&](std::size_t first, std::size_t end) {
                std::fill(indexes + first, indexes + end,
                          is_null(first) ? 0 : dictionary.index_of(tables_, column_, number(first)));
            });
        }
        parts_->dictionary = dictionary.array();
    }

    /// One more than the highest key; 0 if there are no keys, or if they exceed the rows, as in a damaged
    /// trace.
    std::size_t count_keys() const {
        if (column_.keys == nullptr || rows_ == 0) return 0;
        const std::size_t highest = *std::ranges::max_element(keys());
        return highest < rows_ ? highest + 1 : 0;
    }

    void fill_indexes_by_key(Dictionary& dictionary, std::int32_t* indexes) {
        const std::span<const std::uint32_t> keys = this->keys();
        std::vector<std::int32_t> known(key_count_, -1);
        for (std::size_t row = 0; row < rows_; ++row) {
            std::int32_t& index = known[keys[row]];
            if (index < 0) index = is_null(row) ? 0 : dictionary.index_of(tables_, column_, number(row));
            indexes[row] = index;
        }
    }

    void find_nulls_by_key(std::byte* bits) {
        const std::span<const std::uint32_t> keys = this->keys();
        enum : std::uint8_t { kUnknown, kNull, kValue };
        std::vector<std::uint8_t> known(key_count_, kUnknown);
        for (std::size_t row = 0; row < rows_; ++row) {
            std::uint8_t& state = known[keys[row]];
            if (state == kUnknown) state = is_null_cell(row) ? kNull : kValue;
            if (state == kNull) {
                ++nulls_;
            } else {
                set_bits(bits, row, row + 1);
            }
        }
    }

    void fill_texts() {
        TextColumn texts;
        for (std::size_t row = 0; row < rows_; ++row) {
            is_null(row) ? texts.add_null() : texts.add(column_.text(first_row_ + row));
        }
        texts.move_into(*parts_);
    }

    const TraceTables& tables_;
    const TraceColumn& column_;
    std::size_t first_row_;
    std::size_t rows_;
    std::size_t key_count_;
    std::size_t nulls_ = 0;
    std::unique_ptr<ArrayParts> parts_;
};

/// The named columns of the table; all if there are no names.
std::vector<TraceColumn> selected(const TraceTable& table, const std::vector<std::string>& names) {
    if (names.empty()) return table.columns;
    std::vector<TraceColumn> columns;
    for (const std::string& name : names) {
        const auto found = std::ranges::find_if(
            table.columns, [&](const TraceColumn& column) { return column.name == name; });
        if (found == table.columns.end())
            throw Error("unknown column '" + name + "' of the table " + std::string(table.name));
        columns.push_back(*found);
    }
    return columns;
}

/// `rows` rows from `first_row` on.
OwnedArrow<ArrowArray> array_of(const TraceTables& tables, std::size_t first_row, std::size_t rows,
                                std::span<const TraceColumn> columns) {
    auto parts = std::make_unique<ArrayParts>();
    for (const TraceColumn& column : columns)
        parts->children.push_back(ColumnExport(tables, column, first_row, rows).array());
    return make_array(rows, 0, 1, std::move(parts));
}

/// One table of a trace, or some of its columns, as a stream of batches.
class TableStream {
  public:
    TableStream(const Trace& trace, std::string_view table, std::vector<std::string> columns,
                std::size_t batch_rows)
        : trace_(trace), table_(table), columns_(std::move(columns)), batch_rows_(batch_rows) {}

    static int get_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept {
        return of(stream).run(
            [&](TableStream& self) { export_arrow_schema(self.trace_, self.table_, self.columns_, out); });
    }
    static int get_next(ArrowArrayStream* stream, ArrowArray* out) noexcept {
        *out = {};
        return of(stream).run([&](TableStream& self) { self.next(out); });
    }
    static const char* get_last_error(ArrowArrayStream* stream) noexcept { return of(stream).error_.c_str(); }
    static void release(ArrowArrayStream* stream) noexcept {
        delete &of(stream);
        stream->release = nullptr;
    }

  private:
    static TableStream& of(ArrowArrayStream* stream) noexcept {
        return *static_cast<TableStream*>(stream->private_data);
    }
    /// Returns 0, or an errno value with the reason in `error_`.
    int run(const auto& exporting) noexcept {
        try {
            exporting(*this);
            return 0;
        } catch (const std::exception& failure) {
            error_ = failure.what();
            return EIO;
        }
    }
    void next(ArrowArray* out) {
        if (tables_ == nullptr) {
            tables_ = std::make_unique<TraceTables>(trace_);
            chosen_ = selected(tables_->table(table_), columns_);
        }
        const std::size_t rows = tables_->table(table_).rows;
        if (next_row_ == rows && has_batch_) return;
        const std::size_t count =
            batch_rows_ == 0 ? rows : std::min<std::size_t>(batch_rows_, rows - next_row_);
        move_to(out, array_of(*tables_, next_row_, count, chosen_));
        next_row_ += count;
        has_batch_ = true;  // an empty table is one empty batch
    }

    Trace trace_;
    std::string table_;
    std::vector<std::string> columns_;  ///< empty: all
    std::size_t batch_rows_;
    std::unique_ptr<TraceTables> tables_;  ///< made for the first batch
    std::vector<TraceColumn> chosen_;
    std::size_t next_row_ = 0;
    bool has_batch_ = false;
    std::string error_;
};

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
    const std::vector<TraceColumn> chosen = selected(table, columns);
    OwnedArrow<ArrowArray> rows = array_of(tables, 0, table.rows, chosen);
    move_to(schema, schema_of(chosen));
    move_to(array, std::move(rows));
}

void export_arrow_schema(const Trace& trace, std::string_view name, const std::vector<std::string>& columns,
                         ArrowSchema* schema) {
    *schema = {};
    const TraceTables tables(trace);
    move_to(schema, schema_of(selected(tables.table(name), columns)));
}

void export_arrow_stream(const Trace& trace, std::string_view table, std::vector<std::string> columns,
                         std::size_t batch_rows, ArrowArrayStream* stream) {
    auto reader = std::make_unique<TableStream>(trace, table, std::move(columns), batch_rows);
    stream->get_schema = TableStream::get_schema;
    stream->get_next = TableStream::get_next;
    stream->get_last_error = TableStream::get_last_error;
    stream->release = TableStream::release;
    stream->private_data = reader.release();
}

}  // namespace marey
