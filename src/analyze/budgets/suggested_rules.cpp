// suggested_rules.cpp: rules to start with, from what a program does most.
#include <algorithm>

#include <marey/averages.h>
#include <marey/budgets.h>
#include <marey/findings.h>

#include "analyze/averages/site_groups.h"
#include "analyze/tree/step_ranges.h"
#include "json/json_writer.h"

namespace marey {
namespace {

constexpr std::size_t kNames = 40;  ///< whose calls are counted; many are not in steps

/// The name of a function without its line, which changes with the lines above it.
std::string stable_name(const std::string& name) {
    const PythonName python = parse_python_name(name);
    return python.path.empty() ? name : module_of(python.path) + "." + std::string(python.function);
}

}  // namespace

std::vector<BudgetRule> candidate_budgets(const Trace& trace, const std::string& step_name) {
    const bool has_steps = !find_steps(trace, step_name).empty();
    const std::string step = has_steps ? " per step" : "";
    std::string text = has_steps ? "time steps median <= +10% of baseline\n" : "";
    for (const char* const kind : {"launches", "copies", "synchronisations", "collectives"})
        text += kind + (" <= 0" + step) + "\n";
    Averages averages = key_averages(trace, {.merge_repeated = false});
    std::ranges::stable_sort(averages.rows, std::greater<>(), &AverageRow::self_cpu_time_total_ns);
    std::size_t names = 0;
    for (const AverageRow& row : averages.rows) {
        if (row.device_type != DeviceType::Cpu || row.range_count == 0 || row.scope == Scope::Step ||
            row.name.find('<') != row.name.npos)  // "<listcomp>" depends on the version of Python
            continue;
        if (names++ == kNames) break;
        std::string name;
        append_json_string(name, stable_name(row.name));
        text += "calls " + name + " <= 0" + step + "\n";
    }
    text += "memory peak <= 0 B\n";
    for (const FindingRule& rule : finding_rules()) {
        const bool is_of_devices = rule.id.starts_with("gpu.") || rule.id.starts_with("rank.");
        if (rule.certainty == FindingCertainty::Certain && !is_of_devices)
            text += "findings == 0 of " + std::string(rule.id) + "\n";
    }
    return parse_budgets(text, "suggestion");
}

}  // namespace marey
