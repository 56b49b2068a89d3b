// running_capture.h: a consistent copy of a capture that its program is still writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace marey {

/// The bytes of a capture at one moment. Blocks that were put into use later, or were overwritten while they
/// were copied, are zero: a ring lacks its oldest chunks then, as always.
struct RunningCapture {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;  ///< of the bytes
    std::uint64_t end_ticks = 0;        ///< the moment; 0: unknown
    std::size_t log_bytes = 0;          ///< of the chunks in it
    std::size_t lost_bytes = 0;         ///< of the chunks that were overwritten, or began after `end_ticks`
};

/// Nothing if the capture is finished, or if its program may have ended. It certainly runs if this machine
/// has not restarted since and the process with its id has the file mapped for writing.
std::optional<RunningCapture> copy_running_capture(const std::string& path);

}  // namespace marey
