// step_tables.cpp: the step report as JSON.
#include <marey/export.h>

#include "export/statistics_json.h"
#include "json/json_writer.h"

namespace marey {
namespace {

void write_step(JsonWriter& json, const Trace& trace, const StepInfo& step) {
    const ThreadInfo& thread = trace.threads()[step.thread];
    json.begin_object().member("name", step.name).member("number", step.number);
    json.member("range", step.range);
    json.member("thread", trace.string(thread.name)).member("thread_id", thread.id);
    json.member("start_ns", step.start_ns).member("duration_ns", step.duration_ns).key("gap_ns");
    if (step.gap_ns < 0) {
        json.null();
    } else {
        json.value(step.gap_ns);
    }
    json.member("is_partial", step.is_partial).end_object();
}

void write_work(JsonWriter& json, const StepWork& work) {
    json.begin_object().member("count", work.count).member("total_ns", work.total_ns);
    json.member("self_ns", work.self_ns).end_object();
}

const char* place_name(StepPlace place) {
    switch (place) {
        case StepPlace::Inside:
            return "inside";
        case StepPlace::OtherThreads:
            return "other_threads";
        case StepPlace::Devices:
            return "devices";
    }
    return "";
}

void write_slow_step(JsonWriter& json, const SlowStep& slow) {
    json.begin_object().member("step", static_cast<std::uint64_t>(slow.step));
    json.key("differences").begin_array();
    for (const StepDifference& difference : slow.differences) {
        json.begin_object().key("name");
        if (difference.is_rest) {
            json.null();
        } else {
            json.value(difference.name);
        }
        json.member("place", place_name(difference.place));
        json.member("difference_ns", difference.difference_ns());
        write_work(json.key("slow"), difference.slow);
        write_work(json.key("median"), difference.median);
        json.end_object();
    }
    json.end_array().end_object();
}

}  // namespace

std::string step_report_json(const Trace& trace, const StepReport& report) {
    std::string out;
    JsonWriter json(out, kJsonIndent);
    json.begin_object();
    json.member("window_start_ns", trace.window().start_ns);
    write_statistics(json.key("durations"), report.durations);
    write_statistics(json.key("gaps"), report.gaps);
    json.key("median_step");
    if (report.durations.count == 0) {
        json.null();
    } else {
        json.value(static_cast<std::uint64_t>(report.median_step));
    }
    json.key("steps").begin_array();
    for (const StepInfo& step : report.steps) write_step(json, trace, step);
    json.end_array().key("slowest").begin_array();
    for (const SlowStep& slow : report.slowest) write_slow_step(json, slow);
    json.end_array().end_object();
    out += '\n';
    return out;
}

}  // namespace marey
