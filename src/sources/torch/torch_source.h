// torch_source.h: PyTorch operators as a source: loads the observer compiled for the installed PyTorch, and
// forwards the requests of sessions and emitters to it.
#pragma once

#include <cstdint>
#include <string>

#include <marey/execution_trace.h>
#include <marey/value.h>

namespace marey::torch {

/// Tells the recorder what it cannot know about PyTorch's ranges: which ones are not timed on devices, and
/// which ones are waited for. Called once, when the extension is loaded.
void describe_ranges();

/// The execution trace that the environment requests, by Marey's variables or else by PyTorch's.
ExecutionTraceRequest execution_trace_request();

/// Loads the observer, a shared library, once; later calls do nothing. From then on, every session records
/// PyTorch operators. Throws marey::Error if it cannot be loaded or does not match this version of Marey.
void load_observer(const std::string& path);
bool is_observer_loaded() noexcept;

/// Requests data that sessions do not request themselves: an emitter's ranges, overload names (bits:
/// ObserverNeeds). Counted; each hold is released once. Throws marey::Error if no observer is loaded.
void hold_needs(std::uint32_t needs);
void release_needs(std::uint32_t needs) noexcept;

/// Whether PyTorch's profiler links operators with their backward passes: a switch of the process.
bool links_forward() noexcept;
/// Whether PyTorch's profilers record waits for the GPU without being asked.
bool records_waits() noexcept;

/// Makes PyTorch treat the calling thread as profiled: it reports its allocations, and passes the thread's
/// context on with its work. Returns the token for leave_thread() on that thread; 0: another profiler is set.
std::uint64_t enter_thread(bool shapes);
void leave_thread(std::uint64_t token) noexcept;

/// Describes a tensor given by its address (`Tensor._cdata`), which must exist: `take` is called once, with
/// data that is valid during the call. False: not called, since no session needs it, or no observer is
/// loaded.
bool describe_tensor(std::uintptr_t impl, void (*take)(const ArrayView&, void*), void* context) noexcept;

}  // namespace marey::torch
