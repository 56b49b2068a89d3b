// trace_columns.h: the tables of a trace as lists of columns, shared by CSV, Arrow and their documentation.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include <marey/error.h>
#include <marey/export.h>
#include <marey/trace.h>

#include "formats/range_places.h"
#include "trace/columns.h"
#include "trace/saved_format.h"

namespace marey {

/// The type of a cell. Numbers, booleans and doubles are returned as 64 bits.
enum class CellType : std::uint8_t {
    Bool,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Int32,
    Int64,
    Double,
    String,  ///< the number is a StringId of the trace
    Name,    ///< TraceColumn::name_of gives the name of the number
    Text,    ///< returned by TraceColumn::text
};

/// A column of one trace.
struct TraceColumn {
    std::string_view name;
    std::string meaning;  ///< for docs/reference/tables.md
    CellType type = CellType::Int64;
    std::uint32_t saved_id = 0;  ///< in a saved trace; 0: not saved as such
    /// For all types except Text.
    std::function<std::uint64_t(std::size_t row)> number{};
    std::function<std::string_view(std::size_t row)> text{};
    std::function<std::string_view(std::uint64_t number)> name_of{};
    /// Empty: the column has no null cells.
    std::function<bool(std::size_t row)> is_null{};
    /// The address of the column if it is stored contiguously with exactly this type. Null: it is not.
    const void* in_place = nullptr;
    /// Rows with equal numbers here have equal cells, so a cell needs to be found only once for each number.
    /// Null: unknown.
    const std::vector<std::uint32_t>* keys = nullptr;
    /// The end of a stretch of rows with equal cells that begins at `row`; need not look beyond `limit`.
    /// Empty: unknown.
    std::function<std::size_t(std::size_t row, std::size_t limit)> stretch_end{};
};

struct TraceTable {
    std::string_view name;
    std::string_view meaning;
    std::uint32_t saved_id = 0;
    bool is_exported = true;
    std::size_t rows = 0;
    std::vector<TraceColumn> columns{};
};

/// The tables of a trace: all columns of trace/columns.h, and those that are derived from them.
class TraceTables {
  public:
    explicit TraceTables(const Trace& trace) : trace_(with_own_ranges(trace)) {
        const TraceData& data = trace_.data();
        visit_columns([&](const TableInfo& info, const auto& front, const auto&... others) {
            TraceTable& table = tables_.emplace_back();
            table.name = info.name;
            table.meaning = info.meaning;
            table.saved_id = static_cast<std::uint32_t>(info.id);
            table.is_exported = info.is_exported;
            table.rows = front.in(data).size();
            table.columns = {stored_column(data, front), stored_column(data, others)...};
        });
        add_range_columns();
        add_site_columns("instants", data.instant_site);
        add_site_columns("counters", data.counter_site);
        std::erase_if(find("counters").columns,
                      [](const TraceColumn& column) { return column.name == "scope"; });
        const auto add_places = [&](std::string_view table, const char* before,
                                    const std::vector<Row>& threads) {
            Columns columns = places([&threads](std::size_t row) { return threads[row]; });
            columns.erase(columns.begin());  // the thread is stored
            insert(table, before, std::move(columns));
        };
        add_places("instants", "site", data.instant_thread);
        add_places("counters", "site", data.counter_thread);
        add_places("memory", "", data.memory_thread);
        add_places("samples", "", data.sample_thread);
        add_value_columns();
        add_range_places();
    }
    TraceTables(const TraceTables&) = delete;
    TraceTables& operator=(const TraceTables&) = delete;

    const Trace& trace() const noexcept { return trace_; }
    const std::vector<TraceTable>& all() const noexcept { return tables_; }
    /// Throws marey::Error, which lists the exported tables, if the name is unknown.
    const TraceTable& table(std::string_view name) const {
        std::string known;
        for (const TraceTable& table : tables_) {
            if (!table.is_exported) continue;
            if (table.name == name) return table;
            known += (known.empty() ? "" : ", ") + std::string(table.name);
        }
        throw Error("unknown trace table '" + std::string(name) + "'; known: " + known);
    }

    /// The text of a cell of type String, Name or Text that is not null. May contain any bytes.
    std::string_view text(const TraceColumn& column, std::size_t row) const {
        if (column.type == CellType::Text) return column.text(row);
        const std::uint64_t number = column.number(row);
        if (column.type == CellType::Name) return column.name_of(number);
        return trace_.string(static_cast<StringId>(number));
    }

