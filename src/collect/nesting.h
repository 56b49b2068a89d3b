// nesting.h: the stack that turns a thread's records, last one first, into rows in pre-order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "collect/clocks/clock_fit.h"
#include "collect/crossing_calls.h"
#include "collect/log_records.h"
#include "collect/session_filter.h"
#include "collect/thread_replay.h"

namespace marey {

/// A range of the log, with times in ticks.
struct LoggedRange {
    std::uint32_t depth;
    std::uint64_t start;
    std::uint64_t end;  ///< ~0: never ended
    std::uint32_t site;
    std::uint16_t flags;
    std::span<const std::byte> payload;  ///< must outlive the build
};

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
    void push_scope(const LoggedRange& range) {
        const std::int64_t key = key_of(range);
        pop_to(key, range.end);
        push(key, range.start, range.end, range.site, range.flags, range.payload, 0);
    }
    /// A call that crosses: ranges around it ended within it, or ranges that began in it outlived it. It is
    /// shown from the last of those ends to the first of those begins: the rest, inside such a range, belongs
    /// to the range.
    void push_crossing(const LoggedRange& range) {
        const std::int64_t key = key_of(range);
        const RangeTimes times = times_of(range.start, range.end, range.flags);
        while (is_within(*top_, key, times.start) && top_->start >= times.end) pop();
        if (!is_within(*top_, key, times.start)) {
            top_crosses(push(key, range.start, range.end, range.site, range.flags, range.payload, 0));
            return;
        }
        // A range that began in it is on the stack and not complete yet: the call's place is before it.
        Frame* first = top_;
        std::size_t left = kMaxShifted;
        while (is_within(first[-1], key, times.start) && --left != 0) --first;
        pass_removed(range.depth, range.start);
        if (left == 0) return add_async(range);
        first->has_waiting = true;
        crossing_.wait(
            {first - frames_.data(), key, times, filter_.site_rows.row(range.site), range.payload, 0, 0});
        last_start_ = range.start;
        last_place_ = Place::Waiting;
    }
    /// A range that ended before ranges inside it which never ended: these end with it. False: there are
    /// others inside it, or none, and nothing has changed.
    bool push_around_open(const LoggedRange& range) {
        const std::int64_t key = key_of(range);
        RangeTimes times = times_of(range.start, range.end, range.flags);
        while (is_within(*top_, key, times.start) && top_->start >= times.end) pop();
        Frame* first = top_ + 1;
        while (first > frames_.data() + 1 && is_within(first[-1], key, times.start)) {
            if (!never_ended(*--first)) return false;
        }
        const auto inside = static_cast<std::size_t>(top_ + 1 - first);
        if (inside == 0 || cuts_.is_full()) return false;
        cuts_.cut(first->start, inside, slice_.depth, next_row_, slice_.capacity);
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
        Frame around{.key = key,
                     .start = times.start,
                     .end = times.end,
                     .limit = frames_[index + 1].start,
                     .payload = range.payload.data(),
                     .payload_bytes = static_cast<std::uint32_t>(range.payload.size()),
                     .site = filter_.site_rows.row(range.site),
                     .flags = times.flags};
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
    bool push_async(const LoggedRange& range, std::uint32_t id) {
        const std::int64_t key = key_of(range) - 1;
        pop_to(key + 1, range.end);
        return push(key, range.start, range.end, range.site, range.flags, range.payload, id);
    }
    /// The same for a step, which is shown from `from`, the end of the last scope that it began in and
    /// outlived. Of the step and a scope that began in it and outlived it, the one that loses less time is
    /// cut: the step begins with the scope, or the scope begins at the end of the step. Where that would take
    /// away more than 1/kStepShare of the step's time, the step keeps its times and becomes async: false.
    bool push_step(const LoggedRange& range, std::uint64_t from, std::uint32_t id) {
        std::int64_t key = key_of(range) - 1;
        pop_to(key + 1, range.end);
        const RangeTimes whole = times_of(range.start, range.end, range.flags);
        Frame* scope = top_ + 1;
        std::int64_t first = times_of(from, range.end, range.flags).start;
        while (scope[-1].start > first) --scope;
        for (; scope <= top_ && scope->start - first <= whole.end - scope->start; ++scope)
            first = scope->start;
        const std::int64_t lost = first - whole.start + (scope <= top_ ? whole.end - scope->start : 0);
        if (lost > (whole.end - whole.start) / kStepShare) {
            add_async(range);
            return false;
        }
        if (scope <= top_) {
            key = scope->key - 1;
            for (; scope <= top_; ++scope) {
                if (!std::exchange(scope->is_crossing, true)) crossing_.add();
            }
            pop_to(key + 1, range.end);
        }
        cuts_far_ = true;
        const bool is_placed = push(key, from, range.end, range.site, range.flags, range.payload, id);
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
    void add_async(const LoggedRange& range) {
        add_async_row(times_of(range.start, range.end, range.flags), filter_.site_rows.row(range.site),
                      range.payload);
        last_start_ = range.start;
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

    enum class Place : std::uint8_t { Stack, Aside, Waiting };

    static std::int64_t key_of(const LoggedRange& range) noexcept { return std::int64_t{range.depth} * 2; }

    // Whether a range on the stack began inside a scope of that key and start. For a movable range of the
    // same depth as the scope only the start decides.
    static bool is_within(const Frame& frame, std::int64_t key, std::int64_t start_ns) noexcept {
        return frame.key >= key || (frame.key == key - 1 && start_ns <= frame.start);
    }

    static bool never_ended(const Frame& frame) noexcept {
        return (frame.flags & (kUnfinished | kEndInferred)) != 0 && frame.async == 0 && !frame.is_crossing &&
               !frame.has_waiting;
    }
    // Removes frames that cannot be around a range of that key, which ended at `end`.
    [[gnu::always_inline]] inline void pop_to(std::int64_t key, std::uint64_t end) {
        if (crossing_.has_any()) [[unlikely]]
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
            set(crossing_.last());
        }
    }

    void top_crosses(bool is_placed) noexcept {
        if (!is_placed) return;
        top_->is_crossing = true;
        crossing_.add();
    }

    // The range that the calls waited for has left the stack: they come before it.
    [[gnu::noinline]] void push_waiting(std::ptrdiff_t frame) {
        const bool after_gap = std::exchange(after_gap_, false);
        for (WaitingCall call : crossing_.take(frame)) {
            while (top_->key >= call.key) pop();
            if (call.times.end > top_->limit) {
                call.times.end = top_->limit;
                call.times.flags = static_cast<std::uint16_t>(call.times.flags & ~kUnfinished);
            }
            call.times.start = std::min(call.times.start, call.times.end);
            top_crosses(place(call.key, call.times, call.site, call.payload, 0));
            set_last_part(call.call, call.part);
        }
        last_start_ = 0;
        after_gap_ = after_gap;
    }
    // For a frame that is off the stack.
    [[gnu::noinline]] void leave_crossing(bool is_crossing, bool has_waiting) {
        if (is_crossing) crossing_.remove();
        if (has_waiting) push_waiting(top_ - frames_.data() + 1);
    }

    [[gnu::always_inline]] inline RangeTimes times_of(std::uint64_t start, std::uint64_t end,
                                                      std::uint16_t flags) noexcept {
        RangeTimes times{to_ns(start), 0, flags};
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
    [[gnu::always_inline]] inline bool place(std::int64_t key, const RangeTimes& times, std::uint32_t site,
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

    void add_async_row(const RangeTimes& times, std::uint32_t site, std::span<const std::byte> payload) {
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
    bool cuts_far_ = false;  // the range to place is cut, not taken out of the nesting
    CrossingCalls crossing_;
    CutFrames cuts_;
};

}  // namespace marey
