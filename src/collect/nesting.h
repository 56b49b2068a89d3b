// nesting.h: the stack that turns a thread's records, last one first, into rows in pre-order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "collect/clock_fit.h"
#include "collect/log_records.h"
#include "collect/thread_replay.h"
#include "collect/view.h"

namespace kymo {

/// Fed with ranges from the last to end to the first. A range's parent is the nearest one on the stack with a
/// smaller recorded depth; times never decide, they are only set right: a range is cut to its parent and to
/// the sibling behind it when it sticks out by no more than kSlackNs, and taken out of the nesting when by
/// more. A frame leaves the stack when its last descendant is known, which happens in exactly reverse
/// pre-order: the rows are written once, from the end of the slice to its front, with their final depth and
/// self time.
class NestingStack {
  public:
    NestingStack(ThreadReplay& replay, const View& view, const ClockFit& fit, const RowSlice& slice)
        : replay_(replay),
          view_(view),
          converter_(fit),
          slice_(slice),
          next_row_(slice.capacity),
          frames_(64) {
        Frame& root = frames_[0];
        root.key = -2;
        root.start = kLeast;
        root.end = root.limit = std::numeric_limits<std::int64_t>::max();
        top_ = &root;
        last_ = &frames_.back();
    }

    std::int64_t to_ns(std::uint64_t ticks) noexcept { return converter_(ticks); }

    /// A compact range: no flags, no values.
    void push_plain(std::uint32_t depth, std::uint64_t start, std::uint64_t end, std::uint32_t site) {
        const std::int64_t key = std::int64_t{depth} * 2;
        while (top_->key >= key) pop();
        push(key, start, end, site, 0, {}, 0);
    }
    /// End ~0: never ended. The payload must outlive the build.
    void push_scope(std::uint32_t depth, std::uint64_t start, std::uint64_t end, std::uint32_t site,
                    std::uint16_t flags, std::span<const std::byte> payload) {
        const std::int64_t key = std::int64_t{depth} * 2;
        while (top_->key >= key) pop();
        push(key, start, end, site, flags, payload, 0);
    }
    /// One of a SequencedRange.
    void push_sequenced(std::uint64_t start, const SequencedFields& fields, std::uint32_t site) {
        const std::int64_t key = std::int64_t{fields.depth} * 2;
        while (top_->key >= key) pop();
        if (push(key, start, fields.end, site, 0, {}, 0)) {
            top_->is_sequenced = true;
            top_->sequence = fields.sequence;
            top_->forward_thread = fields.forward_thread;
        } else {
            AsyncRow& aside = replay_.async_rows.back();
            aside.is_sequenced = true;
            aside.sequence = fields.sequence;
            aside.forward_thread = fields.forward_thread;
        }
    }
    /// A movable range that nests, with `depth` scopes around it: between those and the next deeper ones, and
    /// within the movable ranges of the same depth that are still on the stack. `id` is for pop_async, not 0.
    /// False when it was put aside as async instead.
    bool push_async(std::uint32_t depth, std::uint64_t start, std::uint64_t end, std::uint32_t site,
                    std::uint16_t flags, std::span<const std::byte> payload, std::uint32_t id) {
        const std::int64_t key = std::int64_t{depth} * 2 - 1;
        while (top_->key > key) pop();
        return push(key, start, end, site, flags, payload, id);
    }
    /// Its begin has been reached: what is on the stack down to it is complete.
    void pop_async(std::uint32_t id) {
        const Frame* frame = top_;
        while (frame != frames_.data() && frame->async != id) --frame;
        if (frame == frames_.data()) return;
        const auto index = frame - frames_.data();
        while (top_ - frames_.data() >= index) pop();
    }
    /// A range that takes no part.
    void add_async(std::uint64_t start, std::uint64_t end, std::uint32_t site, std::uint16_t flags,
                   std::span<const std::byte> payload) {
        std::int64_t start_ns = to_ns(start);
        const std::int64_t end_ns = to_window_end(end, flags);
        start_ns = std::min(start_ns, end_ns);
        if (start < view_.start_ticks) flags |= kBeganBefore;
        put_aside(start_ns, end_ns, view_.site_row(site), flags, payload);
        last_start_ = start;
    }

