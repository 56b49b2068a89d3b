// compact.h: rewriting a capture in its packed form.
#pragma once

#include <string>

#include <marey/trace.h>

#include "record/raw_log.h"

namespace marey {

/// Rewrites the capture `in` as `out` (which may be the same), packed: the same records, ticks and all, in a
/// fraction of the bytes. What was written is unpacked and compared before it takes its place; `out` appears
/// whole or not at all. A saved trace is only written anew. Throws marey::Error.
MAREY_API void compact_capture(const std::string& in, const std::string& out);

/// Whether two logs hold the same: facts, streams, open ranges, problems, and spans in order of sequence.
bool is_same_log(const RawLog& a, const RawLog& b);

}  // namespace marey
