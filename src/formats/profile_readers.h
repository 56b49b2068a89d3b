// profile_readers.h: reads the profiles of other tools from memory, for the file readers and their fuzzers.
// All throw marey::Error, starting with `name`, if nothing can be read.
#pragma once

#include <string>
#include <string_view>

#include <marey/trace.h>

namespace marey {

Trace read_collapsed_text(std::string_view text, const std::string& name);
Trace read_speedscope_text(std::string_view text, const std::string& name);
Trace read_pprof_bytes(std::string_view bytes, const std::string& name);
Trace read_perf_script_text(std::string_view text, const std::string& name);
Trace read_pstats_bytes(std::string_view bytes, const std::string& name);
Trace read_firefox_text(std::string_view text, const std::string& name);
Trace read_otlp_text(std::string_view text, const std::string& name);

}  // namespace marey
