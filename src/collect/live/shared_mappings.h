// shared_mappings.h: the files that a process has mapped and writes to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace marey {

struct SharedMapping {
    std::uint64_t inode = 0;
    std::string path;  ///< as the kernel shows it
};
/// One for each mapping of a file; empty if the process does not exist or belongs to another user.
std::vector<SharedMapping> shared_mappings(std::int64_t pid);

}  // namespace marey
