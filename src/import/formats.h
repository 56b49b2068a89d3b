// formats.h: what the registry of import formats registers. Each is told and read in a file of its own.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <kymo/trace.h>

namespace kymo {

bool is_chrome_json(std::span<const std::byte> head) noexcept;
Trace read_chrome_json_file(const std::string& path);

}  // namespace kymo
