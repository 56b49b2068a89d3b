// nesting.h: the stack that turns a thread's records, last one first, into rows in pre-order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "collect/clocks/clock_fit.h"
#include "collect/log_records.h"
#include "collect/session_filter.h"
#include "collect/thread_replay.h"

namespace marey {

/// Takes ranges from the last to end to the first. A range's parent is the nearest one on the stack with a
/// smaller recorded depth. Times never decide, they are only corrected: a range is cut to its parent and to
/// the sibling after it when it exceeds them by no more than kSlackNs, and taken out of the nesting when by
/// more. A frame leaves the stack when its last descendant is known, which happens in exactly reverse
/// pre-order: the rows are written once, from the end of the slice to its front, with their final depth and
/// self time.
class NestingStack {
  public:
    NestingStack(ThreadReplay& replay, const SessionFilter& filter, const ClockFit& fit,
                 const RowSlice& slice)
        : replay_(replay),
          filter_(filter),
          converter_(fit),
          slice_(slice),
          next_row_(slice.capacity),
          frames_(64) {
        Frame& root = frames_[0];
        root.key = -2;
        root.start = kMin;
        root.end = root.limit = std::numeric_limits<std::int64_t>::max();
        top_ = &root;
        last_ = &frames_.back();
    }

    std::int64_t to_ns(std::uint64_t ticks) noexcept { return converter_(ticks); }

