// cuda_contexts.h: the CUDA contexts and devices that the program uses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sources/cuda/cuda_libraries.h"

namespace marey::cuda {

/// While this object lives, calls on this thread are kept out of any stream capture of the program.
class RelaxedCaptureMode {
  public:
    explicit RelaxedCaptureMode(const Driver& driver) noexcept;
    ~RelaxedCaptureMode();
    RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
    RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

  private:
    const Driver& driver_;
    int mode_;
};

/// Makes a context current on this thread for the lifetime of the object, outside of stream captures.
class CurrentContext {
  public:
    CurrentContext(const Driver& driver, void* context) noexcept;
    ~CurrentContext();
    CurrentContext(const CurrentContext&) = delete;
    CurrentContext& operator=(const CurrentContext&) = delete;
    explicit operator bool() const noexcept { return is_pushed_; }

  private:
    const Driver& driver_;
    bool is_pushed_;
    RelaxedCaptureMode outside_;
};

/// A call was made in this context, so the program uses it: either a device's primary context, which CUDA's
/// runtime uses, or one that the program created. Null is ignored. Returns whether it is new.
bool note_context(void* context) noexcept;
/// The context is about to be destroyed: returns when Marey no longer uses it, or after 2 s.
void context_ends(void* context) noexcept;
/// Forgets all contexts, because their ends are no longer reported.
void forget_contexts() noexcept;
/// The number of times that contexts were forgotten: one that was noted before may need to be noted again.
std::uint32_t contexts_forgotten() noexcept;

/// Calls `visit(device, context)` for each known context of the program: for every device first the primary
/// one, if the program has created it (this function creates none), then those noted. Does nothing until CUDA
/// is initialised.
void for_each_context(const std::function<void(int device, void* context)>& visit);

/// Unlike the address, the id is never reused. 0: the context has ended.
std::uint64_t context_id(void* context) noexcept;

/// Waits until all of these contexts have finished their work. Returns an error message; empty on success.
std::string synchronize_contexts();

/// JSON: the devices with their properties, with the keys of PyTorch's traces. "": CUDA is not initialised.
std::string device_properties();

}  // namespace marey::cuda
