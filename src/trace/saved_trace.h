// saved_trace.h: a trace as a file of columns, and back: the entire model, whatever its origin.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trace/trace_data.h"

namespace marey {

/// Whether a file that begins with these bytes is a saved trace.
bool is_saved_trace(std::span<const std::byte> head) noexcept;

/// The bytes of the file, docs/formats/capture.md. Throws marey::Error when the tables are inconsistent
/// (find_damage). Compressed if this build can and `is_compressed`.
std::vector<std::byte> pack_trace(const TraceData& data, bool is_compressed = true);

/// Reads tables that are equal to those that were written. `name` stands for the file in errors. Throws
/// marey::Error on any damage: the result is consistent. Memory stays in proportion to the file's size.
std::shared_ptr<const TraceData> unpack_trace(std::span<const std::byte> bytes, const std::string& name);

/// The same for all tables except the ranges, which the viewer's cache keeps elsewhere. Not checked with
/// find_damage.
std::vector<std::byte> pack_other_tables(const TraceData& data);
std::shared_ptr<TraceData> unpack_other_tables(std::span<const std::byte> bytes, const std::string& name);

/// The window alone, without reading the rest.
WindowInfo unpack_window(std::span<const std::byte> bytes, const std::string& name);

}  // namespace marey
