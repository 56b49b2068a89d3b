// device_wait.h: the hook by which emitters wait for outstanding work of devices when they start and stop.
#pragma once

#include <atomic>

namespace kymo {

/// Waits until every device has done what it was given. Must not throw. Set by the source that knows the
/// devices; null: there is none to wait for.
using DeviceWait = void (*)() noexcept;
inline constinit std::atomic<DeviceWait> device_wait{nullptr};

inline void wait_for_devices() noexcept {
    if (const DeviceWait wait = device_wait.load(std::memory_order_acquire)) wait();
}

}  // namespace kymo
