// log_records.cpp: checks that a log consists of complete records.
#include "collect/log_records.h"

namespace marey {

std::size_t whole_log_bytes(std::span<const std::byte> log) noexcept {
    std::size_t at = 0;
    while (at < log.size()) {
        const std::size_t bytes = record_bytes(log.data() + at, log.size() - at);
        if (bytes == 0) break;
        at += bytes;
    }
    return at;
}

}  // namespace marey
