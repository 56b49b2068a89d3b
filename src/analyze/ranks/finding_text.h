// finding_text.h: ranks, times and shares in the sentences of findings.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace marey {

constexpr std::string_view kNoRankText =
    "no process has a rank (record with marey.torch, or set the variable RANK)";

inline std::string percent_text(double share) {
    return std::to_string(std::lround(share * 100)) + "%";
}

/// "24.9 s", "3.0 ms", "12.0 us".
inline std::string time_text(double ns) {
    const double unit = ns >= 1e9 ? 1e9 : ns >= 1e6 ? 1e6 : 1e3;
    const long tenths = std::lround(std::max(ns, 0.0) / unit * 10);
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) +
           (unit == 1e9   ? " s"
            : unit == 1e6 ? " ms"
                          : " us");
}

/// "rank 1", "ranks 0, 2, 3" or, if there are many, "ranks 0-6, 8-63". `ranks` is sorted and not empty.
inline std::string ranks_text(const std::vector<std::int32_t>& ranks) {
    constexpr std::size_t kListed = 8, kParts = 12;
    std::string text;
    std::size_t parts = 0;
    for (std::size_t i = 0; i < ranks.size(); ++parts) {
        std::size_t end = i + 1;
        while (ranks.size() > kListed && end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
        if (parts == kParts) return "ranks " + text + " and " + std::to_string(ranks.size() - i) + " more";
        text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
        if (end - i > 1) text += "-" + std::to_string(ranks[end - 1]);
        i = end;
    }
    return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

}  // namespace marey
