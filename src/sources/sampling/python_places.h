// python_places.h: numbers for places in Python code objects, which are named later, where the GIL is held.
#pragma once

#include <cstdint>

#include <marey/detail/python_stacks.h>

namespace marey::sampling {

/// Null: Python is not loaded, or ends.
const detail::PythonSampling* python_sampling() noexcept;
/// The frame word of a place. Lock-free and async-signal-safe.
std::uint64_t python_word(const detail::SampledFrame& frame) noexcept;
/// Whether there are places that have no names yet.
bool has_unnamed_places() noexcept;

}  // namespace marey::sampling
