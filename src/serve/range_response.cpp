// range_response.cpp: /api/range, /api/instant, /api/at, /api/links and /api/source: what is known about one
// range, and which source files the page may show.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <unordered_map>

#include <marey/samples.h>
#include <marey/trace.h>

#include "base/descriptor.h"
#include "base/enum_names.h"
#include "serve/api.h"
#include "serve/trace_names.h"

namespace marey::serve {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{4} << 10;
constexpr std::uint32_t kMaxListItems = 100;
constexpr int kMaxListDepth = 8;
constexpr std::string_view kMore = "...";

std::string double_text(double number) {
    char text[32];
    const auto [end, error] = std::to_chars(text, text + sizeof text, number);
    return error == std::errc() ? std::string(text, end) : std::string();
}

std::string array_text(const Trace& trace, const ArrayInfo& array) {
    if (!array.is_defined) return "undefined";
    const auto extents = trace.array_extents();
    std::string text = dtype_name(array.dtype) + std::string("[");
    for (std::uint32_t i = 0; i < array.dimensions && array.first_extent + i < extents.size(); ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(extents[array.first_extent + i]);
    }
    text += "]";
    const std::string device = accelerator_label(array.device);
    return device.empty() ? text : text + " " + device;
}

std::string text_of(const Trace& trace, const Argument& value, int depth);

std::string list_text(const Trace& trace, const ListItems& list, int depth) {
    const auto items = trace.list_items();
    if (depth >= kMaxListDepth || list.first > items.size() || list.count > items.size() - list.first)
        return std::string("[").append(kMore).append("]");
    std::string text = "[";
    for (std::uint32_t i = 0; i < list.count; ++i) {
        if (i > 0) text += ", ";
        if (i == kMaxListItems || text.size() > kMaxTextBytes) {
            text += kMore;
            break;
        }
        text += text_of(trace, items[list.first + i], depth + 1);
    }
    return text + "]";
}

std::string text_of(const Trace& trace, const Argument& value, int depth) {
    switch (value.kind) {
        case ValueKind::None:
            return value.left_out == ValueKind::None ? "None" : "(not recorded)";
        case ValueKind::Bool:
            return value.boolean ? "True" : "False";
        case ValueKind::Int:
            return std::to_string(value.integer);
        case ValueKind::Double:
            return double_text(value.real);
        case ValueKind::String: {
            const std::string_view text = trace.string(value.string);
            const std::string kept(text.substr(0, kMaxTextBytes));
            return value.truncated || text.size() > kMaxTextBytes ? kept + std::string(kMore) : kept;
        }
        case ValueKind::List:
            return list_text(trace, value.list, depth);
        case ValueKind::Array:
            return value.array < trace.arrays().size() ? array_text(trace, trace.arrays()[value.array]) : "";
    }
    return {};
}

/// "12", "[8, 3]", "float32[8, 3] cuda:0", ...; long texts and lists are cut.
std::string value_text(const Trace& trace, const Argument& value) {
    return text_of(trace, value, 0);
}

const char* value_kind_name(ValueKind kind) noexcept {
    static constexpr const char* kNames[] = {"none", "bool", "int", "double", "string", "list", "array"};
    return name_at(kNames, kind, "none");
}

const char* role_name(ArgumentRole role) noexcept {
    static constexpr const char* kNames[] = {"keyword", "input", "output", "site"};
    return name_at(kNames, role, "keyword");
}

constexpr off_t kMaxSourceBytes = off_t{4} << 20;

/// The absolute path without links; empty if there is no such file.
std::string resolved(const std::string& path) {
    const std::unique_ptr<char, decltype(&std::free)> whole(::realpath(path.c_str(), nullptr), &std::free);
    return whole != nullptr ? whole.get() : "";
}

bool is_below(const std::string& path, const std::string& folder) {
    return !folder.empty() && path.size() > folder.size() && path.starts_with(folder) &&
           (folder.back() == '/' || path[folder.size()] == '/');
}

bool is_small_file(const struct stat& facts) noexcept {
    return S_ISREG(facts.st_mode) && facts.st_size < kMaxSourceBytes;
}

/// The path of a source file that a site names, if it may be shown: a regular file of less than 4 MiB below
/// one of the folders, with all links resolved. A trace is a stranger's file: it must not make the server
/// read others.
std::optional<std::string> find_source(std::string_view file, const std::vector<std::string>& folders) {
    if (file.empty() || file.size() >= PATH_MAX || file.find('\0') != file.npos) return {};
    for (const std::string& folder : folders) {
        const std::string name = file.front() == '/' ? std::string(file) : folder + "/" + std::string(file);
        const std::string path = resolved(name);
        struct stat facts {};
        if (is_below(path, resolved(folder)) && ::stat(path.c_str(), &facts) == 0 && is_small_file(facts))
            return path;
    }
    return {};
}

/// The bytes of such a file. Throws RequestError (404) if it may not be shown or cannot be read.
std::string read_source(std::string_view file, const std::vector<std::string>& folders) {
    const auto path = find_source(file, folders);
    // Checked again once it is open: the file may have been replaced.
    const Descriptor opened(path ? ::open(path->c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                                 : -1);
    struct stat facts {};
    std::string text;
    bool is_read = false;
    if (opened.get() >= 0 && ::fstat(opened.get(), &facts) == 0 && is_small_file(facts)) {
        text.resize(static_cast<std::size_t>(facts.st_size));
        std::size_t filled = 0;
        for (ssize_t got = 1; filled < text.size() && got > 0;
             filled += got > 0 ? static_cast<std::size_t>(got) : 0)
            got = ::read(opened.get(), text.data() + filled, text.size() - filled);
        text.resize(filled);
        is_read = true;
    }
    if (!is_read)
        throw RequestError(404,
                           "this file is not shown: only files below the working directory or --source DIR "
                           "and under 4 MiB are");
    return text;
}

constexpr std::size_t kMaxParents = 200;
constexpr std::size_t kMaxWholeName = std::size_t{64} << 10;
constexpr std::size_t kMaxArrows = 1000;
constexpr Row kMaxScanned = 1'000'000;
constexpr std::size_t kMaxListedNames = 20;
constexpr std::string_view kCallStack = "Call stack";

void write_flags(JsonWriter& json, std::uint16_t flags) {
    constexpr std::pair<RangeFlags, const char*> kNames[] = {
        {kBeganBefore, "began_before"},
        {kUnfinished, "unfinished"},
        {kAsync, "async"},
        {kRemote, "remote"},
        {kEndInferred, "end_inferred"},
        {kPart, "part"},
        {kFurtherPart, "further_part"},
        {kSampled, "sampled"},
    };
    json.key("flags").begin_array();
    for (const auto& [flag, name] : kNames) {
        if ((flags & flag) != 0) json.value(name);
    }
    json.end_array();
}

void write_values(JsonWriter& json, const Trace& trace, std::span<const Argument> values) {
    std::vector<Argument> shown(values.begin(), values.end());
    std::erase_if(shown, [&](const Argument& value) { return trace.string(value.key) == kCallStack; });
    json.list("values", shown, [&](const Argument& value) {
        json.member("key", short_name(trace.string(value.key))).member("role", role_name(value.role));
        json.member("kind", value_kind_name(value.kind)).member("value", value_text(trace, value));
    });
}

/// The recorded call stack, innermost entry first.
void write_stack(JsonWriter& json, const Trace& trace, std::span<const Argument> values) {
    json.key("stack").begin_array();
    for (const Argument& value : values) {
        if (trace.string(value.key) != kCallStack || value.kind != ValueKind::String) continue;
        const std::string_view stack = trace.string(value.string);
        for (std::size_t at = 0; at < stack.size();) {
            const std::size_t end = std::min(stack.find(';', at), stack.size());
            json.value(short_name(stack.substr(at, end - at)));
            at = end + 1;
        }
    }
    json.end_array();
}

void write_parents(JsonWriter& json, const Request& request, Row row) {
    const auto parent = request.trace().ranges().parent;
    std::vector<Row> parents;
    for (row = parent[row]; row != kNoRow && parents.size() < kMaxParents; row = parent[row])
        parents.push_back(row);
    json.list("parents", parents, [&](Row each) { write_range(json, request, each); });
}

void write_links(JsonWriter& json, const Request& request, Row row) {
    json.list("links", request.loaded.links().of(row), [&](const Arrow& arrow) {
        const bool is_from = arrow.from == row;
        write_range(json, request, is_from ? arrow.to : arrow.from);
        json.member("kind", arrow.kind);
        json.member("name_of_link", short_name(request.trace().string(arrow.name)));
        json.member("direction", is_from ? "to" : "from");
    });
}

std::uint64_t children_of(const RangeColumns& ranges, Row row) {
    std::uint64_t count = 0;
    for (Row next = row + 1;
         next < ranges.size() && next - row <= kMaxScanned && ranges.depth[next] > ranges.depth[row]; ++next)
        count += ranges.parent[next] == row ? 1 : 0;
    return count;
}

/// The rows of a track that start in a span.
std::pair<Row, Row> rows_starting_in(const Request& request, const TrackInfo& track, const Selection& span) {
    const auto starts = request.trace().ranges().start_ns;
    const auto first = starts.begin() + track.first_range;
    const auto last = first + track.range_count;
    const auto begin = std::lower_bound(first, last, span.begin_ns);
    const auto end = span.end_ns > span.begin_ns ? std::lower_bound(begin, last, span.end_ns)
                                                 : std::upper_bound(begin, last, span.begin_ns);
    return {static_cast<Row>(begin - starts.begin()), static_cast<Row>(end - starts.begin())};
}

/// The range on a level that runs at a time; kNoRow if there is none.
Row range_at(const Request& request, const TrackInfo& track, std::uint32_t level, std::int64_t time_ns) {
    const RangeColumns ranges = request.trace().ranges();
    const auto first = ranges.start_ns.begin() + track.first_range;
    const auto after = std::upper_bound(first, first + track.range_count, time_ns);
    if (after == first) return kNoRow;
    auto row = static_cast<Row>(after - ranges.start_ns.begin()) - 1;
    while (ranges.depth[row] > level) row = ranges.parent[row];
    const bool is_running = request.end_of(row) > time_ns;
    return ranges.depth[row] == level && is_running ? row : kNoRow;
}

struct NameTotal {
    std::uint32_t site = 0;
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;
};

/// The ranges on one level that start in a span.
struct LevelContent {
    std::uint64_t count = 0;
    Row longest = kNoRow;
    std::vector<NameTotal> names;  ///< most time first
    bool is_exact = true;
};

LevelContent level_content(const Request& request, const TrackInfo& track, std::uint32_t level,
                           const Selection& span) {
    const RangeColumns ranges = request.trace().ranges();
    const auto [begin, end] = rows_starting_in(request, track, span);
    LevelContent content;
    content.is_exact = end - begin <= kMaxScanned;
    std::unordered_map<std::uint32_t, NameTotal> names;
    for (Row row = begin; row < std::min(end, begin + kMaxScanned); ++row) {
        if (ranges.depth[row] != level) continue;
        ++content.count;
        if (content.longest == kNoRow || ranges.duration_ns[row] > ranges.duration_ns[content.longest])
            content.longest = row;
        NameTotal& total = names[ranges.site[row]];
        total.site = ranges.site[row];
        ++total.count;
        total.total_ns += ranges.duration_ns[row];
    }
    for (const auto& [site, total] : names) content.names.push_back(total);
    std::ranges::sort(content.names, {},
                      [](const NameTotal& total) { return std::pair(-total.total_ns, total.site); });
    if (content.names.size() > kMaxListedNames) content.names.resize(kMaxListedNames);
    return content;
}

void write_level_content(JsonWriter& json, const Trace& trace, const LevelContent& content) {
    json.member("count", content.count).key("longest");
    if (content.longest == kNoRow) {
        json.null();
    } else {
        json.begin_object()
            .member("row", content.longest)
            .member("site", trace.ranges().site[content.longest]);
        json.member("duration_ns", trace.ranges().duration_ns[content.longest]).end_object();
    }
    json.list("names", content.names, [&](const NameTotal& total) {
        json.member("site", total.site);
        write_name(json, label_of(trace, trace.sites()[total.site]));
        json.member("count", total.count).member("total_ns", total.total_ns);
    });
    json.member("exact", content.is_exact);
}

void write_arrow_end(JsonWriter& json, const Request& request, Row row) {
    const RangeColumns ranges = request.trace().ranges();
    json.begin_object().member("row", row).member("track", request.trace().track_of(row));
    json.member("depth", ranges.depth[row]).member("site", ranges.site[row]);
    json.member("start_ns", request.relative(ranges.start_ns[row]));
    json.member("end_ns", request.relative(request.end_of(row))).end_object();
}

}  // namespace

void write_range(JsonWriter& json, const Request& request, Row row) {
    const Trace& trace = request.trace();
    const RangeColumns ranges = trace.ranges();
    json.member("row", row).member("site", ranges.site[row]);
    write_name(json, label_of(trace, trace.sites()[ranges.site[row]]));
    json.member("track", trace.track_of(row)).member("depth", ranges.depth[row]);
    json.member("start_ns", request.relative(ranges.start_ns[row]))
        .member("duration_ns", ranges.duration_ns[row]);
}

Response range_response(const Request& request) {
    const Trace& trace = request.trace();
    const RangeColumns ranges = trace.ranges();
    const Row row = request.row("row", ranges.size());
    const SiteInfo& site = trace.sites()[ranges.site[row]];
    const std::string_view name = trace.string(site.name);
    const RangeDetail* const detail = trace.range_detail(row);
    return json_response([&](JsonWriter& json) {
        write_range(json, request, row);
        json.member("whole_name", name.substr(0, kMaxWholeName))
            .member("whole_name_cut", name.size() > kMaxWholeName);
        json.member("scope", scope_name(site.scope))
            .member("category", short_name(trace.string(site.category)));
        json.member("thread", trace.tracks()[trace.track_of(row)].thread);
        json.member("self_ns", ranges.self_ns[row]).member("children", children_of(ranges, row));
        write_flags(json, ranges.flags[row]);
        json.member("file", trace.string(site.file)).member("line", site.line);
        json.member("source", find_source(trace.string(site.file), request.source_dirs).has_value());
        write_values(json, trace, trace.range_arguments(row));
        write_stack(json, trace, trace.range_arguments(row));
        write_parents(json, request, row);
        write_links(json, request, row);
        json.member("sequence", detail != nullptr ? detail->sequence : -1);
        json.member("call", detail != nullptr ? detail->call : 0)
            .member("part", detail != nullptr ? detail->part : 0);
    });
}

Response instant_response(const Request& request) {
    const Trace& trace = request.trace();
    const InstantColumns instants = trace.instants();
    const Row row = request.row("row", instants.size());
    return json_response([&](JsonWriter& json) {
        json.member("row", row).member("site", instants.site[row]);
        write_name(json, trace.string(trace.sites()[instants.site[row]].name));
        json.member("time_ns", request.relative(instants.time_ns[row]))
            .member("thread", instants.thread[row]);
        write_values(json, trace, trace.instant_arguments(row));
    });
}

Response at_response(const Request& request) {
    const Trace& trace = request.trace();
    const TrackInfo& track = trace.tracks()[request.row("track", trace.tracks().size())];
    const auto level = static_cast<std::uint32_t>(request.query.integer("level", 0, 1 << 30));
    const Selection span = request.span();
    const LevelContent content = level_content(request, track, level, span);
    Row row = range_at(request, track, level, std::midpoint(span.begin_ns, span.end_ns));
    if (row == kNoRow) row = content.longest;
    return json_response([&](JsonWriter& json) {
        write_level_content(json, trace, content);
        json.key("row");
        if (row == kNoRow) {
            json.null().key("range").null();
        } else {
            json.value(row).key("range").begin_object();
            write_range(json, request, row);
            json.member("self_ns", trace.ranges().self_ns[row]).end_object();
        }
    });
}

Response links_response(const Request& request) {
    const Row row = request.row("row", request.trace().ranges().size());
    bool is_cut = false;
    const std::vector<Arrow> arrows = request.loaded.links().chain(row, kMaxArrows, is_cut);
    return json_response([&](JsonWriter& json) {
        json.list("arrows", arrows, [&](const Arrow& arrow) {
            json.member("kind", arrow.kind).member("name", short_name(request.trace().string(arrow.name)));
            json.key("from");
            write_arrow_end(json, request, arrow.from);
            json.key("to");
            write_arrow_end(json, request, arrow.to);
        });
        json.member("cut", is_cut);
    });
}

/// The lines of a file that samples are in.
std::vector<SampledRow> sampled_lines(const Trace& trace, std::string_view file) {
    if (trace.samples().size() == 0 || file.empty()) return {};
    std::vector<SampledRow> lines = sample_report(trace, {.by = SampleGroup::Line}).rows;
    std::erase_if(lines, [&](const SampledRow& row) { return row.line == 0 || row.file != file; });
    return lines;
}

Response source_response(const Request& request) {
    const Trace& trace = request.trace();
    const SiteInfo& site = trace.sites()[request.row("site", trace.sites().size())];
    const std::string text = read_source(trace.string(site.file), request.source_dirs);
    return json_response([&](JsonWriter& json) {
        json.member("file", trace.string(site.file)).member("line", site.line);
        json.member("first", 1).member("text", text);
        const std::vector<SampledRow> lines =
            sampled_lines(request.loaded.recorded(), trace.string(site.file));
        json.list("lines", lines, [&](const SampledRow& row) {
            json.member("line", row.line).member("self_ns", row.self_ns);
            json.member("total_ns", row.total_ns).member("waiting_ns", row.waiting_ns);
        });
    });
}

}  // namespace marey::serve