  private:
    template <class T>
    static constexpr CellType type_of() {
        if constexpr (std::is_same_v<T, std::string>) return CellType::Text;
        if constexpr (std::is_same_v<T, bool>) return CellType::Bool;
        if constexpr (std::is_same_v<T, std::uint8_t>) return CellType::UInt8;
        if constexpr (std::is_same_v<T, std::uint16_t>) return CellType::UInt16;
        if constexpr (std::is_same_v<T, std::uint32_t>) return CellType::UInt32;
        if constexpr (std::is_same_v<T, std::uint64_t>) return CellType::UInt64;
        if constexpr (std::is_same_v<T, std::int32_t>) return CellType::Int32;
        if constexpr (std::is_same_v<T, std::int64_t>) return CellType::Int64;
        return CellType::Double;
    }

    static CellType type_of(const ColumnOptions& column, CellType stored) {
        if (column.name_of != nullptr) return CellType::Name;
        if (column.cells == Cells::String) return CellType::String;
        return column.cells == Cells::Flag ? CellType::Bool : stored;
    }

    static bool is_null_number(Null null, std::uint64_t number) {
        return null == Null::Zero       ? number == 0
               : null == Null::NoRow    ? number == kNoRow
               : null == Null::Negative ? static_cast<std::int64_t>(number) < 0
               : null == Null::Largest  ? number == std::numeric_limits<std::int64_t>::max()
                                        : false;
    }

    template <class Rows, class Member>
    static TraceColumn stored_column(const TraceData& data, const Column<Rows, Member>& from) {
        using Cell = typename Column<Rows, Member>::Value;
        TraceColumn column{from.name, from.meaning, type_of(from, type_of<Cell>()), from.id};
        const auto* const rows = from.in(data).data();
        const auto cell = [ rows, member = from.member ](std::size_t row) -> const auto& {
            return std::invoke(member, rows[row]);
        };
        if constexpr (std::is_same_v<Cell, std::string>) {
            column.text = [cell](std::size_t row) { return std::string_view(cell(row)); };
        } else {
            column.number = [cell](std::size_t row) { return saved::to_number(cell(row)); };
            column.name_of = from.name_of;
            if (from.null != Null::Never)
                column.is_null = [cell, null = from.null](std::size_t row) {
                    return is_null_number(null, saved::to_number(cell(row)));
                };
            if constexpr (std::is_same_v<Member, std::identity>) {
                if (column.type == type_of<Cell>()) column.in_place = rows;
            }
        }
        return column;
    }

    /// A column of numbers that a function gives; null where `is_null` says so.
    template <class Number>
    static TraceColumn derived(std::string_view name, const char* meaning, Number number,
                               std::function<bool(std::size_t)> is_null = {}) {
        using Cell = std::remove_cvref_t<std::invoke_result_t<Number, std::size_t>>;
        TraceColumn column{name, meaning, type_of<Cell>()};
        column.number = [number](std::size_t row) { return saved::to_number(number(row)); };
        column.is_null = std::move(is_null);
        return column;
    }

    static constexpr std::string_view kRangePlaces = "range_places";

    static TraceColumn as_string(TraceColumn column) {
        column.type = CellType::String;
        return column;
    }
    static TraceColumn as_name(TraceColumn column, std::function<std::string_view(std::uint64_t)> name_of) {
        column.type = CellType::Name;
        column.name_of = std::move(name_of);
        return column;
    }

    using Columns = std::vector<TraceColumn>;
    using ThreadOfRow = std::function<Row(std::size_t row)>;

