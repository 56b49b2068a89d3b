// nvtx.h: hearing the ranges that libraries push through NVTX. What Marey itself passes on is in emit.h.
#pragma once

#include <string>

#include <marey/detail/export.h>

/// Ranges and marks of NVTX 3 are recorded like any other while a session runs, in every process that was
/// started with NVTX_INJECTION64_PATH=library_path() (docs/guide/nvtx.md). NVTX looks for its listener once, at a
/// library's first call: what is set later is too late.
namespace marey::nvtx {

/// Whether that is so here: some library's NVTX has found Marey, or the variable names it.
MAREY_API bool is_listening();

/// The file that the variable must name: the libmarey of this process.
MAREY_API std::string library_path();
/// Whether a path leads to that file.
MAREY_API bool is_library(const std::string& path);

}  // namespace marey::nvtx
