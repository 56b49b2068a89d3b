// summary_order.cpp: the columns that a summary can be sorted by.
#include "cli/summary_order.h"

#include <algorithm>

namespace kymo::cli {
namespace {

struct Key {
    const char* name;
    double (*value)(const SummaryRow&);  ///< null: by name
};

constexpr Key kKeys[] = {
    {"self", [](const SummaryRow& row) { return static_cast<double>(row.self_ns); }},
    {"total", [](const SummaryRow& row) { return static_cast<double>(row.total_ns); }},
    {"average", [](const SummaryRow& row) { return row.average_ns(); }},
    {"min", [](const SummaryRow& row) { return static_cast<double>(row.min_ns); }},
    {"p50", [](const SummaryRow& row) { return static_cast<double>(row.p50_ns); }},
    {"p99", [](const SummaryRow& row) { return static_cast<double>(row.p99_ns); }},
    {"max", [](const SummaryRow& row) { return static_cast<double>(row.max_ns); }},
    {"count", [](const SummaryRow& row) { return static_cast<double>(row.count); }},
    {"name", nullptr},
};

}  // namespace

std::vector<std::string> summary_keys() {
    std::vector<std::string> names;
    for (const Key& key : kKeys) names.emplace_back(key.name);
    return names;
}

void sort_summary(Summary& summary, const std::string& key, bool ascending) {
    for (const Key& known : kKeys) {
        if (key != known.name) continue;
        std::stable_sort(
            summary.rows.begin(), summary.rows.end(), [&](const SummaryRow& a, const SummaryRow& b) {
                if (known.value != nullptr && known.value(a) != known.value(b))
                    return ascending ? known.value(a) < known.value(b) : known.value(a) > known.value(b);
                return a.name < b.name;
            });
        return;
    }
}

}  // namespace kymo::cli
