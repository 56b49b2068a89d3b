// read.h: reads Chrome trace JSON from any program. docs/formats/import.md describes the mapping.
#pragma once

#include <cstddef>
#include <memory>

#include <marey/trace.h>

#include "analyze/violation_list.h"
#include "json/input_text.h"

namespace marey {

/// `name` is used in errors. The text is read in pieces of `piece_bytes`, or more if an event is longer.
/// Rules of `marey validate` that the file breaks are added to `violations`, if there is one. Throws
/// marey::Error if it is not a Chrome trace.
Trace read_chrome_json(const std::string& name, std::unique_ptr<ByteSource> source,
                       std::size_t piece_bytes = 128 << 10, ViolationList* violations = nullptr);

}  // namespace marey
