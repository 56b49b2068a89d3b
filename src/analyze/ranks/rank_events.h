// rank_events.h: what the analysis of ranks keeps of each rank's trace.
#pragma once

#include <unordered_map>

#include <marey/ranks.h>

namespace marey {

/// Texts by number, shared by all ranks of a job.
class TextNumbers {
  public:
    std::uint32_t number(std::string_view text) {
        const auto [found, is_new] = numbers_.try_emplace(std::string(text), 0);
        if (is_new) {
            found->second = static_cast<std::uint32_t>(texts_.size());
            texts_.push_back(&found->first);
        }
        return found->second;
    }
    const std::string& text(std::uint32_t number) const { return *texts_[number]; }
    std::size_t size() const { return texts_.size(); }

  private:
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::vector<const std::string*> texts_;
};

/// The number of a collective in its group, equal on all ranks. Ranges with numbers of their own: that number
/// and the place among several ranges with it. Others: the step and the place in it, see place_in_steps().
using CollectiveNumber = std::int64_t;
constexpr int kPlaceBits = 20;

/// Collectives without a number are counted in each step and between two steps. `step`: the last one that
/// began; `is_inside`: it had not ended.
constexpr CollectiveNumber place_in_steps(std::int64_t step, bool is_inside) {
    return 2 * step + (is_inside ? 2 : 3);
}
/// The group of collectives without a number.
constexpr std::string_view kGroupByOrder("\0by order", 9);

/// "world #3", "#3", "in step 3", "after step 3".
std::string place_text(std::string_view group, CollectiveNumber number);

/// A collective of one rank, on its host's clock.
struct RankCollective {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    CollectiveNumber sequence = 0;
    std::uint32_t group = 0;  ///< text
    std::uint32_t name = 0;
    std::uint32_t operation = 0;  ///< text: the same for all names of one operation
    /// Text: the range with the most self time since the last collective.
    std::uint32_t before : 30 = 0;
    std::uint32_t is_partial : 1 = 0;  ///< it began before the recording, or did not end in it
    std::uint32_t is_open : 1 = 0;     ///< it did not end
};

/// A complete step of one rank.
struct RankStep {
    std::int64_t number = 0;
    std::int64_t from_ns = 0;  ///< the end of the step before, so that loading data between steps counts
    std::int64_t end_ns = 0;
    std::int64_t compute_ns = 0;
    std::int64_t communication_ns = 0;
    std::int64_t overlap_ns = 0;
    std::int64_t input_ns = 0;

    std::int64_t duration_ns() const noexcept { return end_ns - from_ns; }
};

/// An exchange with another host; as ClockExchangeInfo.
struct RankExchange {
    std::uint32_t peer = 0;  ///< text
    std::int64_t sent_ns = 0, arrived_ns = 0, answered_ns = 0, received_ns = 0;
};

struct RankEvents {
    std::int32_t rank = 0;
    std::int32_t world_size = 0;  ///< 0: unknown
    std::int64_t pid = 0;
    std::uint64_t process_start = 0;   ///< as ProcessInfo::start
    std::uint32_t tree = 0, host = 0;  ///< texts; the tree as in ProcessInfo
    WallClock wall_clock;
    std::int64_t error_ns = 0;  ///< of its times
    RankEnd end = RankEnd::Closed;
    std::int32_t exit_code = -1, exit_signal = -1;  ///< as in ProcessInfo
    std::int64_t start_ns = 0, end_ns = 0;          ///< of its recording
    std::uint32_t open_name = 0;                    ///< text: the innermost range of its thread at the end
    std::int64_t open_ns = 0;                       ///< for how long it was open
    std::int64_t first_step = 0, last_step = -1;    ///< numbers, of steps that were cut off too; none: -1
    bool has_cut_step = false;
    std::vector<RankExchange> exchanges;
    std::vector<RankStep> steps;              ///< by start; without overlaps
    std::vector<RankCollective> collectives;  ///< by start

    bool has_steps() const noexcept { return last_step >= first_step; }
};

/// The wall clock of a process, with the error that its kernel states.
WallClock wall_clock_of(const Trace& trace, const ProcessInfo& process);

/// Reads one process of a trace.
RankEvents read_rank(const Trace& trace, Row process, std::int32_t rank, const RankOptions& options,
                     TextNumbers& texts);

}  // namespace marey
