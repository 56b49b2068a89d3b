// source_writer.h: what a source outside libkymo calls to record: sites, threads, ranges that it has not seen
// begin or end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <kymo/detail/export.h>
#include <kymo/detail/hot_path.h>
#include <kymo/value.h>

#include "record/source.h"

namespace kymo {

/// Registers a source for the rest of the process.
KYMO_API void add_source(std::shared_ptr<Source> source);

/// A site of a call tracer; `file` is not empty: a C function has its module there. Views of sessions that
/// asked for no calls leave its ranges out. 0: no room.
KYMO_API std::uint32_t traced_site(std::string_view name, std::string_view file, std::uint32_t line,
                                   Scope scope) noexcept;

/// Makes the calling thread known and up to date, so that its state may be used. False: it cannot record now.
KYMO_API bool attach_thread() noexcept;

/// Opens ranges of the calling thread, the outermost first, as if they had begun at `start`. Fills in as many
/// of `opened` (as long as `sites`) as there was room for, and says how many.
KYMO_API std::size_t open_before(std::span<const std::uint32_t> sites, std::uint64_t start,
                                 detail::Opened* opened) noexcept;

/// Closes a range of the calling thread whose end was not seen: it ends now and is marked unfinished.
KYMO_API void close_late(detail::Opened opened) noexcept;

/// Tells the running sessions that asked for calls what is known of a site of the call tracer. It is whole
/// when all of its values have been given with one `ticks`; entries that do not fit are cut.
KYMO_API void add_site_values(std::uint32_t site, std::uint64_t ticks,
                              std::span<const KeyedValue> values) noexcept;

/// Now, in the recorder's clock.
KYMO_API std::uint64_t source_ticks() noexcept;

/// Puts a problem into the traces of the sessions that run.
KYMO_API void note_problem(std::string_view code, std::string_view text) noexcept;

}  // namespace kymo
