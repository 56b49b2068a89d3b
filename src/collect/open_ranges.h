// open_ranges.h: which ranges were open when a program died, from the thread blocks of its capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include <marey/detail/log_format.h>

#include "record/raw_log.h"

namespace marey {

/// The Thread, OpenSegment and SideSegment blocks of a capture, by thread. The newest (by sequence) wins
/// where two claim the same place. The bytes belong to the capture and must outlive this.
class ThreadBlocks {
  public:
    /// `data` starts after the header and goes as far as the file does.
    void add(const detail::BlockHeader& header, std::span<const std::byte> data);

  private:
    struct Part {
        std::uint64_t sequence = 0;
        std::span<const std::byte> data;
    };
    friend void read_thread_blocks(const ThreadBlocks& blocks, RawLog& log);
    static void put(Part& place, std::uint64_t sequence, std::span<const std::byte> data);

    std::map<std::uint32_t, Part> states_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Part> open_segments_;  // (thread, segment)
    std::map<std::uint32_t, Part> side_segments_;
};

/// Adds the open ranges to `log.open`, and each thread's counters to `log.journal` as Losses records where
/// they exceed those of the journal.
void read_thread_blocks(const ThreadBlocks& blocks, RawLog& log);

}  // namespace marey
