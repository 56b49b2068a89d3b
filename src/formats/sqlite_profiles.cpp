// sqlite_profiles.cpp: selects the reader for a SQLite profile.
#include "formats/sqlite_profiles.h"

#include <marey/error.h>

#include "formats/formats.h"

namespace marey {

bool is_sqlite_profile(std::span<const std::byte> head) noexcept {
    return is_sqlite_head(head);
}

Trace read_sqlite_profile(const std::string& path) {
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
}

}  // namespace marey
