// outline_response.cpp: /api/outline and /api/names: what the traces contain, how far they are loaded, and
// the names of sites, sent once each.
#include <algorithm>

#include <marey/averages.h>
#include <marey/live.h>

#include "base/enum_names.h"
#include "serve/api.h"
#include "serve/trace_names.h"

namespace marey::serve {
namespace {

const char* state_name(LoadState state) noexcept {
    static constexpr const char* kNames[] = {"loading", "ready", "failed"};
    return name_at(kNames, state, "failed");
}

std::string_view last_part(std::string_view path) noexcept {
    return path.substr(path.rfind('/') + 1);  // npos + 1: all of it
}

void write_window(JsonWriter& json, const Trace& trace) {
    const WindowInfo& window = trace.window();
    const std::int64_t offset = trace.processes().empty() ? 0 : trace.processes()[0].realtime_offset_ns;
    const auto start = static_cast<std::uint64_t>(window.start_ns) + static_cast<std::uint64_t>(offset);
    json.key("window").begin_object();
    json.member("duration_ns", window.end_ns - window.start_ns).member("finished", window.finished);
    json.member("session", short_name(window.session_name));
    json.member("start_unix_ns", std::to_string(static_cast<std::int64_t>(start))).end_object();
}

void write_processes(JsonWriter& json, const Trace& trace) {
    json.list("processes", trace.processes(), [&](const ProcessInfo& process) {
        json.member("pid", process.pid).member("node", process.node);
        json.member("name", short_name(last_part(trace.string(process.name))));
        json.member("command_line", short_name(trace.string(process.command_line)));
        json.member("host", short_name(trace.string(process.host)));
    });
}

void write_threads(JsonWriter& json, const Trace& trace) {
    std::vector<std::uint64_t> instants(trace.threads().size());
    for (const Row thread : trace.instants().thread) ++instants[thread];
    json.list("threads", trace.threads(), [&](const ThreadInfo& thread) {
        json.member("process", thread.process).member("id", thread.id).member("os_tid", thread.os_tid);
        json.member("name", short_name(trace.string(thread.name)));
        json.member("instants", instants[static_cast<std::size_t>(&thread - trace.threads().data())]);
    });
}

void write_tracks(JsonWriter& json, const LoadedTrace& loaded) {
    const Trace& trace = loaded.trace();
    const auto clipped = [&](std::int64_t time_ns) {
        return std::clamp(time_ns, trace.window().start_ns,
                          std::max(trace.window().start_ns, trace.window().end_ns)) -
               trace.window().start_ns;
    };
    json.list("tracks", trace.tracks(), [&](const TrackInfo& track) {
        const auto row = static_cast<Row>(&track - trace.tracks().data());
        const TimelineExtent extent = loaded.timeline().extent(row);
        const bool is_added = row >= loaded.recorded().tracks().size();
        json.member("kind", !is_added                          ? track_kind_name(track.kind)
                            : track.kind == TrackKind::Overlap ? "samples"
                                                               : "task");
        json.member("name", track_label(trace, track));
        json.member("process", trace.threads()[track.thread].process).member("thread", track.thread);
        json.member("device", accelerator_label(track.device)).member("stream", track.stream);
        json.member("rows", track.range_count).member("levels", extent.levels);
        json.member("first_ns", clipped(extent.begin_ns)).member("last_ns", clipped(extent.end_ns));
    });
}

void write_counters(JsonWriter& json, const LoadedTrace& loaded) {
    json.list("counters", loaded.counters(), [&](const CounterSeries& series) {
        const bool is_counter = series.kind == CounterSeries::Kind::Counter;
        json.member("name", short_name(series.name)).member("process", series.process);
        json.member("device", series.device).member("unit", is_counter ? "" : "bytes");
        json.member("kind", is_counter                                   ? "counter"
                            : series.kind == CounterSeries::Kind::Memory ? "memory"
                                                                         : "reserved");
        json.member("samples", std::uint64_t{series.size()});
        json.member("min", series.least()).member("max", series.greatest());
    });
}

bool has_scope(const Trace& trace, Scope scope) {
    return std::ranges::any_of(trace.sites(), [&](const SiteInfo& site) { return site.scope == scope; });
}

bool has_steps(const Trace& trace) {
    return std::ranges::any_of(trace.sites(), [&](const SiteInfo& site) {
        return site.scope == Scope::Step || trace.string(site.name).starts_with("ProfilerStep#");
    });
}

void write_contents(JsonWriter& json, const LoadedTrace& loaded) {
    const Trace& trace = loaded.trace();
    write_window(json, trace);
    json.member("range_count", std::uint64_t{loaded.recorded().ranges().size()});
    json.member("instant_count", std::uint64_t{trace.instants().size()});
    json.member("counter_count", std::uint64_t{trace.counters().size()});
    json.member("link_count", std::uint64_t{trace.links().size()});
    json.member("has_memory", trace.memory().size() > 0);
    json.member("has_gpu", std::ranges::any_of(trace.tracks(), [](const TrackInfo& track) {
                    return track.kind == TrackKind::Device && track.range_count > 0;
                }));
    json.member("has_steps", has_steps(trace));
    json.member("python", has_scope(trace, Scope::PythonFunction));
    if (const std::optional<SnapshotReason> reason = snapshot_reason(trace)) {
        const std::int64_t origin = loaded.origin_ns();
        json.key("snapshot").begin_object().member("reason", short_name(reason->text));
        json.member("begin_ns", reason->end_ns == 0 ? 0 : reason->begin_ns - origin);
        json.member("end_ns", reason->end_ns == 0 ? 0 : reason->end_ns - origin).end_object();
    }
    json.key("problems").begin_array();
    for (const ProblemInfo& problem : trace.problems()) json.value(short_name(problem.text));
    json.end_array();
    write_processes(json, trace);
    write_threads(json, trace);
    write_tracks(json, loaded);
    write_counters(json, loaded);
}

/// The facts that are known before the events are read.
void write_loading(JsonWriter& json, const Trace& outline) {
    if (!outline.processes().empty()) write_window(json, outline);
    write_processes(json, outline);
    write_threads(json, outline);
    for (const char* const list : {"problems", "tracks", "counters"})
        json.key(list).begin_array().end_array();
}

constexpr std::size_t kMaxNames = 4096;

bool is_python(Scope scope) noexcept {
    return scope == Scope::PythonFunction || scope == Scope::CFunction;
}

void write_site(JsonWriter& json, const Trace& trace, std::uint32_t number) {
    const SiteInfo& site = trace.sites()[number];
    const std::string_view whole = trace.string(site.name);
    const std::string_view label = label_of(trace, site);
    const std::string_view category = trace.string(site.category);
    const std::string module = is_python(site.scope) ? site_group(trace, site, GroupBy::Module) : "";
    json.member("site", number);
    write_name(json, label);
    if (label != whole) json.member("raw", short_name(whole));
    json.member("scope", scope_name(site.scope)).member("category", short_name(category));
    json.member("module", short_name(module));
    json.member("file", trace.string(site.file)).member("line", site.line);
    // Ranges of one module or category look alike; other names are told apart.
    const std::string_view colour = !module.empty()    ? std::string_view(module)
                                    : category.empty() ? whole
                                                       : category;
    json.member("colour", short_name(colour));
}

}  // namespace

std::string outline_json(const std::vector<std::unique_ptr<TraceSlot>>& slots) {
    std::string text;
    JsonWriter json(text);
    json.begin_object().member("version", 1).member("marey", MAREY_VERSION);
    json.list("traces", slots, [&](const std::unique_ptr<TraceSlot>& slot) {
        const TraceSlot::Status status = slot->status();
        json.member("file", slot->name()).member("state", state_name(status.state));
        if (!status.error.empty()) json.member("error", status.error);
        json.member("elapsed_ms", status.elapsed_ms);
        if (status.progress != 0) json.member("progress", status.progress);
        json.member("generation", status.loaded != nullptr ? status.loaded->generation() : status.generation);
        if (status.loaded != nullptr) {
            write_contents(json, *status.loaded);
            json.member("live", slot->is_live(status.loaded->recorded()));
        } else {
            write_loading(json, status.outline);
        }
    });
    json.end_object();
    return text;
}

Response names_response(const Request& request) {
    const Trace& trace = request.trace();
    const std::vector<std::uint32_t> sites = request.query.ids("sites", trace.sites().size(), kMaxNames);
    return json_response([&](JsonWriter& json) {
        json.list("names", sites, [&](std::uint32_t site) { write_site(json, trace, site); });
    });
}

}  // namespace marey::serve
