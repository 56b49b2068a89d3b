// results.cpp: the list of all results.
#include <marey/results.h>

#include <algorithm>
#include <iterator>

#include <marey/budgets.h>
#include <marey/compare.h>
#include <marey/error.h>

#include "analyze/result_keys.h"

namespace marey {
namespace {

struct ResultEntry {
    std::string_view name;
    Result (*make)(const Trace& trace, const ResultOptions& options);
};

constexpr ResultEntry kResults[] = {
    {"averages",
     [](const Trace& trace, const ResultOptions&) {
         return average_result(trace, key_averages(trace, {.percentiles = true}));
     }},
    {"tree", [](const Trace& trace, const ResultOptions&) { return tree_result(trace, call_tree(trace)); }},
    {"hot",
     [](const Trace& trace, const ResultOptions& options) {
         return hot_path_result(trace, call_tree(trace), options.rows);
     }},
    {"steps",
     [](const Trace& trace, const ResultOptions& options) {
         const StepOptions of{.name = options.step_name, .slowest = options.rows};
         return step_result(trace, step_report(trace, of));
     }},
    {"explain",
     [](const Trace& trace, const ResultOptions& options) {
         return findings_result(trace, explain(trace, {.step_name = options.step_name}));
     }},
    {"gpu",
     [](const Trace& trace, const ResultOptions& options) {
         return gpu_result(trace, gpu_use(trace, {.device = options.device, .longest_gaps = options.rows}));
     }},
    {"memory",
     [](const Trace& trace, const ResultOptions& options) {
         return memory_result(trace, memory_use(trace, {.by_name = options.by_name}));
     }},
    {"calls", [](const Trace& trace, const ResultOptions&) { return call_result(trace); }},
    {"tasks", [](const Trace& trace, const ResultOptions&) { return task_result(trace); }},
    {"stacks", [](const Trace& trace, const ResultOptions&) { return stack_result(fold_stacks(trace)); }},
    {"sampled",
     [](const Trace& trace, const ResultOptions& options) {
         return sample_result(trace, sample_report(trace, {.step_name = options.step_name}));
     }},
    {"info", [](const Trace& trace, const ResultOptions&) { return info_result(trace); }},
    {"find", [](const Trace& trace, const ResultOptions&) { return found_result(trace, {}, ""); }},
    {"diff", [](const Trace&, const ResultOptions&) { return diff_result({}); }},
    {"check", [](const Trace&, const ResultOptions&) { return check_result({}); }},
    {"now", [](const Trace& trace, const ResultOptions&) { return now_result(trace, ""); }},
    {"ranks",
     [](const Trace& trace, const ResultOptions& options) {
         const auto has_rank = [](const ProcessInfo& process) { return process.node >= 0; };
         if (std::ranges::count_if(trace.processes(), has_rank) < 2) return rank_result({});
         return rank_result(rank_report({&trace, 1}, {.step_name = options.step_name}));
     }},
};

}  // namespace

std::vector<std::string_view> result_names() {
    std::vector<std::string_view> names;
    for (const ResultEntry& entry : kResults) names.push_back(entry.name);
    return names;
}

Result make_result(const Trace& trace, std::string_view name, const ResultOptions& options) {
    const auto* const found =
        std::ranges::find_if(kResults, [&](const ResultEntry& entry) { return entry.name == name; });
    if (found == std::end(kResults)) throw Error("unknown result '" + std::string(name) + "'");
    return found->make(trace, options);
}

}  // namespace marey
