// watch_condition.h: what a watcher waits for: "handle > 250ms", "stall > 30s", "died".
#pragma once

#include <cstdint>
#include <string>

namespace marey::cli {

enum class WatchKind : std::uint8_t {
    Range,        ///< a range of this name has ended and took longer
    Stall,        ///< a range is still open for longer
    Step,         ///< a step took longer
    Counter,      ///< a counter is above a value
    Memory,       ///< the process uses more memory
    Gap,          ///< a device had nothing to do for longer
    MissingRank,  ///< other ranks wait for a rank
    Exception,    ///< an exception that nothing handled
    Died,         ///< the process was killed, or ended without closing its capture
};

struct WatchCondition {
    std::string text;  ///< as given
    WatchKind kind = WatchKind::Range;
    std::string name{};        ///< a shell pattern, of what the kind names; empty: any
    double limit = 0;          ///< in ns, in bytes, or a counter's value; with `of_usual`, a factor
    double of_usual = 0;       ///< the limit is this quantile of what was before, times `limit`; 0: it is not
    std::string limit_text{};  ///< as given
};

/// Throws marey::Error with the column of what is not understood.
WatchCondition parse_watch_condition(const std::string& text);

}  // namespace marey::cli
