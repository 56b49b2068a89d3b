// control.h: lets other processes of this user start and stop recordings in a program (`marey start`).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <marey/detail/export.h>

namespace marey {

/// From now on, this process and those that it forks take requests (`MAREY=control=on` calls this). Each has
/// a small file in $XDG_RUNTIME_DIR/marey or, without that, /tmp/marey-UID, which only this user can open,
/// and a thread that sleeps until another process writes a request into it. Throws marey::Error if the file
/// cannot be made. Calling it again does nothing.
MAREY_API void allow_control();

/// A process that takes requests.
struct ControlledProcess {
    std::int64_t pid = 0;
    std::int32_t rank = -1;     ///< -1: none
    bool is_recording = false;  ///< a recording that was requested runs
};
/// Those of this user, by process id.
MAREY_API std::vector<ControlledProcess> controlled_processes();

/// A recording to make.
struct StartRequest {
    std::string options;           ///< as in the variable MAREY: "out=/tmp/app.marey,calls=on"
    std::int64_t at_ns = 0;        ///< on CLOCK_MONOTONIC; 0: now
    std::int64_t duration_ns = 0;  ///< 0: until stop_recording()
};
/// Starts a recording in a process, and returns the path of its capture. Throws marey::Error if the process
/// takes no requests, already has such a recording, does not answer in time, or cannot record.
MAREY_API std::string start_recording(std::int64_t pid, const StartRequest& request,
                                      std::chrono::nanoseconds timeout = std::chrono::seconds(10));
/// Stops it, and returns the path of the complete capture.
MAREY_API std::string stop_recording(std::int64_t pid,
                                     std::chrono::nanoseconds timeout = std::chrono::seconds(10));

}  // namespace marey
