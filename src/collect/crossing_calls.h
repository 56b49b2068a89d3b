// crossing_calls.h: for NestingStack: calls that wait for a range inside them, and ranges that were cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace marey {

/// Times of a range, in ns, and flags derived from them.
struct RangeTimes {
    std::int64_t start;
    std::int64_t end;
    std::uint16_t flags;
};

/// A crossing call whose place is before a range that is on the stack.
struct WaitingCall {
    std::ptrdiff_t frame;  ///< of that range
    std::int64_t key;
    RangeTimes times;
    std::uint32_t site;  ///< a row
    std::span<const std::byte> payload;
    std::uint8_t part;
    std::uint64_t call;
};

/// The calls that cross ranges: those on the stack are counted, and the others wait here.
class CrossingCalls {
  public:
    bool has_any() const noexcept { return count_ != 0; }
    void add() noexcept { ++count_; }
    void remove() noexcept { --count_; }
    void wait(const WaitingCall& call) {
        ++count_;
        waiting_.push_back(call);
    }
    /// The call that waits since the last wait().
    WaitingCall& last() noexcept { return waiting_.back(); }
    /// Takes the last calls that wait for this frame, those of outer ranges first.
    std::vector<WaitingCall> take(std::ptrdiff_t frame) {
        const auto is_other = [&](const WaitingCall& call) { return call.frame != frame; };
        const auto first = std::find_if(waiting_.rbegin(), waiting_.rend(), is_other).base();
        std::vector<WaitingCall> calls(first, waiting_.end());
        waiting_.erase(first, waiting_.end());
        count_ -= calls.size();
        return calls;
    }

  private:
    std::size_t count_ = 0;             ///< on the stack or waiting
    std::vector<WaitingCall> waiting_;  ///< calls of inner ranges after those of outer ones
};

/// Frames that never ended and were cut to a range around them.
class CutFrames {
  public:
    /// Each takes time for all rows.
    bool is_full() const noexcept { return cuts_.size() == kMaxCuts; }
    /// Cuts the frame that began at `start` and those in it, `count` in all, when `row` was the last row
    /// written, of `capacity`. Rows are written from the last to the first: the rows since the frame was
    /// pushed, or since it was cut, lie after these frames, not in them.
    void cut(std::int64_t start, std::size_t count, std::uint32_t* depths, std::size_t row,
             std::size_t capacity) {
        const auto known =
            std::find_if(cuts_.rbegin(), cuts_.rend(), [&](const Cut& cut) { return cut.start == start; });
        const std::size_t end = known != cuts_.rend() ? known->row : capacity;
        for (std::size_t i = row; i < end; ++i) depths[i] -= static_cast<std::uint32_t>(count);
        cuts_.push_back({start, row});
    }

  private:
    static constexpr std::size_t kMaxCuts = 64;
    struct Cut {
        std::int64_t start;
        std::size_t row;  ///< the last one that was written then
    };
    std::vector<Cut> cuts_;
};

}  // namespace marey
