// filtered_stack.h: the calls of one thread that began while a filter was on, recorded or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "record/source_writer.h"
#include "sources/python/call_key.h"
#include "sources/python/filtered_calls.h"
#include "sources/python/live_calls.h"
#include "sources/python/start_frames.h"

namespace marey::python {

/// Used in addition to the thread's ShadowStack, with the same keys. Belongs to its thread. Calls for which
/// there is no memory are not recorded.
class FilteredStack {
    struct Entry {
        detail::Opened opened;
        std::uintptr_t key;
        std::uint32_t note;  ///< log_place() when it began, and these bits:
        std::uint32_t site = 0;
        int line = -1;
        const void* part =
            nullptr;  ///< stands for the call among the live calls, if its greenlet has left it
    };
    static constexpr std::uint32_t kLibrary = 1, kTransparent = 2, kCounted = 4, kCut = 8;

  public:
    /// The calls of a greenlet that is not running.
    class Suspended {
        friend FilteredStack;
        std::vector<Entry> entries_;
        std::uint32_t generation_ = 0;  ///< of the filter

      public:
        bool is_empty() const noexcept { return entries_.empty(); }
        /// They do not continue.
        void forget() const noexcept {
            for (const Entry& entry : entries_) {
                if (entry.part != nullptr && !CallKey::is_part(entry.key)) forget_call(entry.part);
            }
        }
    };

