// shadow_stack.h: the open calls of one thread, so that every return ends its own range.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <marey/detail/hot_path.h>

#include "record/source_writer.h"
#include "sources/python/call_key.h"
#include "sources/python/live_calls.h"
#include "sources/python/start_frames.h"

namespace marey::python {

/// A call of a greenlet that is not running.
struct SuspendedCall {
    std::uintptr_t key;
    std::uint32_t site;  ///< 0: not recorded, or no longer
    const void* part;    ///< stands for the call among the live calls, if it is recorded
};

/// Calls are identified by a key: their frame or code; for calls into C, that of the caller with a mark.
/// Belongs to its thread.
///
/// A usual call is a slot of the recorder's open stack, and its key is stored here at the same index: a
/// return compares the innermost slot and its key. All other calls (deep, observed, not recorded) are in a
/// list.
class ShadowStack {
  public:
    ShadowStack() noexcept = default;
    ~ShadowStack() { std::free(list_); }
    ShadowStack(const ShadowStack&) = delete;
    ShadowStack& operator=(const ShadowStack&) = delete;

    /// The usual case of open(). Returns the start; 0: nothing was done. `thread` is the calling thread.
    [[gnu::always_inline]] std::uint64_t try_open(detail::ThreadState* thread, std::uintptr_t key,
                                                  std::uint32_t site, Scope scope) noexcept {
        if ((detail::load_relaxed(thread->armed) & detail::scope_bit(scope)) == 0 ||
            !detail::may_open(thread, site) || usual_[thread->depth].key != 0) [[unlikely]]
            return 0;
        const detail::Opened opened = detail::open_slot(thread, site);
        usual_[opened.index] = {key, opened.start};
        return opened.start;
    }
    /// The usual case of close(). False: nothing was done.
    [[gnu::always_inline]] bool try_close(detail::ThreadState* thread, std::uintptr_t key) noexcept {
        const std::uint32_t index = thread->depth - 1;
        // Calls in the list enclose slots that were added later.
        if (index >= detail::kInlineDepth || index < list_depth_ || usual_[index].key != key) [[unlikely]]
            return false;
        if (!detail::try_close_range(thread, {usual_[index].start, index})) [[unlikely]]
            return false;
        usual_[index].key = 0;
        return true;
    }
    /// The same for a part of a call.
    template <class GetPart>
    [[gnu::always_inline]] bool try_close_part(const detail::ThreadState* thread, std::uintptr_t key,
                                               GetPart ending_part) noexcept {
        const std::uint32_t index = thread->depth - 1;
        if (index >= detail::kInlineDepth || index < list_depth_ ||
            usual_[index].key != (key | CallKey::kPart) ||
            detail::load_relaxed(thread->slots[index].start) != usual_[index].start)
            return false;
        usual_[index].key = 0;
        close_entry({usual_[index].start, index}, ending_part());
        return true;
    }

    void open(std::uintptr_t key, std::uint32_t site, Scope scope) noexcept {
        add(detail::open_range(site, scope), key);
    }
    /// Opens a part of a call that can be suspended. Returns its start; 0: it is not recorded.
    std::uint64_t open_part(std::uintptr_t key, std::uint32_t site, Scope scope) noexcept {
        const detail::Opened opened = detail::open_range(site, scope);
        add(opened, opened.index != detail::kNotOpen ? key | CallKey::kPart : key);
        return opened.start;
    }
    /// Whether the innermost call is a part.
    bool is_in_part() const noexcept {
        const std::uint32_t index = detail::current_thread->depth - 1;
        if (index < detail::kInlineDepth && index >= list_depth_) return CallKey::is_part(usual_[index].key);
        return used_ != 0 && CallKey::is_part(list_[used_ - 1].key);
    }
    /// Adds a call that is not recorded.
    void skip(std::uintptr_t key) noexcept { push({{0, detail::kNotOpen}, key, 0}); }

    /// Handles the return of any call. `ending_part()` is called if it is a part. False: the call was not
    /// found.
    template <class GetPart>
    bool close(std::uintptr_t key, GetPart ending_part) noexcept {
        const std::uint32_t index = detail::current_thread->depth - 1;
        const bool is_innermost =
            index < detail::kInlineDepth && index >= list_depth_ && CallKey::is_of(usual_[index].key, key) &&
            detail::load_relaxed(detail::current_thread->slots[index].start) == usual_[index].start;
        Entry entry{};
        if (is_innermost) {
            entry = take_usual(index);
        } else if (!take(key, entry)) {
            return false;
        }
        if (entry.opened.index == detail::kNotOpen) return true;
        EndingPart part{nullptr, true};
        if (CallKey::is_part(entry.key))
            part = ending_part();
        else if (CallKey::is_resumed(entry.key))
            part.frame = take_resumed(entry);
        close_entry(entry.opened, part);
        return true;
    }
    /// Takes over calls whose ranges are already open. The stack must be empty.
    void adopt(const std::vector<AdoptedFrame>& frames) noexcept {
        for (const AdoptedFrame& frame : frames) {
            const bool is_part = frame.is_part() && frame.opened.index != detail::kNotOpen;
            add(frame.opened, CallKey::python(frame.frame) | (is_part ? CallKey::kPart : 0));
        }
    }
    /// Ends all open calls on behalf of thread `thread`.
    void close_all(std::uint32_t thread) noexcept {
        while (used_ != 0) {
            const Entry entry = pop();
            if (entry.opened.index != detail::kNotOpen) detail::close_elsewhere(entry.opened, thread);
        }
        for (std::uint32_t index = detail::kInlineDepth; index-- != 0;) {
            if (usual_[index].key == 0) continue;
            usual_[index].key = 0;
            detail::close_elsewhere({usual_[index].start, index}, thread);
        }
        resumed_.clear();
    }

