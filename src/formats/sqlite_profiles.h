// sqlite_profiles.h: the two supported kinds of SQLite profiles.
#pragma once

#include <marey/trace.h>

#include "formats/sqlite_file.h"

namespace marey {

/// nvprof and Nsight Systems databases have the same header: only their tables differ.
bool is_sqlite_profile(std::span<const std::byte> head) noexcept;
/// Reads a database of either. Throws marey::Error.
Trace read_sqlite_profile(const std::string& path);

/// Reads an nvprof database: markers, CUDA runtime and driver calls, kernels, copies. Throws marey::Error if
/// a marker is duplicated, or if a launch call inside a marker launched several kernels.
Trace read_nvprof(const SqliteFile& file);

/// Reads the output of `nsys export --type sqlite`.
Trace read_nsight(const SqliteFile& file);

}  // namespace marey
