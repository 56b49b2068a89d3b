// formats.cpp: the list of file formats. To add a format, add its folder, its functions in formats.h and one
// entry here.
#include "formats/formats.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include <marey/error.h>
#include <marey/export.h>
#include <marey/import.h>

#include "base/output_file.h"
#include "formats/file_header.h"
#include "formats/sampled_profile.h"

namespace marey {
namespace {

bool is_capture(std::span<const std::byte> head) noexcept {
    return head.size() >= 5 && std::memcmp(head.data(), "MAREY", 5) == 0;
}

Trace read_capture(const std::string& path) {
    return Trace::load(path);
}

void write_capture(const Trace& trace, const std::string& path) {
    trace.save(path);
}

void write_pprof_file(const Trace& trace, const std::string& path) {
    write_pprof(trace, path);
}

template <Trace (*read)(std::string_view text, const std::string& name)>
Trace read_whole(const std::string& path) {
    return read_profile_file(path, read);
}

constexpr std::string_view kCapture[] = {".marey"};
constexpr std::string_view kSpeedscope[] = {".speedscope.json", ".speedscope.json.gz"};
constexpr std::string_view kFirefox[] = {".profile.json.gz", ".profile.json"};
constexpr std::string_view kOtlp[] = {".otlp.json", ".otlp.json.gz"};
constexpr std::string_view kChrome[] = {".json", ".json.gz"};
constexpr std::string_view kPerfetto[] = {".pftrace", ".perfetto-trace", ".pftrace.gz", ".perfetto-trace.gz"};
constexpr std::string_view kPprof[] = {".pb.gz", ".pprof", ".pprof.gz"};
constexpr std::string_view kPstats[] = {".prof", ".pstats"};
constexpr std::string_view kFolded[] = {".folded", ".folded.gz", ".stacks.txt"};
constexpr std::string_view kCallgrind[] = {".callgrind", ".callgrind.out"};
constexpr std::string_view kFlameGraph[] = {".svg", ".svg.gz"};
constexpr std::string_view kTimeline[] = {".timeline.svg", ".timeline.svg.gz"};
constexpr std::string_view kCsv[] = {".csv", ".csv.gz"};

// A file has the first format here that recognises it. Files of several formats look like Chrome's JSON:
// those come before it.
constexpr FileFormat kFormats[] = {
    {"marey", "Marey captures", "", kCapture, is_capture, read_capture, write_capture},
    {"speedscope", "Speedscope JSON, for https://www.speedscope.app", "values, links, counters, instants",
     kSpeedscope, is_speedscope, read_whole<read_speedscope_text>, write_speedscope},
    {"firefox", "Firefox Profiler profiles, for https://profiler.firefox.com", "values, links", kFirefox,
     is_firefox, read_whole<read_firefox_text>, write_firefox},
    {"otlp", "OpenTelemetry spans (OTLP JSON), for Jaeger, Tempo, collectors",
     "calls: only ranges marked by hand, steps and ranges of other processes are spans", kOtlp, is_otlp,
     read_whole<read_otlp_text>, write_otlp},
    {"chrome", "Chrome trace JSON, for the Perfetto UI and chrome://tracing", "", kChrome, is_chrome_json,
     read_chrome_json_file, write_chrome_json},
    {"perfetto", "Perfetto protobuf, for the Perfetto UI and trace processor", "", kPerfetto, is_perfetto,
     read_perfetto, write_perfetto},
    {"pprof", "pprof profiles, for go tool pprof and continuous profilers",
     "the order of calls, values, counters", kPprof, is_pprof, read_whole<read_pprof_bytes>,
     write_pprof_file},
    {"nvprof", "nvprof SQLite databases", "", {}, is_sqlite_profile, read_sqlite_profile},
    {"nsight", "Nsight Systems SQLite exports", "", {}, is_sqlite_profile, read_sqlite_profile},
    {"pstats", "cProfile statistics, for pstats, SnakeViz and gprof2dot", "threads, GPU work, async ranges",
     kPstats, is_pstats, read_whole<read_pstats_bytes>, write_pstats},
    {"perf", "Samples printed by `perf script`", "", {}, is_perf_script, read_whole<read_perf_script_text>},
    {"collapsed",
     "Collapsed stacks: another name of folded, for reading",
     "",
     {},
     is_collapsed,
     read_whole<read_collapsed_text>},
    {"folded", "Folded stacks, self time in nanoseconds, for flame graphs", "all but self time per stack",
     kFolded, nullptr, nullptr, write_folded},
    {"callgrind", "Callgrind profiles, for KCachegrind and callgrind_annotate",
     "threads, GPU work, async ranges", kCallgrind, nullptr, nullptr, write_callgrind},
    {"flamegraph", "Flame graph, an SVG picture for browsers", "all but total time per stack", kFlameGraph,
     nullptr, nullptr, write_flame_graph},
    {"timeline", "Timeline, an SVG picture for browsers", "ranges narrower than a pixel", kTimeline, nullptr,
     nullptr, write_timeline},
    {"csv", "Comma-separated values, for spreadsheets and databases", "all tables but one", kCsv, nullptr,
     nullptr, write_csv},
};

std::string listed(bool are_written) {
    std::string list;
    for (const FileFormat& format : kFormats) {
        if (are_written ? format.write == nullptr : format.read == nullptr) continue;
        list.append(list.empty() ? "" : ", ").append(format.name);
        for (std::size_t i = 0; are_written && i < format.suffixes.size(); ++i)
            list.append(i == 0 ? " (" : " ").append(format.suffixes[i]);
        if (are_written) list += ")";
    }
    return list;
}

}  // namespace

std::span<const FileFormat> file_formats() noexcept {
    return kFormats;
}

const FileFormat* detect_format(const std::string& path) {
    const std::vector<std::byte> head = read_file_head(path);
    const auto* const found = std::ranges::find_if(kFormats, [&](const FileFormat& format) {
        return format.recognizes != nullptr && format.recognizes(head);
    });
    return found == std::end(kFormats) ? nullptr : found;
}

Trace open_trace(const std::string& path, std::string_view name) {
    if (!name.empty()) {
        for (const FileFormat& format : kFormats) {
            if (format.name == name && format.read != nullptr) return format.read(path);
        }
        throw Error(path + ": unknown format '" + std::string(name) + "'; known: " + listed(false));
    }
    if (const FileFormat* const format = detect_format(path)) return format->read(path);
    if (!std::filesystem::is_regular_file(path)) {
        // The format of a pipe cannot be detected, because reading its first bytes would consume them.
        try {
            return Trace::load(path);
        } catch (const Error& error) {
            throw Error(std::string(error.what()) +
                        "; a pipe is read as a Marey capture unless --from gives its format");
        }
    }
    if (std::filesystem::file_size(path) == 0) throw Error(path + ": the file is empty");
    throw Error(path + ": unknown file format; known: " + listed(false));
}

const FileFormat& export_format(std::string_view name, const std::string& path) {
    const FileFormat* best = nullptr;
    std::size_t longest = 0;
    for (const FileFormat& format : kFormats) {
        if (format.write == nullptr) continue;
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
    throw Error(path +
                (name.empty() ? ": no export format for this file name"
                              : ": unknown export format '" + std::string(name) + "'") +
                "; known: " + listed(true));
}

std::string output_target(const std::string& path) {
    return resolve_output(path);
}

void export_trace(const Trace& trace, const std::string& path, std::string_view format) {
    export_format(format, path).write(trace, path);
}

}  // namespace marey