    /// The same for the calling thread, when their ends will not be seen.
    void close_all_late() noexcept {
        while (used_ != 0) {
            const Entry entry = pop();
            if (entry.opened.index != detail::kNotOpen) close_late(entry.opened);
        }
        for (std::uint32_t index = detail::kInlineDepth; index-- != 0;) {
            if (usual_[index].key == 0) continue;
            usual_[index].key = 0;
            close_late({usual_[index].start, index});
        }
        resumed_.clear();
    }
    /// Ends open calls into C on behalf of thread `thread`, because their ends will not be seen.
    void forget_c_calls(std::uint32_t thread) noexcept {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < used_; ++i) {
            if ((list_[i].key & CallKey::kC) == 0)
                list_[kept++] = list_[i];
            else if (list_[i].opened.index != detail::kNotOpen)
                detail::close_elsewhere(list_[i].opened, thread);
        }
        used_ = kept;
        list_depth_ = used_ == 0 ? 0 : list_[used_ - 1].depth;
        for (std::uint32_t index = detail::kInlineDepth; index-- != 0;) {
            if ((usual_[index].key & CallKey::kC) == 0) continue;
            usual_[index].key = 0;
            detail::close_elsewhere({usual_[index].start, index}, thread);
        }
    }
    /// Ends the ranges of all calls of the calling thread, which are parts of these calls, and returns the
    /// calls, the outermost first.
    std::vector<SuspendedCall> suspend() {
        struct StoppedCall {
            std::uint32_t depth;
            SuspendedCall call;
            detail::Opened opened;
        };
        std::vector<StoppedCall> found;
        const detail::ThreadState* const thread = detail::current_thread;
        for (std::uint32_t index = 0; index < detail::kInlineDepth; ++index) {
            const InlineCall& usual = usual_[index];
            if (usual.key == 0) continue;
            const detail::OpenSlot& slot = thread->slots[index];
            const bool is_there = index < thread->depth && detail::load_relaxed(slot.start) == usual.start;
            const auto site =
                static_cast<std::uint32_t>(detail::load_relaxed(slot.what) & (detail::kMaxSites - 1));
            found.push_back({index + 1, {usual.key, is_there ? site : 0, nullptr}, {usual.start, index}});
        }
        for (std::size_t i = 0; i < used_; ++i)
            found.push_back({list_[i].depth, {list_[i].key, 0, nullptr}, list_[i].opened});
        // At equal depth: the usual one first, others in their order.
        std::stable_sort(found.begin(), found.end(),
                         [](const StoppedCall& a, const StoppedCall& b) { return a.depth < b.depth; });
        std::vector<SuspendedCall> calls(found.size());
        used_ = 0;
        list_depth_ = 0;
        usual_.fill({});
        for (std::size_t i = found.size(); i-- != 0;) {
            const detail::Opened opened = found[i].opened;
            SuspendedCall& call = calls[i] = found[i].call;
            if (call.site != 0) call.part = part_of(call.key, opened.start);
            call.key &= ~CallKey::kResumed;
            if (opened.index != detail::kNotOpen) close_entry(opened, {call.part, false});
        }
        resumed_.clear();
        return calls;
    }
    /// Opens the next parts of these calls.
    void resume(const std::vector<SuspendedCall>& calls) {
        resumed_.reserve(calls.size());
        for (const SuspendedCall& call : calls) {
            if (call.site == 0) {
                skip(call.key);
                continue;
            }
            const bool is_c = (call.key & CallKey::kC) != 0;
            const detail::Opened opened =
                detail::open_range(call.site, is_c ? Scope::CFunction : Scope::PythonFunction);
            const bool is_open = opened.index != detail::kNotOpen && call.part != nullptr;
            const bool is_plain = is_open && !CallKey::is_part(call.key);
            add(opened, is_plain ? call.key | CallKey::kResumed : call.key);
            if (is_open) begin_part(call.part, false, opened.start);
            if (is_plain) resumed_.push_back({opened.start, call.part});
        }
    }
    /// Whether a call with this key is running.
    bool holds(std::uintptr_t key) const noexcept {
        for (std::size_t i = used_; i-- != 0;) {
            if (CallKey::is_of(list_[i].key, key)) return true;
        }
        return find_usual(key) != 0;
    }
    bool is_empty() const noexcept {
        for (const InlineCall& each : usual_) {
            if (each.key != 0) return false;
        }
        return used_ == 0;
    }

