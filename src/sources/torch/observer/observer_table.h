// observer_table.h: the functions that the observer of PyTorch operators, a separate library, provides to
// Marey's Python extension.
#pragma once

#include <cstdint>

#include <marey/value.h>

namespace marey::torch {

inline constexpr std::uint32_t kObserverTableVersion = 4;

/// The data that the observer collects: the union over all sessions and observers.
enum ObserverNeeds : std::uint32_t {
    kNeedsRanges = 1 << 0,  ///< operators are recorded or observed; otherwise no callback is registered
    kNeedsInputs = 1 << 1,
    kNeedsOutputs = 1 << 2,
    kNeedsMemory = 1 << 3,
    kNeedsOverloads = 1 << 4,  ///< operators are distinguished by their overloads
};
/// With both, inputs have the identity of tensors and the operator's access to them.
inline constexpr std::uint32_t kNeedsIdentities = kNeedsInputs | kNeedsMemory;

/// None of these throws, waits for the interpreter, or starts or stops sessions. Any thread may call them.
struct ObserverTable {
    std::uint32_t version;  ///< kObserverTableVersion of the observer
    std::uint32_t layout;   ///< detail::kLayoutNumber of the headers that it was compiled with
    /// Registers callbacks with PyTorch or removes them. False: registration failed.
    bool (*set_needs)(std::uint32_t needs);
    /// Sets a profiler state on the calling thread, so that PyTorch reports its allocations and passes the
    /// thread's context on with its work. Returns the token for `leave`; 0: another profiler's state is set.
    std::uint64_t (*enter)(bool shapes);
    /// Removes the state again, if called on the same thread; otherwise it stays set, without effect.
    void (*leave)(std::uint64_t token);
    /// For the child of a fork: nothing is recorded, and PyTorch's locks must not be taken.
    void (*forked)();
    /// Writes to `name` the name of a thread whose allocations are not recorded because another profiler runs
    /// on it. False: there is no such thread that has not been reported.
    bool (*next_unobserved_thread)(char* name, std::uint32_t bytes);
    /// Describes a tensor, including its identity, while `take` runs. `impl` is its address
    /// (`Tensor._cdata`); it must exist. False: no session needs it, or nothing is known about it.
    bool (*describe_tensor)(std::uintptr_t impl, void (*take)(const ArrayView&, void*), void* context);
    /// Whether PyTorch's profiler links operators with their backward passes: a switch of the process.
    bool (*links_forward)();
    /// Whether every profiler records waits for the GPU: likewise.
    bool (*records_waits)();
    /// Selects what execution traces contain of the elements of integral inputs: their ranges, and for these
    /// operators ("a,b") their bytes.
    void (*set_elements)(bool has_ranges, const char* operators);
};

/// The name under which the library exports it: const ObserverTable* marey_torch_observer().
inline constexpr char kObserverSymbol[] = "marey_torch_observer";

}  // namespace marey::torch