    /// A compact range: no flags, no values.
    void push_plain(std::uint32_t depth, std::uint64_t start, std::uint64_t end, std::uint32_t site) {
        const std::int64_t key = std::int64_t{depth} * 2;
        pop_to(key, end);
        push(key, start, end, site, 0, {}, 0);
    }
    /// End ~0: never ended. The payload must outlive the build.
    void push_scope(std::uint32_t depth, std::uint64_t start, std::uint64_t end, std::uint32_t site,
                    std::uint16_t flags, std::span<const std::byte> payload) {
        const std::int64_t key = std::int64_t{depth} * 2;
        pop_to(key, end);
        push(key, start, end, site, flags, payload, 0);
    }
    /// A call that crosses: ranges around it ended within it, or ranges that began in it outlived it. It is
    /// shown from the last of those ends to the first of those begins: the rest, inside such a range, belongs
    /// to the range.
    void push_crossing(std::uint32_t depth, std::uint64_t start, std::uint64_t end, std::uint32_t site,
                       std::uint16_t flags, std::span<const std::byte> payload) {
        const std::int64_t key = std::int64_t{depth} * 2;
        const Times times = times_of(start, end, flags);
        while (is_within(*top_, key, times.start) && top_->start >= times.end) pop();
        if (!is_within(*top_, key, times.start)) {
            top_crosses(push(key, start, end, site, flags, payload, 0));
            return;
        }
        // A range that began in it is on the stack and not complete yet: the call's place is before it.
        Frame* first = top_;
        std::size_t left = kMaxShifted;
        while (is_within(first[-1], key, times.start) && --left != 0) --first;
        pass_removed(depth, start);
        if (left == 0) return add_async(start, end, site, flags, payload);
        first->has_waiting = true;
        ++crossing_;
        waiting_.push_back({first - frames_.data(), key, times, filter_.site_rows.row(site), payload, 0, 0});
        last_start_ = start;
        last_place_ = Place::Waiting;
    }
    /// A range that ended before ranges inside it which never ended: these end with it. False: there are
    /// others inside it, or none, and nothing has changed.
    bool push_around_open(std::uint32_t depth, std::uint64_t start, std::uint64_t end, std::uint32_t site,
                          std::uint16_t flags, std::span<const std::byte> payload) {
        const std::int64_t key = std::int64_t{depth} * 2;
        Times times = times_of(start, end, flags);
        while (is_within(*top_, key, times.start) && top_->start >= times.end) pop();
        Frame* first = top_ + 1;
        while (first > frames_.data() + 1 && is_within(first[-1], key, times.start)) {
            if (!never_ended(*--first)) return false;
        }
        const auto inside = static_cast<std::size_t>(top_ + 1 - first);
        if (inside == 0 || cuts_.size() == kMaxCuts) return false;
        leave_rows(*first, inside);
        for (Frame* frame = first; frame <= top_; ++frame) {
            first[-1].children += std::exchange(frame->children, 0);
            frame->end = std::min(frame->end, times.end);
            frame->limit = std::min(frame->limit, times.end);
            frame->flags = static_cast<std::uint16_t>((frame->flags & ~kUnfinished) | kEndInferred);
            frame->key += 2;
        }
        const auto index = first - frames_.data();
        if (top_ == last_) grow();
        std::move_backward(frames_.data() + index, top_ + 1, top_ + 2);
        ++top_;
        times.start = std::max(times.start, frames_[index - 1].start);
        Frame around;
        around.key = key;
        around.start = times.start;
        around.end = times.end;
        around.limit = frames_[index + 1].start;
        around.payload = payload.data();
        around.payload_bytes = static_cast<std::uint32_t>(payload.size());
        around.site = filter_.site_rows.row(site);
        around.flags = times.flags;
        frames_[index - 1].limit = times.start;
        frames_[index] = around;
        last_start_ = 0;
        return true;
    }
    /// A range of a SequencedRange record.
    void push_sequenced(std::uint64_t start, const SequencedFields& fields, std::uint32_t site) {
        const std::int64_t key = std::int64_t{fields.depth} * 2;
        pop_to(key, fields.end);
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
    /// False when it became async instead.
    bool push_async(std::uint32_t depth, std::uint64_t start, std::uint64_t end, std::uint32_t site,
                    std::uint16_t flags, std::span<const std::byte> payload, std::uint32_t id) {
        const std::int64_t key = std::int64_t{depth} * 2 - 1;
        pop_to(key + 1, end);
        return push(key, start, end, site, flags, payload, id);
    }
    /// The same for a step, which is shown from `from`, the end of the last scope that it began in and
    /// outlived. Of the step and a scope that began in it and outlived it, the one that loses less time is
    /// cut: the step begins with the scope, or the scope begins at the end of the step. Where that would take
    /// away more than 1/kStepShare of the step's time, the step keeps its times and becomes async: false.
    bool push_step(std::uint32_t depth, std::uint64_t start, std::uint64_t from, std::uint64_t end,
                   std::uint32_t site, std::uint16_t flags, std::span<const std::byte> payload,
                   std::uint32_t id) {
        std::int64_t key = std::int64_t{depth} * 2 - 1;
        pop_to(key + 1, end);
        const Times whole = times_of(start, end, flags);
        Frame* scope = top_ + 1;
        std::int64_t first = times_of(from, end, flags).start;
        while (scope[-1].start > first) --scope;
        for (; scope <= top_ && scope->start - first <= whole.end - scope->start; ++scope)
            first = scope->start;
        const std::int64_t lost = first - whole.start + (scope <= top_ ? whole.end - scope->start : 0);
        if (lost > (whole.end - whole.start) / kStepShare) {
            add_async(start, end, site, flags, payload);
            return false;
        }
        if (scope <= top_) {
            key = scope->key - 1;
            for (; scope <= top_; ++scope) {
                if (!std::exchange(scope->is_crossing, true)) ++crossing_;
            }
            pop_to(key + 1, end);
        }
        cuts_far_ = true;
        const bool is_placed = push(key, from, end, site, flags, payload, id);
        cuts_far_ = false;
        if (is_placed) top_->ends_by_time = true;
        return is_placed;
    }
    /// Its begin has been reached: the frames on the stack down to it are complete.
    void pop_async(std::uint32_t id) {
        const Frame* frame = top_;
        while (frame != frames_.data() && frame->async != id) --frame;
        if (frame == frames_.data()) return;
        const auto index = frame - frames_.data();
        while (top_ - frames_.data() > index) pop();
        pop();
    }
    /// A range outside the nesting.
    void add_async(std::uint64_t start, std::uint64_t end, std::uint32_t site, std::uint16_t flags,
                   std::span<const std::byte> payload) {
        add_async_row(times_of(start, end, flags), filter_.site_rows.row(site), payload);
        last_start_ = start;
    }

    /// Records were lost here, the shallowest of them at `depth`: deeper frames on the stack began after
    /// them.
    void pass_dropped(std::uint32_t depth) {
        const std::int64_t key = std::int64_t{depth} * 2;
        last_start_ = 0;
        while (top_->key >= key) pop();
    }
    /// A range was removed from the middle of the open stack here: before, those above it were one deeper.
    void pass_removed(std::uint32_t depth, std::uint64_t start) {
        const std::int64_t key = std::int64_t{depth} * 2;
        const std::int64_t start_ns = to_ns(start);
        std::size_t left = kMaxShifted;
        for (Frame* frame = top_; frame->key >= key - 1 && frame != frames_.data() && left != 0;
             --frame, --left) {
            if (is_within(*frame, key, start_ns)) frame->key += 2;
        }
    }
    /// `count` scopes that had already begun were inserted into the open stack here, the first at `depth`,
    /// and the ranges there moved up. Earlier records, at that depth or deeper, lie within them as far as
    /// they had begun then.
    void pass_adopted(std::uint32_t depth, std::uint64_t time, std::uint64_t count) {
        const std::int64_t key = std::int64_t{depth} * 2;
        const std::int64_t time_ns = to_ns(time);
        const auto shift = static_cast<std::int64_t>(std::min<std::uint64_t>(count, 1u << 31)) * 2;
        last_start_ = 0;
        while (top_->key >= key && top_->start > time_ns) pop();
        std::size_t left = kMaxShifted;
        for (Frame* frame = top_; frame->key >= key && left != 0; --frame, --left) {
            if (frame->key >= key + shift) {
                frame->key -= shift;
            } else {
                frame->key = key - 1;
                frame->ends_by_time = true;
            }
        }
    }
    /// The previous range is part of a call, if `start` (ticks, the low 48 bits) is its own.
    void set_part(std::uint64_t start, std::uint64_t call, std::uint8_t flags) noexcept {
        if (last_start_ == 0 || (last_start_ & kPartStartMask) != start) return;
        last_start_ = 0;
        set_last_part(call, flags);
    }
    /// The previous range is not kept.
    void pass_unseen() noexcept { last_start_ = 0; }

    /// Entire chunks may be missing here, and with them the ends of parents: a range that began after the
    /// next record has ended is not its parent.
    void pass_gap() noexcept { after_gap_ = true; }

    void finish() {
        while (top_ != frames_.data()) pop();
        replay_.rows = slice_.capacity - next_row_;
        const auto turn_round = [&](auto& refs) {
            const auto turn = [&](auto& ref) {
                ref.row = static_cast<std::uint32_t>(replay_.rows - ref.row);
            };
            const std::size_t half = refs.size() / 2;
            for (std::size_t i = 0; i < half; ++i) {
                std::swap(refs[i], refs[refs.size() - 1 - i]);
                turn(refs[i]);
                turn(refs[refs.size() - 1 - i]);
            }
            if (refs.size() % 2 != 0) turn(refs[half]);
        };
        turn_round(replay_.payloads);
        turn_round(replay_.sequenced);
        turn_round(replay_.parts);
    }

  private:
    static constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min() / 2;
    static constexpr std::size_t kMaxShifted =
        4096;  // against hostile logs; real programs do not close this far from the top
    static constexpr std::int64_t kStepShare = 20;

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
        bool ends_by_time = false;  ///< adopted, or cut: ranges that ended before its start are not in it
        bool is_crossing = false;   ///< its start is cut to the end of the range before it
        bool has_waiting = false;   ///< crossing calls come before it
        std::uint32_t sequence = 0;
        std::uint32_t forward_thread = 0;
        std::uint64_t call = 0;  ///< 0: not part of a call
    };

