// shadow_stack.h: the calls of one thread whose ranges are open, so that every return ends its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <kymo/detail/hot_path.h>

#include "record/source_writer.h"
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
    /// A part of a call that can be suspended. Gives its start, 0: it is not recorded.
    std::uint64_t open_part(std::uintptr_t key, std::uint32_t site, Scope scope) noexcept {
        if (used_ == capacity_ && !grow()) return 0;
        const detail::Opened opened = detail::open_range(site, scope);
        base_[used_++] = {opened.start, key, opened.index, opened.index == detail::kNotOpen ? 0u : 1u};
        return opened.start;
    }
    /// Whether the innermost call is a part.
    bool is_in_part() const noexcept { return used_ != 0 && base_[used_ - 1].is_part != 0; }
    /// A call that is not recorded.
    void skip(std::uintptr_t key) noexcept {
        if (used_ == capacity_ && !grow()) return;
        base_[used_++] = {0, key, detail::kNotOpen, 0};
    }
    /// `end_part(start)` is called before the end of a part.
    template <class EndPart>
    [[gnu::always_inline]] void close(std::uintptr_t key, EndPart end_part) noexcept {
        if (used_ == 0 || base_[used_ - 1].key != key) [[unlikely]] {
            Entry entry;
            if (!take_elsewhere(key, entry)) return;
            if (entry.is_part != 0) end_part(entry.start);
            if (entry.index != detail::kNotOpen) detail::close_range({entry.start, entry.index});
            return;
        }
        const Entry entry = base_[--used_];
        if (entry.is_part != 0) [[unlikely]]
            end_part(entry.start);
        if (entry.index != detail::kNotOpen) detail::close_range({entry.start, entry.index});
    }
    [[gnu::always_inline]] void close(std::uintptr_t key) noexcept {
        close(key, [](std::uint64_t) {});
    }
    /// Takes over calls whose ranges are open already. The stack is empty.
    void adopt(const std::vector<AdoptedFrame>& frames) noexcept {
        for (const AdoptedFrame& frame : frames) {
            if (used_ == capacity_ && !grow()) return;
            base_[used_++] = {frame.opened.start, python_key(frame.frame), frame.opened.index,
                              frame.is_part && frame.opened.index != detail::kNotOpen ? 1u : 0u};
        }
    }
    /// Ends what is open, on behalf of thread `thread`.
    void close_all(std::uint32_t thread) noexcept {
        while (used_ != 0) {
            const Entry& entry = base_[--used_];
            if (entry.index != detail::kNotOpen) detail::close_elsewhere({entry.start, entry.index}, thread);
        }
    }

  private:
    struct Entry {
        std::uint64_t start;
        std::uintptr_t key;
        std::uint32_t index;
        std::uint32_t is_part;
    };

    // A return that is not the innermost call's. Of a call that began before tracing: nothing is to be done.
    // Of one further down (a greenlet's, which was switched away from): it goes from the middle.
    [[gnu::noinline]] bool take_elsewhere(std::uintptr_t key, Entry& entry) noexcept {
        std::size_t at = used_;
        while (at != 0 && base_[at - 1].key != key) --at;
        if (at-- == 0) return false;
        entry = base_[at];
        for (std::size_t i = at + 1; i < used_; ++i) base_[i - 1] = base_[i];
        --used_;
        return true;
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
};

}  // namespace kymo::python
