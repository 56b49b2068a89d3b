// sqlite_profiles.h: the two makers of SQLite profiles that can be read.
#pragma once

#include <marey/trace.h>

#include "import/sqlite_file.h"

namespace marey {

/// What nvprof wrote: markers, calls of the CUDA runtime and driver, kernels, copies. Throws marey::Error
/// when a marker, or a marker and a launching call, is there twice.
Trace read_nvprof(const SqliteFile& file);

/// What `nsys export --type sqlite` wrote.
Trace read_nsight(const SqliteFile& file);

}  // namespace marey
