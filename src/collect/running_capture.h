// running_capture.h: a consistent copy of a capture that its program is still writing, or of its newest part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace marey {

/// Which part of the log a copy has. Names, journal and open ranges are always complete.
struct CopyLimits {
    /// The newest of all threads together; each has an equal share.
    std::size_t log_bytes = std::numeric_limits<std::size_t>::max();
    std::int64_t last_ns = 0;  ///< what ended within this time before the end; 0: no limit
    bool has_limit() const { return log_bytes != std::numeric_limits<std::size_t>::max() || last_ns != 0; }
};

/// The bytes of a capture at one moment, with other places of the blocks. Blocks that were put into use
/// later, or were overwritten while they were copied, are missing: a ring lacks its oldest chunks then, as
/// always.
struct RunningCapture {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;  ///< of the bytes
    std::uint64_t end_ticks = 0;        ///< the moment; 0: unknown
    std::uint64_t since_ticks = 0;      ///< by CopyLimits::last_ns
    std::size_t log_bytes = 0;          ///< of the chunks in it
    std::size_t lost_bytes = 0;         ///< of the chunks that were overwritten, or began after `end_ticks`
};

/// Nothing if the capture is finished, or if its program may have ended. It certainly runs if this machine
/// has not restarted since and the process with its id has the file mapped for writing.
std::optional<RunningCapture> copy_running_capture(const std::string& path, const CopyLimits& limits = {});
/// The same of the capture of a program that has ended: nothing if it is packed, or not a capture.
std::optional<RunningCapture> copy_ended_capture(const std::string& path, const CopyLimits& limits);

}  // namespace marey