    TraceTable& find(std::string_view name) {
        return *std::ranges::find_if(tables_, [&](const TraceTable& table) { return table.name == name; });
    }
    /// At the end if there is no such column.
    void insert(std::string_view table, std::string_view before, Columns columns) {
        Columns& all = find(table).columns;
        const auto at =
            std::ranges::find_if(all, [&](const TraceColumn& column) { return column.name == before; });
        all.insert(at, std::make_move_iterator(columns.begin()), std::make_move_iterator(columns.end()));
    }
    void add_site_columns(std::string_view table, const std::vector<std::uint32_t>& sites) {
        const auto site = [&data = trace_.data(), &sites](std::size_t row) -> const SiteInfo& {
            static const SiteInfo none;
            return sites[row] < data.sites.size() ? data.sites[sites[row]] : none;
        };
        Columns columns = {
            as_string(
                derived("name", "The name of its site", [=](std::size_t row) { return site(row).name; })),
            as_string(derived(
                "category", "The category of its site", [=](std::size_t row) { return site(row).category; },
                [=](std::size_t row) { return site(row).category == 0; })),
            as_name(derived("scope", "The scope of its site",
                            [=](std::size_t row) { return saved::to_number(site(row).scope); }),
                    model::name_by<Scope, scope_name>)};
        for (TraceColumn& column : columns) column.keys = &sites;
        insert(table, find(table).columns.front().name, std::move(columns));
    }
    /// The thread of a row and its process.
    Columns places(const ThreadOfRow& thread) const {
        const TraceData& data = trace_.data();
        const auto info = [&data, thread](std::size_t row) -> const ThreadInfo& {
            static const ThreadInfo none;
            const Row found = thread(row);
            return found < data.threads.size() ? data.threads[found] : none;
        };
        const auto pid = [&data, info](std::size_t row) {
            const Row process = info(row).process;
            return process < data.processes.size() ? data.processes[process].pid : 0;
        };
        return {
            derived("thread", "Row of `threads`", thread),
            as_string(derived("thread_name", "Its name", [=](std::size_t row) { return info(row).name; })),
            derived("process", "Row of `processes`", [=](std::size_t row) { return info(row).process; }),
            derived("pid", "Its process id", pid)};
    }
    void add_range_columns() {
        const TraceData& data = trace_.data();
        const auto track = [&trace = trace_](std::size_t row) -> const TrackInfo& {
            static const TrackInfo none;
            const Row found = trace.track_of(static_cast<Row>(row));
            return found == kNoRow ? none : trace.tracks()[found];
        };
        const auto flag = [&data](std::string_view name, const char* meaning, std::uint16_t bit) {
            TraceColumn column = derived(
                name, meaning, [&data, bit](std::size_t row) { return (data.range_flags[row] & bit) != 0; });
            column.stretch_end = [&data](std::size_t row, std::size_t limit) {
                return end_of_equal(data.range_flags, row, limit);
            };
            return column;
        };
        const auto of_track = [&trace = trace_](Columns columns) {
            for (TraceColumn& column : columns) {
                column.stretch_end = [&trace](std::size_t row, std::size_t) {
                    const Row found = trace.track_of(static_cast<Row>(row));
                    if (found == kNoRow) return row + 1;
                    return std::size_t{trace.tracks()[found].first_range} + trace.tracks()[found].range_count;
                };
            }
            return columns;
        };
        add_site_columns("ranges", data.range_site);
        insert("ranges", "site",
               of_track({derived("track", "Row of `tracks`",
                                 [&trace = trace_](std::size_t row) {
                                     return trace.track_of(static_cast<Row>(row));
                                 }),
                         as_string(derived("track_name", "Its name",
                                           [=](std::size_t row) { return track(row).name; }))}));
        insert("ranges", "site", of_track(places([=](std::size_t row) { return track(row).thread; })));
        insert(
            "ranges", "site",
            of_track(
                {as_name(derived("device", "Where the range ran",
                                 [=](std::size_t row) { return saved::to_number(track(row).device.type); }),
                         model::name_by<DeviceType, device_type_name>),
                 derived(
                     "device_index", "Number of the device",
                     [=](std::size_t row) { return track(row).device.index; },
                     [=](std::size_t row) { return track(row).device.index < 0; }),
                 derived(
                     "stream", "The device's queue", [=](std::size_t row) { return track(row).stream; },
                     [=](std::size_t row) { return track(row).stream < 0; })}));
        insert("ranges", "site",
               {flag("began_before", "The range began before the window", kBeganBefore),
                flag("unfinished", "The range was still open at the end of the window", kUnfinished),
                flag("async", "The range ended out of order or on another thread", kAsync),
                flag("remote", "The range comes from another process's session", kRemote),
                flag("end_inferred", "The end is where a range around it ended", kEndInferred),
                flag("sampled", "Imported samples: the times are estimates", kSampled)});
        const auto recursive = [this](std::size_t row) {
            return range_places().is_recursive(static_cast<Row>(row)) != 0;
        };
        TraceColumn nested = derived("recursive", "A range around it has the same name", recursive);
        nested.stretch_end = [this](std::size_t row, std::size_t limit) {
            return range_places().end_of_recursive(row, limit);
        };
        insert("ranges", "site", {std::move(nested)});
        TraceColumn& flags = find("ranges").columns.back();
        flags.in_place = nullptr;
        flags.number = [&data, recursive](std::size_t row) {  // parts of calls are in the details
            constexpr std::uint64_t kRecursive = 1 << 8;
            return (std::uint64_t{data.range_flags[row]} & ~std::uint64_t{kPart | kFurtherPart}) |
                   (recursive(row) ? kRecursive : 0);
        };
        flags.stretch_end = [this, &data](std::size_t row, std::size_t limit) {
            return end_of_equal(data.range_flags, row, range_places().end_of_recursive(row, limit));
        };
    }
    void add_value_columns() {
        const TraceData& data = trace_.data();
        std::size_t value_count = 0;
        for (const auto* const index : {&data.range_arguments, &data.instant_arguments}) {
            for (const ArgumentSlice& slice : *index) value_count += slice.count;
        }
        TraceTable& arguments = find("arguments");
        arguments.rows = value_count;
        for (TraceColumn& column : arguments.columns) {
            const auto place = [this](const auto& get) {
                return [this, get](std::size_t row) { return get(placed(row).argument); };
            };
            column.number = place(column.number);
            if (column.is_null) column.is_null = place(column.is_null);
        }
        insert("arguments", "truncated", values([this](std::size_t row) -> const Argument& {
                   return trace_.data().arguments[placed(row).argument];
               }));
        insert("list_items", "truncated",
               values([&data](std::size_t row) -> const Argument& { return data.list_items[row]; }));
        const auto owner = [this](std::size_t row) { return placed(row).row; };
        insert("arguments", "key",
               {derived("range", "The row to which the value belongs", owner,
                        [this](std::size_t row) { return placed(row).of_instant; }),
                derived("instant", "The row to which the value belongs", owner,
                        [this](std::size_t row) { return !placed(row).of_instant; }),
                derived("position", "Position among the values of that row",
                        [this](std::size_t row) { return placed(row).position; })});
    }
    void add_range_places() {
        const auto places = [this]() -> const RangePlaces& { return range_places(); };
        const auto step = [places](std::size_t row) { return places().step(static_cast<Row>(row)); };
        const auto collective = [places](std::size_t row) {
            const Collective* const found = places().collective(static_cast<Row>(row));
            return found == nullptr ? Collective{} : *found;
        };
        const auto is_other = [places](std::size_t row) {
            return places().collective(static_cast<Row>(row)) == nullptr;
        };
        TraceTable& table = tables_.emplace_back();
        table.name = kRangePlaces;
        table.meaning = "The step, and the group of a collective, to which each row of `ranges` belongs.";
        table.rows = trace_.ranges().size();
        table.columns = {
            derived("step", "Number of the step of its process during which the range began", step,
                    [step](std::size_t row) { return step(row) < 0; }),
            as_name(derived(
                        "group", "For a collective: the name of its group of ranks",
                        [collective](std::size_t row) { return collective(row).group; }, is_other),
                    [places](std::uint64_t group) {
                        return places().group_name(static_cast<std::uint32_t>(group));
                    }),
            derived(
                "sequence", "For a collective: its number in the group, equal on all ranks",
                [collective](std::size_t row) { return collective(row).sequence; }, is_other)};
        table.columns[0].stretch_end = [places](std::size_t row, std::size_t limit) {
            return places().end_of_step(row, limit);
        };
        for (std::size_t i : {1, 2}) {
            table.columns[i].stretch_end = [places, is_other](std::size_t row, std::size_t) {
                return is_other(row) ? places().next_collective(static_cast<Row>(row)) : row + 1;
            };
        }
    }
    const RangePlaces& range_places() const {
        if (range_places_ == nullptr) range_places_ = std::make_unique<RangePlaces>(trace_);
        return *range_places_;
    }
    /// The columns of which Argument::kind selects one.
    Columns values(const std::function<const Argument&(std::size_t row)>& value) const {
        const auto column = [&](std::string_view name, const char* meaning, ValueKind kind, auto get) {
            return derived(
                name, meaning, [value, get](std::size_t row) { return get(value(row)); },
                [value, kind](std::size_t row) { return value(row).kind != kind; });
        };
        using A = const Argument&;
        return {
            column("bool_value", "A boolean", ValueKind::Bool, [](A of) { return of.boolean; }),
            column("int_value", "An integer", ValueKind::Int, [](A of) { return of.integer; }),
            column("double_value", "A floating-point number", ValueKind::Double,
                   [](A of) { return of.real; }),
            as_string(column("string_value", "A text", ValueKind::String, [](A of) { return of.string; })),
            column("first_item", "For a list: its first row of `list_items`", ValueKind::List,
                   [](A of) { return of.list.first; }),
            column("item_count", "For a list: the number of its rows of `list_items`", ValueKind::List,
                   [](A of) { return of.list.count; }),
            column("array", "For an array: its row of `arrays`", ValueKind::Array,
                   [](A of) { return of.array; })};
    }

    /// The row of `arguments` in the model for each exported one: those of ranges first, each in row order.
    struct PlacedValue {
        Row row;
        std::uint32_t position;
        std::uint32_t argument;
        bool of_instant;
    };
    const PlacedValue& placed(std::size_t row) {
        if (!placed_.empty()) return placed_[row];
        const TraceData& data = trace_.data();
        for (const auto* const index : {&data.range_arguments, &data.instant_arguments}) {
            for (const ArgumentSlice& slice : *index) {
                for (std::uint32_t i = 0; i < slice.count; ++i)
                    placed_.push_back({slice.row, i, slice.first + i, index == &data.instant_arguments});
            }
        }
        return placed_[row];
    }

    Trace trace_;
    std::vector<TraceTable> tables_;
    std::vector<PlacedValue> placed_;  ///< made when the first one is read; likewise:
    mutable std::unique_ptr<RangePlaces> range_places_;
};

}  // namespace marey
