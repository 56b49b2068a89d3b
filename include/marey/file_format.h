// file_format.h: the list of file formats that Marey reads and writes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// A format of files with a trace, or a part of one.
struct FileFormat {
    std::string_view name;             ///< for `--from` and `--to`
    std::string_view description;      ///< one line for users
    std::string_view leaves_out = {};  ///< what is lost in writing; empty: nothing, or never written
    std::span<const std::string_view> suffixes = {};  ///< of written files, the usual one first
    /// Writes a file, completely or not at all. Throws marey::Error. Null: this format is not written.
    void (*write)(const Trace& trace, const std::string& path) = nullptr;
    /// Whether a file that begins with these bytes (up to 64 KiB, decompressed if it is gzip) has this
    /// format. Null: this format is not read.
    bool (*recognizes)(std::span<const std::byte> head) noexcept = nullptr;
    /// Reads a whole file, decompressed if it is gzip; `name` starts error messages. Throws marey::Error if
    /// nothing can be read; unreadable parts are counted in the trace's problems.
    Trace (*read_bytes)(std::string_view bytes, const std::string& name) = nullptr;
    /// The same for formats whose files are read piece by piece; then there is no read_bytes().
    Trace (*read)(const std::string& path) = nullptr;
};

/// Returns every format that this library can read or write, captures first.
MAREY_API std::span<const FileFormat> file_formats() noexcept;

}  // namespace marey
