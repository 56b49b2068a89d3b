// shadow_stack.h: the open calls of one thread, so that every return ends its own range.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include <marey/detail/hot_path.h>

#include "record/source_writer.h"
#include "sources/python/filtered_calls.h"
#include "sources/python/live_calls.h"
#include "sources/python/start_frames.h"

namespace marey::python {

/// The address of a call's frame or code; for a call into C, the address of its caller with a mark. Marks are
/// bits that are zero in addresses.
struct CallKey {
    static constexpr std::uintptr_t kC = 1;
    static constexpr std::uintptr_t kPart = 2;  ///< a running part of a generator's call; not for C
    static std::uintptr_t python(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame);
    }
    static std::uintptr_t c(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame) | kC;
    }
    /// A call into C that creates a thread, whose return must be noticed.
    static std::uintptr_t maker(const void* frame) noexcept { return c(frame) | 2; }
    static bool is_part(std::uintptr_t key) noexcept { return (key & 3) == kPart; }
    /// Whether an entry has this key, as a part or not.
    static bool is_of(std::uintptr_t entry, std::uintptr_t key) noexcept {
        return ((entry ^ key) & ~kPart) == 0;
    }
};

/// Calls are identified by a key: their frame or code; for calls into C, that of the caller with a mark.
/// Belongs to its thread.
///
/// A usual call is a slot of the recorder's open stack, and its key is stored here at the same index: a
/// return compares the innermost slot and its key. All other calls (deep, observed, not recorded, of a
/// greenlet that was switched to, begun while a filter was on) are in a list. Calls for which there is no
/// memory are not recorded.
class ShadowStack {
    struct Entry {
        detail::Opened opened;
        std::uintptr_t key;
        std::uint32_t depth = 0;  ///< number of open ranges right after it began
        std::uint32_t place = 0;  ///< log_place() when it began, if it began while a filter was on
        std::uint32_t flags = 0;
        std::uint32_t site = 0;  ///< 0: not recorded, or not known
        int line = -1;
        /// Stands for the call among the live calls, if its greenlet has left it.
        const void* part = nullptr;
    };
    /// Of calls that began while a filter was on: of library code; excluded by its name; counted in depth();
    /// too deep.
    static constexpr std::uint32_t kFiltered = 1, kLibrary = 2, kTransparent = 4, kCounted = 8, kCut = 16;

  public:
    ShadowStack() noexcept = default;
    ShadowStack(const ShadowStack&) = delete;
    ShadowStack& operator=(const ShadowStack&) = delete;

    /// The calls of a greenlet that is not running, the outermost first.
    class Suspended {
        friend ShadowStack;
        std::vector<Entry> calls_;
        std::uint32_t generation_ = 0;  ///< of the filter

