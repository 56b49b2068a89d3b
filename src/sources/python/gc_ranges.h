// gc_ranges.h: ranges of garbage collections.
#pragma once

namespace marey::python {

/// Both need the GIL and keep the error indicator. Starting adds a callback to gc.callbacks unless it is
/// there already.
void start_gc_ranges() noexcept;
void stop_gc_ranges() noexcept;

}  // namespace marey::python
