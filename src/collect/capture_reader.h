// capture_reader.h: from a capture file to a RawLog.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "collect/running_capture.h"
#include "record/raw_log.h"

namespace marey {

class MappedFile;

/// Reads a capture, as recorded or packed. The RawLog keeps the file mapped, or a copy of a capture whose
/// program is still running. A truncated or damaged file gives its complete records, with the rest in
/// `problems`. Throws marey::Error, naming the path and the
/// cause, when it is not a capture, was written by a newer Marey, or holds nothing that can be read. Memory
/// stays in proportion to the file's size.
RawLog read_capture(const std::string& path);
RawLog read_capture(std::shared_ptr<const MappedFile> file, const std::string& path,
                    bool with_records = true);

/// The same with the newest part of the log only, unless the capture is packed. The time that this takes
/// follows from the open ranges and the names rather than from the size of the file.
RawLog read_newest(const std::string& path, const CopyLimits& limits);

/// The same from memory. `name` stands for the path in errors; `keep_alive` owns the bytes.
/// Without records, a packed capture gives only what unpack_capture() gives then, and the records of another
/// one are not checked.
RawLog read_capture_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> keep_alive,
                          const std::string& name, bool with_records = true);

}  // namespace marey
