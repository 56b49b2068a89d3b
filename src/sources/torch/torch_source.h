// torch_source.h: PyTorch's operators as a source: loads the observer that was compiled for them, and tells
// it what sessions and emitters ask for.
#pragma once

#include <cstdint>
#include <string>

#include <marey/value.h>

namespace marey::torch {

/// Loads the observer, a shared library, once; later calls do nothing. From then on every session has
/// PyTorch's operators. Throws marey::Error when it cannot be loaded or does not fit this Marey.
void load_observer(const std::string& path);
bool is_observer_loaded() noexcept;

/// What sessions do not ask for by themselves: an emitter's ranges, overload names (bits: ObserverNeeds).
/// Counted; each hold is released once. Throws marey::Error when no observer is loaded.
void hold_needs(std::uint32_t needs);
void release_needs(std::uint32_t needs) noexcept;

/// Puts the calling thread under Marey in PyTorch's eyes: it reports its allocations, and what follows the
/// thread goes where its work goes. Gives what leave_thread() takes, on that thread; 0: another profiler is
/// there.
std::uint64_t enter_thread(bool shapes);
void leave_thread(std::uint64_t token) noexcept;

/// Says what a tensor is, given by its address (`Tensor._cdata`), which must live: `take` is called once,
/// with what holds that long. False: it was not, since no session asks for that, or no observer is loaded.
bool describe_tensor(std::uintptr_t impl, void (*take)(const ArrayView&, void*), void* context) noexcept;

}  // namespace marey::torch
