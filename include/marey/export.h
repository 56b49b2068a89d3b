// export.h: writes a trace, or a table made from it, in the formats of other tools. Files are written
// completely or not at all.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include <marey/analyze.h>
#include <marey/detail/export.h>
#include <marey/file_format.h>
#include <marey/table.h>
#include <marey/trace.h>

namespace marey {

/// Returns the format with this name or, if `name` is empty, the one with the longest suffix that matches
/// `path`. Throws marey::Error, which lists the known formats, if there is none.
MAREY_API const FileFormat& export_format(std::string_view name, const std::string& path);

/// Writes `trace` to `path` in the given format, or in the format selected by the suffix of `path`. Throws
/// marey::Error.
MAREY_API void export_trace(const Trace& trace, const std::string& path, std::string_view format = {});

/// Returns the file that an output to `path` replaces or creates, with its links followed; empty if the
/// output is written in place: to a pipe or a device, or to what is already open (/dev/stdout, /dev/fd/3).
/// Throws marey::Error if it cannot be written, or if a link on the way belongs to another user, who could
/// lead the output anywhere.
MAREY_API std::string output_target(const std::string& path);

/// Writes Chrome's trace JSON, which opens in the Perfetto UI and in chrome://tracing. The file is strict
/// JSON, whatever bytes names contain. Times are microseconds since the window's start (wall-clock time of
/// the start: the top-level "baseTimeNanoseconds"), exact to the nanosecond. Ranges are clipped to the window
/// and nest on every row. Compresses if `path` ends in ".gz". Throws marey::Error.
MAREY_API void write_chrome_json(const Trace& trace, const std::string& path);
/// Writes the same to a stream. Throws marey::Error if the stream is not good.
MAREY_API void write_chrome_json(const Trace& trace, std::ostream& stream);

/// The events that a Chrome trace has in addition to those of its trace, and the names of its rows.
enum class ChromeStyle : std::uint8_t {
    Torch,   ///< as in PyTorch's traces: the window is a process "Spans" and two instants
    Viewer,  ///< only what a person wants to see: a Python program is named after its script
};
/// Writes Chrome's trace JSON in that style. Traces with PyTorch operators or device work always have the
/// first.
MAREY_API void write_chrome_json(const Trace& trace, const std::string& path, ChromeStyle style);

/// Writes the memory held on a device over time, as PyTorch's export_memory_timeline does. The suffix of
/// `path` selects the form: ".html" is a page with a plot; "raw.json(.gz)" is a list of [nanoseconds or -1,
/// action, signed bytes, category]; otherwise [microseconds, [0 and the bytes of the eight categories]].
/// Actions and categories are those of marey/memory_profile.h; a new version is written as two events. Times
/// are wall-clock times. Throws marey::Error.
MAREY_API void write_memory_timeline(const Trace& trace, const std::string& path, const Device& device = {});

/// Writes the result of fold_stacks() as text, with lines such as "a;b;c 123". Compresses if `path` ends in
/// ".gz". Returns the number of lines. Throws marey::Error.
MAREY_API std::size_t write_stacks(const Trace& trace, const std::string& path, const StackOptions& options);
/// Returns a flame graph as an SVG picture: names merged by their call paths, each as wide as its share of
/// the time. Readable in light and dark; details are in tooltips.
struct FlameGraphOptions {
    std::string title = {};  ///< empty: the program
    std::string count = {};  ///< "12 calls"; empty: the number of ranges
    double width = 1600;     ///< pixels; letters have 11.5
};
MAREY_API std::string flame_graph_svg(const Trace& trace, const FlameGraphOptions& options = {});
/// Returns every track against time as an SVG picture; ranges narrower than a pixel are merged.
MAREY_API std::string timeline_svg(const Trace& trace);
/// Returns the page of `marey view` with the data inside: one HTML file that works without a server or a
/// network. It holds the timeline at the resolution of a 4K screen and tables of the whole trace. `title` is
/// usually the name of the trace's file. Throws marey::Error, for example if libmarey_view.so is missing.
MAREY_API std::string html_report(const Trace& trace, const std::string& title);
/// Writes the same. Compresses if `path` ends in ".gz".
MAREY_API void write_html_report(const Trace& trace, const std::string& path, const std::string& title);

/// Returns the names of the tables that write_csv() can write, "ranges" first; docs/reference/tables.md
/// describes them.
MAREY_API std::span<const std::string_view> table_names() noexcept;
/// Writes one table as CSV (RFC 4180, LF, UTF-8 whatever bytes names contain): a line with the column names,
/// then one line per row. An empty field is null, "" is an empty string. Compresses if `path` ends in ".gz".
/// Throws marey::Error.
MAREY_API void write_csv(const Trace& trace, const std::string& path, std::string_view table);
MAREY_API void write_csv(const Trace& trace, std::ostream& stream, std::string_view table = "ranges");
/// Writes Perfetto's protobuf format (see docs/formats/perfetto.md). Times are those of the trace, clipped to
/// the window. Throws marey::Error, also if Marey was built without protozero.
MAREY_API void write_perfetto(const Trace& trace, std::ostream& stream);

/// Writes pprof's profile.proto: one sample per distinct stack of a thread, with the values time (self time
/// in nanoseconds), calls and, if the trace has them, alloc_space (bytes) and gpu_time, which counts under
/// the stack that launched the work. Labels: thread, step, rank. Stacks have at most 1024 entries, and
/// 64 on average in a large file; deeper calls count for the last one. Returns the number of entries after
/// which stacks were cut; 0 if none was. Compresses if `path` ends in ".gz". Throws marey::Error, also if
/// Marey was built without protozero.
MAREY_API std::uint32_t write_pprof(const Trace& trace, const std::string& path);
/// Writes OpenTelemetry spans as OTLP JSON: ranges marked by hand (scopes User and Step) and ranges of other
/// processes, clipped to the window, with their values as attributes. A range with the value "traceparent"
/// (W3C Trace Context) belongs to that trace; "span_id" sets its span id. Leaves out spans that are shorter
/// than `min_duration_ns`. Returns the number of spans. Throws marey::Error.
MAREY_API std::size_t write_otlp(const Trace& trace, const std::string& path, std::int64_t min_duration_ns);

/// Rewrites the capture `in`, compressed with zstd, as `out`; Trace::load reads both. Throws marey::Error.
MAREY_API void compact_capture(const std::string& in, const std::string& out);

}  // namespace marey