    /// Opens a call that passes the filter. `is_library`: whether the function is library code. Returns its
    /// start; 0 if it is not recorded.
    std::uint64_t open(std::uintptr_t key, std::uint32_t site, Scope scope, int line,
                       bool is_library) noexcept {
        const bool is_counted = (key & 1) == 0;
        const std::uint32_t note = log_place() | (is_library ? kLibrary : 0) | (is_counted ? kCounted : 0);
        // An observer may make its own calls, which begin and end here.
        const detail::Opened opened = open_filtered(site, scope, line);
        const bool is_open = opened.index != detail::kNotOpen;
        if (!push({opened, key, note, site, line})) {
            if (is_open) drop_range(opened);
            return 0;
        }
        depth_ += is_counted ? 1 : 0;
        return is_open ? opened.start : 0;
    }
    /// Whether the innermost Python call is a part.
    bool is_in_part() const noexcept { return !entries_.empty() && CallKey::is_part(entries_.back().key); }
    /// Adds a call that does not pass. `is_cut`: it is too deep. `is_transparent`: it is excluded by its
    /// name.
    void skip(std::uintptr_t key, bool is_library, bool is_transparent, bool is_cut) noexcept {
        const std::uint32_t note =
            (is_library ? kLibrary : 0) | (is_transparent ? kTransparent : 0) | (is_cut ? kCut : 0);
        if (push({{0, detail::kNotOpen}, key, note})) cut_ += is_cut ? 1 : 0;
    }
    /// Returns false if there is no such call. `ending_part()` is called if it is a part.
    template <class GetPart>
    bool close(std::uintptr_t key, GetPart ending_part) noexcept {
        std::size_t at = entries_.size();
        while (at != 0 && !CallKey::is_of(entries_[at - 1].key, key)) --at;
        if (at-- == 0) return false;
        const Entry entry = entries_[at];
        entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(at));
        depth_ -= (entry.note & kCounted) != 0 ? 1 : 0;
        cut_ -= (entry.note & kCut) != 0 ? 1 : 0;
        if (entry.opened.index == detail::kNotOpen) return true;
        close_entry(entry, CallKey::is_part(entry.key) ? ending_part() : EndingPart{entry.part, true});
        return true;
    }
    /// Takes over calls whose ranges are already open.
    void adopt(const std::vector<AdoptedFrame>& frames) noexcept {
        for (const AdoptedFrame& frame : frames) {
            const bool is_transparent = (frame.word & (kCodeSkipped | kCodeExcluded)) != 0;
            push({frame.opened,
                  reinterpret_cast<std::uintptr_t>(frame.frame) | (frame.is_part() ? CallKey::kPart : 0),
                  ((frame.word & kCodeLibrary) != 0 ? kLibrary : 0) | (is_transparent ? kTransparent : 0),
                  frame.site});
        }
    }
    /// The number of recorded Python calls that began since tracing started.
    std::uint32_t depth() const noexcept { return depth_; }
    /// Whether a call that is too deep is running.
    bool is_cut() const noexcept { return cut_ != 0; }
    /// Whether the innermost call that is not excluded by its name is library code.
    bool is_in_library() const noexcept {
        for (std::size_t at = entries_.size(); at-- != 0;) {
            if ((entries_[at].key & 1) == 0 && (entries_[at].note & kTransparent) == 0)
                return (entries_[at].note & kLibrary) != 0;
        }
        return false;
    }
    bool is_empty() const noexcept { return entries_.empty(); }
    bool holds(std::uintptr_t key) const noexcept {
        for (const Entry& entry : entries_) {
            if (CallKey::is_of(entry.key, key)) return true;
        }
        return false;
    }
    /// Resets the counts, because the filter has changed.
    void forget_filter() noexcept {
        depth_ = cut_ = 0;
        for (Entry& entry : entries_) entry.note &= ~(kCounted | kCut);
    }
    /// Ends open calls into C on behalf of thread `thread`, because their ends will not be seen.
    void forget_c_calls(std::uint32_t thread) noexcept {
        std::erase_if(entries_, [=](const Entry& entry) {
            if ((entry.key & CallKey::kC) == 0) return false;
            if (entry.opened.index != detail::kNotOpen) detail::close_elsewhere(entry.opened, thread);
            return true;
        });
    }
    /// Ends the ranges of all calls of the calling thread, which are parts of these calls, and returns the
    /// calls.
    Suspended suspend() noexcept {
        Suspended calls;
        calls.entries_ = std::exchange(entries_, {});
        calls.generation_ = call_filter.generation;
        depth_ = cut_ = 0;
        for (std::size_t at = calls.entries_.size(); at-- != 0;) {
            Entry& entry = calls.entries_[at];
            if (entry.opened.index == detail::kNotOpen) continue;
            if (CallKey::is_part(entry.key)) {
                entry.part = frame_of_part(entry.opened.start);
            } else if (entry.part == nullptr) {
                entry.part = new_call();
                begin_part(entry.part, true, entry.opened.start);
            }
            close_entry(entry, {entry.part, false});
        }
        return calls;
    }
    /// Opens the next parts of these calls.
    void resume(const Suspended& calls) noexcept {
        const bool is_same_filter = calls.generation_ == call_filter.generation;
        for (Entry entry : calls.entries_) {
            entry.note &= is_same_filter ? 15u : kLibrary | kTransparent;
            if (entry.opened.index != detail::kNotOpen) {
                entry.note |= log_place();
                const bool is_c = (entry.key & CallKey::kC) != 0;
                entry.opened =
                    entry.site == 0
                        ? detail::Opened{0, detail::kNotOpen}
                        : open_filtered(entry.site, is_c ? Scope::CFunction : Scope::PythonFunction,
                                        entry.line);
                if (entry.opened.index != detail::kNotOpen && entry.part != nullptr)
                    begin_part(entry.part, false, entry.opened.start);
            }
            if (!push(entry)) {
                if (entry.opened.index != detail::kNotOpen) drop_range(entry.opened);
                continue;
            }
            depth_ += (entry.note & kCounted) != 0 ? 1 : 0;
            cut_ += (entry.note & kCut) != 0 ? 1 : 0;
        }
    }
    /// Ends all open calls on behalf of thread `thread`. `is_late`: their ends will not be seen.
    void close_all(std::uint32_t thread, bool is_late) noexcept {
        while (!entries_.empty()) {
            const detail::Opened opened = entries_.back().opened;
            entries_.pop_back();
            if (opened.index == detail::kNotOpen) continue;
            if (is_late && thread == detail::thread_number()) {
                close_late(opened);
            } else {
                detail::close_elsewhere(opened, thread);
            }
        }
        depth_ = cut_ = 0;
    }

  private:
    static void close_entry(const Entry& entry, EndingPart part) noexcept {
        const std::uint32_t place = entry.note & ~15u;
        if (part.frame != nullptr)
            close_filtered_part(part.frame, entry.opened, place, part.is_last);
        else
            close_filtered(entry.opened, place);
    }
    bool push(const Entry& entry) noexcept {
        try {
            entries_.push_back(entry);
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    std::vector<Entry> entries_;
    std::uint32_t depth_ = 0;
    std::uint32_t cut_ = 0;
};

}  // namespace marey::python
