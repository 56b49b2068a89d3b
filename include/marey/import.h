// import.h: reads traces from files written by Marey and by other tools.
#pragma once

#include <string>
#include <string_view>

#include <marey/detail/export.h>
#include <marey/file_format.h>
#include <marey/trace.h>

namespace marey {

/// Detects the format of a file from its first bytes; null if it is unknown. Throws marey::Error if the file
/// cannot be read.
MAREY_API const FileFormat* detect_format(const std::string& path);
/// Reads a trace in any of these formats: the one named `format` or, if that is empty, the one detected from
/// the file's first bytes. Throws marey::Error.
MAREY_API Trace open_trace(const std::string& path, std::string_view format = {});

}  // namespace marey
