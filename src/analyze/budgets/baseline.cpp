// baseline.cpp: files with the values of earlier runs: JSON with one line for each measure, in order.
#include <cmath>

#include <marey/budgets.h>
#include <marey/error.h>

#include "json/json_document.h"
#include "json/json_writer.h"

namespace marey {
namespace {

constexpr std::int64_t kVersion = 1;

}  // namespace

std::string baseline_json(const Baseline& baseline) {
    std::string text = "{\n\"marey_baseline\": " + std::to_string(kVersion) +
                       ",\n\"runs\": " + std::to_string(baseline.runs) + ",\n\"machine\": ";
    JsonWriter(text)
        .begin_object()
        .member("host", baseline.machine.host)
        .member("clock", baseline.machine.clock)
        .member("ticks_per_second", baseline.machine.ticks_per_second)
        .member("range_ns", baseline.machine.range_ns)
        .end_object();
    text += ",\n\"values\": {";
    const char* separator = "\n";
    for (const auto& [measure, values] : baseline.values) {
        text += separator;
        append_json_string(text, measure);
        text += ": ";
        JsonWriter json(text);
        json.begin_array();
        for (const double value : values) json.value(std::round(value * 1000) / 1000);
        json.end_array();
        separator = ",\n";
    }
    return text + "\n}\n}\n";
}

Baseline parse_baseline(std::string_view text, const std::string& file) {
    const JsonDocument document(text);
    const JsonDocument::Value root = document.root();
    const auto fail = [&](const std::string& reason) {
        throw Error(file + ": is not a baseline: " + reason + " (write it again with --write-baseline)");
    };
    if (!document.error().empty()) fail(document.error());
    const std::optional<std::int64_t> version = root["marey_baseline"].integer();
    if (!version) fail("it has no 'marey_baseline'");
    if (*version != kVersion) fail("it has version " + std::to_string(*version));
    Baseline result;
    const JsonDocument::Value machine = root["machine"];
    result.machine = {machine["host"].text(), machine["clock"].text(),
                      machine["ticks_per_second"].number().value_or(0),
                      machine["range_ns"].number().value_or(0)};
    const std::optional<std::int64_t> runs = root["runs"].integer();
    if (!runs || *runs < 1) fail("'runs' is not a number of runs");
    result.runs = static_cast<std::size_t>(*runs);
    root["values"].each_member([&](const std::string& measure, JsonDocument::Value values) {
        std::vector<double>& to = result.values[measure];
        values.each_item([&](JsonDocument::Value value) {
            const std::optional<double> number = value.number();
            if (!number || !(*number >= 0) || std::isinf(*number))
                fail("a value of '" + measure + "' is not a number from 0 on");
            to.push_back(*number);
        });
        if (to.empty() || (to.size() != 1 && to.size() != result.runs))
            fail("'" + measure + "' has " + std::to_string(to.size()) + " values for " +
                 std::to_string(result.runs) + " runs");
    });
    if (result.values.empty()) fail("it has no values");
    return result;
}

}  // namespace marey