    /// Times of a range, in ns, and flags derived from them.
    struct Times {
        std::int64_t start;
        std::int64_t end;
        std::uint16_t flags;
    };
    /// A crossing call whose place is before a range that is on the stack.
    struct Waiting {
        std::ptrdiff_t frame;  ///< of that range
        std::int64_t key;
        Times times;
        std::uint32_t site;  ///< a row
        std::span<const std::byte> payload;
        std::uint8_t part;
        std::uint64_t call;
    };
    /// A frame that never ended and was cut to a range around it, and the row at that time.
    struct Cut {
        std::int64_t start;
        std::size_t row;
    };
    static constexpr std::size_t kMaxCuts = 64;  // each takes time for all rows
    enum class Place : std::uint8_t { Stack, Aside, Waiting };

    // Whether a range on the stack began inside a scope of that key and start. For a movable range of the
    // same depth as the scope only the start decides.
    static bool is_within(const Frame& frame, std::int64_t key, std::int64_t start_ns) noexcept {
        return frame.key >= key || (frame.key == key - 1 && start_ns <= frame.start);
    }

    static bool never_ended(const Frame& frame) noexcept {
        return (frame.flags & (kUnfinished | kEndInferred)) != 0 && frame.async == 0 && !frame.is_crossing &&
               !frame.has_waiting;
    }
    // The rows written since a frame was pushed, or since it was cut, lie after `count` frames, not in them.
    void leave_rows(const Frame& frame, std::size_t count) {
        const auto is_of_frame = [&](const Cut& cut) { return cut.start == frame.start; };
        const auto known = std::find_if(cuts_.rbegin(), cuts_.rend(), is_of_frame);
        const std::size_t last = known != cuts_.rend() ? known->row : slice_.capacity;
        for (std::size_t row = next_row_; row < last; ++row)
            slice_.depth[row] -= static_cast<std::uint32_t>(count);
        cuts_.push_back({frame.start, next_row_});
    }

