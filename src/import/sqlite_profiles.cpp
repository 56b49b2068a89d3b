// sqlite_profiles.cpp: which maker's database it is.
#include "import/sqlite_profiles.h"

#include <marey/error.h>

#include "import/formats.h"

namespace marey {

bool is_sqlite_profile(std::span<const std::byte> head) noexcept {
    return is_sqlite_head(head);
}

Trace read_sqlite_profile(const std::string& path) {
    const SqliteFile file(path);
    switch (file.maker()) {
        case SqliteProducer::Nvprof:
            return read_nvprof(file);
        case SqliteProducer::Nsight:
            return read_nsight(file);
        case SqliteProducer::Unknown:
            break;
    }
    throw Error(path + ": a SQLite database with no table of nvprof or Nsight Systems");
}

}  // namespace marey