      public:
        std::size_t size() const noexcept { return calls_.size(); }
        /// They do not continue.
        void forget() const noexcept {
            for (const Entry& call : calls_) {
                if (call.part != nullptr && !CallKey::is_part(call.key)) forget_call(call.part);
            }
        }
    };

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
        close_entry(take_usual(index), ending_part());
        return true;
    }

    /// Opens a call that passes the filter, if one is on; with kPart in its key, a part of a call that can be
    /// suspended. `line`: of the caller, if lines are recorded. `is_library`: whether the function is library
    /// code. Returns its start; 0: it is not recorded.
    std::uint64_t open(std::uintptr_t key, std::uint32_t site, Scope scope, int line = -1,
                       bool is_library = false) noexcept {
        const std::uint32_t place = log_place();
        // An observer may make its own calls, which begin and end here.
        const detail::Opened opened = open_filtered(site, scope, line);
        const bool is_open = opened.index != detail::kNotOpen;
        if (!is_open && CallKey::is_part(key)) key &= ~CallKey::kPart;
        if (!call_filter.is_on) {
            add(opened, key);
        } else {
            const bool is_counted = (key & CallKey::kC) == 0;
            const std::uint32_t flags = kFiltered | (is_library ? kLibrary : 0) | (is_counted ? kCounted : 0);
            if (!push({opened, key, 0, place, flags, site, line})) {
                if (is_open) drop_range(opened);
                return 0;
            }
        }
        return is_open ? opened.start : 0;
    }
    /// Whether the innermost call is a part.
    bool is_in_part() const noexcept {
        const std::uint32_t index = detail::current_thread->depth - 1;
        if (index < detail::kInlineDepth && index >= list_depth_) return CallKey::is_part(usual_[index].key);
        return !list_.empty() && CallKey::is_part(list_.back().key);
    }
    /// Adds a call that is not recorded. With a filter: of library code; excluded by its name; too deep.
    void skip(std::uintptr_t key, bool is_library = false, bool is_transparent = false,
              bool is_cut = false) noexcept {
        const std::uint32_t flags = (call_filter.is_on ? kFiltered : 0) | (is_library ? kLibrary : 0) |
                                    (is_transparent ? kTransparent : 0) | (is_cut ? kCut : 0);
        push({.opened = {0, detail::kNotOpen}, .key = key, .flags = flags});
    }
    /// The number of recorded Python calls that began since the filter was set.
    std::uint32_t depth() const noexcept { return counted_; }
    /// Whether a call that is too deep is running.
    bool is_cut() const noexcept { return cut_ != 0; }
    /// Whether the innermost call that is not excluded by its name is library code.
    bool is_in_library() const noexcept {
        for (std::size_t at = list_.size(); at-- != 0;) {
            const bool counts = (list_[at].flags & (kFiltered | kTransparent)) == kFiltered;
            if (counts && (list_[at].key & CallKey::kC) == 0) return (list_[at].flags & kLibrary) != 0;
        }
        return false;
    }

    /// Handles the return of any call. `ending_part()` is called if it is a part. False: the call was not
    /// found.
    bool close(std::uintptr_t key, auto ending_part) noexcept {
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
        close_entry(entry, CallKey::is_part(entry.key) ? ending_part() : EndingPart{entry.part, true});
        return true;
    }
    /// Takes over calls whose ranges are already open.
    void adopt(const std::vector<AdoptedFrame>& frames) noexcept {
        for (const AdoptedFrame& frame : frames) {
            const bool is_part = frame.is_part() && frame.opened.index != detail::kNotOpen;
            const std::uintptr_t key = CallKey::python(frame.frame) | (is_part ? CallKey::kPart : 0);
            if (!call_filter.is_on) {
                add(frame.opened, key);
                continue;
            }
            const bool is_transparent = (frame.word & (kCodeSkipped | kCodeExcluded)) != 0;
            const std::uint32_t flags = kFiltered | ((frame.word & kCodeLibrary) != 0 ? kLibrary : 0) |
                                        (is_transparent ? kTransparent : 0);
            push({.opened = frame.opened, .key = key, .flags = flags, .site = frame.site});
        }
    }
    /// Resets the counts, because the filter has changed.
    void forget_filter() noexcept {
        counted_ = cut_ = 0;
        for (Entry& entry : list_) entry.flags &= ~(kCounted | kCut);
    }
    /// Ends all open calls on behalf of thread `thread`. `is_late`: if that is the calling thread, because
    /// their ends will not be seen.
    void close_all(std::uint32_t thread, bool is_late = false) noexcept {
        is_late = is_late && thread == detail::thread_number();
        const auto end = [=](detail::Opened opened) {
            if (opened.index != detail::kNotOpen)
                is_late ? close_late(opened) : detail::close_elsewhere(opened, thread);
        };
        for (; !list_.empty(); list_.pop_back()) end(list_.back().opened);
        for (std::uint32_t index = detail::kInlineDepth; index-- != 0;) {
            if (usual_[index].key != 0) end(take_usual(index).opened);
        }
        counted_ = cut_ = list_depth_ = 0;
    }
    /// Ends open calls into C on behalf of thread `thread`, because their ends will not be seen.
    void forget_c_calls(std::uint32_t thread) noexcept {
        const auto is_c = [](std::uintptr_t key) { return (key & CallKey::kC) != 0; };
        std::erase_if(list_, [=](const Entry& entry) {
            if (!is_c(entry.key)) return false;
            if (entry.opened.index != detail::kNotOpen) detail::close_elsewhere(entry.opened, thread);
            return true;
        });
        list_changed();
        for (std::uint32_t index = detail::kInlineDepth; index-- != 0;) {
            if (is_c(usual_[index].key)) detail::close_elsewhere(take_usual(index).opened, thread);
        }
    }
    /// Ends the ranges of all calls of the calling thread, which are parts of these calls, and returns the
    /// calls.
    Suspended suspend() {
        Suspended left;
        left.generation_ = call_filter.generation;
        const detail::ThreadState* const thread = detail::current_thread;
        for (std::uint32_t index = 0; index < detail::kInlineDepth; ++index) {
            if (usual_[index].key == 0) continue;
            Entry call = take_usual(index);
            const detail::OpenSlot& slot = thread->slots[index];
            if (index < thread->depth && detail::load_relaxed(slot.start) == call.opened.start)
                call.site =
                    static_cast<std::uint32_t>(detail::load_relaxed(slot.what) & (detail::kMaxSites - 1));
            left.calls_.push_back(call);
        }
        left.calls_.insert(left.calls_.end(), list_.begin(), list_.end());
        // At equal depth: the usual one first, others in their order.
        std::stable_sort(left.calls_.begin(), left.calls_.end(),
                         [](const Entry& a, const Entry& b) { return a.depth < b.depth; });
        list_.clear();
        counted_ = cut_ = list_depth_ = 0;
        for (std::size_t at = left.calls_.size(); at-- != 0;) {
            Entry& call = left.calls_[at];
            if (call.opened.index == detail::kNotOpen) continue;
            if (call.site != 0 && CallKey::is_part(call.key)) {
                call.part = frame_of_part(call.opened.start);
            } else if (call.site != 0 && call.part == nullptr) {
                call.part = new_call();
                begin_part(call.part, true, call.opened.start);
            }
            close_entry(call, {call.part, false});
        }
        return left;
    }
    /// Opens the next parts of these calls.
    void resume(const Suspended& left) {
        const bool is_same_filter = left.generation_ == call_filter.generation;
        for (Entry call : left.calls_) {
            const bool is_recorded = call.opened.index != detail::kNotOpen && call.site != 0;
            const bool is_c = (call.key & CallKey::kC) != 0;
            if (!is_same_filter) call.flags &= ~(kCounted | kCut);
            call.place = log_place();
            call.opened =
                is_recorded
                    ? open_filtered(call.site, is_c ? Scope::CFunction : Scope::PythonFunction, call.line)
                    : detail::Opened{0, detail::kNotOpen};
            const bool is_open = call.opened.index != detail::kNotOpen;
            if (is_open && call.part != nullptr) begin_part(call.part, false, call.opened.start);
            if (!push(call) && is_open) drop_range(call.opened);
        }
    }
    /// Whether a call with this key is running.
    bool holds(std::uintptr_t key) const noexcept {
        return find_usual(key) != 0 || std::any_of(list_.begin(), list_.end(), [=](const Entry& entry) {
                   return CallKey::is_of(entry.key, key);
               });
    }
    bool is_empty() const noexcept {
        for (const InlineCall& each : usual_) {
            if (each.key != 0) return false;
        }
        return list_.empty();
    }

  private:
    struct InlineCall {
        std::uintptr_t key;  ///< 0: none
        std::uint64_t start;
    };
    static void close_entry(const Entry& entry, EndingPart part) noexcept {
        const bool is_filtered = (entry.flags & kFiltered) != 0;
        if (part.frame == nullptr)
            is_filtered ? close_filtered(entry.opened, entry.place) : detail::close_range(entry.opened);
        else if (is_filtered)
            close_filtered_part(part.frame, entry.opened, entry.place, part.is_last);
        else
            close_call_part(part.frame, entry.opened, part.is_last);
    }

    void add(detail::Opened opened, std::uintptr_t key) noexcept {
        if (opened.index < detail::kInlineDepth) {
            if (usual_[opened.index].key != 0) spill(opened.index);
            usual_[opened.index] = {key, opened.start};
        } else {
            push({opened, key});
        }
    }
    // The slot of the call at this index has moved down because an enclosing range ended first, and another
    // call needs the index.
    void spill(std::uint32_t index) noexcept {
        append({{usual_[index].start, index}, usual_[index].key, index});
        list_changed();
    }
    Entry take_usual(std::uint32_t index) noexcept {
        const InlineCall usual = std::exchange(usual_[index], {});
        return {{usual.start, index}, usual.key, index + 1};
    }
    // Handles a return that does not belong to the innermost call. False: that call began before tracing. A
    // call further out (of a greenlet that was switched away from) is removed from the middle.
    [[gnu::noinline]] bool take(std::uintptr_t key, Entry& entry) noexcept {
        std::size_t at = list_.size();
        while (at != 0 && !CallKey::is_of(list_[at - 1].key, key)) --at;
        const std::uint32_t place = find_usual(key);
        if (at == 0 && place == 0) return false;
        // Take the innermost of the two if both have its key.
        if (at == 0 || place > list_[at - 1].depth) {
            entry = take_usual(place - 1);
            return true;
        }
        entry = list_[at - 1];
        list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(at - 1));
        list_changed();
        counted_ -= (entry.flags & kCounted) != 0 ? 1 : 0;
        cut_ -= (entry.flags & kCut) != 0 ? 1 : 0;
        return true;
    }
    // The index of the innermost usual call with this key, from 1; 0: none. Slots may have moved down since.
    std::uint32_t find_usual(std::uintptr_t key) const noexcept {
        std::uint32_t place = detail::kInlineDepth;
        while (place != 0 && (usual_[place - 1].key == 0 || !CallKey::is_of(usual_[place - 1].key, key)))
            --place;
        return place;
    }

    bool push(Entry entry) noexcept {
        entry.depth = detail::current_thread->depth;
        if (!append(entry)) return false;
        list_changed();
        counted_ += (entry.flags & kCounted) != 0 ? 1 : 0;
        cut_ += (entry.flags & kCut) != 0 ? 1 : 0;
        return true;
    }
    bool append(const Entry& entry) noexcept {
        try {
            list_.push_back(entry);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }
    void list_changed() noexcept { list_depth_ = list_.empty() ? 0 : list_.back().depth; }

    std::uint32_t list_depth_ = 0;  ///< depth of the last entry in the list
    std::uint32_t counted_ = 0;     ///< calls in the list with kCounted
    std::uint32_t cut_ = 0;         ///< with kCut
    std::vector<Entry> list_;
    std::array<InlineCall, detail::kInlineDepth> usual_{};
};

}  // namespace marey::python
