// cuda_contexts.h: the devices that the program uses.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sources/cuda/cuda_libraries.h"

namespace kymo::cuda {

/// Makes a context current on this thread for its lifetime, and keeps what is done in it out of any stream
/// capture that the program may have going.
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
    int capture_mode_;
};

/// Calls `visit(device, context)` for each device whose primary context the program has made; none is made
/// here. Nothing while CUDA is not initialised.
void for_each_context(const std::function<void(int device, void* context)>& visit);

/// Waits until all of those have done what they were given. What failed, in words; empty: all is done.
std::string synchronize_contexts();

/// Devices with their properties, under the keys that PyTorch's traces have: JSON. "": CUDA is not
/// initialised.
std::string device_properties();

}  // namespace kymo::cuda
