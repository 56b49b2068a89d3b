// result_rows.h: how an analysis declares the columns of a result, once, and fills them.
#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include <marey/result_table.h>
#include <marey/trace.h>

namespace marey {

/// Sets what the key and the type of a declared column tell: its unit, and its heading if it is not shown.
void complete(ResultColumn& column);

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
auto& values_of(ResultValues& values) {
    constexpr ResultType type = type_of<T>();
    if constexpr (type == ResultType::Flag) {
        return values.flags;
    } else if constexpr (type == ResultType::Integer) {
        return values.integers;
    } else if constexpr (type == ResultType::Real) {
        return values.reals;
    } else if constexpr (type == ResultType::Text) {
        return values.texts;
    } else if constexpr (type == ResultType::Integers) {
        return values.integer_lists;
    } else {
        return values.text_lists;
    }
}

template <class T>
void add_value(ResultValues& values, const T& value) {
    auto& all = values_of<T>(values);
    using Stored = typename std::decay_t<decltype(all)>::value_type;
    all.push_back(static_cast<Stored>(value));
    values.nulls.push_back(false);
}
template <class T>
void add_value(ResultValues& values, const std::optional<T>& value) {
    if (value) return add_value(values, *value);
    auto& all = values_of<T>(values);
    all.resize(all.size() + 1);
    values.nulls.push_back(true);
}

}  // namespace detail_results

/// A column of rows of the type Row, and how a row fills it. `value` is a lambda without captures that
/// returns a number, a bool, a text or a list, or an optional one: empty is null. A column with a heading is
/// shown to people. The end of the key tells the unit: _ns is a duration, and so on; numbers are counts
/// otherwise.
template <class Row>
struct RowColumn {
    template <class Value>
    RowColumn(std::string key, Value, std::string description, std::string heading = "",
              ResultShown shown = ResultShown::Yes, ResultUnit unit = ResultUnit::Auto,
              std::string absent = "")
        : column{std::move(key),
                 std::move(heading),
                 unit,
                 detail_results::type_of<typename detail_results::Plain<
                     std::decay_t<decltype(Value{}(std::declval<const Row&>()))>>::type>(),
                 std::move(description),
                 shown,
                 std::move(absent)},
          add([](ResultValues& values, const Row& row) { detail_results::add_value(values, Value{}(row)); }) {
        using Returned = std::decay_t<decltype(Value{}(std::declval<const Row&>()))>;
        column.is_nullable = !std::same_as<Returned, typename detail_results::Plain<Returned>::type>;
        complete(column);
    }

    ResultColumn column;
    void (*add)(ResultValues& values, const Row& row);
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
        for (std::size_t i = 0; i < adders.size(); ++i) adders[i](table.values[i], row);
        ++table.rows;
    }

    ResultTable table;
    std::vector<void (*)(ResultValues& values, const Row& row)> adders;
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
