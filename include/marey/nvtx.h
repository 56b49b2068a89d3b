// nvtx.h: records the ranges that libraries push through NVTX. To forward Marey's ranges to NVTX, see emit.h.
#pragma once

#include <string>

#include <marey/detail/export.h>

/// NVTX 3 ranges and marks are recorded like any others while a session runs, in every process that was
/// started with NVTX_INJECTION64_PATH=library_path() (docs/guide/nvtx.md). NVTX reads the variable once, at a
/// library's first call; setting it later has no effect.
namespace marey::nvtx {

/// Whether NVTX ranges reach Marey in this process: a library's NVTX has loaded Marey, or the variable names
/// it.
MAREY_API bool is_listening();

/// The path to set the variable to: the libmarey of this process.
MAREY_API std::string library_path();
/// Whether a path refers to that file.
MAREY_API bool is_library(const std::string& path);

}  // namespace marey::nvtx
