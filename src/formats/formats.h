// formats.h: the list of file formats. A new format is its folder and its name here.
#pragma once

#include <marey/export.h>
#include <marey/file_format.h>

namespace marey {

/// A file has the first of these formats that recognizes it. Files of several formats look like Chrome's
/// JSON: those come before it. The function NAME_format(), in the folder of each, describes it.
#define MAREY_FORMATS(FORMAT) \
    FORMAT(capture)           \
    FORMAT(speedscope)        \
    FORMAT(firefox)           \
    FORMAT(otlp)              \
    FORMAT(chrome)            \
    FORMAT(perfetto)          \
    FORMAT(pprof)             \
    FORMAT(nvprof)            \
    FORMAT(nsight)            \
    FORMAT(pstats)            \
    FORMAT(perf)              \
    FORMAT(collapsed)         \
    FORMAT(folded)            \
    FORMAT(callgrind)         \
    FORMAT(flamegraph)        \
    FORMAT(timeline)          \
    FORMAT(csv)

#define MAREY_DECLARE_FORMAT(name) FileFormat name##_format();
MAREY_FORMATS(MAREY_DECLARE_FORMAT)
#undef MAREY_DECLARE_FORMAT

/// Whether a file may be JSON with an object or a list, for formats that look for more in it.
bool is_chrome_json(std::span<const std::byte> head) noexcept;

}  // namespace marey
