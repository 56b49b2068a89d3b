// gc_ranges.h: a range for every collection of garbage.
#pragma once

namespace marey::python {

/// Both need the GIL and keep the error indicator. Starting puts a callback into gc.callbacks, unless it is
/// there.
void start_gc_ranges() noexcept;
void stop_gc_ranges() noexcept;

}  // namespace marey::python
