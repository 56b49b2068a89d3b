// process_text.h: the texts that identify processes, trees of processes and clocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/hexadecimal.h"

namespace marey {

/// A tree's id in hexadecimal; "" if all its bytes are 0: unknown.
inline std::string tree_text(std::span<const std::uint8_t, 16> id) {
    const bool is_known = std::ranges::any_of(id, [](std::uint8_t byte) { return byte != 0; });
    return is_known ? hexadecimal(std::as_bytes(id)) : "";
}

/// The clock of a machine as a process sees it: a time namespace may have moved it.
inline std::string clock_text(std::string_view boot_id, std::uint64_t time_namespace) {
    return std::string(boot_id) + "/" + std::to_string(time_namespace);
}

/// A process, as descendants name it.
inline std::string ancestor_text(std::int64_t pid, std::uint64_t start, std::uint64_t pid_namespace) {
    return std::to_string(pid) + ":" + std::to_string(start) + ":" + std::to_string(pid_namespace);
}

}  // namespace marey
