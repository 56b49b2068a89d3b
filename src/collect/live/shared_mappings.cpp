// shared_mappings.cpp: reads /proc/PID/maps.
#include "collect/live/shared_mappings.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "base/small_file.h"

namespace marey {

std::vector<SharedMapping> shared_mappings(std::int64_t pid) {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20;
    std::istringstream maps(read_small_file(("/proc/" + std::to_string(pid) + "/maps").c_str(), kMostBytes));
    std::vector<SharedMapping> found;
    for (std::string line; std::getline(maps, line);) {  // "ADDRESSES rw-s OFFSET DEVICE INODE   PATH"
        if (line.find(" rw-s ") == line.npos) continue;
        char access[5] = {};
        std::uint64_t inode = 0;
        int path_at = 0;
        if (std::sscanf(line.c_str(), "%*s %4s %*s %*s %" SCNu64 " %n", access, &inode, &path_at) == 2 &&
            std::strcmp(access, "rw-s") == 0 && path_at > 0)
            found.push_back({inode, line.substr(static_cast<std::size_t>(path_at))});
    }
    return found;
}

}  // namespace marey
