// trace_names.h: the names of ranges, tracks and devices as the page shows them.
#pragma once

#include <marey/trace.h>

#include "json/json_writer.h"

namespace marey::serve {

/// Names in lists are cut here: a trace may have names of a megabyte.
inline constexpr std::size_t kMaxNameBytes = 300;

/// Whether `name` is longer than that.
bool is_cut(std::string_view name) noexcept;
/// The beginning of `name`, cut between characters.
std::string_view short_name(std::string_view name) noexcept;

/// The name of a site for people: for a Python call, the function alone.
std::string_view label_of(const Trace& trace, const SiteInfo& site) noexcept;

/// "cuda:0", "cpu".
std::string device_label(const Device& device);
/// The same for a range; empty for the CPU.
std::string accelerator_label(const Device& device);

std::string track_label(const Trace& trace, const TrackInfo& track);
const char* track_kind_name(TrackKind kind) noexcept;

/// Writes "name" and, if it was cut, "cut".
void write_name(JsonWriter& json, std::string_view name);

}  // namespace marey::serve
