// perfetto.h: Perfetto traces from memory, for the reader of files and for its fuzzer.
#pragma once

#include <string>
#include <string_view>

#include <marey/trace.h>

namespace marey {

/// `bytes`: a whole file, plain or gzip. Throws marey::Error, which begins with `name`, when it holds no
/// packet at all.
Trace read_perfetto_bytes(std::string_view bytes, const std::string& name);

}  // namespace marey
