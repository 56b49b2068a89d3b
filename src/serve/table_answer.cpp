// table_answer.cpp: /api/table, /api/flame, /api/sandwich, /api/steps, /api/gpu and /api/memory: what the
// verbs of the command report, for a selection.
#include <algorithm>

#include <marey/analyze.h>
#include <marey/export.h>
#include <marey/table.h>

#include "serve/api.h"
#include "serve/flame.h"
#include "serve/name_filter.h"
#include "serve/trace_names.h"

namespace marey::serve {
namespace {

constexpr std::int64_t kMaxTableRows = 1'000'000;
constexpr std::int64_t kDefaultTableRows = 10'000;
constexpr std::uint32_t kCallerLevels = 64;

GroupBy group_of(const Query& query) {
    constexpr std::pair<std::string_view, GroupBy> kGroups[] = {
        {"name", GroupBy::Name}, {"function", GroupBy::Function}, {"line", GroupBy::Line},
        {"file", GroupBy::File}, {"module", GroupBy::Module},     {"package", GroupBy::Package},
    };
    const std::string_view wanted = query.find("by").value_or("name");
    for (const auto& [name, group] : kGroups) {
        if (name == wanted) return group;
    }
    throw RequestError(400, "parameter 'by': expected name, function, line, file, module or package");
}

std::uint32_t flame_pixels(const Question& question) {
    return static_cast<std::uint32_t>(question.query.integer("pixels", 1, kMaxPixels, 1500));
}

void write_folded_flame(JsonWriter& json, const Question& question, const char* metric) {
    StackOptions options;
    options.metric = metric;
    const std::vector<FoldedStack> stacks = fold_stacks(question.selected(), options);
    write_flame(json, flame_nodes(stacks, question.trace()), flame_pixels(question));
}

void write_called_flame(JsonWriter& json, const Question& question, FlameValue value) {
    CallTreeOptions options;
    options.bottom_up = value == FlameValue::Self;
    options.caller_levels = kCallerLevels;
    options.parts = flame_pixels(question);
    options.merge_steps = true;
    const CallTree tree = call_tree(question.selected(), options);
    write_flame(json, flame_nodes(tree, value), flame_pixels(question));
}

/// The name that a sandwich is about.
std::string sandwich_name(const Question& question) {
    const Trace& trace = question.trace();
    if (question.query.find("site"))
        return std::string(trace.string(trace.sites()[question.row("site", trace.sites().size())].name));
    std::string name = question.query.text("name");
    if (name.empty()) throw RequestError(400, "expected the parameter 'site' or 'name'");
    return name;
}

}  // namespace

Answer answer_table(const Question& question) {
    const Query& query = question.query;
    AverageOptions options;  // as `marey report --json`
    options.group_by = group_of(query);
    options.by_thread = query.flag("thread");
    options.by_input_shape = query.flag("shape");
    options.merge_repeated = false;
    // Without the columns that need further passes, a table of many ranges takes a third of the time.
    options.flops = options.covered = options.percentiles = options.nesting = !query.flag("quick");
    const NameFilter filter(query);
    TableOptions table;
    table.sort_by = query.find("sort").value_or("self");
    table.ascending = query.flag("ascending");
    table.row_limit = query.integer("limit", 0, kMaxTableRows, kDefaultTableRows);
    table.shows = [&](const AverageRow& row) { return filter.matches(row.name); };
    const Trace trace = question.selected();
    return {200, "application/json", averages_json(trace, key_averages(trace, options), table)};
}

Answer answer_flame(const Question& question) {
    const std::string value(question.query.find("value").value_or("total"));
    Answer answer;
    JsonWriter json(answer.body);
    json.begin_object().member("value", value);
    if (value == "total" || value == "self") {
        json.member("unit", "ns");
        write_called_flame(json, question, value == "self" ? FlameValue::Self : FlameValue::Total);
    } else if (value == "calls") {
        json.member("unit", "calls");
        write_called_flame(json, question, FlameValue::Calls);
    } else if (value == "bytes") {
        json.member("unit", "bytes");
        write_folded_flame(json, question, "allocated_bytes");
    } else if (value == "gpu") {
        json.member("unit", "ns");
        write_folded_flame(json, question, "self_device_time_total");
    } else {
        throw RequestError(400, "parameter 'value': expected total, self, calls, bytes or gpu");
    }
    json.end_object();
    return answer;
}

Answer answer_sandwich(const Question& question) {
    const std::string name = sandwich_name(question);
    const Trace trace = question.selected();
    const std::uint32_t pixels = flame_pixels(question);
    const CallTree callees = call_tree(trace, {.inside = name, .merge_steps = true, .parts = pixels});
    const CallTree callers = call_tree(trace, {.bottom_up = true,
                                               .caller_levels = kCallerLevels,
                                               .callers_of = name,
                                               .merge_steps = true,
                                               .parts = pixels});
    std::uint64_t count = 0;
    std::int64_t total = 0, self = 0;
    for (const CallTreeNode& node : callers.nodes) {
        if (node.parent != kNoRow) continue;
        count += node.count;
        total += node.total_ns;
        self += node.self_ns;
    }
    Answer answer;
    JsonWriter json(answer.body);
    json.begin_object();
    write_name(json, name);
    json.member("count", count).member("total_ns", total).member("self_ns", self);
    for (const auto& [key, tree] : {std::pair("callers", &callers), std::pair("callees", &callees)}) {
        json.key(key).begin_object().member("value", "total").member("unit", "ns");
        write_flame(json, flame_nodes(*tree, FlameValue::Total), pixels);
        json.end_object();
    }
    json.end_object();
    return answer;
}

Answer answer_steps(const Question& question) {
    const Trace trace = question.selected();
    StepOptions options;
    options.name = question.query.text("name");
    return {200, "application/json", step_report_json(trace, step_report(trace, options))};
}

Answer answer_gpu(const Question& question) {
    const Trace trace = question.selected();
    return {200, "application/json", gpu_use_json(trace, gpu_use(trace))};
}

Answer answer_memory(const Question& question) {
    const Trace trace = question.selected();
    return {200, "application/json",
            memory_use_json(trace, memory_use(trace, {.by_name = question.query.text("by") == "name"}))};
}

}  // namespace marey::serve
