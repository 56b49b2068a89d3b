// import.h: traces from files of any maker.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// A format that a trace can be read from.
struct ImportFormat {
    std::string_view name;         ///< what `--from` takes
    std::string_view description;  ///< one line for people
    /// Whether a file that begins with these bytes (up to 64 KiB, decompressed where it is gzip) is one.
    bool (*recognizes)(std::span<const std::byte> head) noexcept;
    /// Throws marey::Error naming the file and the cause when nothing can be read; what cannot be read of the
    /// rest is counted in the trace's problems.
    Trace (*read)(const std::string& path);
};

/// Every format this library can read, captures first.
MAREY_API std::span<const ImportFormat> import_formats() noexcept;
/// The format that the file's first bytes tell; null where they tell none. Throws marey::Error when it cannot
/// be read.
MAREY_API const ImportFormat* import_format(const std::string& path);
/// Reads a trace of any of those formats: the one of that name or, without one, the one that the file's first
/// bytes tell. Throws marey::Error.
MAREY_API Trace open_trace(const std::string& path, std::string_view format = {});

}  // namespace marey
