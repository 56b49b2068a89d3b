// nsight_facts.h: reads the parts of an Nsight Systems export other than ranges.
#pragma once

#include <string>
#include <vector>

#include "import/device_profile.h"
#include "import/sqlite_file.h"

namespace marey {

/// Reads the names of processes and threads, the wall clock and device allocations; descriptions of machine,
/// devices and session become metadata. Must be called after all ranges were added. Returns the tables that
/// were read.
std::vector<std::string> read_nsight_facts(const SqliteFile& file, DeviceProfile& profile,
                                           const ProfileStrings& strings);

}  // namespace marey