    // Removes frames that cannot be around a range of that key, which ended at `end`.
    [[gnu::always_inline]] inline void pop_to(std::int64_t key, std::uint64_t end) {
        if (crossing_ != 0) [[unlikely]]
            return pop_crossing(key, end > filter_.stop_ticks ? filter_.end_ns : to_ns(end));
        while (top_->key >= key) pop();
    }
    // Crossing calls among them are shown from the end of that range.
    [[gnu::noinline]] void pop_crossing(std::int64_t key, std::int64_t end_ns) {
        while (top_->key >= key) {
            if (top_->is_crossing && top_->start < end_ns) {
                top_->start = std::max(top_->start, std::min(end_ns, top_->limit));
                if (top_->start >= filter_.start_ns)
                    top_->flags = static_cast<std::uint16_t>(top_->flags & ~kBeganBefore);
                top_[-1].limit = top_->start;
            }
            pop();
        }
    }

    void set_last_part(std::uint64_t call, std::uint8_t flags) noexcept {
        const auto set = [&](auto& range) {
            range.call = call;
            range.part = flags;
        };
        if (last_place_ == Place::Stack) {
            set(*top_);
        } else if (last_place_ == Place::Aside) {
            set(replay_.async_rows.back());
        } else {
            set(waiting_.back());
        }
    }

    void top_crosses(bool is_placed) noexcept {
        if (!is_placed) return;
        top_->is_crossing = true;
        ++crossing_;
    }

    // The range that the calls waited for has left the stack: they come before it.
    [[gnu::noinline]] void push_waiting(std::ptrdiff_t frame) {
        const bool after_gap = std::exchange(after_gap_, false);
        const auto is_other = [&](const Waiting& call) { return call.frame != frame; };
        const auto last_other = std::find_if(waiting_.rbegin(), waiting_.rend(), is_other);
        const std::vector<Waiting> calls(last_other.base(), waiting_.end());
        waiting_.erase(last_other.base(), waiting_.end());
        for (Waiting call : calls) {
            while (top_->key >= call.key) pop();
            if (call.times.end > top_->limit) {
                call.times.end = top_->limit;
                call.times.flags = static_cast<std::uint16_t>(call.times.flags & ~kUnfinished);
            }
            call.times.start = std::min(call.times.start, call.times.end);
            --crossing_;
            top_crosses(place(call.key, call.times, call.site, call.payload, 0));
            set_last_part(call.call, call.part);
        }
        last_start_ = 0;
        after_gap_ = after_gap;
    }
    // For a frame that is off the stack.
    [[gnu::noinline]] void leave_crossing(bool is_crossing, bool has_waiting) {
        if (is_crossing) --crossing_;
        if (has_waiting) push_waiting(top_ - frames_.data() + 1);
    }

    [[gnu::always_inline]] inline Times times_of(std::uint64_t start, std::uint64_t end,
                                                 std::uint16_t flags) noexcept {
        Times times{to_ns(start), 0, flags};
        if (end > filter_.stop_ticks) [[unlikely]] {
            times.flags |= kUnfinished;
            times.end = filter_.end_ns;
        } else {
            times.end = to_ns(end);
        }
        if (start < filter_.start_ticks) times.flags |= kBeganBefore;
        if (times.start > times.end) times.start = times.end;
        return times;
    }

    [[gnu::always_inline]] inline bool push(std::int64_t key, std::uint64_t start, std::uint64_t end,
                                            std::uint32_t site, std::uint16_t flags,
                                            std::span<const std::byte> payload, std::uint32_t async) {
        last_start_ = start;
        return place(key, times_of(start, end, flags), filter_.site_rows.row(site), payload, async);
    }

