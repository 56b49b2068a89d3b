// track_place.h: where the ranges of a track ran.
#pragma once

#include <marey/trace.h>

namespace marey {

/// Ranges of different places are never merged, because they measure different kinds of time. Host: calls of
/// a thread. Device: work of a device. Async: ranges that only span time.
enum class Place : std::uint8_t { Host, Device, Async };

inline Place place_of(const TrackInfo& track) noexcept {
    if (track.kind == TrackKind::Async) return Place::Async;
    const bool on_device = track.kind == TrackKind::Overlap && track.device.type != DeviceType::Cpu;
    return track.kind == TrackKind::Device || on_device ? Place::Device : Place::Host;
}

}  // namespace marey
