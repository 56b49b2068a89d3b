// result_rows.h: how an analysis declares the columns of a result, once, and fills them.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include <marey/result_table.h>
#include <marey/trace.h>

namespace marey {

class JsonWriter;

/// A column as it is declared. Its key and its type may tell the unit, and the heading if it is not shown.
ResultColumn declared_column(std::string_view key, ResultType type, bool is_nullable,
                             std::string_view description, std::string_view heading, ResultShown shown,
                             ResultUnit unit, std::string_view absent);
void add_value(ResultValues& values, ResultType type, const ResultCell& cell);
/// Writes an array of rows, or the row of a single table; null if it has none.
void write_rows(JsonWriter& json, const ResultTable& table);

namespace detail_results {

template <class T>
struct Plain {
    using type = T;
};
template <class T>
struct Plain<std::optional<T>> {
    using type = T;
};

template <class T>
constexpr ResultType type_of() {
    if constexpr (std::same_as<T, bool>) {
        return ResultType::Flag;
    } else if constexpr (std::integral<T>) {
        return ResultType::Integer;
    } else if constexpr (std::floating_point<T>) {
        return ResultType::Real;
    } else if constexpr (std::same_as<T, std::vector<std::string>>) {
        return ResultType::Texts;
    } else if constexpr (std::same_as<T, std::vector<std::int64_t>>) {
        return ResultType::Integers;
    } else {
        static_assert(std::is_convertible_v<T, std::string_view>);
        return ResultType::Text;
    }
}

template <class T>
ResultCell cell_of(const T& value) {
    constexpr ResultType type = type_of<T>();
    if constexpr (type == ResultType::Integer) {
        return static_cast<std::int64_t>(value);
    } else if constexpr (type == ResultType::Real) {
        return static_cast<double>(value);
    } else if constexpr (type == ResultType::Text) {
        return std::string_view(value);
    } else if constexpr (type == ResultType::Flag) {
        return value;
    } else {
        return std::span(value);
    }
}
template <class T>
ResultCell cell_of(const std::optional<T>& value) {
    return value ? cell_of(*value) : ResultCell();
}

template <class Value, class Row>
decltype(auto) value_of(const Value& value, const Row& row) {
    if constexpr (std::is_invocable_v<const Value&, const Row&>) {
        return std::invoke(value, row);
    } else {
        return std::invoke(value, row.it);
    }
}

}  // namespace detail_results

/// A column of rows of the type Row, and how a row fills it. `value` is a function of a row, a member of it,
/// or a member of its `it`. It gives a number, a bool, a text or a list, or an optional one: empty is null. A
/// column with a heading is shown to people. The end of the key tells the unit: _ns is a duration, and so on;
/// numbers are counts otherwise.
template <class Row>
struct RowColumn {
    RowColumn(std::string_view key, auto value, std::string_view description, std::string_view heading = "",
              ResultShown shown = ResultShown::Yes, ResultUnit unit = ResultUnit::Auto,
              std::string_view absent = "")
        : add([value](ResultValues& values, ResultType type, const Row& row) {
              add_value(values, type, detail_results::cell_of(detail_results::value_of(value, row)));
          }) {
        using Returned = std::decay_t<decltype(detail_results::value_of(value, std::declval<const Row&>()))>;
        using Plain = typename detail_results::Plain<Returned>::type;
        column = declared_column(key, detail_results::type_of<Plain>(), !std::same_as<Returned, Plain>,
                                 description, heading, shown, unit, absent);
    }

    ResultColumn column;
    std::function<void(ResultValues& values, ResultType type, const Row& row)> add;
};

/// A table whose rows are made of Row.
template <class Row>
struct ResultRows {
    using Part = std::vector<RowColumn<Row>>;  ///< some of the columns

    ResultRows(std::string name, std::string description, bool is_single = false) {
        table.name = std::move(name);
        table.description = std::move(description);
        table.is_single = is_single;
    }

    void columns(const Part& more) {
        for (const RowColumn<Row>& each : more) {
            table.columns.push_back(each.column);
            table.values.emplace_back();
            adders.push_back(each.add);
        }
    }
    void add(const Row& row) {
        for (std::size_t i = 0; i < adders.size(); ++i)
            adders[i](table.values[i], table.columns[i].type, row);
        ++table.rows;
    }

    ResultTable table;
    std::vector<std::function<void(ResultValues& values, ResultType type, const Row& row)>> adders;
};

/// Moves the tables into a result.
template <class... Rows>
Result made_result(const Trace& trace, Rows&... rows) {
    Result result;
    ((rows.table.start_ns = trace.window().start_ns, result.tables.push_back(std::move(rows.table))), ...);
    return result;
}

/// The columns "count", "total_ns" and so on of the statistics that `Of` returns for a row, after `prefix`.
template <class Row, class Of>
std::vector<RowColumn<Row>> statistics_columns(const std::string& prefix, Of, const std::string& what) {
    return {
        {prefix + "count", [](auto& r) { return Of{}(r).count; }, "number of " + what, "count"},
        {prefix + "total_ns", [](auto& r) { return Of{}(r).total_ns; }, "sum of " + what},
        {prefix + "mean_ns", [](auto& r) { return Of{}(r).mean_ns; }, "mean of " + what, "mean"},
        {prefix + "stdev_ns", [](auto& r) { return Of{}(r).stdev_ns; }, "standard deviation of " + what},
        {prefix + "min_ns", [](auto& r) { return Of{}(r).min_ns; }, "shortest of " + what, "min"},
        {prefix + "median_ns", [](auto& r) { return Of{}(r).median_ns; }, "median of " + what, "median"},
        {prefix + "p90_ns", [](auto& r) { return Of{}(r).p90_ns; }, "90th percentile of " + what, "p90"},
        {prefix + "p99_ns", [](auto& r) { return Of{}(r).p99_ns; }, "99th percentile of " + what, "p99"},
        {prefix + "max_ns", [](auto& r) { return Of{}(r).max_ns; }, "longest of " + what, "max"},
    };
}

}  // namespace marey
