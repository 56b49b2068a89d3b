// export.h: a trace, or a table made from it, in the formats of other tools. Files appear whole or not at
// all.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include <marey/analyze.h>
#include <marey/detail/export.h>
#include <marey/table.h>
#include <marey/trace.h>

namespace marey {

/// A format that a trace can be written in.
struct ExportFormat {
    std::string_view name;                       ///< what `marey export --to` takes
    std::string_view description;                ///< one line for people
    std::span<const std::string_view> suffixes;  ///< of file names, the usual one first
    void (*write)(const Trace& trace, const std::string& path);
};

/// Every format this library can write.
MAREY_API std::span<const ExportFormat> export_formats() noexcept;
/// The format of that name or, where `name` is empty, the one with the longest suffix that `path` has. Throws
/// marey::Error, which lists the known ones, when there is none.
MAREY_API const ExportFormat& export_format(std::string_view name, const std::string& path);

/// Writes `trace` to `path` in the given format, or in the one that the suffix of `path` tells. Throws
/// marey::Error.
MAREY_API void export_trace(const Trace& trace, const std::string& path, std::string_view format = {});

/// Chrome's trace JSON: opens in the Perfetto UI and in chrome://tracing. Strict JSON whatever bytes names
/// hold; times count in microseconds from the window's start (wall-clock: the top-level
/// "baseTimeNanoseconds"), exact to the nanosecond; ranges are clipped to the window and nest on every row.
/// ".gz" compresses. Throws marey::Error.
MAREY_API void write_chrome_json(const Trace& trace, const std::string& path);
/// The same to a stream, which need not be good: that it is not is a marey::Error.
MAREY_API void write_chrome_json(const Trace& trace, std::ostream& stream);

/// How much memory of a device was held over time, as PyTorch's export_memory_timeline writes it. By the
/// suffix of `path`: ".html" a page with a drawing; "raw.json(.gz)" a list of [nanoseconds or -1, action,
/// signed bytes, category]; else [microseconds, [0 and the bytes of the eight categories]]. Actions and
/// categories are those of marey/memory_profile.h; a new version is two events. Times are wall-clock. Throws
/// marey::Error.
MAREY_API void write_memory_timeline(const Trace& trace, const std::string& path, const Device& device = {});
/// What allocation reports say, as JSON text.
MAREY_API std::string memory_use_json(const Trace& trace, const MemoryUse& use);
/// What is known of devices, as JSON text; times in nanoseconds.
MAREY_API std::string gpu_use_json(const Trace& trace, const GpuUse& use);
/// The kernels of devices by RFC 4180, with a line of titles.
MAREY_API std::string gpu_kernels_csv(const Trace& trace, const GpuUse& use);

/// The file format of speedscope (https://www.speedscope.app): one evented profile per track that has ranges,
/// in nanoseconds since the window's start, clipped to the window. Strict JSON whatever bytes names hold.
/// ".gz" compresses. Throws marey::Error.
MAREY_API void write_speedscope(const Trace& trace, const std::string& path);

/// fold_stacks() as text: one line "a;b;c 123" each. ".gz" compresses. Returns how many lines; throws
/// marey::Error.
MAREY_API std::size_t write_stacks(const Trace& trace, const std::string& path, const StackOptions& options);
/// The same with the usual options: whole paths of ranges, self time in nanoseconds.
MAREY_API void write_folded(const Trace& trace, const std::string& path);
/// The same as PyTorch's export_stacks: Python's entries, microseconds.
MAREY_API void export_stacks(const Trace& trace, const std::string& path,
                             const std::string& metric = "self_cpu_time_total");

/// A call tree as JSON text: its nodes in their order, each with the index of its parent; times in
/// nanoseconds.
MAREY_API std::string call_tree_json(const Trace& trace, const CallTree& tree);
/// hot_path() and the `count` heaviest_nodes() with the names on the way there, as JSON text.
MAREY_API std::string hot_paths_json(const Trace& trace, const CallTree& tree, std::size_t count);
/// A report of steps as JSON text; times in nanoseconds.
MAREY_API std::string step_report_json(const Trace& trace, const StepReport& report);

/// The tables of a trace that can be written by themselves, "ranges" first; docs/reference/tables.md describes them.
MAREY_API std::span<const std::string_view> table_names() noexcept;
/// One table as CSV (RFC 4180, LF, UTF-8 whatever bytes names hold): the names of its columns, then a line
/// for each row; nothing stands for null, "" for an empty text. ".gz" compresses. Throws marey::Error.
MAREY_API void write_csv(const Trace& trace, const std::string& path, std::string_view table);
MAREY_API void write_csv(const Trace& trace, std::ostream& stream, std::string_view table = "ranges");
/// The ranges.
MAREY_API void write_csv(const Trace& trace, const std::string& path);

/// Perfetto's protobuf (docs/formats/perfetto.md says what is where). Times are those of the trace, clipped to the
/// window; ".gz" compresses. Throws marey::Error, also where this build has no protozero.
MAREY_API void write_perfetto(const Trace& trace, const std::string& path);
MAREY_API void write_perfetto(const Trace& trace, std::ostream& stream);
/// What a trace is about, apart from its events: processes, threads, window, clock, costs, problems.
MAREY_API std::string trace_info_json(const Trace& trace);

/// Rewrites the capture `in` compressed (zstd) as `out`; Trace::load reads both alike. Throws marey::Error.
MAREY_API void compact_capture(const std::string& in, const std::string& out);

}  // namespace marey
