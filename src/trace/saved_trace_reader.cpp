// saved_trace_reader.cpp: trusts the table of contents as far as the file's size allows, and the tables once
// find_damage has found nothing.
#include <cstring>
#include <functional>
#include <span>
#include <type_traits>
#include <unordered_map>

#include <marey/error.h>

#include "base/checksum.h"
#include "base/compress.h"
#include "base/work_meter.h"
#include "trace/columns.h"
#include "trace/part_flags.h"
#include "trace/range_codec.h"
#include "trace/saved_format.h"
#include "trace/saved_trace.h"
#include "trace/trace_data.h"

namespace marey {

using namespace saved;

namespace {

template <class T>
T get(const std::byte*& at) {
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) number |= std::to_integer<std::uint64_t>(*at++) << (8 * i);
    return static_cast<T>(number);
}

/// The columns of a file by their ids. The bytes of a column are read on request.
class Contents {
  public:
    explicit Contents(std::span<const std::byte> file) {
        if (file.size() < kHeaderBytes) throw Error("truncated in its header");
        const std::byte* at = file.data() + sizeof kMagic;
        const auto version = get<std::uint32_t>(at);
        const auto header_bytes = get<std::uint32_t>(at);
        const auto count = get<std::uint64_t>(at);
        const auto stored = get<std::uint64_t>(at);
        const auto checksum = get<std::uint64_t>(at);
        if (version > kVersion)
            throw Error("saved by a newer Marey (saved trace " + std::to_string(version) + ")");
        if (version == 0 || header_bytes < kHeaderBytes || header_bytes > file.size())
            throw Error("damaged header");
        std::span<const std::byte> rest = file.subspan(header_bytes);
        if (stored > rest.size()) throw Error("truncated in its table of contents");
        const std::span<const std::byte> packed = rest.first(stored);
        rest = rest.subspan(stored);
        if (checksum64(packed) != checksum) throw Error("damaged table of contents");
        if (count > file.size()) throw Error("corrupt: its stated sizes are too large for the file");
        const std::uint64_t bytes = count * kEntryBytes;
        const bool is_packed = stored < bytes;
        if (stored > bytes) throw Error("damaged table of contents");
        std::vector<std::byte> room;
        if (is_packed) room = decompress(packed, bytes);
        read_entries(is_packed ? std::span<const std::byte>(room) : packed, rest, file.size());
    }

    struct Stored {
        ColumnEntry entry;
        std::span<const std::byte> stored;
    };
    /// Null when there is none.
    const Stored* find(std::uint32_t id) const {
        const auto found = columns_.find(id);
        return found == columns_.end() ? nullptr : &found->second;
    }
    /// The number of rows of a table, from any of its columns.
    std::uint64_t rows(ModelTable table) const {
        const auto found = rows_.find(static_cast<std::uint32_t>(table));
        return found == rows_.end() ? 0 : found->second;
    }
    static void check(const Stored& column) {
        if (checksum64(column.stored) != column.entry.checksum && column.entry.stored != 0)
            throw Error("a column is damaged (" + std::to_string(column.entry.id >> 8) + "." +
                        std::to_string(column.entry.id & 0xff) + ")");
    }

  private:
    void read_entries(std::span<const std::byte> contents, std::span<const std::byte> rest,
                      std::uint64_t file_bytes) {
        std::uint64_t left = kFreeBytes + kMaxExpansion * file_bytes;
        const std::byte* at = contents.data();
        const std::byte* const end = at + contents.size();
        columns_.reserve(contents.size() / kEntryBytes);
        while (at != end) {
            ColumnEntry entry;
            for_each_field(entry, [&]<class Field>(Field& field) { field = get<Field>(at); });
            if (entry.stored > rest.size()) throw Error("truncated");
            if (entry.rows > left || entry.bytes > left || unpacked_bytes(entry) > left)
                throw Error("corrupt: its stated sizes are too large for the file");
            left -= unpacked_bytes(entry);
            if (!columns_.try_emplace(entry.id, Stored{entry, rest.first(entry.stored)}).second)
                throw Error("corrupt: the same column occurs twice");
            rest = rest.subspan(entry.stored);
            note_rows(entry);
        }
    }

    // The times of ranges are distributed over columns of different lengths.
    void note_rows(const ColumnEntry& entry) {
        const std::uint32_t table = entry.id >> 8, column = entry.id & 0xff;
        if (table == static_cast<std::uint32_t>(ModelTable::Ranges) && column >= kGaps && column <= kTails)
            return;
        const auto [found, is_new] = rows_.try_emplace(table, entry.rows);
        if (!is_new && found->second != entry.rows)
            throw Error("corrupt: the columns of a table differ in length");
    }

    std::unordered_map<std::uint32_t, Stored> columns_;
    std::unordered_map<std::uint32_t, std::uint64_t> rows_;
};

class TraceReader {
  public:
    explicit TraceReader(std::span<const std::byte> file) : contents_(file), meter_(file.size()) {}

