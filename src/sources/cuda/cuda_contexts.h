// cuda_contexts.h: the devices that the program uses.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sources/cuda/cuda_libraries.h"

namespace marey::cuda {

/// What this thread does while it lives is kept out of any stream capture that the program may have going.
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

/// Makes a context current on this thread for its lifetime, outside of captures.
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

/// A call was made in it: it is a context of the program, be it that of a device (the primary one, which
/// CUDA's runtime uses) or one that the program made itself. Null: none. Whether it was not known before.
bool note_context(void* context) noexcept;
/// It is about to be destroyed: returns when nobody here uses it any more, or after 2 s.
void context_ends(void* context) noexcept;
/// Nobody tells any longer when they end.
void forget_contexts() noexcept;
/// How often contexts were forgotten: one that was noted before may have to be noted again.
std::uint32_t contexts_forgotten() noexcept;

/// Calls `visit(device, context)` for each context of the program that is known: for every device the primary
/// one first, if the program has made it (none is made here), then those noted. Nothing while CUDA is not
/// initialised.
void for_each_context(const std::function<void(int device, void* context)>& visit);

/// Unlike its address never that of another one. 0: it has ended.
std::uint64_t context_id(void* context) noexcept;

/// Waits until all of those have done what they were given. What failed, in words; empty: all is done.
std::string synchronize_contexts();

/// Devices with their properties, under the keys that PyTorch's traces have: JSON. "": CUDA is not
/// initialised.
std::string device_properties();

}  // namespace marey::cuda
