// source_file.h: which source files the page may show.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace marey::serve {

/// The path of a source file that a site names, if it may be shown: a regular file of less than 4 MiB below
/// one of the folders, with all links resolved. A trace is a stranger's file: it must not make the server
/// read others.
std::optional<std::string> find_source(std::string_view file, const std::vector<std::string>& folders);

/// The bytes of such a file. Throws RequestError (404) if it may not be shown or cannot be read.
std::string read_source(std::string_view file, const std::vector<std::string>& folders);

}  // namespace marey::serve
