// result_table.cpp: reading, choosing and sorting what tables of results hold.
#include <marey/result_table.h>

#include <algorithm>
#include <numeric>

#include <marey/error.h>

#include "results/result_rows.h"

namespace marey {
namespace {

template <class T>
void take(std::vector<T>& to, const std::vector<T>& from, std::span<const std::size_t> chosen) {
    if (from.empty()) return;
    to.reserve(chosen.size());
    for (const std::size_t row : chosen) to.push_back(from[row]);
}

/// Whether a sorts before b; lists sort by their first entries.
bool is_less(const ResultCell& a, const ResultCell& b) {
    if (a.index() != b.index()) return a.index() < b.index();
    return std::visit(
        [&](const auto& left) {
            using T = std::decay_t<decltype(left)>;
            const T& right = std::get<T>(b);
            if constexpr (std::is_same_v<T, std::monostate>) {
                return false;
            } else if constexpr (requires { left.front(); } && !std::is_same_v<T, std::string_view>) {
                return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end());
            } else {
                return left < right;
            }
        },
        a);
}

}  // namespace

ResultColumn declared_column(std::string_view key, ResultType type, bool is_nullable,
                             std::string_view description, std::string_view heading, ResultShown shown,
                             ResultUnit unit, std::string_view absent) {
    ResultColumn column{
        std::string(key),    std::string(heading), unit, type, std::string(description), shown,
        std::string(absent), is_nullable};
    if (heading.empty()) {
        column.shown = ResultShown::No;
        column.heading = key.substr(0, key.size() - (key.ends_with("_ns") ? 3 : 0));
        std::replace(column.heading.begin(), column.heading.end(), '_', ' ');
    }
    if (unit != ResultUnit::Auto) return column;
    const bool is_number = type == ResultType::Integer || type == ResultType::Real;
    column.unit = !is_number                    ? ResultUnit::None
                  : key.ends_with("_ns")        ? ResultUnit::Duration
                  : key.ends_with("bytes")      ? ResultUnit::Bytes
                  : key.ends_with("share")      ? ResultUnit::Share
                  : type == ResultType::Integer ? ResultUnit::Count
                                                : ResultUnit::Ratio;
    return column;
}

void add_value(ResultValues& values, ResultType type, const ResultCell& cell) {
    const auto add = [&cell]<class Stored>(std::vector<Stored>& to, auto from) {
        const auto* value = std::get_if<decltype(from)>(&cell);
        if constexpr (requires { from.begin(); }) {
            to.emplace_back(value ? Stored(value->begin(), value->end()) : Stored());
        } else {
            to.push_back(value ? *value : Stored());
        }
    };
    switch (type) {
        case ResultType::Integer:
            add(values.integers, std::int64_t());
            break;
        case ResultType::Real:
            add(values.reals, double());
            break;
        case ResultType::Flag:
            add(values.flags, bool());
            break;
        case ResultType::Text:
            add(values.texts, std::string_view());
            break;
        case ResultType::Integers:
            add(values.integer_lists, std::span<const std::int64_t>());
            break;
        case ResultType::Texts:
            add(values.text_lists, std::span<const std::string>());
            break;
    }
    values.nulls.push_back(std::holds_alternative<std::monostate>(cell));
}

ResultCell ResultTable::cell(std::size_t row, std::size_t column) const {
    const ResultValues& of = values[column];
    if (of.nulls[row]) return {};
    switch (columns[column].type) {
        case ResultType::Integer:
            return of.integers[row];
        case ResultType::Real:
            return of.reals[row];
        case ResultType::Flag:
            return static_cast<bool>(of.flags[row]);
        case ResultType::Text:
            return std::string_view(of.texts[row]);
        case ResultType::Integers:
            return std::span(of.integer_lists[row]);
        case ResultType::Texts:
            return std::span(of.text_lists[row]);
    }
    return {};
}

std::size_t ResultTable::column(std::string_view key) const {
    std::string known;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        if (columns[i].key == key) return i;
        known += (known.empty() ? "" : ", ") + columns[i].key;
    }
    throw Error("unknown column '" + std::string(key) + "'; known: " + known);
}

void ResultTable::append(const ResultTable& more) {
    const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    for (std::size_t i = 0; i < columns.size(); ++i) {
        add(values[i].integers, more.values[i].integers);
        add(values[i].reals, more.values[i].reals);
        add(values[i].flags, more.values[i].flags);
        add(values[i].texts, more.values[i].texts);
        add(values[i].integer_lists, more.values[i].integer_lists);
        add(values[i].text_lists, more.values[i].text_lists);
        add(values[i].nulls, more.values[i].nulls);
    }
    rows += more.rows;
}

ResultTable ResultTable::with_rows(std::span<const std::size_t> chosen) const {
    ResultTable made{name, description, is_single, start_ns, columns, {}, chosen.size()};
    for (const ResultValues& from : values) {
        ResultValues& to = made.values.emplace_back();
        take(to.integers, from.integers, chosen);
        take(to.reals, from.reals, chosen);
        take(to.flags, from.flags, chosen);
        take(to.texts, from.texts, chosen);
        take(to.integer_lists, from.integer_lists, chosen);
        take(to.text_lists, from.text_lists, chosen);
        take(to.nulls, from.nulls, chosen);
    }
    return made;
}

ResultTable ResultTable::with_columns(std::span<const std::string> keys) const {
    ResultTable made{name, description, is_single, start_ns, {}, {}, rows};
    for (const std::string& key : keys) {
        const std::size_t place = column(key);
        made.columns.push_back(columns[place]);
        made.values.push_back(values[place]);
    }
    return made;
}

ResultTable ResultTable::sorted(std::string_view key, bool ascending) const {
    const std::size_t place = column(key);
    std::vector<std::size_t> order(rows);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
        return ascending ? is_less(cell(a, place), cell(b, place)) : is_less(cell(b, place), cell(a, place));
    });
    return with_rows(order);
}

ResultTable ResultTable::limited(std::size_t count) const {
    if (count == 0 || count >= rows) return *this;
    std::vector<std::size_t> first(count);
    std::iota(first.begin(), first.end(), std::size_t{0});
    return with_rows(first);
}

const ResultTable& Result::table(std::string_view name) const {
    for (const ResultTable& table : tables) {
        if (table.name == name) return table;
    }
    throw Error("unknown result '" + std::string(name) + "'");
}

}  // namespace marey