    /// Records were lost here, the shallowest of them at `depth`: what is deeper on the stack began after
    /// them.
    void pass_dropped(std::uint32_t depth) {
        const std::int64_t key = std::int64_t{depth} * 2;
        last_start_ = 0;
        while (top_->key >= key) pop();
    }
    /// A range was taken out of the middle of the open stack here: before, those above it were one deeper.
    void pass_removed(std::uint32_t depth, std::uint64_t start) {
        const std::int64_t key = std::int64_t{depth} * 2;
        const std::int64_t start_ns = to_ns(start);
        std::size_t left = kMostShifted;
        for (Frame* frame = top_; frame->key >= key - 1 && frame != frames_.data() && left != 0;
             --frame, --left) {
            // A movable range of just this depth began under the removed one or around it: only its start
            // tells.
            if (frame->key >= key || start_ns <= frame->start) frame->key += 2;
        }
    }
    /// Scopes that had begun before were put onto the open stack here, the first at `depth`: what was
    /// recorded before, at that depth or deeper, lies within them as far as they had begun then.
    void pass_adopted(std::uint32_t depth, std::uint64_t time) {
        const std::int64_t key = std::int64_t{depth} * 2;
        const std::int64_t time_ns = to_ns(time);
        last_start_ = 0;
        while (top_->key >= key && top_->start > time_ns) pop();
        if (top_->key < key) return;
        top_->key = key - 1;
        top_->is_adopted = true;
    }
    /// The range that was given last is part of a call, if `start` (ticks, the low 48 bits) is its own.
    void set_part(std::uint64_t start, std::uint64_t call, std::uint8_t flags) noexcept {
        if (last_start_ == 0 || (last_start_ & kPartStartMask) != start) return;
        last_start_ = 0;
        if (last_aside_) {
            replay_.async_rows.back().call = call;
            replay_.async_rows.back().part = flags;
        } else {
            top_->call = call;
            top_->part = flags;
        }
    }
    /// What was given last is not kept.
    void pass_unseen() noexcept { last_start_ = 0; }

    /// Whole chunks may be missing here, and with them the ends of parents: what began after the next record
    /// has ended is no parent of it.
    void pass_gap() noexcept { behind_gap_ = true; }

    void finish() {
        while (top_ != frames_.data()) pop();
        replay_.rows = slice_.capacity - next_row_;
        const auto turn_round = [&](auto& refs) {
            std::reverse(refs.begin(), refs.end());
            for (auto& ref : refs) ref.row = static_cast<std::uint32_t>(replay_.rows - ref.row);
        };
        turn_round(replay_.payloads);
        turn_round(replay_.sequenced);
        turn_round(replay_.parts);
    }

  private:
    static constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min() / 2;
    static constexpr std::size_t kMostShifted =
        4096;  // against hostile logs; nobody closes this far from the top

    struct Frame {
        std::int64_t key = 0;    ///< scopes: twice the depth; movable ranges: one less
        std::int64_t start = 0;  ///< ns
        std::int64_t end = 0;
        std::int64_t limit = 0;     ///< where the next child to come (to the left) must end
        std::int64_t children = 0;  ///< clipped ns of its children so far
        const std::byte* payload = nullptr;
        std::uint32_t payload_bytes = 0;
        std::uint32_t site = 0;
        std::uint32_t async = 0;
        std::uint16_t flags = 0;
        std::uint8_t part = 0;
        bool is_sequenced = false;
        bool is_adopted = false;
        std::uint32_t sequence = 0;
        std::uint32_t forward_thread = 0;
        std::uint64_t call = 0;  ///< 0: part of none
    };

    std::int64_t to_window_end(std::uint64_t end, std::uint16_t& flags) noexcept {
        if (end > view_.stop_ticks) [[unlikely]] {
            flags |= kUnfinished;
            return view_.end_ns;
        }
        return to_ns(end);
    }

