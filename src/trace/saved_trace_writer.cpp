// saved_trace_writer.cpp: writes every table as columns, then the header and the table of contents before
// them.
#include <algorithm>
#include <functional>
#include <string_view>
#include <type_traits>

#include <marey/error.h>

#include "base/checksum.h"
#include "base/output_file.h"
#include "base/work_meter.h"
#include "trace/columns.h"
#include "trace/range_codec.h"
#include "trace/saved_format.h"
#include "trace/saved_trace.h"
#include "trace/trace_data.h"

namespace marey {

using namespace saved;

namespace {

void put(std::vector<std::byte>& bytes, auto number) {
    std::byte digits[sizeof number];
    for (std::size_t i = 0; i < sizeof number; ++i)
        digits[i] = static_cast<std::byte>(std::uint64_t{number} >> (8 * i));
    bytes.insert(bytes.end(), digits, digits + sizeof number);
}
// Levels above these gain a few percent and cost ten times as much. Small traces are messages: at level 9
// they would take three times as long.
int level_for(std::size_t ranges) {
    return ranges >= 1000 && ranges <= 100'000 ? 9 : 3;
}

class TraceWriter {
  public:
    TraceWriter(const TraceData& data, int level, bool with_ranges = true)
        : data_(data), level_(level), with_ranges_(with_ranges) {}

    std::vector<std::byte> write() {
        WorkMeter meter(kRangeColumns * data_.range_start_ns.size());  // the ranges take most of the time
        meter_ = &meter;
        visit_columns([&](const TableInfo& table, const auto& first, const auto&... others) {
            const std::size_t before = columns_.size();
            (save(table.id, others), ...);
            save(table.id, first, columns_.size() == before);  // one column must tell the number of rows
        });
        values(ModelTable::Arguments, data_.arguments);
        values(ModelTable::ListItems, data_.list_items);
        if (with_ranges_) ranges();
        return file();
    }

  private:
    /// Leaves out a column of defaults, which readers fill in, unless it is needed.
    template <class Rows, class Member>
    void save(ModelTable table, const Column<Rows, Member>& column, bool is_needed = false) {
        if (column.id == 0) return;
        const auto& rows = column.in(data_);
        using Value = typename Column<Rows, Member>::Value;
        typename RowOf<Rows>::Type usual{};
        const auto is_usual = [&](const auto& row) {
            const Value &value = std::invoke(column.member, row), &other = std::invoke(column.member, usual);
            if constexpr (std::is_same_v<Value, std::string>)
                return value == other;
            else
                return to_number(value) == to_number(other);  // bit by bit: -0.0 is not 0.0
        };
        if (!is_needed && std::all_of(rows.begin(), rows.end(), is_usual)) return;
        if constexpr (std::is_same_v<Value, std::string>) {
            std::vector<std::string_view> texts;
            texts.reserve(rows.size());
            for (const auto& row : rows) texts.push_back(std::invoke(column.member, row));
            if (!texts.empty()) columns_.push_back(pack_texts(column_id(table, column.id), texts, level_));
        } else {
            std::vector<std::uint64_t> column_numbers;
            column_numbers.reserve(rows.size());
            for (const auto& row : rows) column_numbers.push_back(to_number(std::invoke(column.member, row)));
            numbers(table, column.id, std::move(column_numbers), column.style);
        }
    }

    void numbers(ModelTable table, std::uint32_t column, std::vector<std::uint64_t> column_numbers,
                 NumberStyle style = {}) {
        if (column_numbers.empty()) return;
        if (table == ModelTable::Ranges) meter_->add(column_numbers.size());
        columns_.push_back(pack_numbers(column_id(table, column), std::move(column_numbers), style, level_));
    }

    void values(ModelTable table, const std::vector<Argument>& all) {
        std::vector<std::uint64_t> value_numbers, counts;
        ValueBase base;
        for (const Argument& value : all) {
            value_numbers.push_back(raw_value(value) - base.of(value.kind));
            counts.push_back(value.kind == ValueKind::List ? value.list.count : 0);
            base.saw(value);
        }
        numbers(table, kValue, std::move(value_numbers), model::kWide);
        numbers(table, kItemCount, std::move(counts));
    }

    void ranges() {
        numbers(ModelTable::Ranges, kDepth, split_depths(data_), model::kRising);
        numbers(ModelTable::Ranges, kSite, split_sites(data_));
        numbers(ModelTable::Ranges, kFlags, split_flags(data_));
        RangeNumbers times = split_times(data_);
        numbers(ModelTable::Ranges, kParent, std::move(times.parent));
        numbers(ModelTable::Ranges, kGaps, std::move(times.gaps), model::kWide);
        numbers(ModelTable::Ranges, kHeads, std::move(times.heads), model::kWide);
        numbers(ModelTable::Ranges, kDurations, std::move(times.durations), model::kWide);
        numbers(ModelTable::Ranges, kTails, std::move(times.tails), model::kWide);
        numbers(ModelTable::Ranges, kSelf, split_self(data_), model::kWide);
    }

    std::vector<std::byte> file() {
        std::vector<std::byte> contents;
        contents.reserve(columns_.size() * kEntryBytes);
        std::uint64_t stored = 0, unpacked = 0;
        for (const auto& [entry, bytes] : columns_) {
            for_each_field(entry, [&](const auto& field) { put(contents, field); });
            stored += entry.stored;
            unpacked += unpacked_bytes(entry);
        }
        contents = pack_bytes(std::move(contents), level_);
        std::vector<std::byte> bytes;
        bytes.reserve(kHeaderBytes + contents.size() + stored);
        for (const char letter : kMagic) put(bytes, static_cast<std::uint8_t>(letter));
        put(bytes, kVersion);
        put(bytes, static_cast<std::uint32_t>(kHeaderBytes));
        put(bytes, std::uint64_t{columns_.size()});
        put(bytes, std::uint64_t{contents.size()});
        put(bytes, checksum64(contents));
        put(bytes, std::uint64_t{0});
        bytes.insert(bytes.end(), contents.begin(), contents.end());
        for (const PackedColumn& column : columns_)
            bytes.insert(bytes.end(), column.bytes.begin(), column.bytes.end());
        if (unpacked > kFreeBytes) {
            const std::uint64_t least = (unpacked - kFreeBytes + kMaxExpansion - 1) / kMaxExpansion;
            bytes.resize(std::max<std::size_t>(bytes.size(), least));
        }
        return bytes;
    }

    static constexpr std::uint64_t kRangeColumns = 9;  // of ranges()

    const TraceData& data_;
    WorkMeter* meter_ = nullptr;  ///< while it writes
    int level_;
    bool with_ranges_;
    std::vector<PackedColumn> columns_;
};

}  // namespace

std::vector<std::byte> pack_trace(const TraceData& data, bool is_compressed) {
    if (const std::string damage = find_damage(data); !damage.empty())
        throw Error("inconsistent trace: " + damage);
    return TraceWriter(data, is_compressed ? level_for(data.range_start_ns.size()) : kNotCompressed).write();
}

std::vector<std::byte> pack_other_tables(const TraceData& data) {
    return TraceWriter(data, kNotCompressed, false).write();
}

void Trace::save(const std::string& path) const {
    try {
        const std::vector<std::byte> bytes = pack_trace(with_own_ranges(*this).data());
        OutputFile file(path);
        file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        file.commit();
    } catch (const Error& error) {
        const std::string text = error.what();
        throw Error(text.starts_with(path) ? text : path + ": " + text);
    }
}

}  // namespace marey
