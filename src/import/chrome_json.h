// chrome_json.h: reads Chrome's trace JSON, of any maker. docs/formats/import.md tells what becomes what.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <marey/trace.h>

#include "base/input_text.h"

namespace marey {

/// `name` stands in errors. The text passes through memory in pieces of `piece_bytes`, or of what the longest
/// event needs. Throws marey::Error when it is no such trace.
Trace read_chrome_json(const std::string& name, std::unique_ptr<ByteSource> source,
                       std::size_t piece_bytes = 128 << 10);

}  // namespace marey