    // Takes the times apart: as a struct they would go through memory, in pieces of different sizes, for
    // which the processor has to wait.
    [[gnu::always_inline]] inline bool place(std::int64_t key, const Times& times, std::uint32_t site,
                                             std::span<const std::byte> payload, std::uint32_t async) {
        std::int64_t start = times.start;
        std::int64_t end = times.end;
        std::uint32_t flags = times.flags;
        if (after_gap_) [[unlikely]] {
            after_gap_ = false;
            while (end < top_->start - kSlackNs) pop();
        }
        while (top_->ends_by_time && end <= top_->start) [[unlikely]] pop();
        if (end > top_->limit || start < top_->start) [[unlikely]] {
            const bool is_far = end - kSlackNs > top_->limit || start + kSlackNs < top_->start;
            if (is_far && !cuts_far_) {
                ++replay_.misplaced;
                add_async_row(times, site, payload);
                return false;
            }
            ++replay_.adjusted;
            end = std::clamp(end, top_->start, top_->limit);
            start = std::clamp(start, top_->start, end);
            if (end != filter_.end_ns) flags &= ~std::uint32_t{kUnfinished};
            if (start >= filter_.start_ns) flags &= ~std::uint32_t{kBeganBefore};
        }
        top_->limit = start;
        if (top_ == last_) grow();
        Frame& frame = *++top_;
        frame.key = key;
        frame.start = start;
        frame.end = end;
        frame.limit = end;
        frame.children = 0;
        frame.payload = payload.data();
        frame.payload_bytes = static_cast<std::uint32_t>(payload.size());
        frame.site = site;
        frame.async = async;
        frame.flags = static_cast<std::uint16_t>(flags);
        frame.is_sequenced = false;
        frame.ends_by_time = false;
        frame.is_crossing = false;
        frame.has_waiting = false;
        frame.call = 0;
        last_place_ = Place::Stack;
        return true;
    }

    [[gnu::always_inline]] inline void pop() {
        const Frame& frame = *top_--;
        if (next_row_ == 0) [[unlikely]]
            return;  // the log changed while it was read
        const std::int64_t first = std::max(frame.start, filter_.start_ns);
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
            // Counted from the end for now; finish() reverses it.
            replay_.payloads.push_back(
                {static_cast<std::uint32_t>(slice_.capacity - row), frame.payload_bytes, frame.payload});
        }
        if (frame.is_sequenced) {
            replay_.sequenced.push_back(
                {static_cast<std::uint32_t>(slice_.capacity - row), frame.sequence, frame.forward_thread});
        }
        if (frame.call != 0) [[unlikely]] {
            CallPart& part = replay_.parts.emplace_back();
            part.call = frame.call;
            part.row = static_cast<Row>(slice_.capacity - row);
            part.flags = frame.part;
        }
        if (frame.is_crossing || frame.has_waiting) [[unlikely]]
            leave_crossing(frame.is_crossing, frame.has_waiting);
    }

    void add_async_row(const Times& times, std::uint32_t site, std::span<const std::byte> payload) {
        replay_.async_rows.push_back({times.start, times.end, site,
                                      static_cast<std::uint16_t>(times.flags | kAsync),
                                      static_cast<std::uint32_t>(payload.size()), payload.data()});
        last_place_ = Place::Aside;
    }

    void grow() {
        const auto index = top_ - frames_.data();
        frames_.resize(frames_.size() * 2);
        top_ = frames_.data() + index;
        last_ = &frames_.back();
    }

    ThreadReplay& replay_;
    const SessionFilter& filter_;
    TickConverter converter_;
    RowSlice slice_;
    std::size_t next_row_;
    std::vector<Frame> frames_;  // [0] stands for the thread
    Frame* top_;
    Frame* last_;
    std::uint64_t last_start_ = 0;     // ticks, of the previous range; 0: it is not kept
    Place last_place_ = Place::Stack;  // of the previous range
    bool after_gap_ = false;
    bool cuts_far_ = false;     // the range to place is cut, not taken out of the nesting
    std::size_t crossing_ = 0;  // calls on the stack or waiting
    std::vector<Cut> cuts_;
    std::vector<Waiting> waiting_;  // calls of inner ranges after those of outer ones
};

}  // namespace marey
