// formats.h: what the registry of import formats registers. Each is told and read in a file of its own.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <marey/trace.h>

namespace marey {

bool is_chrome_json(std::span<const std::byte> head) noexcept;
Trace read_chrome_json_file(const std::string& path);
bool is_perfetto(std::span<const std::byte> head) noexcept;
Trace read_perfetto(const std::string& path);
/// Databases of nvprof and Nsight Systems look alike from outside: which one it is, its tables tell.
bool is_sqlite_profile(std::span<const std::byte> head) noexcept;
Trace read_sqlite_profile(const std::string& path);

}  // namespace marey