    void read(TraceData& data, bool with_ranges = true) {
        visit_columns(
            [&](const TableInfo& table, const auto&... columns) { (fill(data, table.id, columns), ...); });
        values(ModelTable::Arguments, data.arguments);
        values(ModelTable::ListItems, data.list_items);
        if (!with_ranges) return;
        ranges(data);
        if (const std::string damage = find_damage(data); !damage.empty())
            throw Error("inconsistent trace: " + damage);
    }
    void read_window(TraceData& data) {
        model::visit_table(Only<ModelTable::Window>(), [&](const TableInfo& table, const auto&... columns) {
            (fill(data, table.id, columns), ...);
        });
    }

  private:
    /// Zeros if there is no such column: `rows` of them.
    std::vector<std::uint64_t> numbers(std::uint32_t id, std::uint64_t row_count) {
        const Contents::Stored* const column = contents_.find(id);
        if (column == nullptr) return std::vector<std::uint64_t>(row_count);
        Contents::check(*column);
        meter_.add(column->stored.size());
        return unpack_numbers(column->entry, column->stored);
    }

    // A missing column leaves the defaults of its rows.
    template <class Rows, class Member>
    void fill(TraceData& data, ModelTable table, const Column<Rows, Member>& to) {
        using Value = typename Column<Rows, Member>::Value;
        const std::uint64_t count = contents_.rows(table);
        if (to.id == 0 || count == 0) return;
        if constexpr (Vector<Rows>) {
            to.in(data).resize(count);
        } else if (count > 1) {
            throw Error("a table with one row has several");
        }
        const std::uint32_t id = column_id(table, to.id);
        const Contents::Stored* const column = contents_.find(id);
        if (column == nullptr) return;
        if constexpr (std::is_same_v<Value, std::string>) {
            Contents::check(*column);
            const UnpackedTexts texts = unpack_texts(column->entry, column->stored);
            const char* at = reinterpret_cast<const char*>(texts.payload.data()) + texts.first;
            std::size_t i = 0;
            for (auto& row : to.in(data)) {
                std::invoke(to.member, row).assign(at, texts.lengths[i]);
                at += texts.lengths[i++];
            }
        } else {
            const std::vector<std::uint64_t> column_numbers = numbers(id, 0);
            std::size_t i = 0;
            for (auto& row : to.in(data))
                std::invoke(to.member, row) = from_number<Value>(column_numbers[i++]);
        }
    }

    void values(ModelTable table, std::vector<Argument>& all) {
        const std::vector<std::uint64_t> value_numbers = numbers(column_id(table, kValue), all.size());
        const std::vector<std::uint64_t> counts = numbers(column_id(table, kItemCount), all.size());
        ValueBase base;
        for (std::size_t i = 0; i < all.size(); ++i) {
            set_value(all[i], value_numbers[i] + base.of(all[i].kind), counts[i]);
            base.saw(all[i]);
        }
    }

    void ranges(TraceData& data) {
        const std::uint64_t count = contents_.rows(ModelTable::Ranges);
        const auto column = [&](std::uint32_t id) {
            const Contents::Stored* const found = contents_.find(column_id(ModelTable::Ranges, id));
            const bool is_zero = found == nullptr || (found->entry.form == 0 && id != kGaps && id != kHeads &&
                                                      id != kDurations && id != kTails);
            return is_zero ? std::vector<std::uint64_t>() : numbers(column_id(ModelTable::Ranges, id), 0);
        };
        RangeNumbers apart{column(kDepth), column(kParent),    column(kSite),  column(kFlags), column(kGaps),
                           column(kHeads), column(kDurations), column(kTails), column(kSelf)};
        join_ranges(std::move(apart), count, data);
    }

    Contents contents_;
    WorkMeter meter_;
};

void read_named(std::span<const std::byte> bytes, const std::string& name, auto read) {
    try {
        if (!is_saved_trace(bytes)) throw Error("not a saved trace");
        TraceReader reader(bytes);
        read(reader);
    } catch (const Error& error) {
        throw Error(name + ": " + error.what());
    }
}

}  // namespace

bool is_saved_trace(std::span<const std::byte> head) noexcept {
    return head.size() >= sizeof kMagic && std::memcmp(head.data(), kMagic, sizeof kMagic) == 0;
}

std::shared_ptr<const TraceData> unpack_trace(std::span<const std::byte> bytes, const std::string& name) {
    auto data = std::make_shared<TraceData>();
    read_named(bytes, name, [&](TraceReader& reader) { reader.read(*data); });
    mark_parts(*data);  // older versions did not save these flags
    return data;
}

std::shared_ptr<TraceData> unpack_other_tables(std::span<const std::byte> bytes, const std::string& name) {
    auto data = std::make_shared<TraceData>();
    read_named(bytes, name, [&](TraceReader& reader) { reader.read(*data, false); });
    return data;
}

WindowInfo unpack_window(std::span<const std::byte> bytes, const std::string& name) {
    TraceData data;
    read_named(bytes, name, [&](TraceReader& reader) { reader.read_window(data); });
    return data.window;
}

}  // namespace marey
