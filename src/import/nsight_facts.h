// nsight_facts.h: what an export of Nsight Systems tells beside its ranges.
#pragma once

#include <string>
#include <vector>

#include "import/device_profile.h"
#include "import/sqlite_file.h"

namespace marey {

/// Names of processes and threads, the wall clock, allocations on devices; what describes machine, devices
/// and session becomes metadata. To be called when the ranges are there. Returns the tables it read.
std::vector<std::string> read_nsight_facts(const SqliteFile& file, DeviceProfile& profile,
                                           const ProfileStrings& strings);

}  // namespace marey
