// read.h: reads Perfetto traces from memory, for the file reader and its fuzzer.
#pragma once

#include <marey/trace.h>

namespace marey {

/// `bytes`: a whole file, plain or gzip. Throws marey::Error, starting with `name`, if it contains no
/// packets.
Trace read_perfetto_bytes(std::string_view bytes, const std::string& name);
/// Checks that the fields of the first packet have the right types, and that another packet follows.
bool is_perfetto(std::span<const std::byte> head) noexcept;

}  // namespace marey
