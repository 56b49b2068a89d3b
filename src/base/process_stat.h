// process_stat.h: what the kernel tells about a process.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/small_file.h"

namespace marey {

/// The fields of /proc/PID/stat; none if the process has ended, or /proc is missing.
class ProcessStat {
  public:
    enum Field : std::uint8_t { kState = 3, kParent = 4, kThreads = 20, kStart = 22, kExitStatus = 52 };

    explicit ProcessStat(std::int64_t pid) : ProcessStat(std::to_string(pid)) {}
    static ProcessStat of_this() { return ProcessStat("self"); }

    /// "": there is none.
    std::string_view text(Field wanted) const {
        std::size_t at = text_.rfind(')');  // the name before it may contain anything
        for (int field = 2; at != text_.npos && field < wanted; ++field) at = text_.find(' ', at + 1);
        if (at == text_.npos) return {};
        const std::string_view rest = std::string_view(text_).substr(at + 1);
        return rest.substr(0, rest.find_first_of(" \n"));
    }
    /// 0: there is none.
    std::int64_t number(Field wanted) const {
        const std::string_view digits = text(wanted);
        std::int64_t value = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return value;
    }
    /// Clock ticks from boot to its start, which tells it from others with its id.
    std::uint64_t start() const { return static_cast<std::uint64_t>(number(kStart)); }

  private:
    explicit ProcessStat(const std::string& process)
        : text_(read_small_file(("/proc/" + process + "/stat").c_str())) {}

    std::string text_;
};

/// The id of a process in its own namespace, which is what it has written into its capture.
inline std::int64_t own_pid(std::int64_t pid) {
    const std::string status = read_small_file(("/proc/" + std::to_string(pid) + "/status").c_str());
    constexpr std::string_view kKey = "\nNSpid:";
    const std::size_t at = status.find(kKey);
    if (at == status.npos) return pid;
    const std::string_view line = std::string_view(status).substr(at + 1, status.find('\n', at + 1) - at - 1);
    std::from_chars(line.data() + line.find_last_of(" \t") + 1, line.data() + line.size(), pid);
    return pid;
}

}  // namespace marey
