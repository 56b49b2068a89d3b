// observer_table.h: what the observer of PyTorch's operators, a library of its own, gives to Marey's Python
// extension.
#pragma once

#include <cstdint>

#include <marey/value.h>

namespace marey::torch {

inline constexpr std::uint32_t kObserverTableVersion = 2;

/// What the observer is to gather: the union over all that record or watch.
enum ObserverNeeds : std::uint32_t {
    kNeedsRanges = 1 << 0,  ///< somebody records or watches operators; else nothing is registered
    kNeedsInputs = 1 << 1,
    kNeedsOutputs = 1 << 2,
    kNeedsMemory = 1 << 3,
    kNeedsOverloads = 1 << 4,  ///< operators are told apart by their overloads
};
/// With both, inputs say which tensors they are, and what the operator does with them.
inline constexpr std::uint32_t kNeedsIdentities = kNeedsInputs | kNeedsMemory;

/// None of these throws, waits for the interpreter, or starts and stops sessions. Any thread may call them.
struct ObserverTable {
    std::uint32_t version;  ///< kObserverTableVersion of the observer
    std::uint32_t layout;   ///< detail::kLayoutNumber of the headers that it was compiled with
    /// Registers with PyTorch, or no more. False: PyTorch refused.
    bool (*set_needs)(std::uint32_t needs);
    /// Puts the calling thread's profiler state in, so that PyTorch says what it allocates, and carries the
    /// thread's context to where its work goes. Gives what `leave` takes; 0: somebody else's is there.
    std::uint64_t (*enter)(bool shapes);
    /// Takes it out again, if the calling thread is that one; else it stays behind, without effect.
    void (*leave)(std::uint64_t token);
    /// In the child of a fork: nothing is recorded, and no lock of PyTorch's may be taken.
    void (*forked)();
    /// A thread whose allocations are not seen, because another profiler is on it: its name goes into
    /// `name`. False: there is none that has not been told before.
    bool (*next_unobserved_thread)(char* name, std::uint32_t bytes);
    /// Says what a tensor is, which tensor included, for as long as `take` runs. `impl` is its address
    /// (`Tensor._cdata`); it must live. False: nobody wants that, or nothing is known of it.
    bool (*describe_tensor)(std::uintptr_t impl, void (*take)(const ArrayView&, void*), void* context);
};

/// The name under which the library exports it: const ObserverTable* marey_torch_observer().
inline constexpr char kObserverSymbol[] = "marey_torch_observer";

}  // namespace marey::torch
