// input_file.h: opens files to read, and refuses those that may never end.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/descriptor.h"

namespace marey {

/// Returns a descriptor and fills in the file's status. Waits up to two seconds for
/// the writer of a named pipe. Throws marey::Error, with the path, for a folder, a device, and a pipe that
/// nobody writes to.
Descriptor open_input(const std::string& path, struct stat& status);

}  // namespace marey
