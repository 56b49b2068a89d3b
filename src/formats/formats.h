// formats.h: the functions in the registry of import formats. Each format is detected and read in a separate
// file.
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
bool is_collapsed(std::span<const std::byte> head) noexcept;
Trace read_collapsed(const std::string& path);
bool is_speedscope(std::span<const std::byte> head) noexcept;
Trace read_speedscope(const std::string& path);
bool is_pprof(std::span<const std::byte> head) noexcept;
Trace read_pprof(const std::string& path);
bool is_perf_script(std::span<const std::byte> head) noexcept;
Trace read_perf_script(const std::string& path);
bool is_pstats(std::span<const std::byte> head) noexcept;
Trace read_pstats(const std::string& path);
bool is_firefox(std::span<const std::byte> head) noexcept;
Trace read_firefox(const std::string& path);
bool is_otlp(std::span<const std::byte> head) noexcept;
Trace read_otlp(const std::string& path);
/// nvprof and Nsight Systems databases have the same header: only their tables differ.
bool is_sqlite_profile(std::span<const std::byte> head) noexcept;
Trace read_sqlite_profile(const std::string& path);

}  // namespace marey
