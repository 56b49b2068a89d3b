// formats.h: the readers in the list of formats. The writers are in marey/export.h.
#pragma once

#include <cstddef>

#include <marey/trace.h>

namespace marey {

bool is_chrome_json(std::span<const std::byte> head) noexcept;
Trace read_chrome_json_file(const std::string& path);
bool is_perfetto(std::span<const std::byte> head) noexcept;
Trace read_perfetto(const std::string& path);
/// nvprof and Nsight Systems databases have the same header: only their tables differ.
bool is_sqlite_profile(std::span<const std::byte> head) noexcept;
Trace read_sqlite_profile(const std::string& path);

// These read a whole file from memory, decompressed. They throw marey::Error, starting with `name`, if
// nothing can be read.
bool is_collapsed(std::span<const std::byte> head) noexcept;
Trace read_collapsed_text(std::string_view text, const std::string& name);
bool is_speedscope(std::span<const std::byte> head) noexcept;
Trace read_speedscope_text(std::string_view text, const std::string& name);
bool is_pprof(std::span<const std::byte> head) noexcept;
Trace read_pprof_bytes(std::string_view bytes, const std::string& name);
bool is_perf_script(std::span<const std::byte> head) noexcept;
Trace read_perf_script_text(std::string_view text, const std::string& name);
bool is_pstats(std::span<const std::byte> head) noexcept;
Trace read_pstats_bytes(std::string_view bytes, const std::string& name);
bool is_firefox(std::span<const std::byte> head) noexcept;
Trace read_firefox_text(std::string_view text, const std::string& name);
bool is_otlp(std::span<const std::byte> head) noexcept;
Trace read_otlp_text(std::string_view text, const std::string& name);

}  // namespace marey
