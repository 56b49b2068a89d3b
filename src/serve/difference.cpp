// difference.cpp: the comparison of two traces as tables and as a differential flame graph.
#include "serve/difference.h"

#include <algorithm>
#include <cmath>

#include "serve/flame_tree.h"

namespace marey::serve {
namespace {

constexpr std::size_t kMostRows = 1000;
constexpr double kWidthUnit = 1000;  ///< values per step are fractions

struct Metric {
    std::string_view name, unit;
    CompareMetric metric;
};
constexpr Metric kMetrics[] = {{"self", "ns", CompareMetric::Self},
                               {"calls", "calls", CompareMetric::Calls},
                               {"bytes", "bytes", CompareMetric::Bytes},
                               {"gpu", "ns", CompareMetric::Gpu}};

const Metric& metric_of(const Query& query) {
    const auto* const found =
        std::ranges::find(kMetrics, query.find("value").value_or("self"), &Metric::name);
    if (found == std::end(kMetrics))
        throw RequestError(400, "parameter 'value': expected self, calls, bytes or gpu");
    return *found;
}

}  // namespace

Comparison Difference::compared(const Query& query, const ComparedPart (&parts)[2]) {
    const CompareMetric metric = metric_of(query).metric;
    if (given_ != nullptr) return given_->compare(metric);
    RunComparison comparison({.metric = metric});
    for (int side = 0; side < 2; ++side)
        comparison.add(parts[side].loaded->selected(parts[side].span), static_cast<CompareSide>(side),
                       parts[side].name);
    return comparison.compare();
}

Response Difference::respond(const HttpRequest& http, const ComparedPart (&parts)[2]) {
    const Metric& metric = metric_of(http.query);
    std::string key(metric.name);
    for (const ComparedPart& part : parts)
        for (const std::int64_t number :
             {static_cast<std::int64_t>(part.loaded->generation()), part.span.begin_ns, part.span.end_ns})
            key += " " + std::to_string(number);
    std::shared_ptr<const Comparison> found;
    {
        const ScopedLock lock(mutex_);
        if (key != key_) last_ = std::make_shared<const Comparison>(compared(http.query, parts));
        key_ = key;
        found = last_;
    }
    if (http.path == "/api/diff") {
        Comparison some = *found;
        if (some.counts.size() > kMostRows) some.counts.resize(kMostRows);
        return {200, "application/json", result_json(diff_result(some, kMostRows))};
    }
    const std::vector<ComparedPath> tree = compared_tree(*found);
    std::vector<FlameNode> nodes;
    nodes.reserve(tree.size());
    for (const ComparedPath& path : tree)
        nodes.push_back({.parent = path.parent,
                         .name = path.name,
                         .value = std::llround(path.width * kWidthUnit),
                         .compared = &path});
    return json_response([&](JsonWriter& json) {
        json.member("value", metric.name).member("unit", metric.unit);
        write_flame(json, nodes, flame_pixels(http.query));
    });
}

}  // namespace marey::serve
