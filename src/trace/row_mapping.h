// row_mapping.h: the numbers that the rows of a trace get where traces are joined.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "trace/columns.h"
#include "trace/trace_data.h"
#include "trace/trace_join.h"

namespace marey {

/// The new rows of one trace.
struct RowMapping {
    Trace trace;
    const TraceData* from = nullptr;
    ClockMove move;
    Row caller = kNoRow;  ///< as in AddedTrace
    WindowInfo window;    ///< with moved times
    std::vector<StringId> strings;
    std::vector<std::uint32_t> sites;
    std::vector<Row> processes;
    std::vector<Row> threads;
    std::vector<Row> tracks;  ///< the joined track of each
    Row first_range = 0;
    std::vector<Row> exceeding;  ///< ranges that begin before the window or end after it
    std::uint32_t first_argument = 0;
    std::uint32_t first_item = 0;
    std::uint32_t first_array = 0;
    std::uint32_t first_extent = 0;
    Row first_instant = 0;
    Row first_stack = 0;
    Row first_frame = 0;
    bool has_crashed = false;  ///< its process did not close its capture

    std::int64_t time(std::int64_t ns) const { return move.own ? move.own(ns) : ns; }

    Row range(Row row) const { return row == kNoRow ? kNoRow : first_range + row; }

    /// Calls use(function) with the function that gives a cell of this kind its new number.
    void with_numbers(Cells cells, auto use) const {
        const auto listed = [&](const std::vector<std::uint32_t>& numbers) {
            use([&](std::uint32_t old) { return numbers[old]; });
        };
        const auto after = [&](std::uint32_t first) {
            use([first](std::uint32_t old) { return old == kNoRow ? kNoRow : first + old; });
        };
        switch (cells) {
            case Cells::String:
                return listed(strings);
            case Cells::Site:
                return listed(sites);
            case Cells::Process:  // the parents of processes are set once all have their places
                return use([&](std::uint32_t old) { return old < processes.size() ? processes[old] : old; });
            case Cells::Thread:
                return listed(threads);
            case Cells::Range:
                return use([&](std::uint32_t old) { return range(old); });
            case Cells::Instant:
                return after(first_instant);
            case Cells::Stack:
                return after(first_stack);
            case Cells::Frame:
                return after(first_frame);
            case Cells::FirstArgument:
                return after(first_argument);
            case Cells::FirstExtent:
                return after(first_extent);
            case Cells::Number:
            case Cells::Flag:
            case Cells::Time:
                break;
        }
    }
};

/// Gives the references of a column their new numbers, from row `first` on.
template <class Rows, class Member>
void renumber(TraceData& data, const Column<Rows, Member>& column, std::size_t first,
              const RowMapping& moved) {
    if constexpr (std::is_same_v<typename Column<Rows, Member>::Value, std::uint32_t>) {
        auto& rows = column.in(data);
        moved.with_numbers(column.cells, [&](const auto& number) {
            for (std::size_t i = first; i < rows.size(); ++i) {
                std::uint32_t& cell = std::invoke(column.member, rows[i]);
                cell = number(cell);
            }
        });
    } else if constexpr (std::is_same_v<typename Column<Rows, Member>::Value, std::int64_t>) {
        if (column.cells != Cells::Time || !moved.move.own) return;
        auto& rows = column.in(data);
        for (std::size_t i = first; i < rows.size(); ++i) {
            std::int64_t& cell = std::invoke(column.member, rows[i]);
            if (cell != 0 || column.null != Null::Zero) cell = moved.time(cell);
        }
    }
}

/// The rows of a small table with their new numbers.
template <ModelTable kTable, class Info>
std::vector<Info> renumbered(std::vector<Info> TraceData::*table, const RowMapping& moved) {
    TraceData data;
    data.*table = moved.from->*table;
    model::visit_table(Only<kTable>(), [&](const TableInfo&, const auto&... columns) {
        (renumber(data, columns, 0, moved), ...);
    });
    return std::move(data.*table);
}

/// The columns of a site.
inline std::vector<std::uint32_t> key_of(const SiteInfo& site) {
    std::vector<std::uint32_t> key;
    model::visit_table(Only<ModelTable::Sites>(), [&](const TableInfo&, const auto&... columns) {
        key = {static_cast<std::uint32_t>(std::invoke(columns.member, site))...};
    });
    return key;
}

/// Which rows of several traces are the same object. Rows of one trace never are, whatever their keys: the
/// n-th of a key in one is the n-th of it in another.
template <class Key>
class RowDeduplicator {
  public:
    void begin_trace() { seen_.clear(); }
    /// The row of the first one with that key and place; `next` if this is the first.
    Row match(const Key& key, std::size_t next) {
        return rows_.try_emplace(std::pair(key, seen_[key]++), static_cast<Row>(next)).first->second;
    }

  private:
    std::map<std::pair<Key, std::uint32_t>, Row> rows_;
    std::map<Key, std::uint32_t> seen_;
};

}  // namespace marey