    [[gnu::always_inline]] inline bool push(std::int64_t key, std::uint64_t start, std::uint64_t end,
                                            std::uint32_t site, std::uint16_t flags,
                                            std::span<const std::byte> payload, std::uint32_t async) {
        const std::uint32_t row = view_.site_row(site);
        last_start_ = start;
        std::int64_t end_ns = to_window_end(end, flags);
        std::int64_t start_ns = to_ns(start);
        flags |= start < view_.start_ticks ? kBeganBefore : 0;
        if (start_ns > end_ns) start_ns = end_ns;
        if (behind_gap_) [[unlikely]] {
            behind_gap_ = false;
            while (end_ns < top_->start - kSlackNs) pop();
        }
        if (top_->is_adopted && end_ns <= top_->start) [[unlikely]] {
            do pop();
            while (top_->key >= key);
        }
        if (end_ns > top_->limit || start_ns < top_->start) [[unlikely]] {
            if (end_ns - kSlackNs > top_->limit || start_ns + kSlackNs < top_->start) {
                ++replay_.misplaced;
                put_aside(start_ns, end_ns, row, flags, payload);
                return false;
            }
            ++replay_.adjusted;
            end_ns = std::clamp(end_ns, top_->start, top_->limit);
            start_ns = std::clamp(start_ns, top_->start, end_ns);
            if (end_ns != view_.end_ns) flags = static_cast<std::uint16_t>(flags & ~kUnfinished);
            if (start_ns >= view_.start_ns) flags = static_cast<std::uint16_t>(flags & ~kBeganBefore);
        }
        top_->limit = start_ns;
        if (top_ == last_) grow();
        Frame& frame = *++top_;
        frame.key = key;
        frame.start = start_ns;
        frame.end = end_ns;
        frame.limit = end_ns;
        frame.children = 0;
        frame.payload = payload.data();
        frame.payload_bytes = static_cast<std::uint32_t>(payload.size());
        frame.site = row;
        frame.async = async;
        frame.flags = flags;
        frame.is_sequenced = false;
        frame.is_adopted = false;
        frame.call = 0;
        last_aside_ = false;
        return true;
    }

    [[gnu::always_inline]] inline void pop() {
        const Frame& frame = *top_--;
        if (next_row_ == 0) [[unlikely]]
            return;  // the log changed while it was read
        const std::int64_t first = std::max(frame.start, view_.start_ns);
        const std::int64_t clipped = std::max<std::int64_t>(frame.end - first, 0);
        top_->children += clipped;
        const std::size_t row = --next_row_;
        slice_.start_ns[row] = frame.start;
        slice_.duration_ns[row] = frame.end - frame.start;
        slice_.self_ns[row] = std::max<std::int64_t>(clipped - frame.children, 0);
        slice_.site[row] = frame.site;
        slice_.depth[row] = static_cast<std::uint32_t>(top_ - frames_.data());
        slice_.flags[row] = frame.flags;
        if (frame.payload_bytes != 0) [[unlikely]] {
            // Counted from the end for now; finish() turns it round.
            replay_.payloads.push_back(
                {static_cast<std::uint32_t>(slice_.capacity - row), frame.payload_bytes, frame.payload});
        }
        if (frame.is_sequenced) {
            replay_.sequenced.push_back(
                {static_cast<std::uint32_t>(slice_.capacity - row), frame.sequence, frame.forward_thread});
        }
        if (frame.call != 0) [[unlikely]] {
            replay_.parts.push_back(
                {static_cast<std::uint32_t>(slice_.capacity - row), frame.part, frame.call});
        }
    }

    void put_aside(std::int64_t start_ns, std::int64_t end_ns, std::uint32_t row, std::uint16_t flags,
                   std::span<const std::byte> payload) {
        replay_.async_rows.push_back({start_ns, end_ns, row, static_cast<std::uint16_t>(flags | kAsync),
                                      static_cast<std::uint32_t>(payload.size()), payload.data()});
        last_aside_ = true;
    }

    void grow() {
        const auto index = top_ - frames_.data();
        frames_.resize(frames_.size() * 2);
        top_ = frames_.data() + index;
        last_ = &frames_.back();
    }

    ThreadReplay& replay_;
    const View& view_;
    TickConverter converter_;
    RowSlice slice_;
    std::size_t next_row_;
    std::vector<Frame> frames_;  // [0] stands for the thread
    Frame* top_;
    Frame* last_;
    std::uint64_t last_start_ = 0;  // ticks, of the range that was given last; 0: it is not kept
    bool last_aside_ = false;       // it is async
    bool behind_gap_ = false;
};

}  // namespace kymo
