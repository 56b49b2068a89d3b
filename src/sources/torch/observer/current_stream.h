// current_stream.h: the GPU stream that is current on a thread, according to PyTorch.
#pragma once

#include <c10/core/Stream.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <exception>

namespace marey::torch {

/// Older PyTorch versions do not expose it.
template <class Stream>
void* native_handle(const Stream& stream) {
    if constexpr (requires { stream.native_handle(); }) {
        return stream.native_handle();
    } else {
        return nullptr;
    }
}

/// A cudaStream_t. Null: the default stream, or a PyTorch without CUDA.
inline void* current_cuda_stream() noexcept {
    if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) return nullptr;
    try {
        const auto* const cuda = c10::impl::getDeviceGuardImpl(c10::DeviceType::CUDA);
        return native_handle(cuda->getStream(cuda->getDevice()));
    } catch (const std::exception&) {
        return nullptr;
    }
}

}  // namespace marey::torch
