// row_groups.cpp: groups given rows by their properties.
#include <algorithm>
#include <unordered_map>

#include <marey/averages.h>

#include "analyze/time_percentiles.h"

namespace marey {
namespace {

/// The properties shared by the rows of a group, as bytes.
std::string key_of(const AverageRow& row, const AverageOptions& options) {
    std::string key = row.name;
    const auto add = [&](std::string_view text) {
        key += '\0';
        key += std::to_string(text.size());
        key += ':';
        key += text;
    };
    add(std::to_string(row.node));
    add(std::to_string(static_cast<int>(row.device_type)));
    add(row.is_legacy ? "legacy" : "");
    add(row.is_user_annotation ? "user" : "");
    if (options.by_overload) add(row.overload);
    if (options.by_input_shape) add(row.input_shapes);
    for (std::size_t i = 0; i < std::min<std::size_t>(options.stack_entries, row.stack.size()); ++i)
        add(row.stack[i]);
    return key;
}

}  // namespace

Averages group_rows(const Averages& list, const AverageOptions& options) {
    Averages averages = list;
    averages.rows.clear();
    averages.options = options;
    averages.is_list = false;
    averages.recorded_ns = 0;
    std::unordered_map<std::string, std::size_t> groups;
    std::vector<std::vector<std::int64_t>> durations;  // per group, if percentiles are requested
    for (std::size_t i = 0; i < list.rows.size(); ++i) {
        const AverageRow& row = list.rows[i];
        averages.recorded_ns += row.self_cpu_time_total_ns;
        const auto [place, is_new] = groups.try_emplace(key_of(row, options), averages.rows.size());
        if (is_new) {
            AverageRow& first = averages.rows.emplace_back(row);
            first.first_range = static_cast<Row>(i);
            if (!options.by_overload) first.overload.clear();
            if (!options.by_input_shape) first.input_shapes.clear();
            first.stack.resize(std::min<std::size_t>(first.stack.size(), options.stack_entries));
            durations.emplace_back();
        } else {
            add_row(averages.rows[place->second], row);
        }
        if (options.percentiles) durations[place->second].push_back(row.max_ns);
    }
    if (!options.percentiles) return averages;
    for (std::size_t i = 0; i < averages.rows.size(); ++i) {
        std::ranges::sort(durations[i]);
        averages.rows[i].p50_ns = durations[i][nearest_rank(durations[i].size(), 50)];
        averages.rows[i].p90_ns = durations[i][nearest_rank(durations[i].size(), 90)];
        averages.rows[i].p99_ns = durations[i][nearest_rank(durations[i].size(), 99)];
    }
    return averages;
}

}  // namespace marey