  private:
    struct InlineCall {
        std::uintptr_t key;  ///< 0: none
        std::uint64_t start;
    };
    struct Entry {
        detail::Opened opened;
        std::uintptr_t key;
        std::uint32_t depth;  ///< number of open ranges right after it began
    };

    struct Resumed {
        std::uint64_t start;
        const void* part;
    };

    static void close_entry(detail::Opened opened, EndingPart part) noexcept {
        if (part.frame != nullptr)
            close_call_part(part.frame, opened, part.is_last);
        else
            detail::close_range(opened);
    }
    // The running call among the live calls; added there if it was never suspended before.
    const void* part_of(std::uintptr_t key, std::uint64_t start) noexcept {
        if (CallKey::is_resumed(key)) return take_resumed({{start, 0}, key, 0});
        if (CallKey::is_part(key)) return frame_of_part(start);
        const void* const part = new_call();
        begin_part(part, true, start);
        return part;
    }
    // Null: it is not known.
    const void* take_resumed(const Entry& entry) noexcept {
        std::size_t at = resumed_.size();
        while (at != 0 && resumed_[at - 1].start != entry.opened.start) --at;
        if (at == 0) return nullptr;
        const void* const part = resumed_[at - 1].part;
        resumed_.erase(resumed_.begin() + static_cast<std::ptrdiff_t>(at - 1));
        return part;
    }

    void add(detail::Opened opened, std::uintptr_t key) noexcept {
        if (opened.index < detail::kInlineDepth) {
            if (usual_[opened.index].key != 0) spill(opened.index);
            usual_[opened.index] = {key, opened.start};
        } else {
            push({opened, key, 0});
        }
    }
    // The slot of the call at this index has moved down because an enclosing range ended first, and another
    // call needs the index.
    void spill(std::uint32_t index) noexcept {
        if (used_ == capacity_ && !grow()) return;
        list_depth_ = index;
        list_[used_++] = {{usual_[index].start, index}, usual_[index].key, index};
    }
    Entry take_usual(std::uint32_t index) noexcept {
        const InlineCall usual = usual_[index];
        usual_[index].key = 0;
        return {{usual.start, index}, usual.key, 0};
    }
    // Handles a return that does not belong to the innermost call. False: that call began before tracing. A
    // call further out (of a greenlet that was switched away from) is removed from the middle.
    [[gnu::noinline]] bool take(std::uintptr_t key, Entry& entry) noexcept {
        std::size_t at = used_;
        while (at != 0 && !CallKey::is_of(list_[at - 1].key, key)) --at;
        const std::uint32_t place = find_usual(key);
        if (at == 0 && place == 0) return false;
        // Take the innermost of the two if both have its key.
        if (at == 0 || place > list_[at - 1].depth) {
            entry = take_usual(place - 1);
            return true;
        }
        entry = list_[at - 1];
        for (std::size_t i = at; i < used_; ++i) list_[i - 1] = list_[i];
        pop();
        return true;
    }
    // The index of the innermost usual call with this key, from 1; 0: none. Slots may have moved down since.
    std::uint32_t find_usual(std::uintptr_t key) const noexcept {
        std::uint32_t place = detail::kInlineDepth;
        while (place != 0 && (usual_[place - 1].key == 0 || !CallKey::is_of(usual_[place - 1].key, key)))
            --place;
        return place;
    }

    void push(Entry entry) noexcept {
        if (used_ == capacity_ && !grow()) return;
        entry.depth = list_depth_ = detail::current_thread->depth;
        list_[used_++] = entry;
    }
    Entry pop() noexcept {
        const Entry entry = list_[--used_];
        list_depth_ = used_ == 0 ? 0 : list_[used_ - 1].depth;
        return entry;
    }
    [[gnu::noinline]] bool grow() noexcept {
        const std::size_t more = capacity_ == 0 ? 64 : capacity_ * 2;
        void* const grown = std::realloc(list_, more * sizeof(Entry));
        if (grown == nullptr) return false;
        list_ = static_cast<Entry*>(grown);
        capacity_ = more;
        return true;
    }

    std::uint32_t list_depth_ = 0;  ///< depth of the last entry in the list
    std::size_t used_ = 0;
    std::size_t capacity_ = 0;
    Entry* list_ = nullptr;
    std::vector<Resumed> resumed_;  ///< the running parts of calls with kResumed, the innermost last
    std::array<InlineCall, detail::kInlineDepth> usual_{};
};

}  // namespace marey::python
