// formats.cpp: the registry of import formats. To add a format, add a file, a declaration and one line here.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include <marey/error.h>
#include <marey/import.h>

#include "formats/file_header.h"
#include "formats/formats.h"

namespace marey {
namespace {

bool is_capture(std::span<const std::byte> head) noexcept {
    return head.size() >= 5 && std::memcmp(head.data(), "MAREY", 5) == 0;
}

Trace read_capture_file(const std::string& path) {
    return Trace::load(path);
}

constexpr ImportFormat kFormats[] = {
    {"marey", "Marey captures", is_capture, read_capture_file},
    {"speedscope", "Speedscope JSON (.speedscope.json)", is_speedscope, read_speedscope},
    {"firefox", "Firefox Profiler profiles, also of samply (.json, .json.gz)", is_firefox, read_firefox},
    {"otlp", "OpenTelemetry spans (OTLP JSON, one document or one per line)", is_otlp, read_otlp},
    {"chrome", "Chrome trace JSON from any program (.json, .json.gz)", is_chrome_json, read_chrome_json_file},
    {"perfetto", "Perfetto protobuf (track events)", is_perfetto, read_perfetto},
    {"pprof", "pprof profiles of Go and other tools (.pb.gz)", is_pprof, read_pprof},
    {"nvprof", "nvprof SQLite databases", is_sqlite_profile, read_sqlite_profile},
    {"nsight", "Nsight Systems SQLite exports", is_sqlite_profile, read_sqlite_profile},
    {"pstats", "cProfile statistics (.prof, .pstats)", is_pstats, read_pstats},
    {"perf", "Samples printed by `perf script`", is_perf_script, read_perf_script},
    {"collapsed", "Collapsed (folded) stacks, the input of flame graph tools", is_collapsed, read_collapsed},
};

/// The format of a pipe cannot be detected, because reading its first bytes would consume them.
Trace read_pipe(const std::string& path) {
    try {
        return Trace::load(path);
    } catch (const Error& error) {
        throw Error(std::string(error.what()) +
                    "; a pipe is read as a Marey capture unless --from gives its format");
    }
}

std::string known_formats() {
    std::string list;
    for (const ImportFormat& format : kFormats) {
        if (!list.empty()) list += ", ";
        list += format.name;
    }
    return list;
}

}  // namespace

std::span<const ImportFormat> import_formats() noexcept {
    return kFormats;
}

const ImportFormat* import_format(const std::string& path) {
    const std::vector<std::byte> head = read_file_head(path);
    const auto* const found =
        std::find_if(std::begin(kFormats), std::end(kFormats),
                     [&](const ImportFormat& format) { return format.recognizes(head); });
    return found == std::end(kFormats) ? nullptr : found;
}

Trace open_trace(const std::string& path, std::string_view name) {
    if (!name.empty()) {
        for (const ImportFormat& format : kFormats) {
            if (format.name == name) return format.read(path);
        }
        throw Error(path + ": unknown format '" + std::string(name) + "'; known: " + known_formats());
    }
    if (const ImportFormat* const format = import_format(path)) return format->read(path);
    if (!std::filesystem::is_regular_file(path)) return read_pipe(path);
    if (std::filesystem::file_size(path) == 0) throw Error(path + ": the file is empty");
    throw Error(path + ": unknown file format; known: " + known_formats());
}

}  // namespace marey
