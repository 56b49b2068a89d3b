// export_formats.cpp: the registry of export formats. To add a format, add a file and one line here.
#include <marey/error.h>
#include <marey/export.h>

#include "base/output_file.h"

namespace marey {
namespace {

constexpr std::string_view kChromeSuffixes[] = {".json", ".json.gz"};
constexpr std::string_view kSpeedscopeSuffixes[] = {".speedscope.json", ".speedscope.json.gz"};
constexpr std::string_view kFoldedSuffixes[] = {".folded", ".folded.gz", ".stacks.txt"};
constexpr std::string_view kCsvSuffixes[] = {".csv", ".csv.gz"};
constexpr std::string_view kPerfettoSuffixes[] = {".pftrace", ".perfetto-trace", ".pftrace.gz",
                                                  ".perfetto-trace.gz"};
constexpr std::string_view kFlameGraphSuffixes[] = {".svg", ".svg.gz"};
constexpr std::string_view kTimelineSuffixes[] = {".timeline.svg", ".timeline.svg.gz"};
constexpr std::string_view kPprofSuffixes[] = {".pb.gz", ".pprof", ".pprof.gz"};
constexpr std::string_view kCallgrindSuffixes[] = {".callgrind", ".callgrind.out"};
constexpr std::string_view kPstatsSuffixes[] = {".prof", ".pstats"};
constexpr std::string_view kFirefoxSuffixes[] = {".profile.json.gz", ".profile.json"};
constexpr std::string_view kOtlpSuffixes[] = {".otlp.json", ".otlp.json.gz"};
constexpr std::string_view kCaptureSuffixes[] = {".marey"};

void write_capture(const Trace& trace, const std::string& path) {
    trace.save(path);
}

void write_pprof_file(const Trace& trace, const std::string& path) {
    write_pprof(trace, path);
}

constexpr ExportFormat kExportFormats[] = {
    {"chrome", "Chrome trace JSON, for the Perfetto UI and chrome://tracing", kChromeSuffixes,
     write_chrome_json},
    {"speedscope", "Speedscope JSON, for https://www.speedscope.app", kSpeedscopeSuffixes, write_speedscope},
    {"folded", "Folded stacks, self time in nanoseconds, for flame graphs", kFoldedSuffixes, write_folded},
    {"csv", "Comma-separated values: the table of ranges", kCsvSuffixes, write_csv},
    {"perfetto", "Perfetto protobuf, for the Perfetto UI and trace processor", kPerfettoSuffixes,
     write_perfetto},
    {"pprof", "pprof profile, for go tool pprof and continuous profilers", kPprofSuffixes, write_pprof_file},
    {"callgrind", "Callgrind profile, for KCachegrind and callgrind_annotate", kCallgrindSuffixes,
     write_callgrind},
    {"pstats", "cProfile statistics, for pstats, SnakeViz and gprof2dot", kPstatsSuffixes, write_pstats},
    {"firefox", "Firefox Profiler profile, for https://profiler.firefox.com", kFirefoxSuffixes,
     write_firefox},
    {"otlp", "OpenTelemetry spans (OTLP JSON) of ranges marked by hand", kOtlpSuffixes, write_otlp},
    {"flamegraph", "Flame graph, an SVG picture for browsers", kFlameGraphSuffixes, write_flame_graph},
    {"timeline", "Timeline, an SVG picture for browsers", kTimelineSuffixes, write_timeline},
    {"marey", "Marey capture, which keeps the whole trace", kCaptureSuffixes, write_capture},
};

std::string known_export_formats() {
    std::string list;
    for (const ExportFormat& format : kExportFormats) {
        if (!list.empty()) list += ", ";
        list += format.name;
        list += " (";
        for (std::size_t i = 0; i < format.suffixes.size(); ++i) {
            if (i > 0) list += " ";
            list += format.suffixes[i];
        }
        list += ")";
    }
    return list;
}

}  // namespace

std::span<const ExportFormat> export_formats() noexcept {
    return kExportFormats;
}

const ExportFormat& export_format(std::string_view name, const std::string& path) {
    const ExportFormat* best = nullptr;
    std::size_t longest = 0;
    for (const ExportFormat& format : kExportFormats) {
        if (!name.empty()) {
            if (format.name == name) return format;
            continue;
        }
        for (const std::string_view suffix : format.suffixes) {
            if (path.size() <= suffix.size() || !path.ends_with(suffix) || suffix.size() <= longest) continue;
            longest = suffix.size();
            best = &format;
        }
    }
    if (best != nullptr) return *best;
    if (!name.empty())
        throw Error(path + ": unknown export format '" + std::string(name) + "'; known: " + known_export_formats());
    throw Error(path + ": no export format for this file name; known: " + known_export_formats());
}

std::string output_target(const std::string& path) {
    return resolve_output(path);
}

void export_trace(const Trace& trace, const std::string& path, std::string_view format) {
    export_format(format, path).write(trace, path);
}

}  // namespace marey
