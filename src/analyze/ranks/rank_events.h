// rank_events.h: what the analysis of ranks keeps of each rank's trace.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

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

/// A collective of one rank, on its host's clock.
struct RankCollective {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t sequence = 0;
    std::uint32_t group = 0;  ///< text: of the group, and of the step if the collectives are not numbered
    std::uint32_t name = 0;
    std::uint32_t before = 0;  ///< text: the range with the most self time since the last collective
    bool is_partial = false;   ///< it began before the recording, or did not end in it
};

/// A complete step of one rank.
struct RankStep {
    std::int64_t number = 0;
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t compute_ns = 0;
    std::int64_t communication_ns = 0;
    std::int64_t overlap_ns = 0;
    std::int64_t input_ns = 0;

    std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

/// An exchange with another host; as ClockExchangeInfo.
struct RankExchange {
    std::uint32_t peer = 0;  ///< text
    std::int64_t sent_ns = 0, arrived_ns = 0, answered_ns = 0, received_ns = 0;
};

struct RankEvents {
    std::int32_t rank = 0;
    std::int64_t pid = 0;
    std::uint32_t host = 0;  ///< text
    WallClock wall_clock;
    std::int64_t error_ns = 0;  ///< of its times
    std::vector<RankExchange> exchanges;
    std::vector<RankStep> steps;              ///< by start; without overlaps
    std::vector<RankCollective> collectives;  ///< by start
};

/// The wall clock of a process, with the error that its kernel states.
WallClock wall_clock_of(const Trace& trace, const ProcessInfo& process);

/// Reads one process of a trace.
RankEvents read_rank(const Trace& trace, Row process, std::int32_t rank, const RankOptions& options,
                     TextNumbers& texts);

}  // namespace marey
