// process_text.h: the texts that identify processes, trees of processes and clocks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace marey {

/// A tree's id in hexadecimal; "" if all its bytes are 0: unknown.
inline std::string tree_text(std::span<const std::uint8_t, 16> id) {
    std::string text;
    bool is_known = false;
    for (const std::uint8_t byte : id) {
        for (const int shift : {4, 0}) text += "0123456789abcdef"[(byte >> shift) & 15];
        is_known = is_known || byte != 0;
    }
    return is_known ? text : "";
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
