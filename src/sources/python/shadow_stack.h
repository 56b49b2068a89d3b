// shadow_stack.h: the calls of one thread whose ranges are open, so that every return ends its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <kymo/detail/hot_path.h>

#include "record/source_writer.h"
#include "sources/python/filtered_calls.h"
#include "sources/python/start_frames.h"

namespace kymo::python {

/// Calls are known by their frame; those into C by the frame that makes them, marked. Belongs to its thread.
class ShadowStack {
  public:
    ShadowStack() noexcept = default;
    ~ShadowStack() { std::free(base_); }
    ShadowStack(const ShadowStack&) = delete;
    ShadowStack& operator=(const ShadowStack&) = delete;

    static std::uintptr_t python_key(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame);
    }
    static std::uintptr_t c_key(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame) | 1;
    }

    [[gnu::always_inline]] void open(std::uintptr_t key, std::uint32_t site, Scope scope) noexcept {
        if (used_ == capacity_ && !grow()) [[unlikely]]
            return;
        const detail::Opened opened = detail::open_range(site, scope);
        base_[used_++] = {opened.start, key, opened.index, 0};
    }
    /// A call that is not recorded.
    void skip(std::uintptr_t key) noexcept {
        if (used_ == capacity_ && !grow()) return;
        base_[used_++] = {0, key, detail::kNotOpen, 0};
    }
    /// The same with a filter. `is_library`: of the function's code.
    void open_filtered(std::uintptr_t key, std::uint32_t site, Scope scope, int line,
                       bool is_library) noexcept {
        if (used_ == capacity_ && !grow()) return;
        const std::uint32_t place = log_place();
        const detail::Opened opened = python::open_filtered(site, scope, line);
        std::uint32_t flags = is_library ? kLibrary : 0;
        if ((key & 1) == 0) {
            ++depth_;
            flags |= kCounted;
        }
        base_[used_++] = {opened.start, key, opened.index, place | flags};
    }
    /// `is_cut`: it is too deep.
    void skip_filtered(std::uintptr_t key, bool is_library, bool is_transparent, bool is_cut) noexcept {
        if (used_ == capacity_ && !grow()) return;
        cut_ += is_cut ? 1 : 0;
        base_[used_++] = {
            0, key, detail::kNotOpen,
            (is_library ? kLibrary : 0) | (is_transparent ? kTransparent : 0) | (is_cut ? kCut : 0)};
    }
    void close_filtered(std::uintptr_t key) noexcept {
        std::size_t at = used_;
        while (at != 0 && base_[at - 1].key != key) --at;
        if (at-- == 0) return;
        const Entry entry = base_[at];
        for (std::size_t i = at + 1; i < used_; ++i) base_[i - 1] = base_[i];
        --used_;
        depth_ -= (entry.note & kCounted) != 0 ? 1 : 0;
        cut_ -= (entry.note & kCut) != 0 ? 1 : 0;
        if (entry.index != detail::kNotOpen)
            python::close_filtered({entry.start, entry.index}, entry.note & ~15u);
    }
    /// Recorded Python calls that have begun since tracing did.
    std::uint32_t depth() const noexcept { return depth_; }
    /// Whether something that is too deep runs.
    bool is_cut() const noexcept { return cut_ != 0; }
    /// Whether the innermost call that is not left out by its name is one of library code.
    bool is_in_library() const noexcept {
        for (std::size_t at = used_; at-- != 0;) {
            if ((base_[at].key & 1) == 0 && (base_[at].note & kTransparent) == 0)
                return (base_[at].note & kLibrary) != 0;
        }
        return false;
    }
    /// The filter is another one: what is open counts for nothing.
    void forget_filter() noexcept {
        depth_ = cut_ = 0;
        for (std::size_t i = 0; i < used_; ++i) base_[i].note &= ~(kCounted | kCut);
    }
    /// Ends what is open though its end has not been seen: for thread `thread`.
    void close_unseen(std::uint32_t thread) noexcept {
        while (used_ != 0) {
            const Entry& entry = base_[--used_];
            if (entry.index == detail::kNotOpen) continue;
            if (thread == detail::thread_number()) {
                close_late({entry.start, entry.index});
            } else {
                detail::close_elsewhere({entry.start, entry.index}, thread);
            }
        }
        depth_ = cut_ = 0;
    }
    [[gnu::always_inline]] void close(std::uintptr_t key) noexcept {
        if (used_ == 0 || base_[used_ - 1].key != key) [[unlikely]]
            return close_elsewhere_in(key);
        const Entry& entry = base_[--used_];
        if (entry.index != detail::kNotOpen) detail::close_range({entry.start, entry.index});
    }
    /// Takes over calls whose ranges are open already. The stack is empty.
    void adopt(const std::vector<AdoptedFrame>& frames) noexcept {
        for (const AdoptedFrame& frame : frames) {
            if (used_ == capacity_ && !grow()) return;
            const bool is_transparent = (frame.word & (kCodeSkipped | kCodeExcluded)) != 0;
            base_[used_++] = {
                frame.opened.start, python_key(frame.frame), frame.opened.index,
                ((frame.word & kCodeLibrary) != 0 ? kLibrary : 0) | (is_transparent ? kTransparent : 0)};
        }
    }
    /// Ends what is open, on behalf of thread `thread`.
    void close_all(std::uint32_t thread) noexcept {
        while (used_ != 0) {
            const Entry& entry = base_[--used_];
            if (entry.index != detail::kNotOpen) detail::close_elsewhere({entry.start, entry.index}, thread);
        }
        depth_ = cut_ = 0;
    }

  private:
    struct Entry {
        std::uint64_t start;
        std::uintptr_t key;
        std::uint32_t index;
        std::uint32_t note;  ///< log_place() when it began, and these:
    };
    static constexpr std::uint32_t kLibrary = 1, kTransparent = 2, kCounted = 4, kCut = 8;

    // A return that is not the innermost call's. Of a call that began before tracing: nothing is to be done.
    // Of one further down (a greenlet's, which was switched away from): it goes from the middle.
    [[gnu::noinline]] void close_elsewhere_in(std::uintptr_t key) noexcept {
        std::size_t at = used_;
        while (at != 0 && base_[at - 1].key != key) --at;
        if (at-- == 0) return;
        const Entry entry = base_[at];
        for (std::size_t i = at + 1; i < used_; ++i) base_[i - 1] = base_[i];
        --used_;
        if (entry.index != detail::kNotOpen) detail::close_range({entry.start, entry.index});
    }
    [[gnu::noinline]] bool grow() noexcept {
        const std::size_t more = capacity_ == 0 ? 256 : capacity_ * 2;
        void* const grown = std::realloc(base_, more * sizeof(Entry));
        if (grown == nullptr) return false;
        base_ = static_cast<Entry*>(grown);
        capacity_ = more;
        return true;
    }

    Entry* base_ = nullptr;
    std::size_t used_ = 0;
    std::size_t capacity_ = 0;
    std::uint32_t depth_ = 0;
    std::uint32_t cut_ = 0;
};

}  // namespace kymo::python
