// import.h: reads traces from files written by Marey and by other tools.
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
    std::string_view name;         ///< the name for `--from`
    std::string_view description;  ///< one line for users
    /// Whether a file that begins with these bytes (up to 64 KiB, decompressed if it is gzip) has this
    /// format.
    bool (*recognizes)(std::span<const std::byte> head) noexcept;
    /// Reads a file. Throws marey::Error, with the file and the cause, if nothing can be read; unreadable
    /// parts are counted in the trace's problems.
    Trace (*read)(const std::string& path);
};

/// Returns every format that this library can read, captures first.
MAREY_API std::span<const ImportFormat> import_formats() noexcept;
/// Detects the format of a file from its first bytes; null if it is unknown. Throws marey::Error if the file
/// cannot be read.
MAREY_API const ImportFormat* import_format(const std::string& path);
/// Reads a trace in any of these formats: the one named `format` or, if that is empty, the one detected from
/// the file's first bytes. Throws marey::Error.
MAREY_API Trace open_trace(const std::string& path, std::string_view format = {});

}  // namespace marey
