// compact.h: rewrites a capture in its packed form.
#pragma once

#include <cstddef>

#include <marey/trace.h>

#include "collect/packed_capture.h"
#include "record/raw_log.h"

namespace marey {

/// Rewrites the capture `in` as `out` (which may be the same), packed: the same records, including ticks, in
/// a fraction of the bytes. The result is unpacked and compared before it replaces the target; `out` appears
/// complete or not at all. A saved trace is only written again. Throws marey::Error.
MAREY_API void compact_capture(const std::string& in, const std::string& out);

/// The packed form of a log, unpacked and compared. `path` stands for it in errors. Throws marey::Error.
std::vector<std::byte> pack_checked(const RawLog& log, const std::string& path,
                                    PackFor purpose = PackFor::Size);

/// Writes it to a file, which appears complete or not at all; for speed, it is not compared. Throws
/// marey::Error.
void write_packed(const RawLog& log, const std::string& path, PackFor purpose = PackFor::Size);

/// Whether two logs are equal: facts, streams, open ranges, problems, and spans in order of sequence.
bool is_same_log(const RawLog& a, const RawLog& b);

}  // namespace marey
