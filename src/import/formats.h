// formats.h: what the registry of import formats registers. Each is told and read in a file of its own.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <kymo/trace.h>

namespace kymo {

bool is_perfetto(std::span<const std::byte> head) noexcept;
Trace read_perfetto(const std::string& path);

}  // namespace kymo
