// host_clocks.h: how the clocks of several hosts relate, from events that must have happened in a known
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <marey/detail/cxx20.h>
#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// Where evidence about two clocks comes from.
enum class ClockEvidenceKind : std::uint8_t {
    Exchange = 0,    ///< a request and its answer (marey/clock_exchange.h)
    Message = 1,     ///< a message, or a remote call
    Collective = 2,  ///< nobody leaves a collective before the last rank has entered it
    WallClock = 3,   ///< the wall clocks of both hosts, with the error that their kernels state
};
inline constexpr std::size_t kClockEvidenceKinds = 4;

/// One fact: `earlier_ns` on the clock of one host is not after `later_ns` on the clock of another. Hosts are
/// numbers from 0. A caller whose times have an error of their own adds it to `later_ns`.
struct ClockEvidence {
    std::uint32_t earlier_host = 0;
    std::uint32_t later_host = 0;
    std::int64_t earlier_ns = 0;
    std::int64_t later_ns = 0;
    ClockEvidenceKind kind = ClockEvidenceKind::Exchange;
};

/// The error of a clock that nothing bounds.
inline constexpr std::int64_t kUnknownClockError = std::numeric_limits<std::int64_t>::max();

/// Adds the two facts of one exchange between `asking` and `answering`: sent and received on the clock of
/// `asking`, arrived and answered on the clock of `answering`.
MAREY_API void add_clock_exchange(std::vector<ClockEvidence>& evidence, std::uint32_t asking,
                                  std::uint32_t answering, std::int64_t sent_ns, std::int64_t arrived_ns,
                                  std::int64_t answered_ns, std::int64_t received_ns);

/// The wall clock of a host: add `offset_ns` to its own clock for nanoseconds since 1970. `error_ns` is the
/// `maxerror` of adjtimex(2), or kUnknownClockError if the kernel says that the clock is not synchronised.
struct WallClock {
    std::int64_t at_ns = 0;  ///< when it was read, on the host's own clock
    std::int64_t offset_ns = 0;
    std::int64_t error_ns = kUnknownClockError;
};
/// Adds the two facts that the wall clocks of two hosts give; none if one of them is not synchronised.
MAREY_API void add_wall_clocks(std::vector<ClockEvidence>& evidence, std::uint32_t first,
                               const WallClock& of_first, std::uint32_t second, const WallClock& of_second);

/// A point of the line from one clock to another.
struct ClockKnot {
    std::int64_t at_ns = 0;      ///< on the host's clock
    std::int64_t offset_ns = 0;  ///< add it for the time on the reference's clock
    std::int64_t error_ns = kUnknownClockError;
};

/// The relation of one host's clock to that of the reference. Between two knots it is a line.
struct MAREY_API HostClock {
    std::uint32_t reference = 0;
    /// "reference", "exchange", "message", "collective", "wall_clock" (the strongest kind of evidence on the
    /// weakest part of the path) or "none" (no path: offsets are those of the wall clocks, without a bound).
    std::string method;
    std::uint64_t evidence[kClockEvidenceKinds] = {};  ///< facts about the last part of the path, by kind
    std::vector<ClockKnot> knots;                      ///< at least one, in order of time
    double rate = 0;            ///< mean rate against the reference, minus 1: 2e-5 is 20 ppm
    std::int64_t error_ns = 0;  ///< largest error between the first and the last knot
    // Before the first and after the last knot: the rate of the line, and the growth of the error.
    double first_rate = 0, last_rate = 0;
    double first_growth = 0, last_growth = 0;

    std::int64_t to_reference(std::int64_t ns) const noexcept;
    std::int64_t error_at(std::int64_t ns) const noexcept;
};

/// The evidence that a fit used, such as "112 exchanges, 340 collectives".
MAREY_API std::string evidence_text(const HostClock& clock);

/// The clocks of all hosts.
struct HostClocks {
    std::uint32_t reference = 0;
    std::vector<HostClock> hosts;
    std::vector<ProblemInfo> problems;  ///< "clock_contradiction", "clock_unknown"
};

/// Fits the clocks of hosts. For each pair of hosts with evidence, and for windows of 90 s, the fit computes
/// all lines that contradict no fact and takes the one with the widest margin; the others bound its error. A
/// window without such a line is halved as long as wandering rates can be the reason; otherwise contradicting
/// facts are left out, weaker kinds first, and a problem names them. If too few facts agree to tell which are
/// wrong, the error covers both. The reference is the host with evidence about the most others; errors add up
/// along the path to it. `wall_clocks` has one entry per host: where their errors are known, they are
/// evidence, too, and relate hosts that nothing else does; otherwise they only place hosts without a path.
/// `names` are the names of the hosts for problems; empty: their numbers.
MAREY_API HostClocks fit_host_clocks(std::span<const WallClock> wall_clocks,
                                     std::span<const ClockEvidence> evidence,
                                     std::span<const std::string> names = {});

}  // namespace marey
