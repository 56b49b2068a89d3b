// gc_ranges.h: a range for every garbage collection.
#pragma once

namespace marey::python {

/// Both need the GIL and keep the error indicator. Starting adds a callback to gc.callbacks unless it is
/// there already.
void start_gc_ranges() noexcept;
void stop_gc_ranges() noexcept;

}  // namespace marey::python
