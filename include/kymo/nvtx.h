// nvtx.h: hearing the ranges that libraries push through NVTX. What Kymo itself passes on is in emit.h.
#pragma once

#include <string>

#include <kymo/detail/export.h>

/// Ranges and marks of NVTX 3 are recorded like any other while a session runs, in every process that was
/// started with NVTX_INJECTION64_PATH=library_path() (docs/nvtx.md). NVTX looks for its listener once, at a
/// library's first call: what is set later is too late.
namespace kymo::nvtx {

/// Whether that is so here: some library's NVTX has found Kymo, or the variable names it.
KYMO_API bool is_listening();

/// The file that the variable must name: the libkymo of this process.
KYMO_API std::string library_path();
/// Whether a path leads to that file.
KYMO_API bool is_library(const std::string& path);

}  // namespace kymo::nvtx
