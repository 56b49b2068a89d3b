// sqlite_profiles.cpp: selects the reader for a SQLite profile.
#include "formats/sqlite_profiles.h"

#include <cstring>

#include <marey/error.h>

namespace marey {

bool is_sqlite_profile(std::span<const std::byte> head) noexcept {
    constexpr std::string_view kMagic("SQLite format 3\0", 16);
    return head.size() >= kMagic.size() && std::memcmp(head.data(), kMagic.data(), kMagic.size()) == 0;
}

Trace read_sqlite_profile(const std::string& path) {
#if MAREY_HAVE_SQLITE
    const SqliteFile file(path);
    switch (file.producer()) {
        case SqliteProducer::Nvprof:
            return read_nvprof(file);
        case SqliteProducer::Nsight:
            return read_nsight(file);
        case SqliteProducer::Unknown:
            break;
    }
    throw Error(path + ": not an nvprof or Nsight Systems database: none of their tables was found");
#else
    throw Error(path + ": cannot read SQLite databases: this Marey was built without SQLite");
#endif
}

}  // namespace marey
